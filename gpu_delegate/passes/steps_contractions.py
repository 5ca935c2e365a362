"""Quantized convolutions and matrix products in steps: exact sums of products, and their rounding."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from ..model.graph import ABSENT, Activated, Node
from ..model.operators import attributes_of
from ..model.quantization import is_quantized, quantization_of
from ..ops.matrix_product import MatrixProduct
from ..ops.registry import OPS
from .quantized_node import Form, QuantizedNode, in_float32


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
    inputs = [x.index, node.steps_constant(weights), ABSENT]
    if len(node.node.inputs) > 2 and node.node.inputs[2] != ABSENT:
        bias = node.input(2)
        if bias.data is None or bias.dtype != "int32":
            node.refuse(f"a bias of {bias.dtype}" if bias.data is not None else "a bias that is computed")
        inputs[2] = node.constant("bias", bias.data)
    sums = node.add(node.node.op, *inputs, attributes=replace(attributes, activation="NONE"))
    scales = quantization_of(weights).scales
    is_connected = node.node.op == "FULLY_CONNECTED"
    of_input, of_output = node.scale(x), node.scale(node.out)
    products = [scale * of_input for scale in scales]
    if x.dtype == "uint8" and not is_connected:  # of which TensorFlow Lite has one, in float32
        products = [in_float32(product) for product in products]
    multipliers = [product / of_output for product in products]
    return node.requantize(sums, multipliers, _most_sum(node), node.limits(attributes.activation), is_connected)


def _most_sum(node: QuantizedNode) -> int:
    """The largest magnitude that a sum of products, with its bias, can have."""
    weights, rules = node.input(1), OPS[node.node.op].byte_rules
    assert weights.data is not None, "they are constant"
    steps = np.abs(weights.data.astype(np.int32) - quantization_of(weights).zero_points[0])
    most = steps.sum(tuple(k for k in range(steps.ndim) if k != rules.weights), dtype=np.int64) * node.most(0)
    inputs = node.node.inputs
    bias = node.input(2).data if len(inputs) > 2 and inputs[2] != ABSENT else None
    return int((most + (0 if bias is None else np.abs(bias.astype(np.int64).ravel()))).max())


def _with_integer_weights(node: QuantizedNode) -> Sequence[Node]:
    """Floats with 8-bit weights: as real numbers. (Else hybrid_to_steps has made others of the node.)"""
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
    attributes = attributes_of(node.node, MatrixProduct)
    depth = node.input(0).shape[-2 if attributes.adj_x else -1]
    most = node.most(0) * node.most(1) * depth
    return node.requantize(sums, in_float32(scales[0] * scales[1]) / node.scale(node.out), most)


CONTRACTION_FORMS: Mapping[str, Form] = MappingProxyType(
    {
        **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"), _convolved),
        "BATCH_MATMUL": _multiplied,
    }
)
