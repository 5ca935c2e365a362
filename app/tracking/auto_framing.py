"""Decides which part of the frame a picture shows, so that it follows a person or all of them; pure, in numbers.

For each frame, of what was found in it:

    subjects   faces, or people where no face is found. Each asks for room around it: a face for hair, shoulders and
               chest, a person for a margin; what is above is more than what is below, so that heads have room
    wanted     the smallest part of the frame's aspect with all subjects' room, no smaller than the largest zoom shows,
               and within the frame. `person` has one subject: the largest and most central face, which stays until it
               was gone for 0.7 s, or another one was clearly better for a second
    goal       the wanted part, from when that has left the dead zone around the goal until what is shown is there;
               then it rests. All of the frame when nobody was seen for two seconds
    shown      follows the goal as a critically damped spring does, its center and the logarithm of its size apart, and
               never faster than a limit. Steps of time are short enough that frame rates do not matter

Who is seen within half a second of a beginning or a cut is shown at once.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ..models.decoders.found import Finding
from ..models.decoders.region import FrameRegion
from ..picture.picture import ImageSize

__all__ = ["AutoFraming", "FramingMode", "part_within"]

FramingMode = Literal["off", "person", "group"]
Box = tuple[float, float, float, float]  # left, top, right, bottom in pixels of the upright frame

MOST_ZOOM = 2.5
GONE_S = 2.0  # without anybody, until all of the frame is shown
_LOST_S = 0.7  # of the person who is followed, until another one is
_BETTER, _BETTER_S = 1.6, 1.0  # times as good, for so long: then another person is followed
_FACE_ROOM = (1.1, 0.9, 1.1, 1.7)  # left, above, right, below, in sides of the face
_BODY_ROOM = (0.12, 0.16, 0.12, 0.05)  # likewise
_STILL, _STILL_ZOOM = 0.06, 0.12  # the dead zone: in sides of the part shown, and of the logarithm of its size
_THERE = 0.15  # of the dead zone: so near to the goal it is reached
_RATE, _RATE_BACK = 4.0, 1.3  # 1/s: of the spring, and where nobody is seen
_MOST_SPEED, _MOST_ZOOM_SPEED = 0.7, 1.0  # widths of the frame a second; of the logarithm, 1/s
_SUDDEN_S = 0.5  # since a beginning, in which the first subjects are shown at once
_STEP_S, _LONGEST_S = 1 / 240, 1.0  # of the spring; of what passes between two frames


@dataclass(frozen=True)
class _Spring:
    """One number on its way to a goal: where it is, and how fast it moves."""

    at: float
    speed: float = 0.0

    def after(self, goals: tuple[float, float], rate: float, most_speed: float, seconds: float) -> "_Spring":
        """Critically damped, so that it does not swing, towards a goal that moves from one place to another.

        One that is far away pulls no harder than the speed allows.
        """
        spring, (before, goal), reach = self, goals, 2 * most_speed / rate
        steps = max(1, math.ceil(seconds / _STEP_S - 1e-9))
        for number in range(steps):
            middle = before + (goal - before) * (number + 0.5) / steps
            spring = spring._step(middle, rate, reach, seconds / steps)
        return spring

    def _step(self, goal: float, rate: float, reach: float, seconds: float) -> "_Spring":
        apart = self.at - goal
        pulled = min(max(apart, -reach), reach)
        change, decay = (self.speed + rate * pulled) * seconds, math.exp(-rate * seconds)
        at = goal + (apart - pulled) + (pulled + change) * decay
        return _Spring(at, (self.speed - rate * change) * decay)


@dataclass(frozen=True)
class _Part:
    """A part of the frame as the springs have it: its center, and the logarithm of the zoom."""

    x: float
    y: float
    zoom: float

    def leaves(self, other: "_Part", size: ImageSize) -> float:
        """How far it is out of the dead zone around another one: from 1 on."""
        share = _STILL * math.exp(-max(self.zoom, other.zoom))
        aside = abs(self.x - other.x) / size[0], abs(self.y - other.y) / size[1]
        return max(*aside, share * abs(self.zoom - other.zoom) / _STILL_ZOOM) / share

    def region(self, size: ImageSize) -> FrameRegion:
        """Within the frame."""
        scale = math.exp(-max(0.0, self.zoom))
        width, height = size[0] * scale, size[1] * scale
        return FrameRegion(_within(self.x, width, size[0]), _within(self.y, height, size[1]), width, height)


@dataclass
class AutoFraming:
    """Follows people from frame to frame of one size, (width, height). `mode` may change between any two."""

    size: ImageSize
    mode: FramingMode = "person"
    most_zoom: float = MOST_ZOOM
    _springs: tuple[_Spring, _Spring, _Spring] | None = field(default=None, init=False)
    _goal: _Part | None = field(default=None, init=False)
    _time_s: float | None = field(default=None, init=False)  # of the frame before
    _begun_s: float = field(default=0.0, init=False)
    _seen_s: float = field(default=0.0, init=False)  # when somebody was seen last
    _rests: bool = field(default=True, init=False)  # whether the goal stays
    _followed: "_Followed | None" = field(default=None, init=False)

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
        self._springs = self._goal = self._time_s = self._followed = None
        self._rests = True

    def follow(self, findings: Sequence[Finding], time_s: float) -> FrameRegion:
        """The part of a frame to be shown: within it, of its aspect, without an angle.

        Times count up; one that does not is that of the frame before.
        """
        if self._time_s is None:
            self._time_s = self._begun_s = time_s
        seconds = min(max(time_s - self._time_s, 0.0), _LONGEST_S)
        self._time_s = max(time_s, self._time_s)
        wanted, rate = self._wanted(findings), _RATE
        whole = _Part(self.size[0] / 2, self.size[1] / 2, 0.0)
        before = self._goal or whole
        if wanted:
            self._seen_s = self._time_s
            self._rests = self._rests and wanted.leaves(before, self.size) <= 1
            self._goal = before if self._rests and self._goal else wanted
        elif self._time_s - self._seen_s >= GONE_S:
            self._goal, rate = self._goal and whole, _RATE_BACK
        goal = self._goal or whole
        if self._springs is None:
            if not wanted and self._time_s - self._begun_s <= _SUDDEN_S:
                return whole.region(self.size)
            begin = goal if self._time_s - self._begun_s <= _SUDDEN_S else whole
            self._springs = _Spring(begin.x), _Spring(begin.y), _Spring(begin.zoom)
            before = goal
        x, y, zoom = self._springs
        most = _MOST_SPEED * self.size[0]
        self._springs = (
            x.after((before.x, goal.x), rate, most, seconds),
            y.after((before.y, goal.y), rate, most, seconds),
            zoom.after((before.zoom, goal.zoom), rate, _MOST_ZOOM_SPEED, seconds),
        )
        shown = _Part(*(spring.at for spring in self._springs))
        self._rests = self._rests or shown.leaves(goal, self.size) <= _THERE
        return shown.region(self.size)

    def _wanted(self, findings: Sequence[Finding]) -> _Part | None:
        """What the subjects of a frame ask for; None without any, or where nothing is followed."""
        subjects = _subjects(findings, self.size) if self.mode != "off" else []
        if self.mode == "person":
            assert self._time_s is not None, "a frame has come"
            self._followed, subject = _followed_of(self._followed, subjects, self.size, self._time_s)
            subjects = [subject] if subject else []
        return _part_of([each.room for each in subjects], self.size, self.most_zoom) if subjects else None


@dataclass(frozen=True)
class _Subject:
    """Somebody to be shown: where, with how much room, and the number of the track, 0 for none."""

    box: Box
    room: Box
    track: int

    def worth(self, size: ImageSize) -> float:
        """How much it is the picture's subject: by its height, less at the sides."""
        left, top, right, bottom = self.box
        aside = math.hypot((left + right) / size[0] - 1, (top + bottom) / size[1] - 1) / math.sqrt(2)
        return (bottom - top) * (1 - 0.5 * min(aside, 1.0))


