"""Packs weights, biases and maps into the order in which kernels read them, and unpacks maps again."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..base.errors import UsageError
from .digits import are_digits, digits_of, from_digits
from .graph import ABSENT, Graph, Node, Tensor
from .layout import BYTE_VALUES, MapShape, Storage, ceil_div, shape_of
from .quantization import is_quantized, zero_point_of
from .rewrite import float_data

Float32Array = npt.NDArray[np.float32]
Stored = npt.NDArray[np.float32] | npt.NDArray[np.float16] | npt.NDArray[np.uint8]

LARGEST_HALF = 65504.0
_MANY_SLICES = 64  # from which on pixels lie so far apart that a cache has the same slice of few of them
_PIXELS_AT_ONCE = 32  # of such ones that are packed
MOST_LONG_INTEGER = (1 << 63) - (1 << 10)  # that float64 has, of 64 bits


def check_values(values: object, tensor: Tensor) -> npt.NDArray[Any]:
    """Values of exactly a tensor's type and shape in the file. Raises UsageError for others, and what is not finite."""
    if not isinstance(values, np.ndarray) or values.dtype != tensor.dtype or values.shape != tensor.shape:
        given = f"{values.dtype} of shape {values.shape}" if isinstance(values, np.ndarray) else type(values).__name__
        hint = _hint(values, tensor) if isinstance(values, np.ndarray) else "; numpy.asarray(values, dtype) makes one"
        raise UsageError(f"{tensor.name} takes an array of {tensor.dtype} of shape {tensor.shape}, not {given}{hint}")
    if values.dtype.kind == "f" and not is_finite(values):
        raise UsageError(f"{tensor.name} takes finite numbers, not infinities or NaN")
    return values


def _hint(values: npt.NDArray[Any], tensor: Tensor) -> str:
    """What to write instead of values of another type or shape, as far as that is known."""
    if values.shape == tensor.shape and values.dtype == np.uint8 and tensor.dtype == "float32":
        return "; scale bytes as the model was trained, for most to 0 to 1 or -1 to 1, as float32"
    if values.shape == tensor.shape:
        return f"; values.astype('{tensor.dtype}') has that type"
    if (1, *values.shape) == tensor.shape:
        return "; values[None] is a batch of one"
    if values.ndim == 4 and tuple(values.shape[axis] for axis in (0, 2, 3, 1)) == tensor.shape:
        return "; values.transpose(0, 2, 3, 1) has channels last"
    return ""


def to_kernels(values: npt.NDArray[Any], tensor: Tensor, shape: MapShape) -> Float32Array:
    """What kernels take for values of a tensor of the file that they store in a shape: float32, steps or digits.

    Integers that are not stored as digits are rounded: their last digits make no difference (exact_integers.py).
    """
    if are_digits(shape.pixels * shape.channels, values.size, tensor.dtype):
        return digits_of(values, tensor.dtype)
    if values.dtype.itemsize == 1 or is_quantized(tensor):
        steps = values.astype(np.float32)
        steps -= np.float32(zero_point_of(tensor))
        return steps
    return values.astype(np.float32, copy=False)


def is_finite(values: npt.NDArray[Any]) -> bool:
    """Whether no value is infinite or NaN. A finite sum of squares proves it, in half the time."""
    if values.dtype == np.float32 and np.isfinite(np.vdot(values, values)):
        return True
    return bool(np.isfinite(values).all())


def as_type(values: Float32Array, dtype: str) -> npt.NDArray[Any]:
    """What kernels have computed, in the type of its tensor: not zero is true, integers are rounded to nearest."""
    wanted = np.dtype(dtype)
    if wanted.kind == "b":
        return np.not_equal(values, 0)
    if wanted.kind in "iu":
        limits = np.iinfo(wanted)
        whole = np.rint(values.astype(np.float64))
        whole = np.where(np.isnan(whole), 0, whole)  # nan_to_num takes ten times as long for a few
        return np.clip(whole, limits.min, min(limits.max, MOST_LONG_INTEGER)).astype(wanted)
    return values.astype(wanted, copy=False)


