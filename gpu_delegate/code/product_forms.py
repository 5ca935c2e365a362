"""How sums of products with constant weights are computed: as floats, in pairs of bfloat16, or, of bytes, as ints.

Weights that were bytes in a file may stay so in memory, and become floats when they are read (`scaled_bytes`).

The one place that knows both: contractions and windows say which values and weights are multiplied (gpu_delegate/ops),
a target's emitter chooses how (`KernelWriter.products`). A sum of products of bytes b = x - low with whole weights w is
that of x and w, but for low * sum(w), which is added to its bias. An int of a word has four weights as bytes, two as
16 bits (the first and third channel of a slice, or the second and fourth), or one, as the target multiplies them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..model.layout import BYTE_VALUES, ceil_div
from ..model.packing import Float32Array
from .vocabulary import Bits, ByteProducts, Lane, PairProducts, Value, combined

Together = Literal[1, 2, 4]  # weights in an int
END_OF_INTS = 1 << 31
_LANES = 4
_ROWS_TRIED, _MOST_STEPS = 8, 127


class Products:
    """Products of floats: what is packed for them, and what is added to a sum."""

    def bias(self, texels: Float32Array, weights: Callable[[], Float32Array]) -> Float32Array:
        """Biases (slices, 4) of so many sums; `weights` are (outputs, products) of a sum each."""
        return texels

    def start(self, texel: Value) -> Value:
        """What a sum begins with."""
        return texel

    def blocks(self, blocks: Float32Array) -> Float32Array:
        """Blocks (..., 4 in, 4 out) of weights as texels (..., texels of a block, 4)."""
        return blocks

    def taps(self, taps: Float32Array) -> Float32Array:
        """Weights (..., 4) that are multiplied lane by lane, as texels."""
        return taps

    def texels_of_block(self, lanes: int) -> int:
        """How many texels of a block count where so many input channels do."""
        return lanes

    def of_block(self, value: Value, texels: Sequence[Value], lanes: int = _LANES) -> Value:
        """A slice times the texels of a block, of which so many input channels count."""
        return combined("add", [Lane(value, lane) * texel for lane, texel in enumerate(texels)])

    def of_lanes(self, value: Value, texel: Value) -> Value:
        """Lane by lane."""
        return value * texel


FLOAT_PRODUCTS = Products()


class InPairs(Products):
    """Products of floats rounded to bfloat16, of two channels at a time, whose sums stay float32."""

    def blocks(self, blocks: Float32Array) -> Float32Array:
        return in_pairs(blocks)

    def rows(self, matrix: Float32Array) -> Float32Array:
        """Weights (outputs, inputs) as (outputs, ints of two inputs)."""
        return in_pairs(matrix.T).T

    def texels_of_block(self, lanes: int) -> int:
        return ceil_div(lanes, 2)

    def of_block(self, value: Value, texels: Sequence[Value], lanes: int = _LANES) -> Value:
        return PairProducts(value, tuple(texels), lanes)


PAIR_PRODUCTS = InPairs()


def gains_in_pairs(channels: int, slices: int) -> bool:
    """Whether products in pairs take fewer instructions, sums of so many slices at once.

    One for two products of a vector, and for each pair of channels two more, which round and join it.
    """
    pairs = ceil_div(channels, 2)
    return _LANES * slices * pairs + 2 * pairs < _LANES * slices * channels


def in_pairs(values: Float32Array) -> Float32Array:
    """Values (..., inputs, outputs), rounded to bfloat16, as the bits of (..., two inputs in an int, outputs)."""
    halves = rounded_bits(np.pad(values, [(0, 0)] * (values.ndim - 2) + [(0, values.shape[-2] % 2), (0, 0)]))
    words = np.bitwise_or(halves[..., ::2, :], np.left_shift(halves[..., 1::2, :], 16, dtype=np.uint32))
    return np.ascontiguousarray(words, np.uint32).view(np.float32)


def rounded_bits(values: Float32Array) -> npt.NDArray[np.uint32]:
    """The upper halves of floats, rounded as the CPU rounds them: to the nearest or even, and to 0 below 2^-126."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    nearest = np.where(np.isnan(values), bits | 1 << 22, bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16
    found: npt.NDArray[np.uint32] = np.where(np.abs(values) < np.finfo(np.float32).tiny, 0, nearest).astype(np.uint32)
    return found


