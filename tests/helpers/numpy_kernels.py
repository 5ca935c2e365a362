"""A second reading, in NumPy, of the code of kernels (gpu_delegate/code/vocabulary.py): what it computes.

All threads run at once: an int or a float is an array with a value for each thread, a vec4 has four in its last axis.
Statements run one by one. What a thread stores in an output is seen by no other; what it stores in its work-group's
shared memory others may touch only after they have waited for each other: else the order of threads would matter.
"""

import operator
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.code.expressions import Slice
from texelflow.gpu_delegate.code.vocabulary import (
    AcrossLanes,
    AddTo,
    Argument,
    Assign,
    Choose,
    ChooseLanes,
    Declare,
    Element,
    Elementwise,
    ForEach,
    ForRange,
    GridIndex,
    Inside,
    Keep,
    Lane,
    Leave,
    LoadFrom,
    Name,
    Not,
    OnGrid,
    Operand,
    Operation,
    Repeated,
    Reserve,
    Shared,
    Splat,
    Statement,
    StoreShared,
    StoreTo,
    Sum,
    Synchronize,
    Tap,
    Texel,
    Vector,
    Weight,
    When,
    type_of,
)

Values = npt.NDArray[Any]
NOBODY, MANY = -1, 1 << 30  # below and above all threads

OPERATIONS: Mapping[str, Callable[..., Any]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "remainder": operator.mod,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "clamp": np.clip,
    "floor": np.floor,
    "fraction": lambda a: a - np.floor(a),
    "less": operator.lt,
    "at least": operator.ge,
    "at most": operator.le,
    "equal": operator.eq,
    "both": np.logical_and,
    "either": np.logical_or,
    "float": np.float32,
    "int": np.int64,
    "hard swish": lambda v: v * np.clip(v / 6 + 0.5, 0, 1),
    "logistic": lambda v: 1 / (1 + np.exp(-v)),
    "hyperbolic tangent": np.tanh,
    "exponential": np.exp,
}


@dataclass(frozen=True)
class Grid:
    """All threads of a kernel, group by group: the number of each one's group, and its places by GridIndex."""

    group: Values
    places: Mapping[tuple[str, str], Values]

    @property
    def names(self) -> dict[str, Values]:
        """Variables that every kernel has."""
        return {"thread": self.places["thread in group", "index"]}


def grid_of_threads(groups: Sequence[int], local: Sequence[int]) -> Grid:
    """Threads of so many work-groups, each of so many threads, along (x, y, z)."""
    z, y, x, c, b, a = (axis.ravel() for axis in np.indices((*groups[::-1], *local[::-1])))
    places = {("thread in group", "index"): (c * local[1] + b) * local[0] + a}
    for axis, group, own, side in zip("xyz", (x, y, z), (a, b, c), local, strict=True):
        places |= {("group", axis): group, ("thread in group", axis): own, ("thread", axis): group * side + own}
    return Grid((z * groups[1] + y) * groups[0] + x, places)


class RaceError(Exception):
    """What a kernel computes depends on the order of its threads."""


class SharedArray:
    """An array of vec4s of each work-group, and which threads have touched each of them since they last waited."""

    def __init__(self, groups: int, texels: int) -> None:
        self.values = np.full((groups, texels, 4), np.nan, np.float32)
        self.synchronize()

    def synchronize(self) -> None:
        shape = self.values.shape[:2]
        self._writer = np.full(shape, NOBODY)
        self._least_reader, self._greatest_reader = np.full(shape, MANY), np.full(shape, NOBODY)

    def read(self, group: Values, at: Values, thread: Values) -> Values:
        """Raises RaceError if another thread has written there since threads last waited."""
        writer = self._writer[group, at]
        if ((writer != NOBODY) & (writer != thread)).any():
            raise RaceError("a thread reads what another one may not have written")
        np.minimum.at(self._least_reader, (group, at), thread)
        np.maximum.at(self._greatest_reader, (group, at), thread)
        found: Values = self.values[group, at]
        return found

    def write(self, group: Values, at: Values, thread: Values, values: Values) -> None:
        """Raises RaceError if another thread has read or written there since threads last waited, or writes, too."""
        writer, least, greatest = (
            each[group, at] for each in (self._writer, self._least_reader, self._greatest_reader)
        )
        is_read = (least < thread) | (greatest > thread)
        if (is_read | ((writer != NOBODY) & (writer != thread))).any():
            raise RaceError("a thread writes where others read or write")
        if len(np.unique(group * self.values.shape[1] + at)) < len(at):
            raise RaceError("two threads write to one place")
        self._writer[group, at] = thread
        self.values[group, at] = values


