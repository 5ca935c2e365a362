"""Convolutions and products of matrices of 8-bit integers go in; sums of products of steps, and how they are rounded,
come out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from ..graph import ABSENT, Activated, Node
from ..quantization import is_quantized, quantization_of
from .quantized_node import Form, QuantizedNode


def _convolved(node: QuantizedNode) -> Sequence[Node]:
    """Sums of products of steps, with the bias in its own scale, which is that of the products."""
    x, weights = node.input(0), node.input(1)
    attributes = node.node.attributes
    assert isinstance(attributes, Activated)
    if not is_quantized(x):
        return _with_integer_weights(node)
    if not is_quantized(weights) or not weights.is_constant:
        node.refuse(
            f"{x.dtype} with weights of {weights.dtype}" if weights.is_constant else "weights that are computed"
        )
    products = np.array(quantization_of(weights).scales) * node.scale(x)
    if x.dtype == "uint8" or node.node.op == "FULLY_CONNECTED":  # of which TensorFlow Lite has one, as a float
        products = products.astype(np.float32).astype(np.float64)
    inputs = [x.index, node.steps_constant(weights), ABSENT]
    if len(node.node.inputs) > 2 and node.node.inputs[2] != ABSENT:
        bias = node.input(2)
        if bias.data is None or bias.dtype != "int32":
            node.refuse(f"a bias of {bias.dtype}" if bias.data is not None else "a bias that is computed")
        inputs[2] = node.constant("bias", bias.data)
    sums = node.add(node.node.op, *inputs, attributes=replace(attributes, activation="NONE"))
    multipliers = products / node.scale(node.out)
    limits = node.limits(attributes.activation)
    is_once = node.node.op == "FULLY_CONNECTED" and multipliers.size == 1
    return node.requantize(sums, multipliers, limits, is_once)


def _with_integer_weights(node: QuantizedNode) -> Sequence[Node]:
    """Floats with 8-bit weights: as real numbers. (TensorFlow Lite rounds each input to 8 bits first.)"""
    weights = node.input(1)
    if is_quantized(node.out) or not weights.is_constant or weights.data is None:
        node.refuse(f"{node.input(0).dtype} with weights of {weights.dtype}")
    quantization = quantization_of(weights)
    shape = [-1 if k == quantization.dimension else 1 for k in range(weights.data.ndim)]
    scales, zero_points = (
        np.array(values, np.float32).reshape(shape if len(values) > 1 else ())
        for values in (quantization.scales, quantization.zero_points)
    )
    real = node.constant("weights", (weights.data.astype(np.float32) - zero_points) * scales)
    return [replace(node.node, inputs=(node.node.inputs[0], real, *node.node.inputs[2:]))]


def _multiplied(node: QuantizedNode) -> Sequence[Node]:
    """BATCH_MATMUL."""
    scales = [node.scale(node.input(position)) for position in (0, 1)]
    sums = node.add(node.node.op, node.operand(0), node.operand(1), attributes=node.node.attributes)
    return node.requantize(sums, float(np.float32(scales[0] * scales[1])) / node.scale(node.out))


CONTRACTION_FORMS: Mapping[str, Form] = MappingProxyType(
    {
        **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"), _convolved),
        "BATCH_MATMUL": _multiplied,
    }
)
