"""Covers faces in a picture of a frame, by a blur or by squares, of which nothing of them comes back.

This is the written definition. The part of the frame around a cover, a square a little larger than it with its soft
edge, is seen as few cells, each the mean of its pixels: 16 along a side, about 8 across a face, which stay squares; or
32, smoothed by a Gaussian of 2.5 cells, which leaves less than four waves across a face. The cover is drawn wholly
where (|x| / half its width)^3 + (|y| / half its height)^3 <= 1, and fades out beyond.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue

from ...tracking.face_covers import FaceCover, covers_in_frame
from ..textures.picture_device import FRAME_SAMPLERS, PictureDevice, ReadablePlanes, ShaderDrawing, Target

MOST_COVERS = 64  # where more faces are, all of the frame is covered
_SOFT = 1.12  # where a cover's edge ends, in its sizes
_SQUARES, _BLURRED = 16, 32  # cells along a side of a part
_SIGMA, _REACH = 2.5, 6  # of the blur, in cells
_CELLS_UNIT = 4


@dataclass(frozen=True)
class _Part:
    """A square part of the frame, in cells: pixels to its upper left, of a cell's side, cells along a side."""

    left: int
    top: int
    side: int
    across: int


class HiddenFaces:
    """Draws covers over a picture of the frame that is in textures; shaders are made at their first use."""

    def __init__(self, pictures: PictureDevice, frame: ReadablePlanes) -> None:
        self._pictures, self._frame = pictures, frame
        self._size = frame.format.upright_size
        self._drawings: dict[str, ShaderDrawing] = {}
        self._cells: tuple[Target, Target] | None = None

    def draw(
        self,
        covers: Sequence[FaceCover],
        blurred: bool,
        target: Target,
        height: int,
        mirror: bool = False,
        age: int = 0,
    ) -> None:
        """Over the picture of the frame of that age, `height` rows at the target's lower left. Raises DeviceError."""
        shown = covers_in_frame(covers, self._size, MOST_COVERS)
        if not shown:
            return
        if self._cells is None:
            size = (_BLURRED, _BLURRED * MOST_COVERS)
            self._cells = self._pictures.target(size, "halves"), self._pictures.target(size, "halves")
        parts = [_part_around(cover, _BLURRED if blurred else _SQUARES) for cover in shown]
        self._frame.bind(age=age)
        self._fill(parts)
        if blurred:
            self._smooth(parts)
        self._lay_over(shown, parts, blurred, target, height, mirror)

    def _fill(self, parts: Sequence[_Part]) -> None:
        assert self._cells
        drawing = self._ready("hidden_cells.frag", self._frame.defines(), FRAME_SAMPLERS)
        for first, part in zip(range(0, _BLURRED * MOST_COVERS, _BLURRED), parts, strict=False):
            self._tell(drawing, part, first)
            drawing.draw(self._cells[0], (part.across, part.across), first)

    def _smooth(self, parts: Sequence[_Part]) -> None:
        assert self._cells
        drawing = self._ready("hidden_smooth.frag", {"REACH": _REACH}, {"cells": _CELLS_UNIT})
        raw = [math.exp(-((distance / _SIGMA) ** 2) / 2) for distance in range(_REACH + 1)]
        whole = 2 * sum(raw) - raw[0]
        drawing.set_array("weights", [weight / whole for weight in raw])
        for way, (source, result) in enumerate((self._cells, self._cells[::-1])):
            self._pictures.bind(_CELLS_UNIT, source.texture)
            drawing.set_ints("direction", 1 - way, way)
            for first, part in zip(range(0, _BLURRED * MOST_COVERS, _BLURRED), parts, strict=False):
                self._tell(drawing, part, first)
                drawing.draw(result, (part.across, part.across), first)

    def _lay_over(
        self,
        covers: Sequence[FaceCover],
        parts: Sequence[_Part],
        blurred: bool,
        target: Target,
        height: int,
        mirror: bool,
    ) -> None:
        assert self._cells
        drawing = self._ready("hidden.frag", {"BLURRED": int(blurred)}, {"cells": _CELLS_UNIT}, over=True)
        self._pictures.bind(_CELLS_UNIT, self._cells[0].texture)
        frame_width, frame_height = self._size
        drawing.set_ints("mirror", *((-1, frame_width) if mirror else (0, 0)))
        drawing.set_ints("height", height)
        drawing.set_floats("soft", _SOFT**3)
        for nth, (cover, part) in enumerate(zip(covers, parts, strict=True)):
            x, y, wide, high = cover.center_x, cover.center_y, _SOFT * cover.half_width, _SOFT * cover.half_height
            left, right = max(0, math.floor(x - wide)), min(frame_width, math.ceil(x + wide))
            top, bottom = max(0, math.floor(y - high)), min(frame_height, math.ceil(y + high))
            if left >= right or top >= bottom:
                continue
            self._tell(drawing, part, nth * _BLURRED)
            drawing.set_floats("cover", x, y, 1 / cover.half_width, 1 / cover.half_height)
            column = frame_width - right if mirror else left
            drawing.draw(target, (right - left, bottom - top), height - bottom, column)

    def _tell(self, drawing: ShaderDrawing, part: _Part, first: int) -> None:
        drawing.set_ints("corner", part.left, part.top)
        drawing.set_ints("side", part.side)
        drawing.set_ints("across", part.across)
        drawing.set_ints("first", first)

    def _ready(
        self, shader: str, defines: Mapping[str, ParameterValue], samplers: Mapping[str, int], over: bool = False
    ) -> ShaderDrawing:
        key = f"{shader} {defines.get('BLURRED')}"
        if key not in self._drawings:
            sizes = {} if shader == "hidden_smooth.frag" else dict(zip(("FRAME_W", "FRAME_H"), self._size, strict=True))
            self._drawings[key] = self._pictures.drawing(shader, {**sizes, **defines}, samplers, key, over)
        self._drawings[key].use()
        return self._drawings[key]

    def release(self) -> None:
        """Delete what was made here; the frame and targets stay."""
        for each in (*self._drawings.values(), *(self._cells or ())):
            each.release()


def _part_around(cover: FaceCover, across: int) -> _Part:
    """Cells of whole pixels that stand still in the frame while the cover moves within one."""
    reach = _SOFT * max(cover.half_width, cover.half_height)
    side = max(1, math.ceil(2 * reach / (across - 1)))
    left, top = (math.floor((middle - reach) / side) * side for middle in (cover.center_x, cover.center_y))
    return _Part(left, top, side, across)
