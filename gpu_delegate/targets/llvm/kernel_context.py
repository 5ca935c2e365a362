"""What surrounds the code of a kernel: its memory, its tables, and which part of a map is printed."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .index_analysis import Known, Outline
from .ir import I32, Register
from .lanes import PlaneMemory


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
    channel: Register | None = None  # of a slice, where channels are computed one by one: pointers are those of the one
