"""Functions of 16-bit activations: looked up in tables of all 65536 values, as TensorFlow Lite's kernels compute them.

LOGISTIC and TANH are interpolated there between 256 values of the logistic function, 24 for each unit of its input;
EXP, LOG and GELU between 513 of their own. All of that is done here, once for each value that a tensor can have.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from ..model.graph import Activated, Axis, Node
from ..model.operators import attributes_of
from ..model.quantization import nearest_whole
from ..ops.elementwise import Gelu
from ..ops.short_steps import SHORTS
from .quantized_node import Form, QuantizedNode

Longs = npt.NDArray[np.int64]
Singles = npt.NDArray[np.float32]
_ALL = np.arange(SHORTS.low, SHORTS.high + 1)
_PER_UNIT = 24  # values of the logistic function
_LAST = 255  # of them
_OF_LOGISTIC = 3 << 12  # into which TensorFlow Lite divides a unit of the input
_MOST_MULTIPLIER, _MOST_SHIFT = 32767 / 2, 30
_PARTS = 512  # of a table of a kernel's own


def _single(number: float) -> np.float32:
    return np.float32(number)


def _looked_up(node: QuantizedNode, table: npt.NDArray[np.generic]) -> Sequence[Node]:
    """The value of each step."""
    places = node.edit.new_tensor(f"{node.out.name}:places", node.input(0).shape, "int32")
    one = node.zero_point(node.input(0)) - SHORTS.low
    node.nodes.append(Node("ADD", (node.operand(0), node.constant("lowest", one)), (places,), Activated()))
    return node.finish("GATHER", node.constant("table", table), places, attributes=Axis(0))


def _logistic_table(values: Longs, bits: int) -> Longs:
    """Values of the logistic function, in 2^-16 and so many bits, of integers that have as many bits for each place."""
    points = 65536 / (1 + np.exp(-np.arange(0, _LAST + 2, 0.5) / _PER_UNIT))
    ends, middle = points[::2], points[1::2]
    known = np.rint(ends[:-1] + (middle[:-1] - (ends[:-1] + ends[1:]) / 2) / 2).astype(np.int64)
    known[_LAST] = 65535
    places, parts = np.abs(values) >> bits, np.abs(values) & ((1 << bits) - 1)
    inside = np.minimum(places, _LAST - 1)
    found: Longs = (known[inside] << bits) + parts * (known[inside + 1] - known[inside])
    return found


def _scaled(node: QuantizedNode) -> Longs:
    """All inputs in parts of a unit, by a multiplier that is cut off."""
    multiplier, shift = node.scale(node.input(0)) * _OF_LOGISTIC, 0
    while multiplier <= _MOST_MULTIPLIER and shift <= _MOST_SHIFT:
        multiplier, shift = 2 * multiplier, shift + 1
    if multiplier * -SHORTS.low >= 1 << 31:
        node.refuse(f"a scale of {node.scale(node.input(0)):g}")
    found: Longs = (_ALL * int(multiplier) + ((1 << shift) >> 1)) >> shift
    return found


def _logistic(node: QuantizedNode) -> Sequence[Node]:
    values = _scaled(node)
    found = np.where(np.abs(values) >> 9 >= _LAST, 0x7FFF << 10, _logistic_table(values, 9))
    return _looked_up(node, np.where(values >= 0, found + (1 << 9), (1 << 25) - found + (1 << 9) - 1) >> 10)


def _tangent(node: QuantizedNode) -> Sequence[Node]:
    """TANH: twice the logistic function of twice its input, less one."""
    values = _scaled(node)
    found = np.where(np.abs(values) >> 8 >= _LAST, 0xFFFF << 8, _logistic_table(values, 8)) - (1 << 23)
    return _looked_up(node, np.where(values >= 0, found + (1 << 7), -found + (1 << 7) - 1) >> 8)


def _interpolated(function: Callable[[QuantizedNode, Singles], Singles]) -> Form:
    """Between values that are moved by half of what interpolation is wrong in the middle."""

    def looked_up(node: QuantizedNode) -> Sequence[Node]:
        least, most = (_single(end) * _single(node.scale(node.input(0))) for end in (SHORTS.low, SHORTS.high))
        out = _single(SHORTS.high) * _single(node.scale(node.out)), _single(SHORTS.low) * _single(node.scale(node.out))
        step = (most - least) / _single(_PARTS)
        starts = least + np.arange(_PARTS + 1, dtype=np.float32) * step
        points = np.stack([starts, starts + step / _single(2)], 1).ravel()[:-1]
        points[-1] = most
        made = function(node, points) * (_single(1 << 16) / (out[0] - out[1]))
        ends, middle = nearest_whole(made[::2]), nearest_whole(made[1::2])
        between = nearest_whole((made[2::2] + ends[:-1]) / 2)
        ends[:-1] -= nearest_whole((between - middle) / 2)
        known = np.clip(ends, SHORTS.low, SHORTS.high).astype(np.int64)
        place, part = (_ALL >> 7) + _PARTS // 2, _ALL & 127
        return _looked_up(node, known[place] + (((known[place + 1] - known[place]) * part + 64) >> 7))

    return looked_up


def _gelu(node: QuantizedNode, x: Singles) -> Singles:
    """In float64, but for what it is a function of."""
    if attributes_of(node.node, Gelu).approximate:
        inner = x + np.float32(0.044715) * x * x * x
        gates = np.tanh(math.sqrt(2 / math.pi) * inner.astype(np.float64))
    else:
        gates = np.array([math.erf(each * math.sqrt(0.5)) for each in x.tolist()])
    return np.asarray((np.float32(0.5) * x) * (1 + gates), np.float32)


SHORT_FUNCTION_FORMS: Mapping[str, Form] = MappingProxyType(
    {
        "LOGISTIC": _logistic,
        "TANH": _tangent,
        "EXP": _interpolated(lambda node, x: np.exp(np.minimum(x, 88).astype(np.float64)).astype(np.float32)),
        "GELU": _interpolated(_gelu),
    }
)
