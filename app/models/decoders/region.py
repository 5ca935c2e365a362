"""A rotated rectangle of a frame, which a network sees as its whole input."""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ...picture.picture import ImageSize

__all__ = ["FrameRegion", "angle_between", "normalized_angle", "region_between", "whole_region"]

Xy = tuple[float, float] | npt.NDArray[np.float32]


@dataclass(frozen=True)
class FrameRegion:
    """A rectangle in pixels of the upright frame, of which the first covers 0 to 1 on both axes.

        region = texelflow.FrameRegion(center_x=320, center_y=240, width=200, height=100, angle=0.1)
        print(region.center_x, region.center_y, region.width, region.height, region.angle)
        ((x, y),) = region.points_to_frame(np.array([[0.5, 0.5]], np.float32))  # 320, 240
        half = region.box_to_frame((0, 0, 0.5, 1))  # its left half
        matrix = region.to_frame()
        metres = region.directions_to_frame(np.array([[0, 0.1, 0]], np.float32))
        below = region.moved(across=0, down=1)

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
        deep = fractions[:, 2:] * abs(self.width)
        return np.asarray(np.concatenate([flat, deep], axis=1), np.float32)

    def directions_to_frame(self, directions: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Points in metres (N, 3), with axes along the region's, as they lie along the frame's: turned, not scaled."""
        cosine, sine, side = math.cos(self.angle), math.sin(self.angle), math.copysign(1, self.width)
        x, y, z = directions[:, 0] * side, directions[:, 1], directions[:, 2]
        return np.asarray(np.stack([cosine * x - sine * y, sine * x + cosine * y, z], axis=1), np.float32)

    def moved(self, across: float, down: float) -> "FrameRegion":
        """The same, moved along its own axes by parts of its width and height."""
        cosine, sine = math.cos(self.angle), math.sin(self.angle)
        right, below = self.width * across, self.height * down
        x, y = self.center_x + right * cosine - below * sine, self.center_y + right * sine + below * cosine
        return replace(self, center_x=x, center_y=y)

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


def region_between(middle: tuple[float, float], edge: tuple[float, float], degrees: float) -> FrameRegion:
    """The square around one point of a frame that has another one on its edge, turned so that this lies at `degrees`.

    0 degrees are to the right, 90 up. As MediaPipe's alignment_points_to_rects_calculator with that target angle.
    """
    side = 2 * math.hypot(edge[0] - middle[0], edge[1] - middle[1])
    return FrameRegion(*middle, side, side, angle_between(middle, edge, degrees))


def angle_between(start: Xy, end: Xy, degrees: float) -> float:
    """By how much a region is turned in which the line from start to end, x and y first, lies at `degrees`."""
    (x0, y0), (x1, y1) = start[:2], end[:2]
    return normalized_angle(math.radians(degrees) - math.atan2(float(y0 - y1), float(x1 - x0)))


def normalized_angle(angle: float) -> float:
    """The same direction, in radians between -pi and pi."""
    return angle - 2 * math.pi * math.floor((angle + math.pi) / (2 * math.pi))