class Threads:
    """The threads of one kernel: their variables, and the memory that they share; texels are (N, 4)."""

    def __init__(
        self,
        names: Mapping[str, Values],
        inputs: Mapping[str, Values],
        weights: Values,
        grid: Grid | None = None,
        shared: Mapping[str, int] | None = None,
    ) -> None:
        """`names` are variables that threads begin with; kernels that ask where threads are in the grid need that."""
        self.names = ChainMap({**(grid.names if grid else {}), **names})
        self.inputs = inputs
        self.weights = weights
        self.count = len(grid.group) if grid else max((np.size(each) for each in names.values()), default=1)
        self.grid = grid or Grid(np.zeros(self.count, np.int64), {})
        groups = int(self.grid.group.max()) + 1
        self.shared = {name: SharedArray(groups, texels) for name, texels in (shared or {}).items()}
        self.active: Values = np.ones(self.count, bool)  # whether what a thread does counts
        self.left: Values = np.zeros(self.count, bool)  # whether it has ended
        self.stored: dict[str, dict[int, Values]] = {}
        self.arguments: list[Any] = []  # of the elementwise op that is read

    def run(self, statements: Iterable[Statement]) -> None:
        for statement in statements:
            if isinstance(statement, ForEach):
                names = [name.name for name, _ in statement.over]
                for numbers in product(*(range(count) for _, count in statement.over)):
                    with self._block(self.active):
                        self.names |= dict(zip(names, map(np.asarray, numbers), strict=True))
                        self.run(statement.body)
            elif isinstance(statement, ForRange):
                self._range(statement)
            elif isinstance(statement, When):
                holds = self._each(statement.condition)
                for condition, body in ((holds, statement.body), (~holds, statement.otherwise)):
                    with self._block(self.active & condition):
                        self.run(body)
            elif isinstance(statement, Declare):
                self.names[statement.name.name] = self.value(statement.value)
            elif isinstance(statement, Reserve):
                self.names |= {name.name: np.full((self.count, 4), np.nan, np.float32) for name in statement.names}
            elif isinstance(statement, Assign):
                self._assign(statement.name, self.value(statement.value))
            elif isinstance(statement, AddTo):
                self._assign(statement.name, self.names[statement.name.name] + self.value(statement.value))
            elif isinstance(statement, StoreTo):
                self._store(statement)
            elif isinstance(statement, StoreShared):
                self._store_shared(statement)
            elif isinstance(statement, Synchronize):
                assert self.active.all(), "threads wait for others that pass by"
                for array in self.shared.values():
                    array.synchronize()
            else:
                assert isinstance(statement, Leave)
                self.left = self.left | (self.active & self.value(statement.condition))
                self.active = self.active & ~self.left

    @contextmanager
    def _block(self, active: Values) -> Iterator[None]:
        """Braces: for some threads, and what is declared inside is known only there."""
        before, self.active = self.active, active & ~self.left
        self.names = self.names.new_child()
        yield
        self.names = self.names.parents
        self.active = before & ~self.left

    def _range(self, statement: ForRange) -> None:
        number = self._each(statement.start)
        while (going := self.active & (number < self.value(statement.limit))).any():
            with self._block(going):
                self.names[statement.name.name] = number
                self.run(statement.body)
            number = number + statement.step

    def _each(self, code: Operand) -> Values:
        """A number or condition of every thread."""
        return np.broadcast_to(self.value(code), (self.count,))

    def _assign(self, name: Name, value: Any) -> None:
        """Another value in the threads that do it."""
        scope = next(each for each in self.names.maps if name.name in each)
        active = self.active[:, None] if name.type == "vec4" else self.active
        scope[name.name] = np.where(active, value, scope[name.name])

    def _store(self, statement: StoreTo) -> None:
        target = self.stored.setdefault(statement.target, {})
        places = self._each(statement.at)
        width = 4 if type_of(statement.value) == "vec4" else 1
        values = np.asarray(self.value(statement.value), np.float32)
        values = np.broadcast_to(values.reshape(-1, width), (self.count, width))
        for thread in np.flatnonzero(self.active):
            target[int(places[thread])] = values[thread]

    def _store_shared(self, statement: StoreShared) -> None:
        active = self.active
        at = self._each(statement.at)
        values = np.broadcast_to(self.value(statement.value), (self.count, 4))
        thread = self.names["thread"]
        self.shared[statement.array].write(self.grid.group[active], at[active], thread[active], values[active])

    def read(self, texels: Values, at: Operand) -> Values:
        """Texels by number; what threads would read that do not count is any."""
        places = self._each(at)
        inside = (places >= 0) & (places < len(texels))
        assert (inside | ~self.active).all(), "a thread reads outside of memory"
        found: Values = texels[np.where(inside, places, 0)]
        return found

    def read_shared(self, code: Shared) -> Values:
        """The same of shared memory, where only what counts is read."""
        found = np.full((self.count, 4), np.nan, np.float32)
        active, at = self.active, self._each(code.at)
        assert (at[active] >= 0).all(), "a thread reads outside of shared memory"
        found[active] = self.shared[code.array].read(self.grid.group[active], at[active], self.names["thread"][active])
        return found

    def value(self, code: Operand) -> Any:
        """What a value is for each thread."""
        if isinstance(code, int | float):
            return np.float32(code) if isinstance(code, float) else code
        return _MEANINGS[type(code)](self, code)

    def vector(self, code: Operand) -> Any:
        """The same with an axis of lanes, for arithmetic with vectors."""
        value = self.value(code)
        return value if type_of(code) in ("vec2", "vec4") or np.ndim(value) == 0 else value[..., None]


