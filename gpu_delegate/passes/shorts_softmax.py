"""SOFTMAX with 16-bit results, in integers as TensorFlow Lite's reference kernels compute it.

The power of each difference from the greatest value is looked up in a table of all differences. Of bytes it is a fixed-
point number of 31 bits, and SOFTMAX_STEPS divides it by the sum; the exponential is that of gemmlowp's documentation:
a polynomial up to one quarter, times a constant for each further bit. Of 16 bits both the exponential and the
reciprocal of the sum are interpolated between 513 values.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from ..model.graph import Activated, Axis, Node, Reduce, Shape, Softmax, Steps, Tensor
from ..model.operators import attributes_of
from ..model.quantization import nearest_whole, steps_of
from ..ops.requantize import LOW_BITS, FixedPoint, fixed_point
from ..ops.short_steps import LEAST_SUM, SHORTS, SUM_LOW_BITS, RequantizeProduct, SoftmaxSteps
from .quantized_node import Form, QuantizedNode, in_float32
from .shorts_functions import Longs

BYTES, MOST_INT = 256, (1 << 31) - 1
FRACTION_BITS, GREATEST_DIFFERENCE = 26, 31  # of differences of bytes, times beta
SUM_SHIFT = 12  # bits by which powers are rounded before they are added
MOST_OF_BYTES, MOST_OF_SHORTS = ((1 << 31) - 1) // LEAST_SUM, (1 << 24) // SHORTS.high  # values whose sum is exact
_ONE_EIGHTH, _ONE_THIRD = 1895147668, 715827883  # exp(-1/8) and 1/3 in 2^-31
_POWERS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)  # exp(-2^k) from k = -2 on
_PARTS, _INSIDE = 512, 7  # of interpolation: values, and bits between two of them
_RANGE, _OF_SHORTS = 10.0, SHORTS.high - SHORTS.low  # of differences of 16 bits, times beta, and its steps
_END = 16  # bits of the reciprocal's argument


def _softmax(node: QuantizedNode) -> Sequence[Node]:
    return _of_shorts(node) if node.input(0).dtype == "int16" else _of_bytes(node)


def _differences(node: QuantizedNode, most_values: int) -> int:
    """How far each value is below the greatest one of its row, as integers."""
    x = node.input(0)
    if x.shape[-1] > most_values:
        node.refuse(f"sums of {x.shape[-1]} values, at most {most_values} are added")
    greatest = node.add("REDUCE_MAX", node.operand(0), shape=_row(x.shape), attributes=_along_row(x.shape))
    limits = steps_of(x)
    return _places(node, "SUB", greatest, node.operand(0), shape=x.shape, most=limits.high - limits.low)


def _places(node: QuantizedNode, op: str, *inputs: int, shape: Shape, most: int) -> int:
    """A further node that makes places in a table, from 0 on."""
    found = node.edit.next_index
    node.edit.set_tensor(Tensor(found, f"{node.out.name}:places", shape, "int32", steps=Steps(0, most)))
    node.nodes.append(Node(op, inputs, (found,), Activated()))
    return found


def _row(shape: Shape) -> Shape:
    return (*shape[:-1], 1)


def _along_row(shape: Shape) -> Reduce:
    return Reduce((len(shape) - 1,), True)


def _looked_up(node: QuantizedNode, table: npt.ArrayLike, places: int, shape: Shape | None = None) -> int:
    return node.add("GATHER", node.constant("table", table), places, shape=shape, attributes=Axis(0))


def _summed(node: QuantizedNode, x: int) -> int:
    shape = node.out.shape
    return node.add("SUM", x, shape=_row(shape), attributes=_along_row(shape))


# Of bytes -------------------------------------------------------------------------------------------------------------


def _of_bytes(node: QuantizedNode) -> Sequence[Node]:
    found = _differences(node, MOST_OF_BYTES)
    powers, terms = _powers_of_bytes(node)
    parts = [_looked_up(node, each, found) for each in np.divmod(powers, 1 << LOW_BITS)]
    sums = [_summed(node, _looked_up(node, each, found)) for each in np.divmod(terms, 1 << SUM_LOW_BITS)]
    return node.finish("SOFTMAX_STEPS", *parts, *sums, attributes=SoftmaxSteps())


def _powers_of_bytes(node: QuantizedNode) -> tuple[Longs, Longs]:
    """Of each difference in 2^-31, and in 2^-19 what is added of it; both are 0 from a difference on."""
    beta = attributes_of(node.node, Softmax).beta
    point = fixed_point(min(beta * node.scale(node.input(0)) * 2**FRACTION_BITS, MOST_INT)) if beta > 0 else None
    if point is None or point.shift > 0:
        node.refuse(f"a beta of {beta:g} for a scale of {node.scale(node.input(0)):g}")
    least = GREATEST_DIFFERENCE * 2**FRACTION_BITS >> -point.shift
    differences = np.arange(min(least, BYTES - 1) + 1)
    powers = np.zeros(BYTES, np.int64)
    powers[: len(differences)] = _power(_high_product(-(differences << -point.shift), point.multiplier))
    return powers, _divided(powers, SUM_SHIFT)


def _high_product(x: npt.ArrayLike, y: npt.ArrayLike) -> Longs:
    """In 2^-31, rounded up."""
    found: Longs = (np.asarray(x, np.int64) * np.asarray(y, np.int64) + (1 << 30)) >> 31
    return found


def _divided(x: Longs, bits: int) -> Longs:
    """By a power of two, rounded away from zero."""
    mask = (1 << bits) - 1
    found: Longs = (x >> bits) + ((x & mask) > (mask >> 1) + (x < 0))
    return found


def _power(x: Longs) -> Longs:
    """e to the power of numbers from -32 to 0 in 2^-26, in 2^-31."""
    quarter = 1 << (FRACTION_BITS - 2)
    below = (x & (quarter - 1)) - quarter  # from -1/4 on
    near = (below << 31 - FRACTION_BITS) + (1 << 28)  # around 0, from -1/8 on
    square = _high_product(near, near)
    cube, fourth = _high_product(square, near), _high_product(square, square)
    rest = _divided(_high_product(_divided(fourth, 2) + cube, _ONE_THIRD) + square, 1)
    found = _ONE_EIGHTH + _high_product(_ONE_EIGHTH, near + rest)
    for k, multiplier in enumerate(_POWERS):
        has_bit = ((below - x) >> (FRACTION_BITS - 2 + k)) & 1
        found = np.where(has_bit, _high_product(found, multiplier), found)
    return np.where(x == 0, MOST_INT, found)


# Of 16 bits -----------------------------------------------------------------------------------------------------------


def _of_shorts(node: QuantizedNode) -> Sequence[Node]:
    """Of 16 bits. A sum has from 15 bits on; they are counted, and it is shifted to have 17 of them."""
    x, beta = node.input(0), attributes_of(node.node, Softmax).beta
    multiplier = in_float32(node.scale(x) * beta) / (_RANGE / _OF_SHORTS)
    point = fixed_point(multiplier) if 0 < multiplier < 1 << 15 else None
    if point is None:
        node.refuse(f"a beta of {beta:g} for a scale of {node.scale(x):g}")
    powers = _looked_up(node, _powers_of_shorts(point), _differences(node, MOST_OF_SHORTS))
    total, row = _summed(node, powers), _row(x.shape)
    ends = 2 ** np.arange(15, max(16, (x.shape[-1] * SHORTS.high).bit_length()))
    above = node.add("SUB", total, node.constant("less", ends - 1), shape=(*row[:-1], len(ends)))
    above = node.add("MAXIMUM", above, node.constant("none", 0), shape=(*row[:-1], len(ends)))
    above = node.add("MINIMUM", above, node.constant("one", 1), shape=(*row[:-1], len(ends)))
    bits = node.add("SUM", above, shape=row, attributes=_along_row(row))  # beyond 15
    counts = _places(node, "ADD", bits, node.constant("first", 0), shape=row, most=len(ends))
    factors = _looked_up(node, 2.0 ** (_END + 1 - 15 - np.arange(len(ends) + 1)), counts, row)
    shifted = node.add("MUL", total, factors, shape=row)
    whole = node.add("FLOOR", node.add("ADD", shifted, node.constant("half", 0.5), shape=row), shape=row)
    whole = node.add("MINIMUM", whole, node.constant("last", (2 << _END) - 1), shape=row)
    places = _places(node, "SUB", whole, node.constant("one", 1 << _END), shape=row, most=_OF_SHORTS)
    reciprocal = _looked_up(node, _interpolated(1.0, SHORTS.low, lambda x: 1 / (1 + x), _ALL), places, row)
    shift = node.add("ADD", bits, node.constant("bits", 14), shape=row)
    twice = node.add("MUL", powers, node.constant("two", 2))
    last = [node.constant(what, value) for what, value in (("addend", 0), ("high", 1 << 14), ("low", 0))]
    attributes = RequantizeProduct(node.limits())
    return node.finish("REQUANTIZE_PRODUCT", twice, reciprocal, *last, shift, attributes=attributes)


_ALL = np.arange(SHORTS.low, SHORTS.high + 1)


def _powers_of_shorts(point: FixedPoint) -> Longs:
    """Of each difference, in 2^-15."""
    left, right = max(-point.shift, 0), max(point.shift, 0)
    scaled = _divided(_high_product(-(np.arange(_OF_SHORTS + 1) << left), point.multiplier), right)
    return _interpolated(_RANGE, SHORTS.high, math.exp, np.maximum(scaled + SHORTS.high, SHORTS.low))


def _interpolated(size: float, zero: int, function: Callable[[float], float], values: Longs) -> Longs:
    """Between values that are moved by half of what interpolation is wrong in the middle.

    The arguments of the function lie in a range of this size, in which the integer `zero` is 0.
    """
    least, most = (size / _OF_SHORTS * (end - zero) for end in (SHORTS.low, SHORTS.high))
    step = (most - least) / _PARTS
    starts = [least + k * step for k in range(_PARTS)]
    made = np.array([function(x) for start in starts for x in (start, start + step / 2)] + [function(most)])
    scaled = made * ((_OF_SHORTS + 1) / 2)
    ends, middle = nearest_whole(scaled[::2]), nearest_whole(scaled[1::2])
    between = nearest_whole((scaled[2::2] + ends[:-1]) / 2)
    ends[:-1] -= nearest_whole((between - middle) / 2)
    known = np.clip(ends, SHORTS.low, SHORTS.high).astype(np.int64)
    place, part = (values >> _INSIDE) + _PARTS // 2, values & ((1 << _INSIDE) - 1)
    half = 1 << (_INSIDE - 1)
    found: Longs = known[place] + (((known[place + 1] - known[place]) * part + half) >> _INSIDE)
    return found


SHORT_SOFTMAX_FORMS: Mapping[str, Form] = MappingProxyType({"SOFTMAX": _softmax})
