"""Blurs the background of a frame on the device, without the person's colors in it.

The definition, which tests/helpers/pictures.py has in NumPy. The background is the frame weighted by (1 - mask) cubed,
so that nothing of the person spreads into it, and little of pixels that are in part person, as at hair:

    shrink  cells of factor x factor pixels become their means of (red, green, blue, 1) * weight, as 4 x 4 of
            them tell that are evenly spread, or all 3 x 3; beyond its edges the frame repeats its last row and column
    smooth  a Gaussian along the rows, then one along the columns; the picture repeats its outermost pixels
    show    composite.frag interpolates bilinearly, and divides color by weight

For a light wrap the background is the look's new background, and the light is

    spill   the person's color p becomes p + strength * max(color - weight * p, 0), color not divided by weight: it
            goes towards the background's as far as that is near, where that is brighter

That is the light wrap of compositing (R. Brinkmann, The Art and Science of Digital Compositing): the background within
the inverted matte, both blurred, laid over the person. It only lightens, and never beyond the background: so there is
no rim brighter than either, and no ragged edge in front of dark backgrounds. 2 x 2 samples of a cell suffice for it.

A radius is two standard deviations, in pixels of the frame. The factor grows with it, so that the Gaussian is about as
wide in cells for any radius, and a large one costs less than a small one.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp

from ...picture.preprocess import ImageSize
from ..looks.effects import LEAST_RADIUS, MOST_RADIUS
from ..textures.picture_device import PictureDevice, SampleKind, ShaderDrawing, Target

_LEAST_FACTOR = 3  # of pictures
_CELLS = 2.0  # the least standard deviation in cells: below, interpolating between cells shows
_MOST_REACH = 8  # cells to either side: three standard deviations, of which none is 8 / 3 cells
_ROWS, _COLUMNS = (1, 0), (0, 1)


@dataclass(frozen=True)
class Gaussian:
    """How a radius is blurred: in cells of so many pixels, with these weights by distance, whose sum is 1."""

    factor: int
    weights: tuple[float, ...]


@lru_cache(maxsize=8)
def gaussian(radius: float) -> Gaussian:
    """For a radius in pixels, at least LEAST_RADIUS and at most MOST_RADIUS."""
    deviation = min(max(radius, LEAST_RADIUS), MOST_RADIUS) / 2
    return _planned(deviation, max(_LEAST_FACTOR, int(deviation / _CELLS)))


@lru_cache(maxsize=8)
def feathering(width: float) -> Gaussian:
    """For an edge of a mask, of so many pixels, more than 0: 4 standard deviations; in pixels as they are if it can."""
    return _planned(width / 4, ceil(3 * width / 4 / _MOST_REACH))


def _planned(deviation: float, factor: int) -> Gaussian:
    variance = (deviation / factor) ** 2 - 0.25 * (factor > 1)  # less the blur by shrinking and interpolating
    reach = ceil(3 * variance**0.5)
    powers = [exp(-(distance**2) / (2 * variance)) for distance in range(reach + 1)]
    total = 2 * sum(powers) - powers[0]
    return Gaussian(factor, tuple(power / total for power in powers))


class Blur:
    """Blurs frames of one size; another radius takes no time and no memory."""

    def __init__(
        self,
        pictures: PictureDevice,
        frame_size: ImageSize,
        unit: int,
        kind: SampleKind = "halves",
        least_factor: int = _LEAST_FACTOR,
    ) -> None:
        """`unit` is the texture unit of the result, and of what is on its way to it. Raises DeviceError."""
        self._pictures, self._frame_size, self._unit = pictures, frame_size, unit
        largest = cell_counts(frame_size, least_factor)
        self._shrunk, self._smoothed = (pictures.target(largest, kind) for _ in range(2))
        self._smooth = pictures.drawing("blur_smooth.frag", {"MOST_REACH": _MOST_REACH}, {"cells": unit}, "blur smooth")

    def run(self, plan: Gaussian, shrink: ShaderDrawing) -> int:
        """Blur what is bound and bind the result; the factor. `shrink` makes the cells, in use, but for that."""
        size = cell_counts(self._frame_size, plan.factor)
        shrink.set_ints("factor", plan.factor)
        shrink.draw(self._shrunk, size)
        self._smooth.use()
        self._smooth.set_ints("size", *size)
        self._smooth.set_ints("reach", len(plan.weights) - 1)
        self._smooth.set_array("weights", plan.weights)
        for direction, source, target in (
            (_ROWS, self._shrunk, self._smoothed),
            (_COLUMNS, self._smoothed, self._shrunk),
        ):
            self._smooth.set_ints("direction", *direction)
            self._bind(source)
            self._smooth.draw(target, size)
        self._bind(self._shrunk)
        return plan.factor

    def _bind(self, target: Target) -> None:
        self._pictures.bind(self._unit, target.texture)

    def release(self) -> None:
        """Delete shaders and pictures."""
        for part in (self._smooth, self._shrunk, self._smoothed):
            part.release()


def cell_counts(frame_size: ImageSize, factor: int) -> ImageSize:
    """Columns and rows of cells of factor x factor pixels."""
    width, height = (-(-side // factor) for side in frame_size)
    return width, height
