"""Where faces are to be covered, frame by frame: those that are seen, those just lost, and those about to be seen.

A cover is larger than the face that was found. One that is lost stays covered for half a second, where it was seen
last, where it would be if it went on, and between, all growing. Who draws frames later than they are seen has faces
that come in covered ahead of the frame in which they were first found: as they move by now, traced back.
"""

import math
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from ..models.decoders.found import Finding
from ..picture.picture import ImageSize

__all__ = ["FaceCover", "FaceCovers", "covers_in_frame", "face_at", "sure_covers"]

HELD_MS = 500.0  # how long a face that was lost stays covered
_WIDER, _HIGHER, _UP = 1.6, 2.1, 0.0  # a cover's size in sizes of a detector's box, brows to chin; its shift up
_OF_MESH = (1.25, 1.35, 0.08)  # the same of the box around the points of a mesh
_AT_EDGE, _NEAR_EDGE = 1.3, 0.1  # how much larger a cover is at the frame's edge; how near that is, in sizes of the box
_LARGEST = 4.0  # of a cover, from its middle to its edge, in sides of the frame
_LEAST_PX = 6.0  # of a cover, from its middle to its edge
_SURE = 0.65  # the score from which on nobody asks what else may be there
_LIKELY, _DOUBTED_MS = 0.3, 200.0  # the score below which one is covered no longer than that before it was found
_SURE_MS, _SURE_APART = 200.0, 0.25  # how long a face may be lost, and how far it may move, to be surely the same
_LIKELY_APART = 0.4  # the same, to be likely the same: else it may have been elsewhere, or not there, before
_GROWTH = 0.6  # of a cover that nothing confirms, in its own sizes per second
_BLIND_GROWTH = 2.0  # the same before a face was first found, while nobody knows how it moves
_MOST_APART = 0.8  # of a cover's size: how far from where a face is expected it is taken for the same
_MEETING = 0.6  # of the sizes of two covers: how far they are apart where they are taken for each other
_NEW_SPEED = 0.5  # the share of the last step in a face's speed


@dataclass(frozen=True)
class FaceCover:
    """An ellipse in pixels of the upright frame, all of which is to be covered."""

    center_x: float
    center_y: float
    half_width: float
    half_height: float
    track: int = 0  # of the face, as the finder numbers it, or else as it is numbered here

    def moved(self, x: float, y: float, growth: float) -> "FaceCover":
        """By so many pixels, and larger by so many on each side."""
        sizes = self.half_width + growth, self.half_height + growth
        return FaceCover(self.center_x + x, self.center_y + y, *sizes, self.track)


@dataclass
class _Face:
    """One that is or was there."""

    cover: FaceCover  # when it was seen last
    seen_ms: float
    first_ms: float
    speed: tuple[float, float] = (0.0, 0.0)  # pixels per ms
    places: deque[tuple[float, FaceCover]] = field(default_factory=deque)  # where it was seen, by time
    score: float = 1.0  # the highest with which it was found
    came_from: tuple[float, FaceCover] | None = None  # where one was seen before that may have been the same

    def expected(self, time_ms: float) -> FaceCover:
        """Where it would be if it went on as it did."""
        passed = time_ms - self.seen_ms
        return self.cover.moved(self.speed[0] * passed, self.speed[1] * passed, 0.0)

    def see(self, cover: FaceCover, time_ms: float, kept: int) -> None:
        """It is there."""
        passed = time_ms - self.seen_ms
        if passed > 0:
            steps = cover.center_x - self.cover.center_x, cover.center_y - self.cover.center_y
            share = 1.0 if self.seen_ms == self.first_ms else _NEW_SPEED
            x, y = (share * step / passed + (1 - share) * old for step, old in zip(steps, self.speed, strict=True))
            self.speed = x, y
        self.cover, self.seen_ms = cover, time_ms
        self.places.append((time_ms, cover))
        while len(self.places) > kept:
            self.places.popleft()

    def covers_at(self, time_ms: float, lead_ms: float) -> list[FaceCover]:
        """What covers it in a frame of that time; nothing longer than `lead_ms` before it was seen first."""
        before = [each for each in self.places if each[0] <= time_ms]
        after = [each for each in self.places if each[0] >= time_ms]
        if before and before[-1][0] == time_ms:
            return [before[-1][1]]
        if before and after:  # it was not found between: whatever the way that it took
            (start, one), (end, other) = before[-1], after[0]
            return _along(one, other, _GROWTH * (end - start) / 2000)
        if not before and after:
            start, first = after[0]
            passed = start - time_ms
            found = list[FaceCover]()
            if passed <= (lead_ms if self.score >= _LIKELY else min(lead_ms, _DOUBTED_MS)):
                back = first.moved(-self.speed[0] * passed, -self.speed[1] * passed, 0.0)
                growth = _GROWTH if len(self.places) > 1 else _BLIND_GROWTH
                found += _along(first, back, growth * passed / 1000)
            if self.came_from and self.came_from[0] < time_ms:
                found += _along(self.came_from[1], first, _GROWTH * (start - self.came_from[0]) / 2000)
            return found
        passed = time_ms - self.seen_ms
        if passed > HELD_MS:
            return []
        last = self.cover if passed <= _SURE_MS else replace(self.cover, track=0)
        return _along(last, replace(self.expected(time_ms), track=last.track), _GROWTH * passed / 1000)


