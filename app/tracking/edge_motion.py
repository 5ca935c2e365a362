"""What moves in at the frame's edge, before anybody knows what it is.

Brightness of cells is compared with what was there before. Cells that differ and reach the frame's edge together are of
something that came in; if no face is known that they belong to, all of it is to be covered: a face may be among it. It
is known for no face once it has stood still for some seconds. A frame that changes everywhere tells nothing: a camera
that is moved shows what comes in until it is found.
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
            found = [box for cells in _from_edges(changed) if (box := _box(cells, frame, known))]
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


def _box(cells: _Cells, frame: ImageSize, known: Sequence[FaceCover]) -> FaceCover | None:
    """What covers cells, but for those of people whose faces are known; None where nothing is left."""
    high, wide = cells.shape
    x_px, y_px = frame[0] / wide, frame[1] / high
    y, x = np.nonzero(cells)
    left, right, top, bottom = x * x_px, (x + 1) * x_px, y * y_px, (y + 1) * y_px
    for face in known:
        of_face = right > face.center_x - _BODY_WIDE * face.half_width
        of_face &= left < face.center_x + _BODY_WIDE * face.half_width
        of_face &= bottom > face.center_y - 2 * face.half_height
        of_face &= top < face.center_y + _BODY_HIGH * face.half_height
        if of_face.any():
            return None
    center = (float(left.min() + right.max()) / 2, float(top.min() + bottom.max()) / 2)
    size = (float(right.max() - left.min()) / 2, float(bottom.max() - top.min()) / 2)
    return FaceCover(*center, _ROUND * size[0], _ROUND * size[1])