def in_file_type(values: Float32Array, tensor: Tensor) -> npt.NDArray[Any]:
    """What kernels have computed for a tensor, steps, digits or values of its own, in the type of its file."""
    if not is_quantized(tensor):
        is_wide = are_digits(values.size, math.prod(tensor.shape), tensor.dtype)
        return from_digits(values, tensor.dtype) if is_wide else as_type(values, tensor.dtype)
    limits = np.iinfo(tensor.dtype)  # steps are finite: `as_type` takes seven times as long
    whole = np.rint(values + np.float32(zero_point_of(tensor)))
    found: npt.NDArray[Any] = np.minimum(np.maximum(whole, limits.min), limits.max).astype(tensor.dtype)
    return found


def output_floats(tensor: Tensor) -> Float32Array:
    """A constant that is an output, as if kernels had computed it: in_file_type makes its own values of that again."""
    assert tensor.data is not None
    return tensor.data.astype(np.float32) - np.float32(zero_point_of(tensor))


def pad_lanes(data: Float32Array, axis: int) -> Float32Array:
    """Append zeros along an axis up to a multiple of four; the same array where it is one."""
    if data.shape[axis] % 4 == 0:
        return data
    shape = [size + -size % 4 if k == axis else size for k, size in enumerate(data.shape)]
    padded = np.zeros(shape, data.dtype)
    padded[tuple(map(slice, data.shape))] = data
    return padded


