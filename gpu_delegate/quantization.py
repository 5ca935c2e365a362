"""Real values of a tensor go in, the integers that its file has for them come out, and vice versa.

Kernels compute with steps: the whole numbers q - zero point, as float32, for the integers q of a tensor of 8 bits that
has a scale. What they are for a tensor of the file is said here.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from .graph import Quantization, Tensor

FloatArray = npt.NDArray[np.float32]
STEP_DTYPES = ("int8", "uint8")  # of tensors that are steps if they have a scale


def zero_point_of(tensor: Tensor) -> int:
    """The integer of a tensor's file that is the step 0: 0 where there are no steps, or no single zero point."""
    points = tensor.quantization.zero_points if tensor.quantization and tensor.dtype in STEP_DTYPES else ()
    return points[0] if len(points) == 1 else 0


def scale_of(tensor: Tensor) -> float:
    """What a step of a tensor means: 1 where there are no steps."""
    scales = tensor.quantization.scales if tensor.quantization and tensor.dtype in STEP_DTYPES else ()
    return (scales[0] or 1.0) if len(scales) == 1 else 1.0


def nearest_whole(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Rounded, halves away from zero: as TensorFlow Lite quantises."""
    whole: npt.NDArray[Any] = np.copysign(np.floor(np.abs(values) + 0.5), values)
    return whole


def quantized(values: FloatArray, tensor: Tensor) -> npt.NDArray[Any]:
    """The nearest values of the tensor's type; floats stay as they are, integers without a scale are rounded."""
    kind = np.dtype(tensor.dtype)
    if kind.kind not in "iu":
        return values.astype(kind, copy=False)
    scale, zero_point = _along(tensor.quantization, values.ndim)
    limits = np.iinfo(kind)
    integers: npt.NDArray[Any] = np.clip(np.rint(values / scale) + zero_point, limits.min, limits.max).astype(kind)
    return integers


def dequantized(values: npt.NDArray[Any], tensor: Tensor) -> FloatArray:
    """What a tensor's values mean, as float32."""
    if values.dtype.kind not in "iu":
        return values.astype(np.float32, copy=False)
    scale, zero_point = _along(tensor.quantization, values.ndim)
    return np.asarray((values - zero_point) * scale, np.float32)


def _along(quantization: Quantization | None, rank: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Scale and zero point, to be broadcast over a tensor; a scale of 0, which nothing means, is 1."""
    if quantization is None:
        return np.ones(()), np.zeros(())
    scales, zero_points = np.array(quantization.scales), np.array(quantization.zero_points, np.float64)
    shape = [-1 if k == quantization.dimension and scales.size > 1 else 1 for k in range(rank)]
    return np.where(scales == 0, 1, scales).reshape(shape), zero_points.reshape(shape)
