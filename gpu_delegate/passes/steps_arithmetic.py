"""Quantized arithmetic and comparisons in steps, rounded where TensorFlow Lite's reference kernels round.

ADD, SUB and SQUARED_DIFFERENCE bring their inputs to the greater of the two scales first, and PRELU and its kin have
two multipliers, one for each side of zero. Comparisons are of real numbers in parts of 1/256.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from ..model.graph import Alpha, Node
from ..model.operators import attributes_of
from ..model.rewrite import END_OF_INTEGERS
from ..ops.requantize import SUM_BITS, AddSteps, fixed_point
from .quantized_node import Form, QuantizedNode, activation_of, in_float32

SQUARED_BITS = 7  # by which SQUARED_DIFFERENCE shifts its inputs
MOST_STEP = 255
COMPARED_BITS = 8  # by which comparisons do


def _scales(node: QuantizedNode) -> tuple[float, float]:
    return node.scale(node.input(0)), node.scale(node.input(1))


def _added(node: QuantizedNode) -> Sequence[Node]:
    """ADD, SUB: in fractions of a step, so that what is rounded first decides little."""
    twice, scale = 2 * max(_scales(node)), node.scale(node.out)
    first, second = (fixed_point(each / twice) for each in _scales(node))
    of_sum = fixed_point(twice / 2**SUM_BITS / scale)
    if of_sum.shift < 1 and of_sum.multiplier:
        node.refuse(f"a scale of {scale} for a sum of scales up to {twice / 2}")
    attributes = AddSteps((first, second), of_sum, node.node.op == "SUB", node.limits(activation_of(node.node)))
    return node.finish("ADD_STEPS", node.operand(0), node.operand(1), attributes=attributes)


def _multiplied(node: QuantizedNode) -> Sequence[Node]:
    """MUL: the product of steps is exact."""
    one, other = _scales(node)
    product = node.add("MUL", node.operand(0), node.operand(1))
    multiplier = in_float32(in_float32(one * other) / node.scale(node.out))
    most = node.most(0) * node.most(1)
    return node.requantize(product, multiplier, most, node.limits(activation_of(node.node)))


def _divided(node: QuantizedNode) -> Sequence[Node]:
    """DIV, which TensorFlow Lite has of uint8."""
    one, other = _scales(node)
    multiplier = in_float32(one / in_float32(other * node.scale(node.out)))
    _verify_divisor(node, -fixed_point(multiplier).shift)
    quotient = node.add("DIV", node.operand(0), node.operand(1))
    return node.round(quotient, multiplier, node.limits(activation_of(node.node)))


def _verify_divisor(node: QuantizedNode, exponent: int) -> None:
    """Refuse 0, and what the reference kernels shift by more bits than an integer has: there they have no rule."""
    divisor = node.input(1)
    if divisor.data is None or (divisor.data == node.zero_point(divisor)).any():
        node.refuse("its divisor may be 0")
    steps = np.abs(divisor.data.astype(np.int64) - node.zero_point(divisor))
    if int(steps.max()).bit_length() - 1 > exponent:
        node.refuse("TensorFlow Lite's quotients of such scales are not those of the integers")


def _squared_difference(node: QuantizedNode) -> Sequence[Node]:
    one, other = _scales(node)
    twice = 2 * max(one, other)
    parts = [_shifted(node, position, SQUARED_BITS, scale / twice) for position, scale in enumerate((one, other))]
    square = node.add("SQUARED_DIFFERENCE", *parts)
    most = (MOST_STEP << SQUARED_BITS) ** 2  # half of it from each
    return node.requantize(square, twice**2 / 4**SQUARED_BITS / node.scale(node.out), most)


def _shifted(node: QuantizedNode, position: int, bits: int, multiplier: float) -> int:
    """An input in another scale, whose steps are shifted to the left before they are rounded."""
    shape = node.input(position).shape
    shifted = node.add("MUL", node.operand(position), node.constant("shift", 2.0**bits), shape=shape)
    return node.requantized(shifted, multiplier, node.most(position) << bits, shape=shape)


def _rescaling(node: QuantizedNode) -> float:
    """From the input's scale to the output's, as kernels have it that compute it in float32."""
    return in_float32(node.scale(node.input(0)) / node.scale(node.out))


def _limited(node: QuantizedNode) -> Sequence[Node]:
    """RELU and its kin: another scale, and limits."""
    return node.requantize(node.operand(0), _rescaling(node), node.most(0), node.limits(node.node.op))


def _bent(node: QuantizedNode) -> Sequence[Node]:
    """LEAKY_RELU: another scale below zero."""
    x, alpha = node.scale(node.input(0)), attributes_of(node.node, Alpha).alpha
    above = node.requantized(node.add("RELU", node.operand(0)), _rescaling(node), node.most(0))
    below = node.add("MINIMUM", node.operand(0), node.constant("zero", 0.0))
    multiplier = in_float32(in_float32(x * abs(alpha)) / node.scale(node.out))
    bent = node.requantized(below, multiplier, node.most(0))
    return _summed(node, above, node.add("NEG", bent) if alpha < 0 else bent)  # the multiplier has no sign


def _bent_by_channel(node: QuantizedNode) -> Sequence[Node]:
    """PRELU: the product with the slope below zero."""
    x, slope = _scales(node)
    above = node.requantized(node.add("RELU", node.operand(0)), _rescaling(node), node.most(0))
    below = node.add("MINIMUM", node.operand(0), node.constant("zero", 0.0))
    multiplier = in_float32(in_float32(x * slope) / node.scale(node.out))
    below = node.requantized(node.add("MUL", below, node.operand(1)), multiplier, node.most(0) * node.most(1))
    return _summed(node, above, below)


def _summed(node: QuantizedNode, above: int, below: int) -> Sequence[Node]:
    """Of two whole numbers one is zero."""
    return node.requantize(node.add("ADD", above, below), 1.0, END_OF_INTEGERS)


def _absolute(node: QuantizedNode) -> Sequence[Node]:
    size = node.add("ABS", node.operand(0))
    return node.requantize(size, _rescaling(node), node.most(0))


def _compared(node: QuantizedNode) -> Sequence[Node]:
    """Comparisons: of what the reference kernels round both inputs to."""
    if node.input(0).quantization == node.input(1).quantization and node.scale(node.input(0)) * 2**COMPARED_BITS >= 2:
        return node.finish(node.node.op, node.operand(0), node.operand(1), attributes=node.node.attributes)
    parts = [_shifted(node, position, COMPARED_BITS, scale) for position, scale in enumerate(_scales(node))]
    return node.finish(node.node.op, *parts, attributes=node.node.attributes)


ARITHMETIC_FORMS: Mapping[str, Form] = MappingProxyType(
    {
        **dict.fromkeys(("ADD", "SUB"), _added),
        "MUL": _multiplied,
        "DIV": _divided,
        "SQUARED_DIFFERENCE": _squared_difference,
        **dict.fromkeys(("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1"), _limited),
        "LEAKY_RELU": _bent,
        "PRELU": _bent_by_channel,
        "ABS": _absolute,
        **dict.fromkeys(("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"), _compared),
    }
)
