"""Index analysis: what a kernel's positions and conditions are for each column or row, known before code is printed.

Positions under a window, whether they lie inside of a map, and places and weights of resizing depend on the column
alone or on the row alone. They are computed here, in NumPy, for the whole map, before any code is printed. So a printer
knows where all conditions hold, and there needs no code for them; elsewhere it may read a table.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ...code.expressions import Slice
from ...code.vocabulary import (
    X0,
    Y0,
    AddTo,
    Choose,
    Declare,
    Inside,
    LoadFrom,
    Name,
    OnGrid,
    Operand,
    Operation,
    Statement,
    Sum,
    Tap,
    Value,
    Weight,
    blocks_in,
    values_in,
)

Known = npt.NDArray[Any]  # with a value for each place of an axis, or one for all of them: int64, float32 or bool


def _divided(left: Known, right: Known) -> Known:
    if left.dtype.kind == "f":
        return np.asarray(left / right)
    return np.asarray(np.trunc(left / right).astype(np.int64))


_ARITHMETIC: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": _divided, "remainder": np.fmod,
        "minimum": np.minimum, "maximum": np.maximum,
        "clamp": lambda v, low, high: np.minimum(np.maximum(v, low), high),
        "floor": np.floor, "fraction": lambda v: v - np.floor(v), "less": np.less, "at least": np.greater_equal,
        "at most": np.less_equal, "equal": np.equal, "both": np.logical_and,
        "int": lambda v: np.trunc(v).astype(np.int64) if v.dtype.kind == "f" else v.astype(np.int64),
        "float": lambda v: v.astype(np.float32),
    }
)  # fmt: skip


class IndexAnalysis:
    """What depends on one axis alone, by value."""

    def __init__(self, variable: Name, places: Known, declared: Mapping[str, Operand]) -> None:
        self._variable = variable.name
        self._places = places
        self._declared = declared
        self._names: dict[str, Known | None] = {}

    def of(self, value: Operand) -> Known | None:
        """The value for each place of the axis; None where it depends on something else, or is a vector."""
        if isinstance(value, int | float):
            return np.asarray(value) if isinstance(value, bool | int) else np.asarray(value, np.float32)
        if isinstance(value, Name):
            return self._named(value.name)
        if isinstance(value, Slice):
            return self.of(value.at)
        if isinstance(value, Operation):
            operands = self._all(value.operands)
            return None if operands is None else np.asarray(_ARITHMETIC[value.operation](*operands))
        return self._longer(value)

    def _named(self, name: str) -> Known | None:
        if name == self._variable:
            return self._places
        if name not in self._names:
            self._names[name] = None
            if name in self._declared:
                self._names[name] = self.of(self._declared[name])
        return self._names[name]

    def _all(self, values: Iterable[Operand]) -> list[Known] | None:
        found = []
        for value in values:
            known = self.of(value)
            if known is None:
                return None
            found.append(known)
        return found

    def _longer(self, value: Value) -> Known | None:
        if isinstance(value, Sum):
            terms = self._all(term for term, _ in value.terms)
            if terms is None:
                return None
            factors = (factor for _, factor in value.terms)
            return reduce(np.add, map(np.multiply, terms, factors), np.asarray(value.constant))
        if isinstance(value, Inside | OnGrid):
            place = self.of(value.value)
            if place is None:
                return None
            if isinstance(value, Inside):
                return np.asarray((place >= 0) & (place < value.size))
            return np.asarray((place >= 0) & (place % value.stride == 0) & (place // value.stride < value.size))
        if isinstance(value, Choose) and value.type != "vec4":
            parts = self._all((value.condition, value.value, value.other))
            return None if parts is None else np.asarray(np.where(parts[0], parts[1], parts[2]))
        return None

    def undisturbed(self, values: Iterable[Value]) -> Known:
        """At which places of the axis no condition among the values fails, and no limit changes anything."""
        fine = np.ones(len(self._places), bool)
        for value in values:
            if isinstance(value, Inside) or _is_condition(value):
                holds = self.of(value)
            elif isinstance(value, Operation) and value.operation in ("clamp", "minimum", "maximum"):
                limited, free = self.of(value), self.of(value.operands[0])
                holds = None if limited is None or free is None else np.asarray(limited == free)
            else:
                continue
            if holds is not None and holds.dtype.kind == "b" and holds.ndim and _is_one_run(holds):
                fine &= holds
        return fine


def _is_condition(value: Value) -> bool:
    return isinstance(value, Operation) and value.operation in ("less", "at least", "at most")


def _is_one_run(holds: Known) -> bool:
    return int(np.count_nonzero(np.diff(np.flatnonzero(holds)) > 1)) == 0 and bool(holds.any())


def run_of(fine: Known) -> tuple[int, int]:
    """(first, behind the last) of the longest run of places that are fine; equal where there are none."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], fine.astype(np.int8), [0]])))
    if not len(edges):
        return 0, 0
    longest = int(np.argmax(edges[1::2] - edges[::2]))
    return int(edges[2 * longest]), int(edges[2 * longest + 1])


@dataclass(frozen=True)
class Outline:
    """What a kernel declares and computes, for both axes."""

    columns: IndexAnalysis
    rows: IndexAnalysis
    values: tuple[Value, ...]  # all that may be a limit or a condition

    @staticmethod
    def of(statements: Iterable[Statement], columns: int, first_rows: Known) -> "Outline":
        """Of a map with so many columns, whose groups begin at these rows."""
        statements = tuple(statements)
        declarations = (each for each in _simple(statements) if isinstance(each, Declare))
        declared = {each.name.name: each.value for each in declarations if each.name.type in _PLAIN}
        looked_at = (each for each in _simple(statements) if not _only_reads(each))
        found = tuple(v for each in looked_at for v in values_in(each) if isinstance(v, Inside | Operation))
        across, down = IndexAnalysis(X0, np.arange(columns), declared), IndexAnalysis(Y0, first_rows, declared)
        return Outline(across, down, found)


_PLAIN = ("int", "bool", "float")


def _only_reads(statement: Statement) -> bool:
    """Whether it multiplies, or reads memory at positions that have names: limits are in the names' declarations."""
    if isinstance(statement, Declare):
        value = statement.value
        return isinstance(value.value if isinstance(value, Tap) else value, LoadFrom | Weight)
    return isinstance(statement, AddTo)


def _simple(statements: Iterable[Statement]) -> Iterator[Statement]:
    """Those of all blocks."""
    for statement in statements:
        blocks = blocks_in(statement)
        for block in blocks:
            yield from _simple(block)
        if not blocks:
            yield statement
