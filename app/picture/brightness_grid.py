"""A picture as a small upright grid of brightness, in which motion is seen and noise is not."""

from collections.abc import Mapping
from types import MappingProxyType

import cv2
import numpy as np

from .color_planes import Floats
from .picture import Layout, Picture, Plane

_LUMA: Mapping[Layout, int] = MappingProxyType({"rgba": 1, "yuyv": 0, "uyvy": 1})  # of a plane with several channels
_PEAK = 255.0


def brightness_grid(picture: Picture, columns: int) -> Floats:
    """(rows, columns), 0 to 255: means of about square cells of the upright frame; of colors it is green."""
    form, plane = picture.format, picture.planes[0]
    samples: Plane = plane[..., _LUMA[form.layout]] if plane.ndim == 3 else plane
    width, height = form.upright_size
    columns = max(1, min(columns, width))
    rows = max(1, min(height, round(height * columns / width)))
    turn = form.orientation
    stored = (rows, columns) if turn.transpose else (columns, rows)
    step = max(1, min(samples.shape[0] // stored[1], samples.shape[1] // stored[0]) // 8)  # of rows and columns read
    small = cv2.resize(np.ascontiguousarray(samples[::step, ::step]), stored, interpolation=cv2.INTER_AREA)
    grid = np.asarray(small, np.float32) * np.float32(_PEAK / ((1 << form.bits) - 1))
    upright = grid.T if turn.transpose else grid
    return np.ascontiguousarray(upright[:: -1 if turn.flip_y else 1, :: -1 if turn.flip_x else 1])