@dataclass(frozen=True)
class OfBytes(Products):
    """Products of bytes with whole numbers of 8 or 16 bits, four, two or one in an int."""

    low: int  # the whole number whose byte is 0
    together: Together
    sees: int = 0  # what the target multiplies is the byte less this
    subtracts: bool = False  # products from sums: weights are stored with the other sign

    def bias(self, texels: Float32Array, weights: Callable[[], Float32Array]) -> Float32Array:
        each = weights().sum(axis=1, dtype=np.float64)
        sums = np.zeros(texels.size)
        sums[: each.size] = each
        return _bits(texels.astype(np.float64) + (self.low + self.sees) * sums.reshape(texels.shape))

    def start(self, texel: Value) -> Value:
        return Bits(texel)

    def blocks(self, blocks: Float32Array) -> Float32Array:
        parts = np.moveaxis(blocks, -2, -1)  # (..., 4 out, 4 in)
        if self.together == 2:
            parts = parts[..., [0, 2, 1, 3]]
        words = parts.reshape(*parts.shape[:-1], _LANES // self.together, self.together)
        return np.moveaxis(self._joined(words), -1, -2)

    def taps(self, taps: Float32Array) -> Float32Array:
        if self.together == 1:
            return self._joined(taps[..., None])
        words = np.zeros((*taps.shape, self.together), taps.dtype)
        for lane in range(_LANES):
            words[..., lane, lane if self.together == _LANES else lane // 2] = taps[..., lane]
        return self._joined(words)

    def rows(self, matrix: Float32Array) -> Float32Array:
        """Weights (outputs, inputs) as (outputs, ints of as many inputs as are together)."""
        padded = np.pad(matrix, ((0, 0), (0, -matrix.shape[1] % self.together)))
        return self._joined(padded.reshape(len(matrix), -1, self.together))

    def _joined(self, weights: Float32Array) -> Float32Array:
        """The bits of ints of the weights along the last axis, the first in the lowest bits."""
        parts = np.negative(weights) if self.subtracts else weights
        return np.ascontiguousarray(parts, f"<i{4 // self.together}").view("<f4")[..., 0]

    def texels_of_block(self, lanes: int) -> int:
        return min(lanes, _LANES // self.together)  # the first and third channel are in one, or each in its own

    def of_block(self, value: Value, texels: Sequence[Value], lanes: int = _LANES) -> Value:
        return ByteProducts(value, tuple(texels), self.together, self.low)

    def of_lanes(self, value: Value, texel: Value) -> Value:
        return ByteProducts(value, (texel,), self.together, self.low, by_lanes=True)


def products_of_bytes(
    low: int, rows: Float32Array, bias: Float32Array, together: Together, is_signed: bool, subtracts: bool
) -> Products:
    """Those of bytes with weights, as a target computes them that takes so many in an int.

    Rows are (outputs, products) of a sum each. Of floats where one is no whole number, or a sum may be beyond ints.
    `is_signed`: it takes four bytes as -128 to 127, and has no instruction for two halves. `subtracts` is OfBytes'.
    """
    least, most = (float(rows.min()), float(rows.max())) if rows.size else (0.0, 0.0)
    if not all(np.array_equal(each, np.rint(each)) for each in (rows, bias)) or least <= -(1 << 15) or most >= 1 << 15:
        return FLOAT_PRODUCTS
    largest = max(-low, low + BYTE_VALUES - 1) * np.abs(rows).sum(axis=1, dtype=np.float64)
    if largest.max(initial=0.0) + np.abs(bias).max(initial=0.0) >= END_OF_INTS:
        return FLOAT_PRODUCTS
    if together == _LANES and (least < -128 or most > 127):
        together = 1 if is_signed else 2
    return OfBytes(low, together, 128 if is_signed and together == _LANES else 0, subtracts)


@dataclass(frozen=True)
class ScaledBytes:
    """A matrix of floats (outputs, inputs) that is whole numbers of 8 bits, each output's times a scale."""

    whole: npt.NDArray[np.int8]  # (outputs, inputs)
    scales: Float32Array  # (outputs,)

    def rows_from(self, first: int) -> "ScaledBytes":
        """Those of the outputs from a number on."""
        return ScaledBytes(self.whole[first:], self.scales[first:])


@np.errstate(all="ignore")  # what is not finite is equal to nothing
def scaled_bytes(matrix: Float32Array) -> ScaledBytes | None:
    """What a matrix was before its bytes were expanded; None where none gives the same floats, to the bit.

    Converters scale by the largest magnitude of a row, or of all, which becomes 127. Whole numbers have the scale 1, so
    that their sums stay exact; one magnitude alone is none of a converter's.
    """
    rows, most = np.abs(matrix).max(axis=1, initial=0), np.abs(matrix).max(initial=0)
    largest = [np.full_like(rows, _MOST_STEPS)] if np.array_equal(matrix, np.rint(matrix)) else [rows, rows * 0 + most]
    for each in largest:
        if _exact_scales(matrix[:_ROWS_TRIED], each[:_ROWS_TRIED]) is None:  # most have no such rows
            continue
        scales = _exact_scales(matrix, each)
        if scales is not None:
            whole = np.rint(matrix / scales[:, None]).astype(np.int8)
            has_several = bool(np.any((whole != 0) & (np.abs(whole) != _MOST_STEPS)))
            return ScaledBytes(whole, scales) if has_several or scales[0] == 1 else None
    return None


def _exact_scales(matrix: Float32Array, largest: Float32Array) -> Float32Array | None:
    """A scale of each row that makes it of whole numbers; a product with 127, rounded, comes from one of three."""
    usual = np.maximum(largest / np.float32(_MOST_STEPS), np.finfo(np.float32).tiny).astype(np.float32)
    scales = np.zeros_like(usual)
    for each in (usual, np.nextafter(usual, np.float32(0)), np.nextafter(usual, np.float32(np.inf))):
        whole = np.rint(matrix / each[:, None])
        is_exact = ((whole * each[:, None] == matrix) & (np.abs(whole) <= _MOST_STEPS)).all(axis=1)
        scales[is_exact] = each[is_exact]
        if scales.all():
            return scales
    return None


def _bits(values: npt.NDArray[Any]) -> Float32Array:
    """Whole numbers as the floats that have the same bits as ints; those beyond 32 bits begin again."""
    found: Float32Array = (np.rint(values).astype(np.int64) & 0xFFFFFFFF).astype(np.uint32).view(np.float32)
    return found
