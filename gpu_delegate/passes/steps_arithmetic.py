"""Arithmetic of 8-bit integers goes in; arithmetic of steps, and where the reference kernels round, come out.

ADD, SUB and SQUARED_DIFFERENCE bring their inputs to the greater of the two scales first, and PRELU and its kin have
two multipliers, one for each side of zero. Comparisons are of real numbers in parts of 1/256.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ..graph import Alpha, Node
from ..operators import attributes_of
from ..ops.requantize import SUM_BITS, AddSteps, fixed_point
from .quantized_node import Form, QuantizedNode, activation_of

SQUARED_BITS = 7  # by which SQUARED_DIFFERENCE shifts its inputs
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
    return node.requantize(product, one * other / node.scale(node.out), node.limits(activation_of(node.node)))


def _divided(node: QuantizedNode) -> Sequence[Node]:
    """DIV, which TensorFlow Lite has of uint8."""
    one, other = _scales(node)
    quotient = node.add("DIV", node.operand(0), node.operand(1))
    return node.round(quotient, one / other / node.scale(node.out), node.limits(activation_of(node.node)))


def _squared_difference(node: QuantizedNode) -> Sequence[Node]:
    one, other = _scales(node)
    twice = 2 * max(one, other)
    parts = [
        node.requantized(node.operand(position), scale / twice * 2**SQUARED_BITS, shape=node.input(position).shape)
        for position, scale in enumerate((one, other))
    ]
    square = node.add("SQUARED_DIFFERENCE", *parts)
    return node.requantize(square, twice**2 / 4**SQUARED_BITS / node.scale(node.out))


def _limited(node: QuantizedNode) -> Sequence[Node]:
    """RELU and its kin: another scale, and limits."""
    return node.requantize(node.operand(0), node.scale(node.input(0)) / node.scale(node.out), node.limits(node.node.op))


def _bent(node: QuantizedNode) -> Sequence[Node]:
    """LEAKY_RELU: another scale below zero."""
    multiplier, alpha = node.scale(node.input(0)) / node.scale(node.out), attributes_of(node.node, Alpha).alpha
    above = node.requantized(node.add("RELU", node.operand(0)), multiplier)
    below = node.add("MINIMUM", node.operand(0), node.constant("zero", 0.0))
    if alpha < 0:  # the multiplier has no sign
        return _summed(node, above, node.add("NEG", node.requantized(below, -alpha * multiplier)))
    return _summed(node, above, node.requantized(below, alpha * multiplier) if alpha else below)


def _bent_by_channel(node: QuantizedNode) -> Sequence[Node]:
    """PRELU: the product with the slope below zero."""
    x, slope = _scales(node)
    out = node.scale(node.out)
    above = node.requantized(node.add("RELU", node.operand(0)), x / out)
    below = node.add("MINIMUM", node.operand(0), node.constant("zero", 0.0))
    below = node.requantized(node.add("MUL", below, node.operand(1)), x * slope / out)
    return _summed(node, above, below)


def _summed(node: QuantizedNode, above: int, below: int) -> Sequence[Node]:
    """Of two whole numbers one is zero."""
    return node.requantize(node.add("ADD", above, below), 1.0)


def _absolute(node: QuantizedNode) -> Sequence[Node]:
    size = node.add("ABS", node.operand(0))
    return node.requantize(size, node.scale(node.input(0)) / node.scale(node.out))


def _compared(node: QuantizedNode) -> Sequence[Node]:
    """Comparisons: of what the reference kernels round both inputs to."""
    if node.input(0).quantization == node.input(1).quantization and node.scale(node.input(0)) * 2**COMPARED_BITS >= 1:
        return node.finish(node.node.op, node.operand(0), node.operand(1), attributes=node.node.attributes)
    parts = [
        node.requantized(node.operand(position), scale * 2**COMPARED_BITS, shape=node.input(position).shape)
        for position, scale in enumerate(_scales(node))
    ]
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