@dataclass(frozen=True)
class _Followed:
    """Who is followed: as it was seen last, and when; since when another one is better."""

    subject: _Subject
    seen_s: float
    outdone_s: float | None = None


def _subjects(findings: Iterable[Finding], size: ImageSize) -> list[_Subject]:
    """Faces, or people where there are none, of which a part is within the frame."""
    found: dict[str, list[_Subject]] = {"face": [], "person": []}
    for finding in findings:
        kind = "person" if (finding.kind, finding.label) == ("object", "person") else finding.kind
        if kind not in found:
            continue
        left, top, right, bottom = box = _body_box(finding) if kind == "person" else finding.box
        if right <= 0 or bottom <= 0 or left >= size[0] or top >= size[1] or not all(map(math.isfinite, box)):
            continue
        room = _FACE_ROOM if kind == "face" else _BODY_ROOM
        side = max(right - left, bottom - top)
        sides = (-side, -side, side, side)
        roomy = tuple(edge + part * share for edge, part, share in zip(box, sides, room, strict=True))
        found[kind].append(_Subject(box, (roomy[0], roomy[1], roomy[2], roomy[3]), finding.track))
    return found["face"] or found["person"]


def _body_box(finding: Finding) -> Box:
    """Around the points of a body that are seen: the region of one is a circle around hips."""
    if finding.certainty is None or not len(finding.points):
        return finding.box
    seen = finding.points[finding.certainty >= 0.5]
    return replace(finding, region=None, points=seen).box if len(seen) >= 2 else finding.box


