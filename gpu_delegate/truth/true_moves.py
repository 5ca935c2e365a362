"""Ops that move values, in any number of dimensions: functions of attributes, operands and the shape of the output."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ..model.graph import Shape
from .true_arithmetic import TrueValues

_Move = Callable[[Any, Sequence[TrueValues], Shape], TrueValues | Sequence[TrueValues]]


def _reshaped(attributes: Any, operands: Sequence[TrueValues], shape: Shape) -> TrueValues:
    return operands[0].reshape(shape)


def _mirrored(attributes: Any, operands: Sequence[TrueValues], shape: Shape) -> TrueValues:
    return np.pad(operands[0], attributes.amounts, "symmetric" if attributes.symmetric else "reflect")


def _padded(attributes: Any, operands: Sequence[TrueValues], shape: Shape) -> TrueValues:
    return np.pad(operands[0], attributes.amounts, constant_values=attributes.value)


def _sliced(attributes: Any, operands: Sequence[TrueValues], shape: Shape) -> TrueValues:
    """Also backward; dimensions that the file drops or adds have one value."""
    x = operands[0]
    ranges = zip(attributes.begin, attributes.sizes, attributes.strides, strict=True)
    for axis, (begin, size, stride) in enumerate(ranges):
        x = np.take(x, begin + stride * np.arange(size), axis)
    return x.reshape(shape)


def _split(attributes: Any, operands: Sequence[TrueValues], shape: Shape) -> Sequence[TrueValues]:
    return np.split(operands[0], np.cumsum(attributes.sizes)[:-1], attributes.axis)


def _depth_to_space(attributes: Any, operands: Sequence[TrueValues], shape: Shape) -> TrueValues:
    batch, height, width, _ = operands[0].shape
    block = shape[1] // height
    x = operands[0].reshape(batch, height, width, block, block, shape[3])
    return x.transpose(0, 1, 3, 2, 4, 5).reshape(shape)


def _space_to_depth(attributes: Any, operands: Sequence[TrueValues], shape: Shape) -> TrueValues:
    batch, height, _, channels = operands[0].shape
    block = height // shape[1]
    x = operands[0].reshape(batch, shape[1], block, shape[2], block, channels)
    return x.transpose(0, 1, 3, 2, 4, 5).reshape(shape)


def _space_to_batch(attributes: Any, operands: Sequence[TrueValues], shape: Shape) -> TrueValues:
    if len(shape) == 3:
        return _space_to_batch(attributes, [operands[0][:, None]], (shape[0], 1, *shape[1:])).reshape(shape)
    given, (tall, wide) = attributes.padding, attributes.block
    x = np.pad(operands[0], ((0, 0), (given.top, given.bottom), (given.left, given.right), (0, 0)))
    x = x.reshape(x.shape[0], shape[1], tall, shape[2], wide, x.shape[3])
    return x.transpose(2, 4, 0, 1, 3, 5).reshape(shape)


def _batch_to_space(attributes: Any, operands: Sequence[TrueValues], shape: Shape) -> TrueValues:
    if len(shape) == 3:
        return _batch_to_space(attributes, [operands[0][:, None]], (shape[0], 1, *shape[1:])).reshape(shape)
    x, cut, (tall, wide) = operands[0], attributes.padding, attributes.block
    x = x.reshape(tall, wide, shape[0], *x.shape[1:]).transpose(2, 3, 0, 4, 1, 5)
    x = x.reshape(shape[0], x.shape[1] * tall, x.shape[3] * wide, shape[3])
    return x[:, cut.top : cut.top + shape[1], cut.left : cut.left + shape[2]]


def _gathered(attributes: Any, operands: Sequence[TrueValues], shape: Shape) -> TrueValues:
    """The first dimensions of both may be the same maps of a batch."""
    x, indices = operands
    batch, axis = getattr(attributes, "batch_dims", 0), attributes.axis
    values = x.reshape(int(np.prod(x.shape[:batch])), int(np.prod(x.shape[batch:axis])), x.shape[axis], -1)
    places = indices.reshape(values.shape[0], 1, -1)
    maps, outer = np.ogrid[: values.shape[0], : values.shape[1]]
    return np.asarray(values[maps[..., None], outer[..., None], places].reshape(shape))


def _at(indices: TrueValues) -> tuple[TrueValues, ...]:
    """Places of several dimensions, from indices that have them in their last."""
    return tuple(np.moveaxis(indices, -1, 0))


def _scattered(attributes: Any, operands: Sequence[TrueValues], shape: Shape) -> TrueValues:
    """Values that go to one place are added."""
    indices, updates = operands
    out = np.zeros(shape, updates.dtype)
    np.add.at(out, _at(indices), updates)
    return out


def _marked(attributes: Any, operands: Sequence[TrueValues], shape: Shape) -> TrueValues:
    indices, on, off = operands
    numbers = np.arange(shape[attributes.axis]).reshape(-1, *[1] * (len(shape) - attributes.axis - 1))
    return np.where(np.expand_dims(indices, attributes.axis) == numbers, on.reshape(()), off.reshape(()))


def _partly_reversed(attributes: Any, operands: Sequence[TrueValues], shape: Shape) -> TrueValues:
    x, lengths = operands
    sides = [[-1 if k == axis else 1 for k in range(x.ndim)] for axis in (attributes.sequence, attributes.batch)]
    place, length = np.arange(shape[attributes.sequence]).reshape(sides[0]), lengths.reshape(sides[1])
    return np.take_along_axis(x, np.where(place < length, length - 1 - place, place), attributes.sequence)


def _updated(attributes: Any, operands: Sequence[TrueValues], shape: Shape) -> TrueValues:
    x, update, starts = operands
    out = x.copy()
    limits = np.array(x.shape, int) - update.shape
    first = np.clip(starts, 0, limits).astype(int)
    out[tuple(slice(start, start + size) for start, size in zip(first, update.shape, strict=True))] = update
    return out


def _unpacked(attributes: Any, operands: Sequence[TrueValues], shape: Shape) -> Sequence[TrueValues]:
    return [*np.moveaxis(operands[0], attributes.axis, 0)]


MOVES: Mapping[str, _Move] = MappingProxyType(
    {
        "RESHAPE": _reshaped,
        "EXPAND_DIMS": _reshaped,
        "SQUEEZE": _reshaped,
        "PAD": _padded,
        "PADV2": _padded,
        "MIRROR_PAD": _mirrored,
        "CONCATENATION": lambda a, operands, shape: np.concatenate(operands, a.axis),
        "PACK": lambda a, operands, shape: np.stack(operands, a.axis),
        "UNPACK": _unpacked,
        "SPLIT": _split,
        "SPLIT_V": _split,
        "SLICE": _sliced,
        "STRIDED_SLICE": _sliced,
        "REVERSE_V2": lambda a, operands, shape: np.flip(operands[0], a.axes),
        "TRANSPOSE": lambda a, operands, shape: operands[0].transpose(a.order),
        "TILE": lambda a, operands, shape: np.tile(operands[0], a.repeats),
        "BROADCAST_TO": lambda a, operands, shape: np.broadcast_to(operands[0], shape),
        "GATHER": _gathered,
        "GATHER_ND": lambda a, operands, shape: operands[0][_at(operands[1])],
        "EMBEDDING_LOOKUP": lambda a, operands, shape: operands[1][operands[0]],
        "ONE_HOT": _marked,
        "SCATTER_ND": _scattered,
        "REVERSE_SEQUENCE": _partly_reversed,
        "DYNAMIC_UPDATE_SLICE": _updated,
        "DEPTH_TO_SPACE": _depth_to_space,
        "SPACE_TO_DEPTH": _space_to_depth,
        "SPACE_TO_BATCH_ND": _space_to_batch,
        "BATCH_TO_SPACE_ND": _batch_to_space,
        "SHAPE": lambda a, operands, shape: np.array(operands[0].shape),
        "RANK": lambda a, operands, shape: np.array(operands[0].ndim),
        "ZEROS_LIKE": lambda a, operands, shape: np.zeros_like(operands[0]),
        "RANGE": lambda a, operands, shape: operands[0].reshape(()) + operands[2].reshape(()) * np.arange(*shape),
        "FILL": lambda a, operands, shape: np.broadcast_to(operands[0].reshape(()), shape),
    }
)
