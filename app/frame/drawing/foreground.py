"""Estimates on the device, at low resolution, how the person's color differs from what is behind.

Where the mask is between 0 and 1 a pixel is a mixture of both, and over another background a fringe of the old one is
seen. The share of the background is taken out by the local means of both colors, as blur fusion does in one pass
(M. Forte, "Approximate Fast Foreground Color Estimation", ICIP 2021), but for one thing: of the means only their
difference counts, which leaves the pixel's own detail. The definition, which tests/helpers/pictures.py has in NumPy,
with the frame's color c, the mask a with the look's curve, and the mask m that is drawn, which may have another edge:

    cells   squares of `side` pixels, a share of the frame's height: c and a of the pixel in the middle, in bytes, a not
            softened; in the last row and column, the middle is in the frame at least
    apart   of 3 x 3 cells, with weights t of 1 2 1 along both axes, A = sum(t a^4), F = sum(t a^4 c) / A, and B and C
            likewise with 1 - a for a: (F - B) A C / (A C + 0.0004); cells beyond the edges repeat the last
            ones. Where there is only one of both it is 0
    between apart at the middle of each square of `step` pixels, half as long, interpolated bilinearly between cells
    own     c + (1 - max(a, m)) apart, that of the square around the pixel, within 0..1

For c = a F' + (1 - a) B' that is F', as far as F' - B' is F - B. Pixels that the look adds to the person stay as
they are.
The side, the power and the 0.0004 were chosen on photographs of one man over several backgrounds, with true mattes
and with refined masks.
"""

from ...picture.preprocess import ImageSize
from ..textures.picture_device import PictureDevice, ShaderDrawing, Target
from .blur import cell_counts

_CELLS, _STEPS = 60, 120  # along the frame's height, about


class Foreground:
    """Compares colors in frames of one size."""

    def __init__(self, pictures: PictureDevice, frame_size: ImageSize, unit: int) -> None:
        """`unit` is the texture unit of the result, and of what is on its way to it. Raises DeviceError."""
        self._pictures, self._unit = pictures, unit
        self._side, self._step = (max(1, round(frame_size[1] / rows)) for rows in (_CELLS, _STEPS))
        cells, steps = (cell_counts(frame_size, side) for side in (self._side, self._step))
        self._cells = pictures.target(cells)
        self._compared, self._result = (pictures.target(size, "halves") for size in (cells, steps))
        self._apart, self._between = (
            pictures.drawing(f"foreground_{name}.frag", {}, {"cells": unit}, f"foreground {name}")
            for name in ("apart", "between")
        )

    def run(self, cells: ShaderDrawing) -> float:
        """Compare what is bound, and bind the result; its texels per pixel of the frame.

        `cells` is foreground_cells.frag, in use, but for its side.
        """
        cells.set_ints("side", self._side)
        cells.draw(self._cells, self._cells.size)
        for drawing, source, target in (
            (self._apart, self._cells, self._compared),
            (self._between, self._compared, self._result),
        ):
            self._bind(source)
            drawing.use()
            drawing.set_floats("cells_per_step", self._step / self._side)
            drawing.draw(target, target.size)
        self._bind(self._result)
        return 1 / self._step

    def _bind(self, target: Target) -> None:
        self._pictures.bind(self._unit, target.texture)

    def release(self) -> None:
        """Delete shaders and cells."""
        for part in (self._apart, self._between, self._cells, self._compared, self._result):
            part.release()
