"""Names what hands show, and says when a gesture was meant: held for a while, once, and not again at once; pure.

A gesture is told by angles, which neither size nor place of the hand changes. `bend` of a finger is by how many degrees
its bones turn on the way from the wrist to the tip; points have depth, so that a finger that points at the camera is no
bent one:

    finger     straight below 70, bent above 95; between the two nobody knows, and nothing is shown
    thumb      straight below 75; apart if its tip is further from the index' knuckle than 0.5 of the palm's length; it
               sticks out if in the picture its tip is beyond all else of the hand, in its direction, by 0.12 of that
    open palm  all fingers straight, the thumb straight and apart
    thumb up   all fingers bent, the thumb straight, apart and sticking out, within 40 degrees of upwards in the
               picture; thumb down likewise
    fist       all fingers bent, and the thumb shows nothing in any direction
    victory    index and middle straight, 10 degrees apart or more, ring and little finger bent
    hand raised  a wrist above the middle of a face: that of the hand's own person, by the body's points, or, of hands
               without bodies, of the nearest face, no further away than three faces

A hand may be turned in any way but for thumbs. It has to be seen for certain (score 0.6).
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ..models.decoders.found import Finding
from .gesture_names import GESTURES, Gesture

__all__ = ["GestureTrigger", "gestures_in"]

_HELD_S = 0.4  # for so long it is shown before it counts
_GAP_S = 0.15  # that does not end it
_QUIET_S = 1.0  # after one that counted, until any other may
_STRAIGHT, _BENT, _THUMB_STRAIGHT = 70.0, 95.0, 75.0  # degrees of all bends of a finger
_THUMB_APART, _LEAST_SPREAD, _UPRIGHT = 0.5, 10.0, 40.0  # of the palm's length; degrees
_STICKS_OUT = 0.12  # of the palm's length
_LEAST_SCORE = 0.6
_NEAR_FACES = 3.0
_WRISTS, _HEAD, _SHOULDERS = (15, 16), range(9), (11, 12)  # of a body's 33 points

_Vector = npt.NDArray[np.float64]


def gestures_in(findings: Sequence[Finding]) -> frozenset[Gesture]:
    """All that are shown in a frame, by hands of 21 points; hands that are raised, by faces or bodies besides."""
    hands = [found for found in findings if _is_hand(found)]
    shown = {gesture for hand in hands if (gesture := _shown_by(hand.points.astype(np.float64)))}
    if _is_raised(hands, findings):
        shown.add("hand-raised")
    return frozenset(shown)


def _is_hand(found: Finding) -> bool:
    sound = found.kind == "hand" and found.points.shape == (21, 3) and found.score >= _LEAST_SCORE
    return sound and bool(np.isfinite(found.points).all())


def _shown_by(points: _Vector) -> Gesture | None:
    """What one hand shows."""
    palm = float(np.linalg.norm(points[9] - points[0]))
    if palm <= 0:
        return None
    bends = [_bend(points[[0, first, first + 1, first + 2, first + 3]]) for first in (5, 9, 13, 17)]
    straight, bent = [bend < _STRAIGHT for bend in bends], [bend > _BENT for bend in bends]
    apart = float(np.linalg.norm(points[4] - points[5])) > _THUMB_APART * palm
    thumb_apart = apart and _bend(points[1:5]) < _THUMB_STRAIGHT
    if all(straight):
        return "open-palm" if thumb_apart else None
    if all(bent):
        return _thumb_shows(points) if thumb_apart and _sticks_out(points, palm) else "fist"
    if straight == [True, True, False, False] and all(bent[2:]):
        spread = _angle(points[8] - points[5], points[12] - points[9])
        return "victory" if spread >= _LEAST_SPREAD else None
    return None


def _sticks_out(points: _Vector, palm: float) -> bool:
    """Whether the thumb's tip is beyond all else, but for its own joint, in the thumb's direction."""
    seen = points[:, :2]
    thumb = seen[4] - seen[2]
    along = seen @ thumb / max(float(np.linalg.norm(thumb)), 1e-9)
    return bool(along[4] - np.delete(along, [3, 4]).max() > _STICKS_OUT * palm)


def _thumb_shows(points: _Vector) -> Gesture | None:
    """By where it points in the picture."""
    thumb = points[4] - points[2]
    tilt = math.degrees(math.atan2(abs(thumb[0]), -thumb[1]))  # from upwards
    return "thumb-up" if tilt <= _UPRIGHT else "thumb-down" if tilt >= 180 - _UPRIGHT else None


def _bend(points: _Vector) -> float:
    """The sum of turns from each bone to the next, in degrees."""
    return sum(_angle(one, other) for one, other in pairwise(np.diff(points, axis=0)))


def _angle(one: _Vector, other: _Vector) -> float:
    """Between two directions, in degrees; 0 where there is none."""
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return math.degrees(math.acos(min(max(float(one @ other) / lengths, -1.0), 1.0))) if lengths > 0 else 0.0


def _is_raised(hands: Sequence[Finding], findings: Sequence[Finding]) -> bool:
    bodies = [found for found in findings if found.kind == "person" and len(found.points) == 33]
    if any(_raises_wrist(body) for body in bodies):
        return True
    faces = [found.box for found in findings if found.kind == "face"]
    return any(_is_above(hand, box) for hand in hands for box in _nearest(hand, faces))


def _raises_wrist(body: Finding) -> bool:
    """Whether a wrist that is seen is above the middle of the head."""
    certainty = body.certainty if body.certainty is not None else np.ones(len(body.points), np.float32)
    head = body.points[_HEAD][certainty[_HEAD] >= 0.5]
    wrists = [body.points[wrist] for wrist in _WRISTS if certainty[wrist] >= 0.5]
    return len(head) > 0 and any(wrist[1] < head[:, 1].mean() for wrist in wrists)


def _nearest(hand: Finding, faces: Sequence[tuple[float, float, float, float]]) -> Iterator[tuple[float, ...]]:
    """The face whose middle is nearest to a hand, if it is near."""
    place = hand.points[:, :2].mean(0)

    def apart(box: tuple[float, ...]) -> float:
        left, top, right, bottom = box
        return math.dist(place, ((left + right) / 2, (top + bottom) / 2)) / max(bottom - top, 1e-6)

    nearest = min(faces, key=apart, default=None)
    if nearest and apart(nearest) <= _NEAR_FACES:
        yield nearest


def _is_above(hand: Finding, box: tuple[float, ...]) -> bool:
    """Whether a hand's wrist is higher than the middle of a face."""
    return float(hand.points[0, 1]) < (box[1] + box[3]) / 2


