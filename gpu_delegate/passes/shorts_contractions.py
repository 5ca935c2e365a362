"""Convolutions and matrix products of 16-bit activations: exact sums of products of digits, and their rounding.

Sums of x times weights may have 48 bits, and those of the digits of x less than 24, which float32 holds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from ..model.graph import ABSENT, Activated, Node, Steps
from ..model.operators import attributes_of
from ..model.quantization import quantization_of
from ..model.rewrite import END_OF_INTEGERS
from ..ops.matrix_product import MatrixProduct
from ..ops.registry import OPS
from ..ops.requantize import fixed_points
from ..ops.short_steps import SHORTS, WIDE_BITS, RequantizeWide, bias_parts, wide_factors
from .quantized_node import Form, QuantizedNode, in_float32

END_OF_WIDE = 1 << 47  # of sums, for TensorFlow Lite's kernels
_BASES = (256, 64)  # of two digits, and of three


def _convolved(node: QuantizedNode) -> Sequence[Node]:
    """With weights of 8 bits; the bias is added in 64 bits."""
    x, weights = node.input(0), node.input(1)
    attributes = node.node.attributes
    assert isinstance(attributes, Activated)
    if x.dtype != "int16" or weights.dtype != "int8" or weights.data is None:
        node.refuse(f"{x.dtype} with weights of {weights.dtype}")
    scales, rules = quantization_of(weights).scales, OPS[node.node.op].byte_rules
    sizes = np.abs(weights.data.astype(np.int32))
    others = tuple(k for k in range(sizes.ndim) if k != rules.weights)
    most = int(sizes.sum(others, dtype=np.int64).max())
    linear, steps = replace(attributes, activation="NONE"), node.steps_constant(weights)
    digits, base = _digits(node, 0, most)
    sums = [node.add(node.node.op, digit, steps, ABSENT, attributes=linear) for digit in digits]
    multipliers = [scale * node.scale(x) / node.scale(node.out) for scale in scales]
    bias = _bias(node, most)
    if node.node.op == "FULLY_CONNECTED" and (most * -SHORTS.low + int(np.abs(bias).max())) * max(multipliers) >= 2**31:
        node.refuse(f"sums that are more than 32 bits hold, times {max(multipliers):g}")
    return _requantized(node, sums, base, bias, multipliers, node.limits(attributes.activation))


def _bias(node: QuantizedNode, most: int) -> npt.NDArray[np.int64]:
    """That of a convolution whose weights are `most` together."""
    inputs = node.node.inputs
    if len(inputs) < 3 or inputs[2] == ABSENT:
        return np.zeros((), np.int64)
    bias = node.input(2)
    if bias.data is None or bias.dtype != "int64":
        node.refuse(f"a bias of {bias.dtype}" if bias.data is not None else "a bias that is computed")
    values = bias.data.astype(np.int64).ravel()
    if not -END_OF_WIDE < int(values.min()) <= int(values.max()) < END_OF_WIDE - most * -SHORTS.low:
        node.refuse("a bias of more than 47 bits")
    return values


def _digits(node: QuantizedNode, position: int, most: int) -> tuple[Sequence[int], int]:
    """An input as digits, the highest first, which lie around zero, and their base: by weights of `most` together."""
    fitting = [base for base in _BASES if most * (base // 2 + 1) < END_OF_INTEGERS]
    if not fitting:
        node.refuse(f"weights that are {most} together, whose sums of products float32 does not hold")
    return node.digits(position, fitting[0], 2 + _BASES.index(fitting[0])), fitting[0]


def _requantized(
    node: QuantizedNode,
    sums: Sequence[int],
    base: int,
    bias: npt.NDArray[np.int64],
    multipliers: Sequence[float],
    limits: Steps,
) -> Sequence[Node]:
    points, is_once = fixed_points(multipliers), node.node.op == "FULLY_CONNECTED"
    if not np.isfinite(multipliers).all() or int(points.shifts.min()) < 1 - WIDE_BITS:
        node.refuse(f"a multiplier of {max(multipliers):g}")
    constants = [
        node.constant("factor", each if each.size > 1 else each.ravel()[0])
        for each in (*bias_parts(bias), *wide_factors(points, is_once))
    ]
    return node.finish("REQUANTIZE_WIDE", *sums, *constants, attributes=RequantizeWide(limits, base, is_once))


def _multiplied(node: QuantizedNode) -> Sequence[Node]:
    """BATCH_MATMUL: of the digits of both, if both have 16 bits."""
    x, y, product = node.input(0), node.input(1), attributes_of(node.node, MatrixProduct)
    depth = x.shape[-2 if product.adj_x else -1]
    multiplier = in_float32(node.scale(x) * node.scale(y)) / node.scale(node.out)

    def multiplied(left: int, right: int) -> int:
        return node.add(node.node.op, left, right, attributes=product)

    if y.dtype == "int16":
        if 2 * depth * (_BASES[0] // 2 + 1) ** 2 >= END_OF_INTEGERS:
            node.refuse(f"sums of {depth} products of 16 bits, which float32 does not hold")
        base = _BASES[0]
        (upper, lower), (right, below) = (node.digits(position, base, 2) for position in (0, 1))
        middle = node.add("ADD", multiplied(upper, below), multiplied(lower, right))
        sums = [multiplied(upper, right), middle, multiplied(lower, below)]
    else:
        digits, base = _digits(node, 0, depth * node.most(1))
        sums = [multiplied(digit, node.operand(1)) for digit in digits]
    return _requantized(node, sums, base, np.zeros((), np.int64), [multiplier], node.limits())


SHORT_CONTRACTION_FORMS: Mapping[str, Form] = MappingProxyType(
    {
        **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"), _convolved),
        "BATCH_MATMUL": _multiplied,
    }
)