class FaceCovers:
    """What to cover in the last `kept` frames. Pure arithmetic: nothing here sees pixels."""

    def __init__(self, kept: int = 1, lead_ms: float = HELD_MS) -> None:
        """`lead_ms` is how long before a face is first found it is covered, in frames that are still kept."""
        self._kept, self._lead_ms = kept, lead_ms
        self._times: deque[float] = deque(maxlen=kept)
        self._faces: list[_Face] = []
        self._last = 0  # number that a face got

    def see(self, findings: Sequence[Finding], time_ms: float, frame: ImageSize | None = None) -> tuple[Finding, ...]:
        """What was found in the next frame, which is of that time; everything but faces is left out.

        Given back are the faces with their numbers. A face that is not surely the one before has another number.
        Where the frame's size is given, a face that touches its edge is taken for larger than its box: who sees a part
        of a face does not know how large it is.
        """
        if self._times and time_ms <= self._times[0]:
            time_ms = self._times[0] + 1e-3  # a clock that stands still
        self._times.appendleft(time_ms)
        faces = [each for each in findings if each.kind == "face" and (each.region or len(each.points))]
        free = [face for face in self._faces if time_ms - face.seen_ms <= HELD_MS]
        around, seen = [(face, face.expected(time_ms)) for face in free], []
        for finding in faces:
            cover = _cover_of(finding, frame)
            near = [(_apart(face.expected(time_ms), cover), nth) for nth, face in enumerate(free)]
            near += [(_apart(face.cover, cover), nth) for nth, face in enumerate(free)]
            least, nth = min(near, default=(math.inf, 0))
            near_one = free.pop(nth) if least <= _MOST_APART else None
            if near_one and least <= _LIKELY_APART:
                face = near_one
                others = [place for other, place in around if other is not face]
                same = least <= _SURE_APART and time_ms - face.seen_ms <= _SURE_MS
                same &= not any(_meet(cover, other) for other in others)
                cover = replace(cover, track=face.cover.track if same else self._next_number())
                face.score = max(face.score, finding.score)
                face.see(cover, time_ms, self._kept + 1)
            else:
                cover = replace(cover, track=self._next_number())
                came_from = (near_one.seen_ms, near_one.cover) if near_one else None
                face = _Face(cover, time_ms, time_ms, score=finding.score, came_from=came_from)
                face.places.append((time_ms, cover))
                self._faces.append(face)
            seen.append(replace(finding, track=cover.track))
        oldest = self._times[-1]
        self._faces = [face for face in self._faces if oldest - face.seen_ms <= HELD_MS]
        return tuple(seen)

    def _next_number(self) -> int:
        self._last += 1
        return self._last

    def covers(self, age: int = 0, open_faces: Collection[int] = ()) -> tuple[FaceCover, ...]:
        """Of the newest frame, or of one that came so many before it; none for tracks that are left open.

        A face that is left open is still covered where it meets another one's cover.
        """
        if age >= len(self._times):
            return ()
        time_ms = self._times[age]
        found = [cover for face in self._faces for cover in face.covers_at(time_ms, self._lead_ms)]
        return tuple(cover for cover in found if cover.track not in open_faces)

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
        self._times.clear()
        self._faces.clear()


