"""Tables that the kernels of a frame read: sample positions and weights along axes, as words in memory.

Kernels of a frame (sampler.py, mask_resize.py) have the signature of all kernels, void(ptr tensors, ptr weights,
i32 y0, i32 y1, i32 z0, i32 z1), but `tensors` and `weights` are arrays of 64-bit words here: addresses and whole
numbers. So one function serves all sizes.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...model.packing import Float32Array
from . import ir
from .ir import I32, I64, POINTER, Function, Register

WORD_BYTES = 8
Word = int | npt.NDArray[np.int32] | Float32Array


@dataclass(frozen=True)
class Neighbors:
    """For each sampled place along an axis of `extent` samples those that it mixes, which follow each other.

    Places outside are the sample at the edge.
    """

    extent: int
    first: npt.NDArray[np.int64]  # (places,)
    weights: Float32Array  # (samples mixed, places)

    @property
    def mixed(self) -> int:
        """Samples for each place."""
        return len(self.weights)

    def inside(self, nth: int) -> npt.NDArray[np.int32]:
        """The nth sample of each place, none outside."""
        return np.clip(self.first + nth, 0, self.extent - 1).astype(np.int32)

    def near(self) -> npt.NDArray[np.int32]:
        """The first sample of each place, at most `mixed` outside."""
        return np.clip(self.first, -self.mixed, self.extent).astype(np.int32)


class WordTable:
    """Words in memory, which must outlive every call that reads them; arrays among them are kept, and stand as such."""

    def __init__(self, words: Sequence[Word]) -> None:
        self._kept = [word if isinstance(word, int) else np.ascontiguousarray(word) for word in words]
        values = [word if isinstance(word, int) else word.ctypes.data for word in self._kept]
        self._words = (ctypes.c_uint64 * len(values))(*values)

    def __setitem__(self, index: int, value: int) -> None:
        self._words[index] = value

    @property
    def address(self) -> int:
        """Where the words begin."""
        return ctypes.addressof(self._words)


class WordReader:
    """Reads words one after the other at a function's beginning."""

    def __init__(self, function: Function, table: Register) -> None:
        self._function, self._table, self._next = function, table, 0

    def pointer(self) -> Register:
        """The next word, an address."""
        return self._load(POINTER)

    def long(self) -> Register:
        """The next word, a whole number of 64 bits."""
        return self._load(I64)

    def number(self) -> Register:
        """The next word, a whole number of 32 bits."""
        return self._function.convert("trunc", self.long(), I32)

    def _load(self, kind: str) -> Register:
        word = self._function.load(kind, self._function.at(self._table, self._next, I64), WORD_BYTES)
        self._next += 1
        return word


def least(function: Function, left: Register, right: Register) -> Register:
    """The smaller one of two whole numbers."""
    return function.choose(function.compare("icmp slt", left, right), left, right)


def gathered(function: Function, base: Register, places: Sequence[Register], distance: int = 0) -> Register:
    """A vector of floats that lie `distance` behind some places of memory, loaded one by one."""
    start = function.at(base, distance) if distance else base
    values = [function.load(ir.FLOAT, function.at(start, place)) for place in places]
    if len(values) == 1:
        return values[0]
    kind, made = ir.vector(ir.FLOAT, len(values)), "poison"
    for lane, value in enumerate(values):
        made = function.give(f"insertelement {kind} {made}, {value.operand}, i32 {lane}", kind).text
    return Register(made, kind)


def transposed(function: Function, rows: Sequence[Register]) -> list[Register]:
    """Four vectors of four floats, rows and columns exchanged."""
    a, b, c, d = rows
    low = [function.shuffle(left, right, (0, 4, 1, 5)) for left, right in ((a, b), (c, d))]
    high = [function.shuffle(left, right, (2, 6, 3, 7)) for left, right in ((a, b), (c, d))]
    halves = (0, 1, 4, 5), (2, 3, 6, 7)
    return [function.shuffle(upper, lower, half) for upper, lower in (low, high) for half in halves]


def joined(function: Function, parts: Sequence[Register]) -> Register:
    """Vectors of one length, a power of two of them, one behind the other."""
    while len(parts) > 1:
        lanes = range(2 * ir.lanes_of(parts[0].type))
        parts = [function.shuffle(*pair, lanes) for pair in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]
