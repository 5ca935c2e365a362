"""Runs a solution's networks frame by frame: the detector only where something may be new, then what follows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.base.wording import counted

from ..models.decoders.found import Finding, moved_finding
from ..models.decoders.region import FrameRegion, whole_region
from ..picture.picture import ImageSize
from ..picture.video_frame import VideoFrame
from .finder import FrameFinder, RegionNetwork, found_in_each
from .one_euro import OneEuroFilter, VisibilityFilter
from .region_rules import core_of, is_usable, overlap, share_inside
from .solutions import Followed, PartLook, Solution

__all__ = ["make_finder"]

_MOST_THINGS = 64
_REMEMBERED_S = 0.5
_WITHOUT_MARGIN = 2 / 3  # of a region's sides: those of what it was grown around
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
        """As a FrameFinder does. Findings are those of the solution's last network."""
        if frame.size != self._size:
            self.begin_anew()
            self._size = frame.size
        followed = self._solution.followed
        found = self._follow(frame, followed) if followed else self._numbered(self._detect(frame), frame.time_ms / 1000)
        parts = self._solution.parts
        for part, network in zip(parts, self._networks[len(self._networks) - len(parts) :], strict=True):
            found = _parts(part, network, frame, found)
        return found

    def _detect(self, frame: VideoFrame) -> tuple[Finding, ...]:
        detector = self._networks[0]
        found = detector.find(frame, whole_region(frame.size, detector.input_size))
        return tuple(finding for finding in found if _is_sound(finding))[: self._most]

    def _follow(self, frame: VideoFrame, followed: Followed) -> tuple[Finding, ...]:
        tracks, seconds = self._tracks, frame.time_ms / 1000
        if len(tracks) < self._most and not (tracks and self._sleeps(seconds)):
            starts = (followed.starts_at(finding) for finding in self._detect(frame))
            new = [_Track(0, region) for region in starts if region and is_usable(region, frame.size)]
            tracks = self._apart([*tracks, *new], followed)[: self._most]
            self._looked_at = seconds if len(tracks) == len(self._tracks) else None
        seen = list[tuple[_Track, Finding]]()
        looked = found_in_each(self._networks[1], frame, [track.region for track in tracks])
        for track, there in zip(tracks, looked, strict=True):
            before = track.region
            finding = self._taken(there, frame, track, followed)
            if finding and is_usable(track.region, frame.size):
                seen.append((track, finding))
            elif track.number:
                self._numbers.lose(track.number, before, seconds)
        self._tracks = self._apart([track for track, _ in seen], followed)
        found = []
        for track, finding in seen:
            if track in self._tracks:
                track.number = track.number or self._numbers.number_of(track.region, seconds)
                found.append(replace(finding, track=track.number))
        return tuple(found)

    def _sleeps(self, seconds: float) -> bool:
        """Whether the detector ran a moment ago and found nothing new."""
        before = self._looked_at
        return before is not None and 0 <= seconds - before < self._solution.looks_again_s - _TIME_ROUNDS_S

    def _taken(
        self, found: Sequence[Finding], frame: VideoFrame, track: _Track, followed: Followed
    ) -> Finding | None:  # fmt: skip
        """What the network saw at a track, filtered; the track has its next region afterwards."""
        if not found or not found[0].score > self._solution.least_score or not _is_sound(found[0]):
            return None
        finding = found[0]
        steady = _steadied(finding, track, followed, frame.time_ms / 1000)
        # The next region is of the points as they came, but of the auxiliary as they are filtered.
        region = followed.goes_on_at(replace(finding, auxiliary=steady.auxiliary))
        if region is None:
            return None
        track.region = region
        return steady

    def _apart(self, tracks: Sequence[_Track], followed: Followed) -> list[_Track]:
        """Without those that follow what one before them follows: the older track stays."""
        kept: list[_Track] = []
        for track in tracks:
            if not any(self._are_one(track.region, other.region, followed) for other in kept):
                kept.append(track)
        return kept

    def _are_one(self, first: FrameRegion, second: FrameRegion, followed: Followed) -> bool:
        first, second = core_of(first, followed.compared), core_of(second, followed.compared)
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
