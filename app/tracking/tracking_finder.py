"""Runs a solution's networks frame by frame: the detector only where something may be new, then what follows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.base.wording import counted

from ..models.decoders.found import Finding, Points, moved_finding
from ..models.decoders.region import FrameRegion, whole_region
from ..picture.picture import ImageSize
from ..picture.video_frame import VideoFrame
from .finder import FrameFinder, RegionNetwork, found_in_each
from .home_region import DOUBTED_STEP, MOST_STEP, Home, is_in, step_between
from .one_euro import OneEuroFilter, VisibilityFilter
from .region_rules import around_box, core_of, is_usable, overlap, share_inside
from .solutions import Followed, PartLook, Solution

__all__ = ["make_finder"]

_MOST_THINGS = 64
_REMEMBERED_S = 0.5
_WITHOUT_MARGIN = 2 / 3  # of a region's sides: those of what it was grown around
_SAME_BOX = 0.3  # overlap of a detector's boxes in two looks, as in one
_TIME_ROUNDS_S = 1e-4  # three frames of 30 a second are a tenth of one, or a little less


def make_finder(solution: Solution, networks: Sequence[RegionNetwork], most: int | None = None) -> FrameFinder:
    """What finds things in frames by a solution, whose `networks` are in the order of its models.

    `most` things are followed, 1 to 64 (faces, hands, people). Pictures that have nothing to do with one another, as
    MediaPipe's static_image_mode, want begin_anew() before each. Raises UsageError for another number of networks or
    things.
    """
    wanted = len(solution.models)
    if len(networks) != wanted:
        raise UsageError(f"{solution.name} takes {counted(wanted, 'network')}, not {len(networks)}")
    number = solution.most if most is None else most
    if not 1 <= number <= _MOST_THINGS:
        raise UsageError(f"{number} things at most are to be followed; give 1 to {_MOST_THINGS}")
    return _TrackingFinder(solution, tuple(networks), number)


@dataclass
class _Track:
    """One thing, from frame to frame."""

    number: int  # 0 before something was found
    region: FrameRegion  # where the next frame is looked at
    home: Home | None = None  # of what has points that hold it: where it began
    held: Points | None = None  # those points, as they came from the frame before
    points: OneEuroFilter | None = None
    auxiliary: OneEuroFilter | None = None
    certainty: VisibilityFilter | None = None


class _Numbers:
    """Numbers of things; what comes back within half a second, where it was lost, has its own again."""

    def __init__(self, least_overlap: float) -> None:
        self._least_overlap = least_overlap
        self._last = 0
        self._lost: list[tuple[int, FrameRegion, float]] = []

    def lose(self, number: int, region: FrameRegion, seconds: float) -> None:
        """It was last seen there, at that time."""
        self._lost.append((number, region, seconds))

    def number_of(self, region: FrameRegion, seconds: float) -> int:
        """Of a thing that was not there in the frame before."""
        self._lost = [lost for lost in self._lost if 0 <= seconds - lost[2] <= _REMEMBERED_S]
        near = max(self._lost, key=lambda lost: overlap(region, lost[1]), default=None)
        if near and overlap(region, near[1]) > self._least_overlap:
            self._lost.remove(near)
            return near[0]
        self._last += 1
        return self._last

    def forget(self) -> None:
        """Nothing is where it was; numbers go on."""
        self._lost.clear()


class _TrackingFinder:
    """See make_finder."""

    def __init__(self, solution: Solution, networks: tuple[RegionNetwork, ...], most: int) -> None:
        self._solution = solution
        self._networks = networks
        self._most = most
        self._size: ImageSize | None = None
        self._tracks: list[_Track] = []
        self._looks = 0  # of the detector at ends of frames
        self._looked_at: float | None = None  # seconds: when the detector ran and found nothing new
        self._boxes: dict[int, FrameRegion] = {}  # by their numbers, of the frame before; where nothing is followed
        self._numbers = _Numbers(solution.least_overlap)

    def begin_anew(self) -> None:
        """As a FrameFinder does. Numbers go on."""
        self._tracks.clear()
        self._boxes.clear()
        self._numbers.forget()
        self._size = self._looked_at = None

    def find(self, frame: VideoFrame) -> tuple[Finding, ...]:
        """As a FrameFinder does. Findings are those of the solution's last network, behind what they are parts of."""
        if frame.size != self._size:
            self.begin_anew()
            self._size = frame.size
        followed = self._solution.followed
        found = self._follow(frame, followed) if followed else self._numbered(self._detect(frame), frame.time_ms / 1000)
        whole, parts = found if self._solution.shows_whole else (), self._solution.parts
        for part, network in zip(parts, self._networks[len(self._networks) - len(parts) :], strict=True):
            found = _parts(part, network, frame, found)
        return (*whole, *found)

    def _detect(self, frame: VideoFrame) -> tuple[Finding, ...]:
        return self._detected(frame, whole_region(frame.size, self._networks[0].input_size))[: self._most]

    def _detect_all(self, frame: VideoFrame, tracks: Sequence[_Track]) -> tuple[Finding, ...]:
        """The same, and what is in both ends of a wide frame; where somebody is followed, the frame and an end in turn.

        A detector that is made for one person sees smaller ones beside a larger one in few frames.
        """
        width, height = frame.size
        ends = [FrameRegion(x, height / 2, height, height) for x in (height / 2, width - height / 2)]
        if width <= height or not tracks:
            found = self._detect(frame)
            ends = ends if found and width > height else []
        else:
            self._looks += 1
            found = self._detect(frame) if self._looks % 2 else ()
            ends = [] if self._looks % 2 else [ends[self._looks // 2 % 2]]
        for end in ends:
            seen = self._detected(frame, end)
            found += tuple(finding for finding in seen if not any(_is_same_box(finding, other) for other in found))
        return found

    def _detected(self, frame: VideoFrame, region: FrameRegion) -> tuple[Finding, ...]:
        return tuple(finding for finding in self._networks[0].find(frame, region) if _is_sound(finding))

    def _follow(self, frame: VideoFrame, followed: Followed) -> tuple[Finding, ...]:
        tracks, seconds = self._tracks, frame.time_ms / 1000
        has_looked = len(tracks) < self._most and not (tracks and self._sleeps(seconds))
        if has_looked:
            tracks = self._with_new(frame, followed, tracks)
            self._looked_at = seconds if len(tracks) == len(self._tracks) else None
        seen, lost = self._look_at_all(frame, tracks, followed)
        if lost and not has_looked and followed.held_by:  # it may be what moved too fast to be followed
            kept = [track for track, _ in seen]
            seen += self._look_at_all(frame, self._with_new(frame, followed, kept)[len(kept) :], followed)[0]
            self._looked_at = None
        self._tracks = self._apart([track for track, _ in seen], followed)
        found = []
        for track, finding in seen:
            if track in self._tracks:
                track.number = track.number or self._numbers.number_of(track.region, seconds)
                found.append(replace(finding, track=track.number))
        return tuple(found)

    def _with_new(self, frame: VideoFrame, followed: Followed, tracks: Sequence[_Track]) -> list[_Track]:
        """Those, and what the detector sees besides; what is followed alone has its home where the detector sees it."""
        new = []
        detect_all = followed.held_by and self._most > 1
        for finding in self._detect_all(frame, tracks) if detect_all else self._detect(frame):
            region = followed.starts_at(finding)
            if region is None or not is_usable(region, frame.size):
                continue
            known = next((track for track in tracks if track.held is not None and is_in(track.held, finding.box)), None)
            if known is None:
                new.append(_Track(0, region))
            elif len(tracks) == 1 and known.held is not None:
                known.home = Home(region, known.held)
        return self._apart([*tracks, *new], followed)[: self._most]

    def _look_at_all(
        self, frame: VideoFrame, tracks: Sequence[_Track], followed: Followed
    ) -> tuple[list[tuple[_Track, Finding]], bool]:
        """What is seen at tracks, and whether one of them was lost."""
        seen, lost = list[tuple[_Track, Finding]](), False
        looked = found_in_each(self._networks[1], frame, [track.region for track in tracks])
        for track, there in zip(tracks, looked, strict=True):
            before = track.region
            finding = self._taken(there, frame, track, followed, len(tracks) == 1)
            if finding and is_usable(track.region, frame.size):
                seen.append((track, finding))
            elif track.number:
                self._numbers.lose(track.number, before, frame.time_ms / 1000)
                lost = True
        return seen, lost

    def _sleeps(self, seconds: float) -> bool:
        """Whether the detector ran a moment ago and found nothing new."""
        before = self._looked_at
        return before is not None and 0 <= seconds - before < self._solution.looks_again_s - _TIME_ROUNDS_S

    def _taken(
        self, there: Sequence[Finding], frame: VideoFrame, track: _Track, followed: Followed, is_alone: bool
    ) -> Finding | None:  # fmt: skip
        """What the network saw at a track, filtered; the track has its next region afterwards."""
        finding = self._sure(there)
        finding = self._held(finding, frame, track, followed) if followed.held_by else finding
        if finding is None:
            return None
        steady = _steadied(finding, track, followed, frame.time_ms / 1000)
        # The next region is of the points as they came, but of the auxiliary as they are filtered.
        region = followed.goes_on_at(replace(finding, auxiliary=steady.auxiliary))
        if region is None:
            return None
        if track.home and track.held is not None and not is_alone:
            region = replace(track.home.moved_to(track.held), angle=region.angle)
        track.region = region
        return steady

    def _sure(self, there: Sequence[Finding]) -> Finding | None:
        if not there or not there[0].score > self._solution.least_score or not _is_sound(there[0]):
            return None
        return there[0]

    def _held(
        self, finding: Finding | None, frame: VideoFrame, track: _Track, followed: Followed
    ) -> Finding | None:  # fmt: skip
        """What is seen at a track. Where it jumped to another thing, or between two, what is seen from its home."""
        held = _holding(finding, followed)
        if track.home is None or track.held is None:
            if held is not None:
                track.home, track.held = Home(track.region, held), held
            return finding
        side = track.region.height
        step = np.inf if held is None else step_between(track.held, held, side)
        if step > DOUBTED_STEP:
            again = self._sure(self._networks[1].find(frame, track.home.moved_to(track.held)))
            held_again = _holding(again, followed)
            # What moves fast is at one place from wherever it is looked at.
            if held_again is not None and step_between(track.held, held_again, side) < min(step / 2, MOST_STEP):
                finding, held = again, held_again
            elif step > MOST_STEP:
                return None
        track.held = held
        return finding

    def _apart(self, tracks: Sequence[_Track], followed: Followed) -> list[_Track]:
        """Without those that follow what one before them follows: the older track stays."""
        kept: list[_Track] = []
        for track in tracks:
            if not any(self._are_one(track, other, followed) for other in kept):
                kept.append(track)
        return kept

    def _are_one(self, track: _Track, other: _Track, followed: Followed) -> bool:
        if track.held is not None and other.held is not None:
            return step_between(track.held, other.held, min(track.region.height, other.region.height)) <= MOST_STEP
        first, second = core_of(track.region, followed.compared), core_of(other.region, followed.compared)
        if overlap(first, second) > self._solution.least_overlap:
            return True
        return share_inside(core_of(first, _WITHOUT_MARGIN), core_of(second, _WITHOUT_MARGIN)) > followed.least_inside

    def _numbered(self, findings: Sequence[Finding], seconds: float) -> tuple[Finding, ...]:
        """Each with the number of the nearest of the frame before, which only one gets."""
        before, self._boxes = self._boxes, {}
        numbered = []
        for finding in findings:
            region, number = finding.region, 0
            if region:
                near = max(before, key=partial(_overlap_with, before, region), default=0)
                if near and overlap(region, before[near]) > self._solution.least_overlap:
                    number = near
                    del before[near]
                else:
                    number = self._numbers.number_of(region, seconds)
                self._boxes[number] = region
            numbered.append(replace(finding, track=number))
        for number, region in before.items():
            self._numbers.lose(number, region, seconds)
        return tuple(numbered)


def _overlap_with(boxes: Mapping[int, FrameRegion], region: FrameRegion, number: int) -> float:
    return overlap(region, boxes[number])


def _is_same_box(first: Finding, second: Finding) -> bool:
    return overlap(around_box(first.box), around_box(second.box)) > _SAME_BOX


def _holding(finding: Finding | None, followed: Followed) -> Points | None:
    """The points (N, 2) that hold a track."""
    if finding is None or len(finding.points) <= max(followed.held_by):
        return None
    return finding.points[list(followed.held_by), :2]


def _steadied(finding: Finding, track: _Track, followed: Followed, seconds: float) -> Finding:
    square = followed.size(finding)
    left, top, right, bottom = finding.box
    size = (square.width + square.height) / 2 if square else (right - left + bottom - top) / 2
    points, auxiliary, certainty = finding.points, finding.auxiliary, finding.certainty
    if followed.filter:
        track.points = track.points or OneEuroFilter(followed.filter)
        points = track.points.smoothed(points, seconds, size)
    if followed.auxiliary_filter:
        track.auxiliary = track.auxiliary or OneEuroFilter(followed.auxiliary_filter)
        auxiliary = track.auxiliary.smoothed(auxiliary, seconds, size)
    if followed.certainty_share is not None and certainty is not None:
        track.certainty = track.certainty or VisibilityFilter(followed.certainty_share)
        certainty = track.certainty.smoothed(certainty)
    return replace(finding, points=points, auxiliary=auxiliary, certainty=certainty)


def _parts(
    part: PartLook, network: RegionNetwork, frame: VideoFrame, things: Sequence[Finding]
) -> tuple[Finding, ...]:  # fmt: skip
    """What a network finds in the regions of things' parts, one in each; a part has the thing's number."""
    places = [
        (whole, place) for whole in things for place in part.regions(whole) if is_usable(place.region, frame.size)
    ]
    return tuple(
        replace(finding, label=place.label or finding.label, track=whole.track)
        for (whole, place), seen in zip(places, _seen(network, frame, [p.region for _, p in places]), strict=True)
        for finding in seen[:1]
        if _is_sound(finding)
    )


def _seen(
    network: RegionNetwork, frame: VideoFrame, regions: Sequence[FrameRegion]
) -> list[tuple[Finding, ...]]:  # fmt: skip
    """What is in regions, mirrored or not.

    A tensor's first pixel is at a region's edge (region_cut.py), of a mirrored one at the other edge. MediaPipe mirrors
    pixels instead, and so looks one pixel of the tensor further left.
    """
    looked_at = [each.moved(1 / network.input_size[0], 0) if each.width < 0 else each for each in regions]
    seen = []
    for region, looked, found in zip(regions, looked_at, found_in_each(network, frame, looked_at), strict=True):
        x, y = region.center_x - looked.center_x, region.center_y - looked.center_y
        seen.append(found if looked is region else tuple(moved_finding(finding, x, y, 1.0) for finding in found))
    return seen


def _is_sound(finding: Finding) -> bool:
    """Whether all its places are numbers."""
    region = finding.region
    places = (region.center_x, region.center_y, region.width, region.height, region.angle) if region else ()
    return bool(
        np.isfinite(finding.points).all() and np.isfinite(finding.auxiliary).all() and np.isfinite(places).all()
    )
