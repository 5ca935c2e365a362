"""What moves in at the frame's edge, before anybody knows what it is.

Brightness of cells is compared with what was there before. Cells that differ and reach the frame's edge together are of
something that came in; if no face is known that they belong to, all of it is to be covered: a face may be among it. Of
what hangs together with a known person only that is covered which is no part of one, if it is small. It is known for no
face once it has stood still for some seconds. A frame that changes everywhere tells nothing: a camera that is moved
shows what comes in until it is found.
"""

from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt

from ..picture.color_planes import Floats
from ..picture.picture import ImageSize
from .face_covers import FaceCover

__all__ = ["GRID_COLUMNS", "EdgeMotion"]

GRID_COLUMNS = 64
_CHANGED = 7.0  # of 255: by how much a cell differs that is not as before
_STILL = 3.0  # between two frames, of what stands still
_ABSORBED_MS = 2500.0  # after which what stands still belongs to the room
_MOST_CHANGED = 0.6  # of all cells: more is the camera's own motion, or a light
_HELD_MS = 250.0  # how long it stays covered once a face is known there, which may be another's
_SHARE = 0.05  # by how much the room follows its own slow changes in a frame
_BODY_WIDE, _BODY_HIGH = 2.0, 9.0  # of a face's size, to its sides and below: what moves there belongs to it
_MOST_BESIDE = 0.1  # of all cells, beside people: more is their own motion, or the camera's
_WIDER = 1.2  # of a face's size: how much wider they are, one of its sizes lower
_FILLED, _SPLIT = 0.6, 8  # of a box, the share of cells that differ; cells along a side of one that is not split
_ROUND = 1.28  # of a box: the ellipse of third order around it

_Cells = npt.NDArray[np.bool_]


class EdgeMotion:
    """Covers what came in at the edges and is not known. Sees a grid for each frame."""

    def __init__(self) -> None:
        self._room: Floats | None = None
        self._before: Floats = np.zeros((0, 0), np.float32)
        self._still_ms: Floats = np.zeros((0, 0), np.float32)  # how long each has stood still, differing
        self._held: list[tuple[float, FaceCover]] = []  # covers, and until when
        self._time_ms = 0.0

    def covers(
        self, grid: Floats, time_ms: float, frame: ImageSize, known: Sequence[FaceCover]
    ) -> tuple[FaceCover, ...]:
        """What to cover in the next frame (width, height), of whose faces those in `known` are covered anyway."""
        if self._room is None or self._room.shape != grid.shape:
            self.begin_anew()
            self._room, self._before, self._still_ms = grid.copy(), grid, np.zeros_like(grid)
            self._time_ms = time_ms
            return ()
        passed, self._time_ms = max(0.0, time_ms - self._time_ms), time_ms
        difference = grid - self._room
        difference -= np.median(difference)  # a camera's exposure
        changed = np.abs(difference) > _CHANGED
        self._follow_room(grid, changed, passed)
        found: list[FaceCover] = []
        if changed.mean() <= _MOST_CHANGED:
            found = _unknown(changed, frame, known)
        self._held = [(until, cover) for until, cover in self._held if until >= time_ms]
        self._held += [(time_ms + _HELD_MS, cover) for cover in found]
        return tuple(cover for _, cover in self._held)

    def _follow_room(self, grid: Floats, changed: _Cells, passed_ms: float) -> None:
        assert self._room is not None
        still = np.abs(grid - self._before) < _STILL
        self._still_ms = np.where(changed & still, self._still_ms + np.float32(passed_ms), np.float32(0))
        absorbed = self._still_ms > _ABSORBED_MS
        share = np.where(absorbed, np.float32(1), np.where(changed, np.float32(0), np.float32(_SHARE)))
        self._room += share * (grid - self._room)
        self._before = grid

    def begin_anew(self) -> None:
        """The next frame is of another place."""
        self._room = None
        self._held.clear()


def _from_edges(changed: _Cells) -> list[_Cells]:
    """Cells that differ and hang together, of which some are at the frame's edge."""
    near = cv2.dilate(changed.astype(np.uint8), np.ones((3, 3), np.uint8))
    count, labels = cv2.connectedComponents(near, connectivity=8)
    edge = np.unique(np.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]]))
    return [labels == number for number in edge if 0 < number < count]


def _unknown(changed: _Cells, frame: ImageSize, known: Sequence[FaceCover]) -> list[FaceCover]:
    """What covers cells that hang together with the edge, but for those of people whose faces are known."""
    found = list[FaceCover]()
    for cells in _from_edges(changed):
        if not (cells & _of_people(changed.shape, frame, known, 0.0)).any():
            found += _boxes(cells, frame)
            continue
        others = cells & ~_of_people(changed.shape, frame, known, _WIDER)
        if others.mean() <= _MOST_BESIDE:
            found += [box for rest in _from_edges(others) for box in _boxes(rest, frame)]
    return found


def _of_people(shape: tuple[int, ...], frame: ImageSize, known: Sequence[FaceCover], wider: float) -> _Cells:
    """Cells of people whose faces are known, who are wider below by so much of a face."""
    y, x = np.mgrid[: shape[0], : shape[1]] + 0.5
    y, x = y * frame[1] / shape[0], x * frame[0] / shape[1]
    found = np.zeros(shape, bool)
    for face in known:
        down, across = (y - face.center_y) / face.half_height, np.abs(x - face.center_x) / face.half_width
        found |= (across < _BODY_WIDE + wider * np.maximum(0, down)) & (down > -2) & (down < _BODY_HIGH)
    return found


def _boxes(cells: _Cells, frame: ImageSize) -> list[FaceCover]:
    """What covers cells: one box, or those of its halves where much of it is empty."""
    y, x = np.nonzero(cells)
    top, left, bottom, right = int(y.min()), int(x.min()), int(y.max()) + 1, int(x.max()) + 1
    high, wide = bottom - top, right - left
    if len(x) < _FILLED * high * wide and max(high, wide) >= _SPLIT:
        halves = np.zeros_like(cells)
        if wide > high:
            halves[:, : left + wide // 2] = True
        else:
            halves[: top + high // 2] = True
        return [box for half in (cells & halves, cells & ~halves) for box in _boxes(half, frame)]
    x_px, y_px = frame[0] / cells.shape[1], frame[1] / cells.shape[0]
    center = (left + right) / 2 * x_px, (top + bottom) / 2 * y_px
    return [FaceCover(*center, _ROUND * wide / 2 * x_px, _ROUND * high / 2 * y_px)]
