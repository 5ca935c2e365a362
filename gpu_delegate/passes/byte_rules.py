"""Checks a node against TensorFlow Lite's specification of 8-bit quantization.

What it demands of an op is in the op's record (ByteRules). Kernels of TensorFlow Lite take most files that lie outside,
and each ignores something else of what these say: such nodes are left to them.
"""

import math
from collections.abc import Iterator

import numpy as np

from ..model.graph import ABSENT, Graph, Node, Tensor
from ..model.quantization import BYTE_DTYPES, is_quantized, quantization_of
from ..ops.record import ByteRules
from ..ops.registry import OPS

LEAST_SCALE, MOST_SCALE = 2.0**-40, 2.0**40  # kernels multiply and divide three of them in float32
LEAST_SHORT_SCALE = 2.0**-15  # of values from -1 to 1 as int16
WIDENED_SCALE, WIDENED_ZERO, WIDENED_ACCURACY = 2.0**-16, -(1 << 15), 1e-3  # of values from 0 to 1, made of bytes
UINT8_OFFSET = 128  # of zero points, which the specification gives for int8


def broken_rule(graph: Graph, node: Node) -> str:
    """The first rule that a node breaks, in words; "" if it keeps to all."""
    return next(_broken(graph, node, OPS[node.op].byte_rules), "")


def _broken(graph: Graph, node: Node, rules: ByteRules) -> Iterator[str]:
    inputs = [graph.tensors[i] for i in node.inputs if i != ABSENT]
    outputs = [graph.tensors[i] for i in node.outputs]
    for tensor in (*inputs, *outputs):
        yield from _impossible(tensor)
    has_weights = rules.weights is not None and len(inputs) > 1
    weights = inputs[1] if has_weights and is_quantized(inputs[1]) else None
    others = [t for t in (*inputs, *outputs) if is_quantized(t) and t is not weights]
    dtypes = {tensor.dtype for tensor in others}
    is_narrow = rules.may_be_narrow and [tensor.dtype for tensor in (*inputs, *outputs)] == ["int16", "int8", "int16"]
    is_wider = rules.may_widen and outputs[0].dtype == "int16" and inputs[0].dtype in BYTE_DTYPES
    if rules.one_type and len(dtypes) > 1 and not is_narrow and not is_wider:
        yield "its tensors have different types"
    if rules.one_scale and others and any(tensor.dtype == "float32" for tensor in (*inputs, *outputs)):
        yield "it makes floats of integers, or integers of floats"
    if rules.one_scale and len({(quantization_of(t).scales, quantization_of(t).zero_points) for t in others}) > 1:
        yield "its tensors have different scales"
    for tensor in inputs:
        if is_quantized(tensor) and max(quantization_of(tensor).scales) >= rules.most_scale:
            yield f"{tensor.name} has a scale from {rules.most_scale:g} on"
    if rules.output and is_quantized(outputs[0]):
        yield from _other_output(outputs[0], *rules.output, is_wider)
    if weights and others and rules.weights is not None:
        yield from _other_weights(weights, others[0].dtype, rules.weights)


def _impossible(tensor: Tensor) -> Iterator[str]:
    """Scales that no step size can be, and zero points that the integers do not have."""
    if not is_quantized(tensor):
        return
    quantization, limits = quantization_of(tensor), np.iinfo(tensor.dtype)
    may_be_zero = tensor.is_constant and len(quantization.scales) > 1  # of a channel whose weights are zero
    least, low, high = 0.0 if may_be_zero else LEAST_SCALE, int(limits.min), int(limits.max)
    for scale in quantization.scales:
        if not least <= scale <= MOST_SCALE:
            yield f"{tensor.name} has a scale of {scale:g}"
    for zero_point in set(quantization.zero_points):
        if not low <= zero_point <= high:
            yield f"{tensor.name} is {tensor.dtype} with a zero point of {zero_point}"


def _other_output(tensor: Tensor, scale: float, zero_point: int, is_wider: bool) -> Iterator[str]:
    """Its kernels know the output's scale before they see it."""
    accuracy = WIDENED_ACCURACY if is_wider else 1e-6
    if is_wider:
        scale, zero_point = WIDENED_SCALE, WIDENED_ZERO
    elif tensor.dtype == "int16":
        scale, zero_point = LEAST_SHORT_SCALE, 0
    zero_point += UINT8_OFFSET if tensor.dtype == "uint8" else 0
    found = quantization_of(tensor)
    if not math.isclose(found.scales[0], scale, rel_tol=accuracy) or found.zero_points != (zero_point,):
        said = f"{found.scales[0]:g} from {found.zero_points[0]}"
        yield f"{tensor.name} has a scale of {said}, not {scale:g} from {zero_point}"


def _other_weights(weights: Tensor, dtype: str, dimension: int) -> Iterator[str]:
    """int8 lies around 0, with a scale for each output channel or one; uint8 has one."""
    quantization = quantization_of(weights)
    if weights.dtype != ("int8" if dtype == "int16" else dtype):
        yield f"{dtype} with weights of {weights.dtype}"
    if weights.dtype == "int8" and any(quantization.zero_points):
        yield f"{weights.name} has weights of int8 that are not around 0"
    if len(quantization.scales) > 1 and (weights.dtype == "uint8" or quantization.dimension != dimension):
        yield f"{weights.name} has {len(quantization.scales)} scales along dimension {quantization.dimension}"
