"""Tensors as CPU kernels store them: a plane for each channel; their sizes, and conversion from and to BHWC arrays.

A map lies in planes, one for each channel: the rows of the whole batch, one behind the other. Channels are filled up to
whole slices of four, as in PHWC4, with planes of zeros. Planes begin at whole cache lines and are an odd number of them
long, so that the same place in several planes never falls into one set of a cache. A tensor of one pixel, a vector, is
so many floats in a row instead; a plain output of one channel is one plane. Bytes have one plane for each slice,
whose ints have a channel in each of their bytes, the first in the lowest. Kernels may read, and never use, a margin
in front of a tensor and behind it.
"""

import numpy as np
import numpy.typing as npt

from ...model.layout import FLOAT_BYTES, LINE_FLOATS, PHWC4, MapShape, Storage, ceil_div, plane_floats
from ...model.packing import Float32Array, from_phwc4, phwc4

MARGIN_FLOATS = 256  # in front of and behind all tensors
_MANY_CHANNELS = 64  # from which on pixels lie so far apart that a cache has the same lane of few of them
_PIXELS_AT_ONCE = 32  # of such ones that are turned into planes


def slice_planes(storage: Storage) -> int:
    """The planes of a slice: one of each channel, or one alone of a plain tensor and of bytes."""
    return 1 if storage.lanes == 1 or storage.is_bytes else 4


def tensor_floats(shape: MapShape, storage: Storage = PHWC4) -> int:
    """Floats that a tensor takes, in whole cache lines, without margins."""
    planes = 1 if storage.lanes == 1 else slice_planes(storage) * shape.slices
    return LINE_FLOATS * ceil_div(planes * plane_floats(shape), LINE_FLOATS)


def reserve_floats(count: int) -> Float32Array:
    """Zeros whose first float begins a cache line, with margins on both sides that are no part of the array."""
    whole = np.zeros(count + 2 * MARGIN_FLOATS + LINE_FLOATS, np.float32)
    start = MARGIN_FLOATS - whole.ctypes.data // whole.itemsize % LINE_FLOATS + LINE_FLOATS
    return whole[start : start + count]


def with_margins(values: Float32Array) -> bytes:
    """Floats as bytes between margins of zeros: `between_margins` takes them out where they lie."""
    margin = bytes(values.itemsize * MARGIN_FLOATS)
    return b"".join((margin, np.ascontiguousarray(values).data.cast("B"), margin))


def between_margins(content: memoryview) -> Float32Array | None:
    """The floats that `with_margins` wrote, in the same memory; None where there cannot be any."""
    count = len(content) // FLOAT_BYTES - 2 * MARGIN_FLOATS
    if count < 0 or len(content) % FLOAT_BYTES:
        return None
    return np.frombuffer(content, np.float32, count, FLOAT_BYTES * MARGIN_FLOATS)


def in_reserved(values: Float32Array) -> Float32Array:
    """A copy that lies so."""
    floats = reserve_floats(values.size)
    floats[:] = values
    return floats


def planes_of(data: Float32Array, shape: MapShape, storage: Storage = PHWC4) -> npt.NDArray[np.float32]:
    """The planes of a tensor in memory as an array (planes, rows of the batch, width), which shares its memory."""
    planes = 1 if storage.lanes == 1 else slice_planes(storage) * shape.slices
    stride = plane_floats(shape)
    return data[: planes * stride].reshape(planes, stride)[:, : shape.pixels].reshape(planes, shape.rows, shape.width)


def write_planes(data: Float32Array, values_bhwc: Float32Array, shape: MapShape, storage: Storage = PHWC4) -> None:
    """A BHWC array of the shape into the memory of a tensor, whose lanes past the last channel hold zeros."""
    values = values_bhwc.reshape(shape.rows, shape.width, shape.channels)
    planes = planes_of(data, shape, storage)
    if storage.is_bytes:
        texels = phwc4(np.asarray(values, np.float32)) - np.float32(storage.low)
        planes[:] = texels.astype(np.uint8).view(np.float32)[..., 0]
        return
    columns, pixels = data[: len(planes) * plane_floats(shape)], values.reshape(shape.pixels, shape.channels)
    columns = columns.reshape(len(planes), -1)[: shape.channels, : shape.pixels]
    some = _PIXELS_AT_ONCE if shape.channels >= _MANY_CHANNELS else shape.pixels
    for first in range(0, shape.pixels, some):
        columns[:, first : first + some] = pixels[first : first + some].T


def to_planes(values_bhwc: Float32Array, shape: MapShape) -> Float32Array:
    """A BHWC array of the shape -> its floats in memory, with zeros past the last channel."""
    data = reserve_floats(tensor_floats(shape))
    write_planes(data, values_bhwc, shape)
    return data


def from_planes(data: Float32Array, shape: MapShape, storage: Storage = PHWC4) -> Float32Array:
    """The floats of a tensor in memory -> BHWC, as a copy."""
    planes = planes_of(data, shape, storage)
    if storage.is_bytes:
        texels = np.ascontiguousarray(planes).view(np.uint8).reshape(*planes.shape, 4).astype(np.float32)
        values = from_phwc4(texels + np.float32(storage.low), shape.channels)
        return values.reshape(shape.batch, shape.height, shape.width, shape.channels)
    return np.array(values_of(data, shape, storage), order="C")


def values_of(data: Float32Array, shape: MapShape, storage: Storage = PHWC4) -> Float32Array:
    """The same of a tensor without bytes, as an array that shares its memory."""
    planes = planes_of(data, shape, storage)[: shape.channels]
    values: Float32Array = planes.reshape(shape.channels, shape.batch, shape.height, shape.width)
    return values.transpose(1, 2, 3, 0)
