"""Finds what moves with hands: it is held, and joins the mask of the person.

A grid of brightness tells of motion. That of a hand is the median of the motion at its points, that of the room the
median along the left, right and upper sides of the frame. The frame before the newest one has a neighbor on either
side. Each of its cells is compared with both, where it would be if it moved as the room does, and where it would be if
it moved as the hand:

    still, moved  the smaller one of the two differences, a mean over AROUND cells. What a moving thing uncovers is as
                  one of its neighbors has it, so that no trail is left
    gain          still - moved, less by the noise where that is above 0: what NOISE_PART of the room's cells stay below
    learnt    <-  KEPT learnt + clamp(gain / SURE_LEVELS, -1, 1), of -MOST to MOST, where the hand moves against the
                  room by LEAST_MOTION cells a frame or more; else as it was. It moves with the hand, and of a hand that
                  is not found for PATIENCE frames it fades by LOST in each
    held          where more than LEARNT is learnt, no further from the hand than REACH of its size; closed over CLOSED
                  cells, holes filled, what does not reach the hand left out, and a cell at the edge taken off

So nothing is held without a hand that moves otherwise than the room, and what was held stays so while all is still.
What is put down fades with the hand's next motion. A thing that is turned in the hand is followed as if it were not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

from ...models.decoders.found import Finding
from ...picture.color_planes import Floats
from ...picture.picture import ImageSize

__all__ = ["GRID_COLUMNS", "HeldMotion"]

GRID_COLUMNS = 160

_AROUND = 3
_SURE_LEVELS = 5.0  # of 255
_NOISE_PART, _LEAST_NOISE = 90, 1.0  # percent; levels
_LEAST_MOTION = 0.25
_KEPT, _LOST, _MOST = 0.9, 0.85, 3.0
_LEARNT, _CLOSED, _REACH = 0.3, 7, 3.0
_PATIENCE, _FADED = 6, 0.05  # frames; of what is learnt: a hand that is lost with no more is forgotten
_SIDES = 0.12  # of the frame's width: where the room is seen
_ROUND = 1.5  # of a hand's size, where it is not
_NEAR = 0.5  # of a hand's size: how far it may come beyond its motion
_LEAST_NEAR = 2.0  # cells
_SHRINKS = 0.95  # in a frame: a fist is as large as the open hand was
_WINDOW, _HALVED = 9, 2  # of the flow at a point: cells, and how often they are halved before
_ROOM_POINTS = 100

_Point = tuple[float, float]
_Bytes = npt.NDArray[np.uint8]
_Cells = npt.NDArray[np.bool_]


@dataclass
class _Hand:
    """One hand that is followed, in cells."""

    center: _Point
    size: float
    points: Floats  # (N, 2)
    learnt: Floats
    motion: _Point = (0.0, 0.0)  # from the frame before
    seen: bool = False  # whether its motion from the frame before is known
    found: bool = True  # in the newest frame
    missed: int = 0  # frames since it was found


class HeldMotion:
    """Sees a grid of brightness of each frame, and the hands in it."""

    def __init__(self) -> None:
        self._hands: list[_Hand] = []
        self._grids: list[Floats] = []  # the two before, the newest one first
        self._room: _Point = (0.0, 0.0)  # its motion from the frame before
        self._room_before: _Point = (0.0, 0.0)

    def begin_anew(self) -> None:
        """The next frame has nothing to do with those before."""
        self._hands, self._grids = [], []

    def held(self, grid: Floats, found: Sequence[Finding], frame: ImageSize) -> Floats:
        """What is held, (rows, columns), 0 to 1, in a frame (width, height).

        grid: its brightness, 0 to 255, of that shape.
        """
        if self._grids and self._grids[0].shape != grid.shape:
            self.begin_anew()
        cells = grid.shape[1] / frame[0]
        hands = [each for each in found if each.kind == "hand" and len(each.points)]
        if not self._hands and not hands:
            self._grids = [grid, *self._grids[:1]]
            return np.zeros_like(grid)
        if self._grids:
            pair = _bytes(self._grids[0]), _bytes(grid)
            room = _room_cells(grid.shape, self._hands)
            in_room = np.argwhere(room)[:: max(1, int(room.sum()) // _ROOM_POINTS), ::-1]
            self._room, self._room_before = _motion(*pair, in_room.astype(np.float32), (0.0, 0.0)), self._room
            for hand in self._hands:
                self._learn(hand, _motion(*pair, hand.points, hand.motion), grid, room)
        self._meet(hands, cells, grid.shape)
        self._grids = [grid, *self._grids[:1]]
        held = np.zeros(grid.shape, np.uint8)
        for hand in self._hands:
            held |= _held_by(hand)
        return np.asarray(cv2.GaussianBlur(held.astype(np.float32), (3, 3), 0), np.float32)

    def _learn(self, hand: _Hand, motion: _Point, grid: Floats, room: _Cells) -> None:
        """By one more frame, to which the hand came by a motion."""
        before = hand.motion
        moves = _away(motion, self._room) + _away(before, self._room_before) >= 2 * _LEAST_MOTION
        if hand.seen and moves:
            older, middle = self._grids[1], self._grids[0]
            still = _differences(middle, older, grid, self._room_before, self._room)
            gain = still - _differences(middle, older, grid, before, motion)
            noise = max(_LEAST_NOISE, float(np.percentile(gain[room], _NOISE_PART)))
            gain = np.where(gain > 0, np.maximum(gain - np.float32(noise), 0), gain)
            evidence = np.clip(gain / np.float32(_SURE_LEVELS), -1, 1)
            hand.learnt = np.clip(hand.learnt * np.float32(_KEPT) + evidence, -_MOST, _MOST)
        hand.learnt = _moved(hand.learnt, motion)
        hand.points = hand.points + np.array(motion, np.float32)
        hand.center = hand.center[0] + motion[0], hand.center[1] + motion[1]
        hand.motion, hand.seen, hand.found = motion, True, False

    def _meet(self, found: Sequence[Finding], cells: float, shape: tuple[int, ...]) -> None:
        """Have hands that were found be those that are known, or new ones."""
        for each in found:
            points = np.asarray(each.points[:, :2] * np.float32(cells), np.float32)
            low, high = points.min(0), points.max(0)
            center, size = (float((low[0] + high[0]) / 2), float((low[1] + high[1]) / 2)), float((high - low).max())
            known = [hand for hand in self._hands if not hand.found]
            known = [
                hand for hand in known if _away(hand.center, center) < max(_NEAR * max(size, hand.size), _LEAST_NEAR)
            ]
            if known:
                hand = min(known, key=lambda hand: _away(hand.center, center))
                hand.center, hand.points, hand.found = center, points, True
                hand.size = max(size, hand.size * _SHRINKS)
            else:
                self._hands.append(_Hand(center, size, points, np.zeros(shape, np.float32)))
        for hand in self._hands:
            hand.missed = 0 if hand.found else hand.missed + 1
            if hand.missed > _PATIENCE:
                hand.learnt *= np.float32(_LOST)
        self._hands = [hand for hand in self._hands if hand.missed <= _PATIENCE or hand.learnt.max() > _FADED]


def _room_cells(shape: tuple[int, ...], hands: Sequence[_Hand]) -> _Cells:
    """Where the room is seen, most of all: at the upper sides of the frame, but for hands."""
    wide = round(shape[1] * _SIDES)
    sides = np.zeros(shape, bool)
    sides[:wide], sides[:, :wide], sides[:, -wide:] = True, True, True
    free = sides.copy()
    for hand in hands:
        free &= ~_disc(shape, hand.center, _ROUND * hand.size)
    return free if free.any() else sides


def _held_by(hand: _Hand) -> _Bytes:
    """The cells of what it holds, 1, and of the hand itself."""
    shape = hand.learnt.shape
    learnt = ((hand.learnt > _LEARNT) & _disc(shape, hand.center, _REACH * hand.size)).astype(np.uint8)
    held = np.zeros_like(learnt)
    if not learnt.any():
        return held
    closing = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (_CLOSED, _CLOSED))
    closed = cv2.morphologyEx(learnt, cv2.MORPH_CLOSE, closing)
    opened = cv2.morphologyEx(closed, cv2.MORPH_OPEN, np.ones((2, 2), np.uint8))
    outlines, _ = cv2.findContours(opened, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    at_hand = _disc(shape, hand.center, hand.size / 2)
    for number in range(len(outlines)):
        part = np.zeros_like(learnt)
        cv2.drawContours(part, outlines, number, (1,), cv2.FILLED)
        if part[at_hand].any():
            held |= part
    return np.asarray(cv2.erode(held, np.ones((3, 3), np.uint8)), np.uint8)


def _differences(middle: Floats, older: Floats, newer: Floats, from_: _Point, to: _Point) -> Floats:
    """How much the cells of the middle grid differ from its neighbors, by the motion from and to those."""
    back = cv2.blur(np.abs(middle - _moved(older, from_)), (_AROUND, _AROUND))
    on = cv2.blur(np.abs(middle - _moved(newer, (-to[0], -to[1]))), (_AROUND, _AROUND))
    return np.asarray(np.minimum(back, on), np.float32)


def _moved(grid: Floats, motion: _Point) -> Floats:
    matrix = np.array([[1, 0, motion[0]], [0, 1, motion[1]]], np.float32)
    size = grid.shape[1], grid.shape[0]
    return np.asarray(
        cv2.warpAffine(grid, matrix, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE), np.float32
    )


def _motion(before: _Bytes, grid: _Bytes, points: Floats, otherwise: _Point) -> _Point:
    """The median of the motion at points (n, 2); what else it is where nothing is to be seen."""
    inside = points[((points >= 0) & (points <= np.array(grid.shape[::-1]) - 1)).all(1)]
    if not len(inside):
        return otherwise
    there, followed, _ = cv2.calcOpticalFlowPyrLK(
        before, grid, inside, inside.copy(), winSize=(_WINDOW, _WINDOW), maxLevel=_HALVED
    )
    moved = np.asarray(there - inside, np.float32)[np.asarray(followed, bool)[:, 0]]
    if not len(moved):
        return otherwise
    x, y = np.median(moved, axis=0)
    return float(x), float(y)


def _away(a: _Point, b: _Point) -> float:
    return float(np.hypot(a[0] - b[0], a[1] - b[1]))


def _disc(shape: tuple[int, ...], center: _Point, radius: float) -> _Cells:
    y, x = np.ogrid[: shape[0], : shape[1]]
    return np.asarray((x - center[0]) ** 2 + (y - center[1]) ** 2 <= radius**2)


def _bytes(grid: Floats) -> _Bytes:
    return np.asarray(np.rint(grid), np.uint8)
