"""Arithmetic, means and rescaling of 16-bit activations in steps, rounded where TensorFlow Lite's kernels round."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ..model.graph import Node, Reduce
from ..model.operators import attributes_of
from ..model.rewrite import END_OF_INTEGERS
from ..ops.requantize import MULTIPLIER_BITS, FixedPoint, FixedPoints, fixed_point
from ..ops.short_steps import SHORT_SUM_BITS, SHORTS, AddShortSteps, RequantizeProduct
from .quantized_node import Form, QuantizedNode, activation_of, in_float32

MOST_LEFT = 15  # bits, by which products of two shorts are shifted


def _added(node: QuantizedNode) -> Sequence[Node]:
    """ADD, SUB: in fractions of a step. Of scales that all are powers of two TensorFlow Lite has other kernels."""
    scales, scale = [node.scale(node.input(k)) for k in (0, 1)], node.scale(node.out)
    if all(math.frexp(each)[0] == 0.5 for each in (*scales, scale)):
        node.refuse("16-bit integers whose scales all are powers of two")
    twice = 2 * max(scales)
    first, second = (fixed_point(each / twice) for each in scales)
    of_sum = fixed_point(twice / 2**SHORT_SUM_BITS / scale)
    if of_sum.shift < 0:
        node.refuse(f"a scale of {scale} for a sum of scales up to {twice / 2}")
    limits = node.limits(activation_of(node.node))
    attributes = AddShortSteps((first, second), of_sum, node.node.op == "SUB", limits)
    return node.finish("ADD_SHORT_STEPS", node.operand(0), node.operand(1), attributes=attributes)


def _multiplied(node: QuantizedNode) -> Sequence[Node]:
    """MUL: the product of steps has 32 bits."""
    one, other = (node.scale(node.input(k)) for k in (0, 1))
    point = fixed_point(in_float32(in_float32(one * other) / node.scale(node.out)))
    return _product(node, node.operand(0), node.operand(1), node.constant("addend", 0.0), point)


def _product(node: QuantizedNode, a: int, b: int, c: int, point: FixedPoint) -> Sequence[Node]:
    if point.shift < -MOST_LEFT:
        node.refuse("a multiplier that is too large")
    high, low, _ = FixedPoints.of([point]).in_floats
    factors = [node.constant("factor", each) for each in (high[0], low[0], point.shift)]
    limits = node.limits(activation_of(node.node))
    return node.finish("REQUANTIZE_PRODUCT", a, b, c, *factors, attributes=RequantizeProduct(limits))


def _mean(node: QuantizedNode) -> Sequence[Node]:
    """MEAN: sums of both bytes, with a multiplier that is divided by the count as an integer."""
    x, reduced = node.input(0), attributes_of(node.node, Reduce)
    count = math.prod(x.shape[axis] for axis in reduced.axes)
    if count * 256 >= END_OF_INTEGERS or count * -SHORTS.low >= 1 << MULTIPLIER_BITS:
        node.refuse(f"a mean of {count} values")
    whole = fixed_point(node.scale(x) / node.scale(node.out))
    bits = min(count.bit_length() - 1, MULTIPLIER_BITS - whole.shift)
    point = FixedPoint((whole.multiplier << bits) // count, whole.shift + bits)
    sums = [node.add("SUM", digit, attributes=reduced) for digit in node.digits(0, 256, 2)]
    return _product(node, sums[0], node.constant("base", 256.0), sums[1], point)


def _limited(node: QuantizedNode) -> Sequence[Node]:
    """RELU and RELU6: another scale, and limits."""
    multiplier = in_float32(node.scale(node.input(0)) / node.scale(node.out))
    return node.requantize(node.operand(0), multiplier, node.most(0), node.limits(node.node.op))


SHORT_ARITHMETIC_FORMS: Mapping[str, Form] = MappingProxyType(
    {
        **dict.fromkeys(("ADD", "SUB"), _added),
        "MUL": _multiplied,
        "MEAN": _mean,
        **dict.fromkeys(("RELU", "RELU6"), _limited),
    }
)
