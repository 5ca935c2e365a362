"""A node with constant inputs goes in, its output's value comes out, computed with NumPy as TensorFlow Lite does.

FOLDS has one function per op. It is called with the shapes of the file, which may contradict the op: it raises
ValueError before it takes more memory than the output's shape says, and for values that TensorFlow Lite refuses.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..model.graph import (
    Activated,
    Alpha,
    Attributes,
    Axes,
    Axis,
    Concatenation,
    MirrorPad,
    Node,
    Pad,
    Reduce,
    Repeat,
    Shape,
    StridedSlice,
    Tensor,
    Transpose,
)
from ..model.operators import attributes_of
from ..ops.lookup import BatchGather
from ..ops.running_sum import RunningSum

Values = npt.NDArray[Any]
Fold = Callable[[Node, Sequence[Values], Tensor], Values]  # the node, its inputs' values, its output without a value

_COMPUTED = frozenset({"float32", "int32", "int64", "bool"})  # types of arithmetic; others need scales
_MOVED = _COMPUTED | {"float16"}


def fold_value(node: Node, inputs: Sequence[Tensor], output: Tensor) -> Values:
    """The output's value in its shape and type, in C order. Raises ValueError where it cannot be computed."""
    if node.op in OF_SHAPES:
        return np.asarray(OF_SHAPES[node.op](inputs[0].shape), output.dtype).reshape(output.shape)
    values = [tensor.data for tensor in inputs if tensor.data is not None]
    allowed = _MOVED if node.op in MOVES else _COMPUTED
    for value in values:
        if node.op not in BITS and value.dtype.name not in allowed:
            raise ValueError(f"{value.dtype.name} constants need scales")
    with np.errstate(all="ignore"):
        value = FOLDS[node.op](node, values, output)
        value = _activated(node.attributes, value)
    if value.shape != output.shape:
        raise ValueError(f"a value of shape {list(value.shape)} for {list(output.shape)}")
    return np.asarray(value, output.dtype, order="C")


def _activated(attributes: Attributes, value: Values) -> Values:
    activation = attributes.activation if isinstance(attributes, Activated) else "NONE"
    return value if activation == "NONE" else np.asarray(UNARY_FUNCTIONS[activation](value), value.dtype)


def _expect_size(count: int, output: Tensor) -> None:
    if count != math.prod(output.shape):
        raise ValueError(f"{count} values for the shape {list(output.shape)}")


# Values ---------------------------------------------------------------------------------------------------------------


def _elementwise(function: Callable[..., Values]) -> Fold:
    """A fold of a NumPy function on values at the same position, the inputs broadcast to the output."""

    def fold(node: Node, values: Sequence[Values], output: Tensor) -> Values:
        return function(*(np.broadcast_to(value, output.shape) for value in values))

    return fold


def _divide(a: Values, b: Values) -> Values:
    """Integers are cut off towards zero, as in C."""
    if a.dtype.kind == "f":
        return np.divide(a, b)
    quotient = _floor_divide(a, b)
    return np.where((quotient < 0) & (quotient * b != a), quotient + 1, quotient)


def _floor_divide(a: Values, b: Values) -> Values:
    if a.dtype.kind == "f":
        return np.floor(a / b)
    if not b.all():
        raise ValueError("an integer is divided by zero")
    return a // b


def _floor_modulo(a: Values, b: Values) -> Values:
    return a - b * _floor_divide(a, b) if a.dtype.kind != "f" else np.mod(a, b)


def _power(a: Values, b: Values) -> Values:
    if a.dtype.kind != "f" and (b < 0).any():
        raise ValueError("an integer has a negative exponent")
    return np.power(a, b)


def _hard_swish(x: Values) -> Values:
    return x * np.clip(x + 3.0, 0.0, 6.0) / 6.0