def _operation(threads: Threads, code: Operation) -> Any:
    read = threads.vector if code.type in ("vec2", "vec4") else threads.value
    operands = [read(each) for each in code.operands]
    if code.operation == "divide":
        return operands[0] // operands[1] if code.type == "int" else operands[0] / operands[1]
    return OPERATIONS[code.operation](*operands)


def _keep(threads: Threads, code: Keep) -> Any:
    left = code.channels - 4 * np.asarray(threads.value(code.at))
    return np.where(np.arange(4) < left[..., None], threads.value(code.value), np.float32(code.other or 0.0))


def _element(threads: Threads, code: Element) -> Any:
    first, *others = map(threads.value, code.at)
    for at, length in zip(others, code.lengths, strict=True):
        first = first * length + at
    return code.base + first


def _chosen(threads: Threads, condition: Operand, value: Operand, other: Operand) -> Any:
    holds = np.asarray(threads.value(condition))
    if type_of(value) == "vec4":
        holds = holds[..., None]
    return np.where(holds, threads.value(value), threads.value(other))


def _chosen_lanes(threads: Threads, code: ChooseLanes) -> Any:
    left, right, value, other = map(threads.value, (code.left, code.right, code.value, code.other))
    return np.where(OPERATIONS[code.comparison](left, right), value, other)


def _elementwise(threads: Threads, code: Elementwise) -> Any:
    before, threads.arguments = threads.arguments, [*map(threads.value, (*code.operands, *code.constants))]
    found, threads.arguments = threads.value(code.arithmetic), before
    return found


def _on_grid(threads: Threads, code: OnGrid) -> Any:
    value = threads.value(code.value)
    return (value >= 0) & (value % code.stride == 0) & (value < code.stride * code.size)


def _lane(threads: Threads, code: Lane) -> Any:
    value, lane = threads.value(code.value), threads.value(code.lane)
    return value[..., lane] if isinstance(lane, int) else np.take_along_axis(value, lane[..., None], -1)[..., 0]


def _vector(threads: Threads, code: Vector) -> Any:
    return np.stack(np.broadcast_arrays(*map(threads.value, code.lanes)), -1)


def _across(threads: Threads, code: AcrossLanes) -> Any:
    value = threads.value(code.value)
    return reduce(OPERATIONS[code.operation], (value[..., lane] for lane in range(4)))


_MEANINGS: Mapping[type, Callable[[Threads, Any], Any]] = {
    Name: lambda threads, code: threads.names[code.name],
    Slice: lambda threads, code: threads.value(code.at),
    Operation: _operation,
    Sum: lambda threads, code: sum((threads.value(v) * k for v, k in code.terms), start=code.constant),
    Inside: lambda threads, code: (threads.value(code.value) >= 0) & (threads.value(code.value) < code.size),
    OnGrid: _on_grid,
    Lane: _lane,
    Vector: _vector,
    Splat: lambda threads, code: np.full(4, code.value, np.float32),
    Repeated: lambda threads, code: threads.value(code.value)[..., :1].repeat(4, -1),
    AcrossLanes: _across,
    Keep: _keep,
    Choose: lambda threads, code: _chosen(threads, code.condition, code.value, code.other),
    ChooseLanes: _chosen_lanes,
    Tap: lambda threads, code: _chosen(threads, code.valid, code.value, code.outside),
    Argument: lambda threads, code: threads.arguments[code.number],
    Elementwise: _elementwise,
    Texel: lambda threads, code: threads.value(code.at) * code.pixels + threads.value(code.pixel),
    Element: _element,
    LoadFrom: lambda threads, code: threads.read(threads.inputs[code.source], code.at),
    Weight: lambda threads, code: threads.read(threads.weights, code.at),
    Shared: lambda threads, code: threads.read_shared(code),
    Not: lambda threads, code: np.logical_not(threads.value(code.condition)),
    GridIndex: lambda threads, code: threads.grid.places[code.of, code.axis],
}
