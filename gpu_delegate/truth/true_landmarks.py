"""MediaPipe's ops on landmarks and crops in float64: angles and products of matrices, as they are defined."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ..model.graph import Shape
from .true_arithmetic import TrueValues
from .true_sums import Operands, TrueMeaning, one_of_operands, two_of


def _matrix(attributes: Any, operands: Operands, shape: Shape) -> TrueValues:
    """Shift to the middle of the box, turn back, scale to the box, shift the crop's middle to the origin."""
    (landmarks,) = one_of_operands(operands)
    (x0, y0, _), (x1, y1, _) = (landmarks[end] for end in attributes.ends)
    angle = attributes.angle - math.atan2(y1 - y0, x1 - x0)
    points = landmarks[[*attributes.points], :2] @ _turn(angle).T
    low, high = points.min(0), points.max(0)
    turned, matrix = _turn(-angle), np.eye(4)
    height, width = attributes.size
    factors = np.array(attributes.scale[::-1]) * (high - low) / (width, height)
    matrix[:2, :2] = turned * factors
    matrix[:2, 3] = turned @ ((low + high) / 2) - matrix[:2, :2] @ (width / 2, height / 2)
    return matrix[None]


def _turn(angle: float) -> TrueValues:
    return np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])


def _mapped(attributes: Any, operands: Operands, shape: Shape) -> TrueValues:
    landmarks, matrix = two_of(operands)
    out = landmarks.copy()
    out[..., :2] = landmarks[..., :2] @ matrix[0, :2, :2].T + matrix[0, :2, 3]
    return out


def _transformed(attributes: Any, operands: Operands, shape: Shape) -> TrueValues:
    """Centers of pixels are at a half; outside of the outermost centers of the map is zero."""
    x, matrix = two_of(operands)
    (height, width), (rows, columns) = x.shape[1:3], shape[1:3]
    places = np.stack(np.meshgrid(np.arange(columns) + 0.5, np.arange(rows) + 0.5), axis=-1)
    across, down = np.moveaxis(places @ matrix[0, :2, :2].T + matrix[0, :2, 3] - 0.5, -1, 0)
    inside = (across >= 0) & (across <= width - 1) & (down >= 0) & (down <= height - 1)
    left, top = (np.floor(np.where(inside, place, 0)).astype(np.int64) for place in (across, down))
    out = np.zeros(shape)
    for row, column in np.ndindex(2, 2):
        near = np.where(inside, (1 - np.abs(down - top - row)) * (1 - np.abs(across - left - column)), 0)
        out[0] += near[..., None] * x[0, np.minimum(top + row, height - 1), np.minimum(left + column, width - 1)]
    return out


LANDMARKS: Mapping[str, TrueMeaning] = MappingProxyType(
    {
        "Landmarks2TransformMatrix": _matrix,
        "TransformLandmarks": _mapped,
        "TransformTensorBilinear": _transformed,
    }
)