@dataclass
class GestureTrigger:
    """Tells from frame to frame which gestures were meant. `wanted` are those that count; others are not told."""

    wanted: Collection[Gesture] = GESTURES
    _since_s: dict[Gesture, float] = field(default_factory=dict, init=False)  # shown without a gap
    _last_s: dict[Gesture, float] = field(default_factory=dict, init=False)  # seen last
    _done: set[Gesture] = field(default_factory=set, init=False)  # that have counted, and are still shown
    _quiet_s: float = field(default=-math.inf, init=False)  # until then nothing counts

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
        self._since_s.clear()
        self._last_s.clear()
        self._done.clear()
        self._quiet_s = -math.inf

    def see(self, findings: Sequence[Finding], time_s: float) -> Gesture | None:
        """The gesture that counts now, by what was found in a frame; it has to end before it counts again.

        Times count up.
        """
        shown = gestures_in(findings)
        for gesture in self.wanted:
            if gesture in shown:
                self._since_s.setdefault(gesture, time_s)
                self._last_s[gesture] = time_s
            elif time_s - self._last_s.get(gesture, -math.inf) > _GAP_S:
                self._since_s.pop(gesture, None)
                self._done.discard(gesture)
        meant = [
            gesture
            for gesture in self.wanted
            if gesture in shown and gesture not in self._done and time_s - self._since_s[gesture] >= _HELD_S - 1e-9
        ]
        if not meant or time_s < self._quiet_s:
            return None
        self._done.update(meant)
        self._quiet_s = time_s + _QUIET_S
        return meant[0]