def sure_covers(findings: Sequence[Finding], frame: ImageSize) -> tuple[FaceCover, ...]:
    """Of faces of which the finder is sure."""
    return tuple(_cover_of(each, frame) for each in findings if each.kind == "face" and each.score >= _SURE)


def face_at(covers: Sequence[FaceCover], x: float, y: float) -> int:
    """The number of the face whose cover is at a place, in the covers' pixels: of several the smallest one's; or 0."""
    there = [
        cover
        for cover in covers
        if cover.track
        and math.hypot((x - cover.center_x) / cover.half_width, (y - cover.center_y) / cover.half_height) <= 1
    ]
    return min(there, key=lambda cover: cover.half_width * cover.half_height).track if there else 0


def covers_in_frame(covers: Sequence[FaceCover], frame: ImageSize, most: int) -> tuple[FaceCover, ...]:
    """Those that touch the frame; where they are more than can be drawn, one that covers all of it.

    One that is far larger than the frame, as of a senseless box, covers all of it, too: shaders count in whole numbers
    of 32 bits.
    """
    width, height = frame
    whole = FaceCover(width / 2, height / 2, width, height)
    seen = tuple(
        cover if max(cover.half_width, cover.half_height) <= _LARGEST * max(frame) else whole
        for cover in covers
        if -cover.half_width < cover.center_x < width + cover.half_width
        and -cover.half_height < cover.center_y < height + cover.half_height
    )
    return seen if len(seen) <= most else (whole,)


def _cover_of(finding: Finding, frame: ImageSize | None) -> FaceCover:
    left, top, right, bottom = finding.box
    wider, higher, up = _OF_MESH if len(finding.points) > 60 else (_WIDER, _HIGHER, _UP)
    width, height = right - left, bottom - top
    middle = (left + right) / 2, (top + bottom) / 2 - up * height
    if frame and min(left, top, frame[0] - right, frame[1] - bottom) < _NEAR_EDGE * min(width, height):
        wider, higher = _AT_EDGE * wider, _AT_EDGE * higher
    sizes = max(_LEAST_PX, wider * width / 2), max(_LEAST_PX, higher * height / 2)
    return FaceCover(*middle, *sizes, finding.track)


def _meet(one: FaceCover, other: FaceCover) -> bool:
    """Whether they overlap by so much that nobody knows which face is whose."""
    wide, high = one.half_width + other.half_width, one.half_height + other.half_height
    apart = abs(one.center_x - other.center_x), abs(one.center_y - other.center_y)
    return apart[0] < _MEETING * wide and apart[1] < _MEETING * high


def _along(one: FaceCover, other: FaceCover, growth: float) -> list[FaceCover]:
    """Covers from one place to another, so close that what lies between is covered, each grown by that share."""
    far = math.hypot(other.center_x - one.center_x, other.center_y - one.center_y)
    least = min(one.half_width, one.half_height, other.half_width, other.half_height)
    steps = min(8, math.ceil(far / least))
    track = one.track if one.track == other.track else 0
    found = []
    for nth in range(steps + 1):
        share = nth / steps if steps else 0.0
        x, y, wide, high = (
            (1 - share) * getattr(one, name) + share * getattr(other, name)
            for name in ("center_x", "center_y", "half_width", "half_height")
        )
        cover = FaceCover(x, y, wide, high, track)
        found.append(cover.moved(0, 0, growth * max(cover.half_width, cover.half_height)))
    return found


def _apart(one: FaceCover, other: FaceCover) -> float:
    """How far their middles are apart, in sizes of the larger one; infinite where one is twice as large."""
    sizes = one.half_width + one.half_height, other.half_width + other.half_height
    if max(sizes) > 2 * min(sizes):
        return math.inf
    return math.hypot(one.center_x - other.center_x, one.center_y - other.center_y) / max(sizes)