def convolution_blocks(weights_ohwi: Float32Array) -> Float32Array:
    """OHWI -> (S, T, N, 4 in, 4 out): a block per input slice, tap and output slice, as a view if it can be one."""
    padded = pad_lanes(pad_lanes(weights_ohwi, 0), 3)
    out_channels, height, width, in_channels = padded.shape
    split = padded.reshape(out_channels // 4, 4, height * width, in_channels // 4, 4)
    return split.transpose(3, 2, 0, 4, 1)


def depthwise_taps(weights_1hwc: Float32Array) -> Float32Array:
    """1HWC -> (S, T, 4): one vec4 per slice and tap."""
    padded = pad_lanes(weights_1hwc, 3)
    _, height, width, channels = padded.shape
    return np.ascontiguousarray(padded.reshape(height * width, channels // 4, 4).transpose(1, 0, 2))


def vector_texels(values: Float32Array) -> Float32Array:
    """C values -> (ceil(C / 4), 4)."""
    return pad_lanes(values.reshape(-1), 0).reshape(-1, 4)


def phwc4(values: Float32Array) -> Float32Array:
    """HWC -> (S, H, W, 4); the maps of a batch are one of B * H rows."""
    height, width, channels = values.shape
    slices, pixels = ceil_div(channels, 4), values.reshape(height * width, channels)
    if channels % 4 == 0 and channels and values.dtype == np.float32:
        whole = np.empty((slices, height * width, 4), values.dtype)
        columns, rows = _as_fours(whole), _as_fours(pixels.reshape(height * width, slices, 4))
        some = _PIXELS_AT_ONCE if slices >= _MANY_SLICES else len(rows)
        for first in range(0, len(rows), some):
            columns[:, first : first + some] = rows[first : first + some].T
        return whole.reshape(slices, height, width, 4)
    texels = np.zeros((slices, height * width, 4), values.dtype)
    if slices > len(pixels):  # of a vector: all slices at once
        texels[...] = pad_lanes(pixels, 1).reshape(len(pixels), slices, 4).transpose(1, 0, 2)
    else:
        for number in range(channels // 4):
            texels[number] = pixels[:, 4 * number : 4 * number + 4]
        for lane in range(channels % 4):  # copies of two or three lanes at once take four times as long
            texels[-1, :, lane] = pixels[:, channels - channels % 4 + lane]
    return texels.reshape(slices, height, width, 4)


def from_phwc4(texels: Float32Array, channels: int) -> Float32Array:
    """(S, H, W, 4) -> HWC."""
    slices, height, width, _ = texels.shape
    if slices > height * width and channels % 4:  # of a vector: all slices at once
        return np.ascontiguousarray(texels.transpose(1, 2, 0, 3).reshape(height, width, 4 * slices)[:, :, :channels])
    pixels, columns = np.empty((height * width, channels), texels.dtype), texels.reshape(slices, height * width, 4)
    if channels % 4 == 0 and channels and texels.dtype == np.float32:
        _as_fours(pixels.reshape(height * width, slices, 4))[...] = _as_fours(columns).T
        return pixels.reshape(height, width, channels)
    for number in range(channels // 4):
        pixels[:, 4 * number : 4 * number + 4] = columns[number]
    for lane in range(channels % 4):
        pixels[:, channels - channels % 4 + lane] = columns[-1, :, lane]
    return pixels.reshape(height, width, channels)


def _as_fours(values: Float32Array) -> npt.NDArray[np.complex128]:
    """(..., 4) -> (...): the same memory as numbers of 16 bytes, which NumPy moves at once."""
    fours: npt.NDArray[np.complex128] = np.ascontiguousarray(values).view(np.complex128)[..., 0]
    return fours


def to_memory(values_hwc: Float32Array, storage: Storage) -> Stored:
    """HWC, as phwc4 takes it, -> the order and precision of a storage; halves and bytes saturate as in shaders."""
    return rounded(phwc4(values_hwc) if storage.lanes == 4 else values_hwc, storage)


def rounded(values: Float32Array, storage: Storage) -> Stored:
    """Values in the precision of a storage."""
    if storage.is_bytes:
        whole: Float32Array = np.floor(values + np.float32(0.5 - storage.low))
        stored: npt.NDArray[np.uint8] = np.clip(whole, 0, BYTE_VALUES - 1).astype(np.uint8)
        return stored
    return np.clip(values, -LARGEST_HALF, LARGEST_HALF).astype(np.float16) if storage.is_halves else values


def from_memory(data: npt.NDArray[np.uint8], shape: MapShape, storage: Storage) -> Float32Array:
    """The bytes of a stored tensor -> HWC, where H counts the rows of the whole batch."""
    stored = data if storage.is_bytes else data.view(np.float16 if storage.is_halves else np.float32)
    values = stored.astype(np.float32, copy=False)
    values = values + np.float32(storage.low) if storage.low else values
    if storage.lanes == 1:
        return values.reshape(shape.rows, shape.width, 1)
    return from_phwc4(values.reshape(shape.slices, shape.rows, shape.width, 4), shape.channels)


def bias_of(graph: Graph, node: Node) -> Float32Array:
    """The bias as (slices, 4), zeros where the node has none."""
    channels = shape_of(graph.tensors[node.outputs[0]]).channels
    tensor = node.inputs[2] if len(node.inputs) > 2 else ABSENT
    return vector_texels(np.zeros(channels, np.float32) if tensor == ABSENT else float_data(graph.tensors[tensor]))


class Blob:
    """All weights of one kernel, appended piece by piece; positions are in texels."""

    def __init__(self) -> None:
        self.pieces: list[Float32Array] = []
        self._texels = 0

    def add(self, values: Float32Array) -> int:
        """Append values (..., 4); the first texel's position."""
        start = self._texels
        self.pieces.append(values)
        self._texels += values.size // 4
        return start

    def vector(self, values: Float32Array) -> int:
        """Append C values, filled up with zeros; the first texel's position."""
        return self.add(vector_texels(values))

    def data(self) -> Float32Array:
        """Everything that was appended, as texels (N, 4)."""
        return joined_floats(self.pieces).reshape(-1, 4)

    def __len__(self) -> int:
        """Of texels."""
        return self._texels


def joined_floats(pieces: Sequence[Float32Array]) -> Float32Array:
    """All values one behind the other (N,)."""
    joined = np.empty(sum(piece.size for piece in pieces), np.float32)
    put_together(pieces, joined)
    return joined


def put_together(pieces: Sequence[Float32Array], joined: Float32Array) -> None:
    """All values into an array (N,), each copied but once: most pieces are views of a file, in other orders."""
    start = 0
    for piece in pieces:
        joined[start : start + piece.size].reshape(piece.shape)[...] = piece
        start += piece.size
