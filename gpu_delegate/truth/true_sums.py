"""Ops that make one value of many, in float64: convolutions, products, pools, resizing, reductions, normalizations.

Functions of the op's attributes, its operands and the shape of its output. A convolution is one matrix product for each
tap of its window, so that no more memory is taken than its input and its output have.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ..model.graph import Shape
from .true_arithmetic import TrueValues, true_logistic

Operands = Sequence[TrueValues | None]
TrueMeaning = Callable[[Any, Operands, Shape], TrueValues | Sequence[TrueValues]]
_LEAST_NORM = 1e-6  # L2_NORMALIZATION divides by no less

_Reached = tuple[slice, slice]  # places of the window, and values that they read


def _reached(tap: int, count: int, size: int, stride: int, dilation: int, before: int) -> _Reached:
    """Along one axis: the windows, of `count`, whose tap is inside the map of `size`, and the values that it is on."""
    first = tap * dilation - before
    start = max(0, -(first // stride))
    stop = max(start, min(count, (size - 1 - first) // stride + 1))
    return slice(start, stop), slice(start * stride + first, max(0, (stop - 1) * stride + first + 1), stride)


def _taps(taps: int, count: int, size: int, stride: int, dilation: int, before: int) -> Iterator[tuple[int, _Reached]]:
    """Those taps that are on the map in any window."""
    nearest = max(0, -((stride * (count - 1) - before) // dilation))
    for tap in range(nearest, min(taps, (size - 1 + before) // dilation + 1)):
        windows, values = _reached(tap, count, size, stride, dilation, before)
        if windows.start < windows.stop:
            yield tap, (windows, values)


def _window(
    kernel: Shape, windows: Shape, size: Shape, stride: Shape, dilation: Shape, padding: Any
) -> Iterator[tuple[int, int, tuple[slice, slice], tuple[slice, slice]]]:
    """Each tap (y, x) of a window on a map of a size (h, w): of which windows it is inside, and what it reads."""
    across = [*_taps(kernel[1], windows[1], size[1], stride[1], dilation[1], padding.left)]
    for y, (rows, rows_in) in _taps(kernel[0], windows[0], size[0], stride[0], dilation[0], padding.top):
        for x, (columns, columns_in) in across:
            yield y, x, (rows, columns), (rows_in, columns_in)


def _biased(out: TrueValues, operands: Operands) -> TrueValues:
    bias = operands[2] if len(operands) > 2 else None
    return out if bias is None else out + bias


def _convolution(attributes: Any, operands: Operands, shape: Shape) -> TrueValues:
    """Weights OHWI; where they have fewer channels than the input, each group of outputs reads channels of its own."""
    x, weights = two_of(operands)
    outputs, height, width, depth = weights.shape
    groups = x.shape[3] // depth
    out = np.zeros((*shape[:3], groups, outputs // groups))
    kernels = weights.reshape(groups, outputs // groups, height, width, depth).transpose(2, 3, 0, 4, 1)
    place = (height, width), shape[1:3], x.shape[1:3], attributes.stride, attributes.dilation, attributes.padding
    for ky, kx, (rows, columns), (rows_in, columns_in) in _window(*place):
        read = x[:, rows_in, columns_in].reshape(-1, groups, depth).transpose(1, 0, 2)
        into = out[:, rows, columns]
        into += (read @ kernels[ky, kx]).transpose(1, 0, 2).reshape(into.shape)
    return _biased(out.reshape(shape), operands)


def _depthwise(attributes: Any, operands: Operands, shape: Shape) -> TrueValues:
    x, weights = two_of(operands)
    if attributes.multiplier > 1:
        x = np.repeat(x, attributes.multiplier, axis=3)
    out = np.zeros(shape)
    place = weights.shape[1:3], shape[1:3], x.shape[1:3], attributes.stride, attributes.dilation, attributes.padding
    for ky, kx, (rows, columns), (rows_in, columns_in) in _window(*place):
        out[:, rows, columns] += x[:, rows_in, columns_in] * weights[0, ky, kx]
    return _biased(out, operands)


def _transposed(attributes: Any, operands: Operands, shape: Shape) -> TrueValues:
    """The windows lie in the output, and each value of the input is added to all places of its own."""
    x, weights = two_of(operands)
    out = np.zeros(shape)
    place = weights.shape[1:3], x.shape[1:3], shape[1:3], attributes.stride, (1, 1), attributes.padding
    for ky, kx, (rows, columns), (rows_out, columns_out) in _window(*place):
        out[:, rows_out, columns_out] += x[:, rows, columns] @ weights[:, ky, kx].T
    return _biased(out, operands)


def _fully_connected(attributes: Any, operands: Operands, shape: Shape) -> TrueValues:
    x, weights = two_of(operands)
    return np.asarray(_biased(x.reshape(-1, weights.shape[1]) @ weights.T, operands).reshape(shape))


def _matrix_product(attributes: Any, operands: Operands, shape: Shape) -> TrueValues:
    x, y = two_of(operands)
    return np.asarray((x.swapaxes(-1, -2) if attributes.adj_x else x) @ (y.swapaxes(-1, -2) if attributes.adj_y else y))


def _recurrent(attributes: Any, operands: Operands, shape: Shape) -> Sequence[TrueValues]:
    """LSTM: the activation, the state, both inputs as one, the gates."""
    x, last, weights, bias, state = (each for each in operands if each is not None)
    both = np.concatenate([x, last], axis=1)
    gates = both @ weights.T + bias
    read, new, forget, written = np.split(gates, 4, axis=1)
    state = true_logistic(read) * np.tanh(new) + true_logistic(forget) * state
    return true_logistic(written) * np.tanh(state), state, both, gates


def _pooled(fold: np.ufunc, neutral: float) -> Callable[[Any, TrueValues, Shape], TrueValues]:
    """What lies under each window as one value, first along columns, then along rows."""

    def pool(attributes: Any, x: TrueValues, shape: Shape) -> TrueValues:
        before = attributes.padding.top, attributes.padding.left
        for axis in (1, 2):
            kernel, stride, count = attributes.kernel[axis - 1], attributes.stride[axis - 1], shape[axis]
            lines = x.swapaxes(0, axis)
            out = np.full((count, *lines.shape[1:]), neutral)
            for _, (windows, values) in _taps(kernel, count, len(lines), stride, 1, before[axis - 1]):
                fold(out[windows], lines[values], out=out[windows])
            x = out.swapaxes(0, axis)
        return x

    return pool


_sum_pool, _most_pool = _pooled(np.add, 0.0), _pooled(np.maximum, -np.inf)


def _average_pool(attributes: Any, operands: Operands, shape: Shape) -> TrueValues:
    """Padding does not count."""
    x = one_of_operands(operands)
    return _sum_pool(attributes, x, shape) / _sum_pool(attributes, np.ones((1, *x.shape[1:3], 1)), shape)


def _root_pool(attributes: Any, operands: Operands, shape: Shape) -> TrueValues:
    return np.sqrt(_average_pool(attributes, [np.square(one_of_operands(operands))], shape))


def _pool_with_places(attributes: Any, operands: Operands, shape: Shape) -> Sequence[TrueValues]:
    """The greatest value, and the number of the first place in the window, row by row, that has it; 0.1 more."""
    x, (height, width) = one_of_operands(operands), attributes.kernel
    most, places = np.full(shape, -np.inf), np.zeros(shape)
    place = (height, width), shape[1:3], x.shape[1:3], attributes.stride, (1, 1), attributes.padding
    for ky, kx, (rows, columns), (rows_in, columns_in) in _window(*place):
        at, found = (slice(None), rows, columns), x[:, rows_in, columns_in]
        places[at] = np.where(found > most[at], ky * width + kx, places[at])
        most[at] = np.maximum(found, most[at])
    return most, places + 0.1


def _unpooled(attributes: Any, operands: Operands, shape: Shape) -> TrueValues:
    """Windows do not overlap, so at most one of them has a value for each place."""
    x, numbers = two_of(operands)
    numbers, out = np.trunc(numbers), np.zeros(shape)
    place = attributes.kernel, x.shape[1:3], shape[1:3], attributes.stride, (1, 1), attributes.padding
    for ky, kx, (rows, columns), (rows_out, columns_out) in _window(*place):
        is_here = numbers[:, rows, columns] == ky * attributes.kernel[1] + kx
        out[:, rows_out, columns_out] += np.where(is_here, x[:, rows, columns], 0)
    return out


def _resized(attributes: Any, operands: Operands, shape: Shape) -> TrueValues:
    """Between the two nearest values along each axis."""
    x = one_of_operands(operands)
    for axis in (1, 2):
        size, count = x.shape[axis], shape[axis]
        corners = attributes.align_corners and count > 1
        scale = (size - 1) / (count - 1) if corners else size / count
        half = 0.5 if attributes.half_pixel_centers else 0.0
        at = np.clip((np.arange(count) + half) * scale - half, 0, size - 1)
        low = np.floor(at).astype(np.int64)
        part = (at - low).reshape(-1, *[1] * (3 - axis))
        x = np.take(x, low, axis) * (1 - part) + np.take(x, np.minimum(low + 1, size - 1), axis) * part
    return x


def _resampled(attributes: Any, operands: Operands, shape: Shape) -> TrueValues:
    """At positions (x, y) between the four values around; outside of the map are zeros."""
    x, positions = two_of(operands)
    around = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    across, down = np.moveaxis(np.clip(positions, -1, (x.shape[2], x.shape[1])) + 1, -1, 0)
    left, top = np.floor(across).astype(np.int64), np.floor(down).astype(np.int64)
    out, maps = np.zeros(shape), np.arange(shape[0]).reshape(-1, 1, 1)
    for row, column in np.ndindex(2, 2):
        near = (1 - np.abs(down - top - row)) * (1 - np.abs(across - left - column))
        places = np.minimum(top + row, x.shape[1] + 1), np.minimum(left + column, x.shape[2] + 1)
        out += near[..., None] * around[maps, places[0], places[1]]
    return out


def _nearest(attributes: Any, operands: Operands, shape: Shape) -> TrueValues:
    """Which value is meant is said in float32: TensorFlow Lite rounds its scale before it rounds positions."""
    x = one_of_operands(operands)
    for axis in (1, 2):
        size, count = x.shape[axis], shape[axis]
        corners = attributes.align_corners and count > 1
        scale = np.float32(size - 1) / np.float32(count - 1) if corners else np.float32(size) / np.float32(count)
        half = np.float32(0.5 if attributes.half_pixel_centers else 0.0)
        at = (np.arange(count, dtype=np.float32) + half) * scale
        whole = np.floor(at + np.float32(0.5)) if attributes.align_corners else np.floor(at)
        x = np.take(x, np.clip(whole, 0, size - 1).astype(np.int64), axis)
    return x


def _reduced(function: Callable[..., Any]) -> TrueMeaning:
    """Along axes; values along none are themselves."""

    def reduce(attributes: Any, operands: Operands, shape: Shape) -> TrueValues:
        x = one_of_operands(operands)
        return np.asarray(function(x, axis=attributes.axes) if attributes.axes else x).reshape(shape)

    return reduce


def _place_of(function: Callable[..., Any]) -> TrueMeaning:
    return lambda a, operands, shape: np.asarray(function(one_of_operands(operands), axis=a.axes[0])).reshape(shape)


def _greatest(attributes: Any, operands: Operands, shape: Shape) -> Sequence[TrueValues]:
    """Of equal values those that come first."""
    x = one_of_operands(operands)
    order = np.argsort(-x.astype(np.float64), axis=-1, kind="stable")[..., : shape[-1]]
    return np.take_along_axis(x, order, -1), order


def _running_sum(attributes: Any, operands: Operands, shape: Shape) -> TrueValues:
    x = np.flip(one_of_operands(operands), attributes.axis) if attributes.reverse else one_of_operands(operands)
    found = np.cumsum(x, attributes.axis, dtype=x.dtype)
    found = found - x if attributes.exclusive else found
    return np.asarray(np.flip(found, attributes.axis) if attributes.reverse else found)


def _softmax(attributes: Any, operands: Operands, shape: Shape) -> TrueValues:
    return np.asarray(np.exp(_log_softmax(attributes, [attributes.beta * one_of_operands(operands)], shape)))


def _log_softmax(attributes: Any, operands: Operands, shape: Shape) -> TrueValues:
    x = one_of_operands(operands)
    below = x - x.max(axis=-1, keepdims=True)
    return np.asarray(below - np.log(np.exp(below).sum(axis=-1, keepdims=True)))


def _unit(attributes: Any, operands: Operands, shape: Shape) -> TrueValues:
    x = one_of_operands(operands)
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), _LEAST_NORM))


def _local_response(attributes: Any, operands: Operands, shape: Shape) -> TrueValues:
    x, last = one_of_operands(operands), shape[-1] - 1
    sums = np.cumsum(np.square(x), axis=-1)
    ends = np.take(sums, np.minimum(np.arange(last + 1) + attributes.radius, last), axis=-1)
    before = np.arange(last + 1) - attributes.radius - 1
    starts = np.where(before >= 0, np.take(sums, np.maximum(before, 0), axis=-1), 0)
    return np.asarray(x * (attributes.bias + attributes.alpha * (ends - starts)) ** -attributes.beta)


def one_of_operands(operands: Operands) -> TrueValues:
    found = operands[0]
    if found is None:
        raise ValueError("an input that is needed is left out")
    return found


def two_of(operands: Operands) -> tuple[TrueValues, TrueValues]:
    return one_of_operands(operands), one_of_operands(operands[1:])


SUMS: Mapping[str, TrueMeaning] = MappingProxyType(
    {
        "CONV_2D": _convolution,
        "DEPTHWISE_CONV_2D": _depthwise,
        "TRANSPOSE_CONV": _transposed,
        "Convolution2DTransposeBias": _transposed,
        "FULLY_CONNECTED": _fully_connected,
        "BATCH_MATMUL": _matrix_product,
        "LSTM": _recurrent,
        "AVERAGE_POOL_2D": _average_pool,
        "MAX_POOL_2D": lambda attributes, operands, shape: _most_pool(attributes, one_of_operands(operands), shape),
        "L2_POOL_2D": _root_pool,
        "MaxPoolingWithArgmax2D": _pool_with_places,
        "MaxUnpooling2D": _unpooled,
        "Resampler": _resampled,
        "RESIZE_BILINEAR": _resized,
        "RESIZE_NEAREST_NEIGHBOR": _nearest,
        "MEAN": _reduced(np.mean),
        "SUM": _reduced(np.sum),
        "REDUCE_PROD": _reduced(np.prod),
        "REDUCE_MAX": _reduced(np.max),
        "REDUCE_MIN": _reduced(np.min),
        "REDUCE_ANY": _reduced(np.any),
        "REDUCE_ALL": _reduced(np.all),
        "ARG_MAX": _place_of(np.argmax),
        "ARG_MIN": _place_of(np.argmin),
        "TOPK_V2": _greatest,
        "CUMSUM": _running_sum,
        "SOFTMAX": _softmax,
        "LOG_SOFTMAX": _log_softmax,
        "L2_NORMALIZATION": _unit,
        "LOCAL_RESPONSE_NORMALIZATION": _local_response,
    }
)