def _leaky_relu(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    (x,) = values
    return np.where(x > 0, x, x * np.float32(attributes_of(node, Alpha).alpha))


def _select(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    """A vector of conditions is one for each map of a batch."""
    condition, value, other = values
    if condition.ndim == 1:
        condition = condition.reshape(-1, *(1,) * (len(output.shape) - 1))
    return np.where(np.broadcast_to(condition, output.shape), value, other)


def _cast(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    (x,), to = values, np.dtype(output.dtype)
    if x.dtype.kind == "f" and to.kind in "iu":
        limits = np.iinfo(to)
        if not ((x >= limits.min) & (x <= limits.max)).all():
            raise ValueError(f"values that {output.dtype} cannot hold")
    return x.astype(to)


def _dequantize(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    if values[0].dtype != np.float16:
        raise ValueError(f"{values[0].dtype.name} constants need scales")
    return values[0].astype(np.float32)


def _reduction(function: Callable[..., Values]) -> Fold:
    def fold(node: Node, values: Sequence[Values], output: Tensor) -> Values:
        reduce = attributes_of(node, Reduce)
        return np.asarray(function(values[0], axis=reduce.axes, keepdims=reduce.keep_dims), values[0].dtype)

    return fold


def _arg_max(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    (axis,), x = attributes_of(node, Reduce).axes, values[0]
    return _first_greatest(x, axis).astype(output.dtype)


def _arg_min(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    (axis,), x = attributes_of(node, Reduce).axes, values[0]
    return _first_greatest(-x if x.dtype.kind == "f" else np.invert(x), axis).astype(output.dtype)


def _first_greatest(x: Values, axis: int) -> Values:
    """Nothing is greater than NaN in the first place, and NaN elsewhere is greater than nothing."""
    if x.dtype.kind == "f":
        first = np.arange(x.shape[axis]).reshape(-1, *(1,) * (x.ndim - 1 - axis)) == 0
        x = np.where(np.isnan(x), np.where(first, np.inf, -np.inf), x)
    return np.asarray(np.argmax(x, axis))


def _running_sum(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    (x,), running = values, attributes_of(node, RunningSum)
    x = np.flip(x, running.axis) if running.reverse else x
    total = np.cumsum(x, running.axis, dtype=x.dtype)
    if running.exclusive:
        total = np.roll(total, 1, running.axis)
        np.moveaxis(total, running.axis, 0)[0] = 0
    return np.flip(total, running.axis) if running.reverse else total


# Places ---------------------------------------------------------------------------------------------------------------


def _reshape(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    return values[0].reshape(output.shape)


def _transpose(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    return values[0].transpose(attributes_of(node, Transpose).order)


def _concatenation(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    _expect_size(sum(value.size for value in values), output)
    return np.concatenate(values, attributes_of(node, Concatenation).axis)


def _pack(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    _expect_size(sum(value.size for value in values), output)
    return np.stack(values, attributes_of(node, Axis).axis)


def _strided_slice(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    (x,), part = values, attributes_of(node, StridedSlice)
    _expect_size(math.prod(part.sizes), output)
    ranges = []
    for length, begin, size, stride in zip(x.shape, part.begin, part.sizes, part.strides, strict=True):
        last = begin + stride * (size - 1)
        if not 0 < size <= length or not 0 <= min(begin, last) <= max(begin, last) < length:
            raise ValueError(f"positions {begin} to {last} of {length}")
        ranges.append(begin + stride * np.arange(size))
    return np.reshape(x[np.ix_(*ranges)], output.shape)


def _pad(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    pad = attributes_of(node, Pad)
    _expect_padded(values[0].shape, pad.amounts, output)
    return np.pad(values[0], pad.amounts, constant_values=pad.value)


def _mirror_pad(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    pad = attributes_of(node, MirrorPad)
    _expect_padded(values[0].shape, pad.amounts, output)
    return np.pad(values[0], pad.amounts, mode="symmetric" if pad.symmetric else "reflect")


def _expect_padded(shape: Shape, amounts: tuple[tuple[int, int], ...], output: Tensor) -> None:
    _expect_size(math.prod(before + n + after for n, (before, after) in zip(shape, amounts, strict=True)), output)


def _tile(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    repeats = attributes_of(node, Repeat).repeats
    _expect_size(values[0].size * math.prod(repeats), output)
    return np.tile(values[0], repeats)


def _gather(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    x, indices = values
    if isinstance(node.attributes, BatchGather):
        raise ValueError("maps of a batch with indices of their own")
    axis = attributes_of(node, Axis).axis
    _expect_size(x.size // x.shape[axis] * indices.size, output)
    if indices.size and not 0 <= indices.min() <= indices.max() < x.shape[axis]:
        raise ValueError(f"positions {indices.min()} to {indices.max()} of {x.shape[axis]}")
    return np.take(x, indices, axis)


def _reverse(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    return np.flip(values[0], attributes_of(node, Axes).axes)


def _broadcast(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    return np.broadcast_to(values[0], output.shape)


def _fill(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    return np.broadcast_to(values[-1].reshape(()), output.shape)


def _range(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    """Each value is the one before it plus the step, rounded each time."""
    start, _, step = (value.reshape(()) for value in values)
    steps = np.full(output.shape, step, step.dtype)
    steps[:1] = start
    return np.cumsum(steps, dtype=step.dtype)


# Tables ---------------------------------------------------------------------------------------------------------------

UNARY_FUNCTIONS: Mapping[str, Callable[[Values], Values]] = MappingProxyType(
    {
        "RELU": lambda x: np.maximum(x, 0),
        "RELU6": lambda x: np.clip(x, 0, 6),
        "RELU_N1_TO_1": lambda x: np.clip(x, -1, 1),
        "RELU_0_TO_1": lambda x: np.clip(x, 0, 1),
        "HARD_SWISH": _hard_swish,
        "LOGISTIC": lambda x: 1.0 / (1.0 + np.exp(-x)),
        "TANH": np.tanh,
        "ELU": lambda x: np.where(x < 0, np.expm1(x), x),
        "ABS": np.abs,
        "NEG": np.negative,
        "EXP": np.exp,
        "LOG": np.log,
        "SQRT": np.sqrt,
        "RSQRT": lambda x: 1.0 / np.sqrt(x),
        "SQUARE": np.square,
        "SIN": np.sin,
        "COS": np.cos,
        "FLOOR": np.floor,
        "CEIL": np.ceil,
        "ROUND": np.rint,
        "SIGN": np.sign,
        "LOGICAL_NOT": np.logical_not,
    }
)

OF_SEVERAL: Mapping[str, Callable[..., Values]] = MappingProxyType(
    {
        "ADD": np.add,
        "SUB": np.subtract,
        "MUL": np.multiply,
        "DIV": _divide,
        "FLOOR_DIV": _floor_divide,
        "FLOOR_MOD": _floor_modulo,
        "POW": _power,
        "MAXIMUM": np.maximum,
        "MINIMUM": np.minimum,
        "SQUARED_DIFFERENCE": lambda a, b: np.square(a - b),
        "EQUAL": np.equal,
        "NOT_EQUAL": np.not_equal,
        "LESS": np.less,
        "LESS_EQUAL": np.less_equal,
        "GREATER": np.greater,
        "GREATER_EQUAL": np.greater_equal,
        "LOGICAL_AND": np.logical_and,
        "LOGICAL_OR": np.logical_or,
        "SELECT_V2": np.where,
    }
)

# Ops whose values follow from the shape of their input, whatever is in it.
OF_SHAPES: Mapping[str, Callable[[Shape], Values]] = MappingProxyType(
    {"SHAPE": np.array, "RANK": lambda shape: np.array(len(shape)), "ZEROS_LIKE": np.zeros}
)

# Ops that leave the bits of values as they are, or that read them in a way of their own: any type, quantized or not.
BITS: Mapping[str, Fold] = MappingProxyType(
    {
        **dict.fromkeys(("RESHAPE", "EXPAND_DIMS", "SQUEEZE", "DENSIFY"), _reshape),
        "CAST": _cast,
        "DEQUANTIZE": _dequantize,
    }
)

MOVES: Mapping[str, Fold] = MappingProxyType(
    {
        "TRANSPOSE": _transpose,
        "CONCATENATION": _concatenation,
        "PACK": _pack,
        **dict.fromkeys(("SLICE", "STRIDED_SLICE"), _strided_slice),
        **dict.fromkeys(("PAD", "PADV2"), _pad),
        "MIRROR_PAD": _mirror_pad,
        "TILE": _tile,
        "GATHER": _gather,
        "REVERSE_V2": _reverse,
        "BROADCAST_TO": _broadcast,
        "FILL": _fill,
        "RANGE": _range,
    }
)

FOLDS: Mapping[str, Fold] = MappingProxyType(
    {
        **BITS,
        **MOVES,
        **{op: _elementwise(function) for op, function in {**UNARY_FUNCTIONS, **OF_SEVERAL}.items()},
        "LEAKY_RELU": _leaky_relu,
        "SELECT": _select,
        "SUM": _reduction(np.sum),
        "REDUCE_PROD": _reduction(np.prod),
        "REDUCE_MAX": _reduction(np.max),
        "REDUCE_MIN": _reduction(np.min),
        "ARG_MAX": _arg_max,
        "ARG_MIN": _arg_min,
        "CUMSUM": _running_sum,
    }
)
