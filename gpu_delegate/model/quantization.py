"""Converts between real values and the integers of quantized tensors, and says what those integers mean.

Kernels compute with steps: the whole numbers q - zero point, as float32, for the integers q of a tensor of 8 or 16
bits that has a scale. What they are for a tensor of the file is said here.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.errors import UnsupportedError
from .graph import ABSENT, Graph, Node, Opaque, Quantization, Steps, Tensor
from .layout import Precision

FloatArray = npt.NDArray[np.float32]
BYTE_DTYPES = ("int8", "uint8")
STEP_DTYPES = (*BYTE_DTYPES, "int16")


def is_quantized(tensor: Tensor) -> bool:
    """Whether a tensor's integers stand for real numbers, and kernels have steps of them."""
    return tensor.dtype in STEP_DTYPES and tensor.quantization is not None


def has_quantized(graph: Graph) -> bool:
    """Whether integers of a graph stand for real numbers."""
    return any(is_quantized(tensor) for tensor in graph.tensors.values())


def precision_for(graph: Graph, precision: Precision) -> Precision:
    """What native code computes a network in: with quantized tensors sums are exact, in fp32 alone."""
    return "fp32" if has_quantized(graph) else precision


def quantization_of(tensor: Tensor) -> Quantization:
    """What the integers of a tensor mean. Raises UnsupportedError where its file does not say it."""
    if tensor.quantization is None:
        raise UnsupportedError(f"{tensor.name}: {tensor.dtype} without a scale")
    return tensor.quantization


def steps_of(tensor: Tensor) -> Steps:
    """The least and greatest steps that a tensor in one scale can have."""
    limits, zero_point = np.iinfo(tensor.dtype), quantization_of(tensor).zero_points[0]
    return Steps(int(limits.min) - zero_point, int(limits.max) - zero_point)


def zero_point_of(tensor: Tensor) -> int:
    """The integer in the file that is the step 0 of a tensor; 0 where there are no steps."""
    return quantization_of(tensor).zero_points[0] if is_quantized(tensor) else 0


def step_size(tensor: Tensor) -> float:
    """The real number that a step of a tensor is, as float32; 1 where there are no steps."""
    return quantization_of(tensor).scales[0] if is_quantized(tensor) else 1.0


def byte_steps(tensor: Tensor) -> Steps | None:
    """The least and greatest whole number that kernels have for a tensor of bytes; None for other types."""
    if is_quantized(tensor):
        return steps_of(tensor)
    if tensor.dtype not in BYTE_DTYPES:
        return None
    limits = np.iinfo(tensor.dtype)
    return Steps(int(limits.min), int(limits.max))


def real_range(tensor: Tensor) -> tuple[float, float] | None:
    """The least and the largest real number that a quantized tensor can say; None for others."""
    steps, size = byte_steps(tensor), step_size(tensor)
    return (steps.low * size, steps.high * size) if steps and is_quantized(tensor) else None


def nearest_whole(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Rounded, halves away from zero: as TensorFlow Lite quantizes, and as round_away in shaders/requantize.glsl."""
    whole = np.trunc(values)
    rounded: npt.NDArray[Any] = whole + np.trunc(2 * (values - whole))
    return rounded


def quantized(values: FloatArray, tensor: Tensor) -> npt.NDArray[Any]:
    """The nearest values of the tensor's type; floats stay as they are, integers without a scale are rounded."""
    kind = np.dtype(tensor.dtype)
    if kind.kind not in "iu":
        return values.astype(kind, copy=False)
    scale, zero_point = _along(tensor.quantization, values.ndim)
    limits = np.iinfo(kind)
    return np.asarray(np.clip(nearest_whole(values / scale) + zero_point, limits.min, limits.max), kind)


def dequantized(values: npt.NDArray[Any], tensor: Tensor) -> FloatArray:
    """What a tensor's values mean, as float32."""
    if values.dtype.kind not in "iu":
        return values.astype(np.float32, copy=False)
    scale, zero_point = _along(tensor.quantization, values.ndim)
    return np.asarray((values - zero_point) * scale, np.float32)


def with_real_weights(graph: Graph) -> Graph:
    """The same where ops on floats have weights of bytes: these as floats, which is what kernels compute with.

    TensorFlow Lite's own kernels round each input of such an op to 8 bits first, by a scale of the moment; a graph of
    which the same is asked stays as it is.
    """
    if graph.hybrid == "reference":
        return graph
    real: dict[int, Tensor] = {}
    nodes = list[Node]()
    for node in graph.nodes:
        tensors = [graph.tensors[i] for i in node.inputs if i != ABSENT]
        weights = [tensor for tensor in tensors[1:] if is_quantized(tensor) and tensor.data is not None]
        if not weights or tensors[0].dtype != "float32" or isinstance(node.attributes, Opaque) or graph.original:
            nodes.append(node)
            continue
        for tensor in weights:
            if tensor.index not in real and tensor.data is not None:
                number = max(graph.dropped_below, 1 + max(graph.tensors)) + len(real)
                values = dequantized(tensor.data, tensor)
                real[tensor.index] = Tensor(number, tensor.name, tensor.shape, "float32", values)
        inputs = tuple(real[i].index if i in real and i != node.inputs[0] else i for i in node.inputs)
        nodes.append(replace(node, inputs=inputs))
    return graph.with_changes(tuple(nodes), {tensor.index: tensor for tensor in real.values()}) if real else graph


def _along(quantization: Quantization | None, rank: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Scale and zero point, to be broadcast over a tensor; a scale of 0, which nothing means, is 1."""
    if quantization is None:
        return np.ones(()), np.zeros(())
    scales, zero_points = np.array(quantization.scales), np.array(quantization.zero_points, np.float64)
    shape = [-1 if k == quantization.dimension and scales.size > 1 else 1 for k in range(rank)]
    return np.where(scales == 0, 1, scales).reshape(shape), zero_points.reshape(shape)
