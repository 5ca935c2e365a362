"""A rotated rectangle of a frame, which a network sees as its whole input."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...picture.picture import ImageSize

__all__ = ["FrameRegion", "whole_region"]


@dataclass(frozen=True)
class FrameRegion:
    """A rectangle in pixels of the upright frame, of which the first covers 0 to 1 on both axes.

    It may reach past the edges. The angle is in radians, clockwise as it is seen: at 0 the region's top is the
    frame's. As MediaPipe's NormalizedRect, but in pixels.
    """

    center_x: float
    center_y: float
    width: float
    height: float
    angle: float = 0.0

    def to_frame(self) -> npt.NDArray[np.float64]:
        """The matrix (2, 3) from fractions of the region (0, 0 at its upper left, 1, 1 at its lower right) to pixels.

        With (u, v, 1) on its right it is (x, y) of the frame.
        """
        cosine, sine = math.cos(self.angle), math.sin(self.angle)
        across = self.width * cosine, self.width * sine
        down = -self.height * sine, self.height * cosine
        corner = self.center_x - (across[0] + down[0]) / 2, self.center_y - (across[1] + down[1]) / 2
        return np.array([[across[0], down[0], corner[0]], [across[1], down[1], corner[1]]])

    def points_to_frame(self, fractions: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Points (N, 2 or 3), as fractions of the region, in pixels of the frame; z is scaled as x is."""
        matrix = self.to_frame()
        flat = fractions[:, :2] @ matrix[:, :2].T + matrix[:, 2]
        deep = fractions[:, 2:] * self.width
        return np.asarray(np.concatenate([flat, deep], axis=1), np.float32)

    def box_to_frame(self, box: tuple[float, float, float, float]) -> "FrameRegion":
        """A rectangle of the region, (left, top, right, bottom) as fractions, as a region of the frame."""
        left, top, right, bottom = box
        x, y = self.to_frame() @ ((left + right) / 2, (top + bottom) / 2, 1)
        wide, high = (right - left) * self.width, (bottom - top) * self.height
        return FrameRegion(float(x), float(y), wide, high, self.angle)


def whole_region(frame: ImageSize, tensor: ImageSize) -> FrameRegion:
    """All of a frame (width, height), with bars around it where the network's input has another shape."""
    (width, height), (tensor_width, tensor_height) = frame, tensor
    scale = max(width / tensor_width, height / tensor_height)
    return FrameRegion(width / 2, height / 2, scale * tensor_width, scale * tensor_height)
