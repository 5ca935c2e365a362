"""What surrounds the code of a kernel: its memory, its tables, and which part of a map is printed."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .index_analysis import Known, Outline
from .ir import I32, I64, Function, Register, integer
from .lanes import NO_LOW, Affine, PlaneMemory
from .machine import CpuTarget


class Tables:
    """What is the same for all pixels of a column, or of a kernel, behind its weights; positions are in floats."""

    def __init__(self, start: int) -> None:
        self._start = start
        self._pieces: list[Known] = []
        self._places: dict[bytes, int] = {}
        self._own: dict[object, int] = {}

    def place(self, values: Known) -> int:
        """Where a table of int32 or float32 begins."""
        key = values.tobytes()
        if key not in self._places:
            self._places[key] = self._start
            self._pieces.append(values.view(np.float32))
            self._start += len(values)
        return self._places[key]

    def own_place(self, key: object, value: float, kind: str) -> int:
        """Where a number stands that a kernel of the same text may have another of, whatever its value."""
        if key not in self._own:
            self._own[key] = self._start
            self._pieces.append(np.array([value], np.int32 if kind == I32 else np.float32).view(np.float32))
            self._start += 1
        return self._own[key]

    @property
    def data(self) -> Known:
        """All tables, one behind the other."""
        return np.concatenate(self._pieces) if self._pieces else np.zeros(0, np.float32)


@dataclass(frozen=True)
class Region:
    """Part of a map: columns first ... last, and the first rows of groups by number."""

    columns: tuple[int, int]
    groups: slice


@dataclass(frozen=True)
class KernelContext:
    """What surrounds the code of a kernel."""

    outline: Outline
    rows: Known  # the first row of each group
    tables: Tables
    weights: Register
    memories: Mapping[str, PlaneMemory]  # by name
    plain: frozenset[str]  # outputs that are one plane
    target: CpuTarget
    lows: Mapping[int, Register]  # what stands for the byte 0 of its tensors
    channel: Register | None = None  # of a slice, where channels are computed one by one: pointers are those of the one

    def own_int(self, function: Function, key: object, value: int) -> Register:
        """An int that a kernel of the same text may have another of, from behind the weights; 0 stands in the text."""
        return own_int(function, self.tables, self.weights, key, value)


def own_int(function: Function, tables: Tables, weights: Register, key: object, value: int) -> Register:
    """KernelContext.own_int before there is one."""
    if value == 0:
        return NO_LOW
    return function.load(I32, function.at(weights, tables.own_place(key, value, I32)))


def first_of_block(function: Function, number: Register, together: int, whole: int) -> Affine:
    """Where a block of so many begins: the last one ends with the whole."""
    if whole <= together:
        return Affine(None, 0)
    first = function.binary("mul nsw", number, integer(together, I64)) if together > 1 else number
    if whole % together:
        first = function.call("llvm.smin.i64", I64, first, integer(whole - together, I64))
    return Affine(first, 0)