def _followed_of(
    before: _Followed | None, subjects: Sequence[_Subject], size: ImageSize, time_s: float
) -> tuple[_Followed | None, _Subject | None]:
    """Who is followed from now on, and who that is in this frame; None if nobody that is in it."""
    best = max(subjects, key=lambda subject: subject.worth(size), default=None)
    same = _same(before.subject, subjects) if before else None
    if before is None or same is None:
        if before and (best is None or time_s - before.seen_s < _LOST_S):
            return before, None
        return (_Followed(best, time_s), best) if best else (None, None)
    assert best, "there is one at least"
    if best is same or best.worth(size) < _BETTER * same.worth(size):
        return _Followed(same, time_s), same
    since = time_s if before.outdone_s is None else before.outdone_s
    chosen = best if time_s - since >= _BETTER_S else same
    return _Followed(chosen, time_s, None if chosen is best else since), chosen


def _same(subject: _Subject, subjects: Sequence[_Subject]) -> _Subject | None:
    """The one of the same track, or, without tracks, the nearest whose center is within one side."""
    if subject.track:
        return next((each for each in subjects if each.track == subject.track), None)
    side = max(subject.box[2] - subject.box[0], subject.box[3] - subject.box[1])
    apart = {math.dist(_center(each.box), _center(subject.box)): each for each in subjects}
    nearest = min(apart, default=math.inf)
    return apart[nearest] if nearest <= side else None


def _center(box: Box) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def _part_of(rooms: Sequence[Box], size: ImageSize, most_zoom: float) -> _Part:
    """The smallest part of the frame's aspect, within it, that holds all."""
    left, top = min(room[0] for room in rooms), min(room[1] for room in rooms)
    right, bottom = max(room[2] for room in rooms), max(room[3] for room in rooms)
    share = min(max((right - left) / size[0], (bottom - top) / size[1], 1 / most_zoom), 1.0)
    x, y = (
        _within(middle, share * extent, extent)
        for middle, extent in zip(_center((left, top, right, bottom)), size, strict=True)
    )
    return _Part(x, y, -math.log(share))


def part_within(region: FrameRegion, zoom: float, center: tuple[float, float]) -> FrameRegion:
    """The part of a region without an angle that is `zoom` times smaller, of its aspect and within it.

    `center` is where its middle is, as fractions of the region, as far as the region's edges let it.
    """
    if zoom <= 1:
        return region
    x, y = (_within(middle, 1 / zoom, 1.0) - 0.5 for middle in center)
    width, height = region.width, region.height
    return FrameRegion(region.center_x + x * width, region.center_y + y * height, width / zoom, height / zoom)


def _within(middle: float, length: float, extent: float) -> float:
    """The middle of a stretch of that length, moved so that all of it is between 0 and the extent."""
    return min(max(middle, length / 2), extent - length / 2)
