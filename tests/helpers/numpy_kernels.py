"""A second reading, in NumPy, of the code of kernels (gpu_delegate/code/vocabulary.py): what it computes.

All threads run at once: an int or a float is an array with a value for each thread, a vec4 has four in its last axis.
Statements run one by one, so that what a thread stores is seen by no other.
"""

import operator
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.code.expressions import Slice
from texelflow.gpu_delegate.code.vocabulary import (
    AcrossLanes,
    AddTo,
    Assign,
    Choose,
    ChooseLanes,
    Declare,
    Element,
    Elementwise,
    ForEach,
    Inside,
    Keep,
    Lane,
    LoadFrom,
    Name,
    OnGrid,
    Operand,
    Operation,
    Repeated,
    Splat,
    Statement,
    StoreTo,
    Sum,
    Tap,
    Texel,
    Vector,
    Weight,
    When,
    type_of,
)

Values = npt.NDArray[Any]

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
    "both": np.logical_and,
    "float": np.float32,
    "int": np.int64,
}
ELEMENTWISE: Mapping[str, Callable[..., Values]] = {
    "RELU": lambda v: np.maximum(v, 0),
    "HARD_SWISH": lambda v: v * np.clip(v / 6 + 0.5, 0, 1),
    "LOGISTIC": lambda v: 1 / (1 + np.exp(-v)),
    "ADD": operator.add,
    "MUL": operator.mul,
}


class Threads:
    """The threads of one kernel: their variables, and the memory that they share; texels are (N, 4)."""

    def __init__(self, names: Mapping[str, Values], inputs: Mapping[str, Values], weights: Values) -> None:
        self.names = dict(names)
        self.inputs = inputs
        self.weights = weights
        self.active: Values = np.asarray(True)  # whether a thread's stores count: what else it does, no other sees
        self.stored: dict[str, dict[int, Values]] = {}

    def run(self, statements: Iterable[Statement]) -> None:
        for statement in statements:
            if isinstance(statement, ForEach):
                names = [name.name for name, _ in statement.over]
                for numbers in product(*(range(count) for _, count in statement.over)):
                    self.names |= dict(zip(names, map(np.asarray, numbers), strict=True))
                    self.run(statement.body)
            elif isinstance(statement, When):
                before, self.active = self.active, self.active & self.value(statement.condition)
                self.run(statement.body)
                self.active = before
            elif isinstance(statement, Declare | Assign):
                self.names[statement.name.name] = self.value(statement.value)
            elif isinstance(statement, AddTo):
                self.names[statement.name.name] = self.names[statement.name.name] + self.value(statement.value)
            elif isinstance(statement, StoreTo):
                self._store(statement)

    def _store(self, statement: StoreTo) -> None:
        places, target = self.value(statement.at), self.stored.setdefault(statement.target, {})
        values = np.asarray(self.value(statement.value), np.float32)
        for thread in np.flatnonzero(np.broadcast_to(self.active, places.shape)):
            target[int(places[thread])] = values[thread]

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
    Elementwise: lambda threads, code: ELEMENTWISE[code.op](*map(threads.value, code.operands)),
    Texel: lambda threads, code: threads.value(code.at) * code.pixels + threads.value(code.pixel),
    Element: _element,
    LoadFrom: lambda threads, code: threads.inputs[code.source][threads.value(code.at)],
    Weight: lambda threads, code: threads.weights[threads.value(code.at)],
}
