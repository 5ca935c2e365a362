"""Sample positions and weights of RESIZE_BILINEAR, as TensorFlow Lite defines them."""

import math

import numpy as np
import numpy.typing as npt

from .graph import Resize

PARTS = 1024  # of a pixel, where positions are whole numbers of them


def scale_of(source: int, target: int, attributes: Resize) -> float:
    """Source pixels per target pixel along one axis."""
    if attributes.align_corners and target > 1:
        source, target = source - 1, target - 1
    return (PARTS * source + target // 2) // target / PARTS if attributes.in_1024ths else source / target


def first_position(scale: float, attributes: Resize) -> float:
    """Source coordinate of the first target pixel (bilinear), before clamping."""
    if not attributes.half_pixel_centers:
        return 0.0
    return math.floor(scale * PARTS / 2) / PARTS - 0.5 if attributes.in_1024ths else 0.5 * scale - 0.5


def position(target_index: float, scale: float, attributes: Resize) -> float:
    """Source coordinate of a target pixel, before clamping (bilinear)."""
    if attributes.in_1024ths or not attributes.half_pixel_centers:
        return target_index * scale + first_position(scale, attributes)
    return (target_index + 0.5) * scale - 0.5


def interpolation_matrix(source: int, target: int, attributes: Resize) -> npt.NDArray[np.float64]:
    """The (target, source) matrix of bilinear interpolation along one axis; each row sums to one."""
    matrix = np.zeros((target, source))
    scale = scale_of(source, target, attributes)
    for index in range(target):
        at = position(index, scale, attributes)
        low = int(np.floor(at))
        weight = at - low
        matrix[index, min(max(low, 0), source - 1)] += 1.0 - weight
        matrix[index, min(max(low + 1, 0), source - 1)] += weight
    return matrix
