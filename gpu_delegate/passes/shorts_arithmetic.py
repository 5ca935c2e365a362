"""Arithmetic, means and rescaling of 16-bit activations in steps, rounded where TensorFlow Lite's kernels round."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from ..model.graph import ABSENT, DepthwiseConv2D, Node, Pool2D, Reduce, Shape
from ..model.operators import attributes_of
from ..model.rewrite import END_OF_INTEGERS
from ..ops.requantize import MULTIPLIER_BITS, FixedPoint, FixedPoints, fixed_point
from ..ops.short_steps import SHORT_SUM_BITS, SHORTS, AddShortSteps, RequantizeProduct
from .quantized_node import Form, QuantizedNode, activation_of, in_float32
from .steps_arithmetic import ARITHMETIC_FORMS as FORMS_OF_BYTES

MOST_OF_WINDOW = 255  # values: sums and a half of them are below 2^23
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


def _averaged(node: QuantizedNode) -> Sequence[Node]:
    """AVERAGE_POOL_2D: exact sums, divided by how many values each window has, halves away from zero."""
    pool, x, out = attributes_of(node.node, Pool2D), node.input(0), node.out
    if math.prod(pool.kernel) > MOST_OF_WINDOW:
        node.refuse(f"windows of {math.prod(pool.kernel)} values")
    ones = node.constant("ones", np.ones((1, *pool.kernel, x.shape[-1])))
    linear = DepthwiseConv2D("NONE", pool.stride, (1, 1), pool.padding)
    total = node.add("DEPTHWISE_CONV_2D", node.operand(0), ones, ABSENT, attributes=linear)
    count = node.constant("count", _counts(pool, x.shape, out.shape))
    size = node.add("ADD", node.add("ABS", total), node.constant("half", _counts(pool, x.shape, out.shape) // 2))
    found = node.add("FLOOR", node.add("DIV", size, count))  # or a number next to that, as quotients are rounded
    rest = node.add("SUB", size, node.add("MUL", found, count))
    more = node.add("FLOOR", node.add("DIV", node.add("ADD", rest, node.constant("one half", 0.5)), count))
    whole = node.add("MUL", node.add("ADD", found, more), node.add("SIGN", total))
    return node.round(whole, 1.0, node.limits(pool.activation))


def _counts(pool: Pool2D, given: Shape, made: Shape) -> npt.NDArray[np.float32]:
    """How many values each window has, (1, h, w, 1)."""
    sides = []
    before = (pool.padding.top, pool.padding.left)
    for k in (0, 1):
        first = np.arange(made[1 + k]) * pool.stride[k] - before[k]
        sides.append(np.minimum(first + pool.kernel[k], given[1 + k]) - np.maximum(first, 0))
    counts: npt.NDArray[np.float32] = np.multiply.outer(*sides).astype(np.float32)
    return counts[None, :, :, None]


SHORT_ARITHMETIC_FORMS: Mapping[str, Form] = MappingProxyType(
    {
        **dict.fromkeys(("ADD", "SUB"), _added),
        "MUL": _multiplied,
        "MEAN": _mean,
        "AVERAGE_POOL_2D": _averaged,
        "ABS": FORMS_OF_BYTES["ABS"],
        "LEAKY_RELU": FORMS_OF_BYTES["LEAKY_RELU"],
        **dict.fromkeys(("RELU", "RELU6"), _limited),
    }
)
