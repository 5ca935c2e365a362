"""Resizes whole upright RGBA pictures to the network's RGB grid, with OpenCV.

OpenCV's bilinear resizing of floats is what preprocess.py defines for `stretch`, to float32's rounding. It converts all
pixels, not just those that count, so NumPy (color_planes.py) is faster where a picture has far more than the network's
input.
"""

import cv2
import numpy as np

from .color_planes import Floats
from .picture import ImageSize, Orientation, Picture, PictureFormat
from .sampling import Fit, Sampling

MOST_PER_PIXEL = 8  # pixels of the picture for one of the grid; beyond about 12 NumPy is faster


def is_stretched(format: PictureFormat, fit: Fit, sampled: Sampling) -> bool:
    """Whether OpenCV samples pictures of a format as the map says, and faster than NumPy."""
    axes = sampled.x, sampled.y
    return (
        format.layout == "rgba"
        and format.orientation == Orientation()
        and fit == "stretch"
        and all(axis.length == 1 and axis.extent > 1 for axis in axes)  # along one pixel its coordinates are float32
        and format.size[0] * format.size[1] <= MOST_PER_PIXEL * axes[0].count * axes[1].count
    )


class StretchedToRgb:
    """For RGBA pictures of one format, all of each of which goes into the grid."""

    def __init__(self, format: PictureFormat, grid_size: ImageSize) -> None:
        width, height = format.size
        self._size = grid_size
        self._bytes = np.empty((height, width, 3), np.uint8)
        self._floats = np.empty((height, width, 3), np.float32)

    def __call__(self, picture: Picture) -> Floats:
        """(H, W, 3) of the grid; white is 1."""
        cv2.cvtColor(picture.planes[0], cv2.COLOR_RGBA2RGB, dst=self._bytes)
        np.copyto(self._floats, self._bytes)
        color = np.asarray(cv2.resize(self._floats, self._size, interpolation=cv2.INTER_LINEAR), np.float32)
        color *= np.float32(1 / 255)
        return color
