"""Grows or shrinks a mask by some pixels of the frame, and softens its edge.

The definition, which `edged` has in NumPy, and MaskEdge in shaders, in this order:

    grow      by g pixels: along a row, a column and both diagonals in turn, the greatest of the values on the segment
              through each pixel that reaches pi / 8 |g| pixels to either side; its ends are interpolated linearly. For
              g < 0 the least. Together the segments are a regular octagon with a mean radius of |g|: an outline moves
              by 0.95 to 1.03 of it, and keeps its profile
    feather   by f pixels: a Gaussian with a standard deviation of f / 4, so that a hard edge becomes f pixels wide,
              from 0.02 to 0.98. Shaders shrink the mask to cells of k x k pixels, smooth those and interpolate them
              bilinearly, with the least k, by which the Gaussian takes 17 cells or fewer

The mask repeats its outermost pixels beyond the frame, so that people are not parted from its edges.
"""

from math import floor, pi, sqrt

import cv2
import numpy as np
import numpy.typing as npt

from ...picture.preprocess import Floats, ImageSize
from ..textures.picture_device import PictureDevice, ShaderDrawing, Target
from .blur import Blur, feathering

_DIAGONAL = 1 / sqrt(2)  # steps per pixel
_SEGMENTS = (((1, 0), 1.0), ((0, 1), 1.0), ((1, 1), _DIAGONAL), ((1, -1), _DIAGONAL))  # directions, steps per pixel


def _reach(grow: float) -> float:
    """Of the segments, in pixels."""
    return pi / 8 * abs(grow)


class MaskEdge:
    """Edges of masks of one size."""

    def __init__(self, pictures: PictureDevice, frame_size: ImageSize, unit: int) -> None:
        """`unit` is the texture unit of the result, and of what is on its way to it. Raises DeviceError."""
        self._pictures, self._unit = pictures, unit
        self._mask, self._other = (pictures.target(frame_size, "mask") for _ in range(2))
        self._grow, self._shrink = (
            pictures.drawing(f"edge_{step}.frag", {}, {"mask": unit}, f"edge {step}") for step in ("grow", "shrink")
        )
        self._blur = Blur(pictures, frame_size, unit, "mask", least_factor=1)

    def run(self, grow: float, feather: float, mask: ShaderDrawing) -> int:
        """Draw the mask, give it its edge and bind it; the pixels along a side of its cells. `mask` is edge_mask.frag,
        in use."""
        mask.draw(self._mask, self._mask.size)
        if grow:
            self._grow.use()
            self._grow.set_floats("sense", 1.0 if grow > 0 else -1.0)
            for direction, steps in _SEGMENTS:
                self._bind(self._mask)
                self._grow.set_ints("direction", *direction)
                self._grow.set_floats("reach", _reach(grow) * steps)
                self._grow.draw(self._other, self._other.size)
                self._mask, self._other = self._other, self._mask
        self._bind(self._mask)
        if not feather:
            return 1
        self._shrink.use()
        return self._blur.run(feathering(feather), self._shrink)

    def _bind(self, target: Target) -> None:
        self._pictures.bind(self._unit, target.texture)

    def release(self) -> None:
        """Delete shaders and masks."""
        for part in (self._grow, self._shrink, self._blur, self._mask, self._other):
            part.release()


def edged(mask: Floats, grow: float, feather: float) -> npt.NDArray[np.float32]:
    """A mask (H, W) of the frame's size, grown by pixels and with a feathered edge."""
    found = np.asarray(mask, np.float32)
    if grow < 0:
        return edged(1 - edged(1 - found, -grow, 0), 0, feather)
    for direction, steps in _SEGMENTS if grow else ():
        found = _greatest(found, direction, _reach(grow) * steps)
    if feather:
        found = cv2.GaussianBlur(found, (0, 0), feather / 4, borderType=cv2.BORDER_REPLICATE)  # type: ignore[assignment]
    return found


def _greatest(mask: Floats, direction: tuple[int, int], reach: float) -> npt.NDArray[np.float32]:
    """Of the values on segments, `reach` steps to either side."""
    whole = floor(reach)
    height, width = mask.shape
    padded = np.pad(mask, whole + 1, "edge")

    def moved(steps: int) -> Floats:
        x, y = (whole + 1 + steps * part for part in direction)
        return padded[y : y + height, x : x + width]

    best = np.max([moved(steps) for steps in range(-whole, whole + 1)], axis=0)
    for sense in (1, -1):
        end, beyond = moved(sense * whole), moved(sense * (whole + 1))
        best = np.maximum(best, end + np.float32(reach - whole) * (beyond - end))
    return np.asarray(best, np.float32)
