"""Index expressions against plain arithmetic: their values, their bounds, and their text with the meaning of C."""

import re
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texelflow.gpu_delegate.code.indices import Index, Validity
from texelflow.gpu_delegate.code.vocabulary import Name, Operand, Operation, Value
from texelflow.gpu_delegate.targets.glsl.print_glsl import glsl

Places = npt.NDArray[np.int64]
Values = Mapping[str, Places]
Known = tuple[Index, Callable[[Values], Places]]  # an index, and what it is for values of the variables

COMPARISONS: Mapping[str, Callable[..., npt.NDArray[np.bool_]]] = {
    "less": np.less,
    "at least": np.greater_equal,
    "at most": np.less_equal,
}
VARIABLES = {"x": (0, 6), "y": (2, 5), "z0": (-3, 4)}

NOTHING: Known = Index.of(0), lambda values: np.zeros(1, np.int64)


class Int:
    """What GLSL's int does with two numbers, for many at once."""

    def __init__(self, values: "Places | int") -> None:
        self.values = np.asarray(values)

    def __add__(self, other: "Int") -> "Int":
        return Int(self.values + other.values)

    def __sub__(self, other: "Int") -> "Int":
        return Int(self.values - other.values)

    def __mul__(self, other: "Int") -> "Int":
        return Int(self.values * other.values)

    def __neg__(self) -> "Int":
        return Int(-self.values)

    def __truediv__(self, other: "Int") -> "Int":
        return Int(np.trunc(self.values / other.values).astype(np.int64))

    def __mod__(self, other: "Int") -> "Int":
        assert self.values.min() >= 0, "the remainder of a negative number is undefined"
        return Int(self.values % other.values)


FUNCTIONS: Mapping[str, Callable[..., Int]] = {
    "Int": Int,
    "min": lambda a, b: Int(np.minimum(a.values, b.values)),
    "max": lambda a, b: Int(np.maximum(a.values, b.values)),
    "clamp": lambda v, low, high: Int(np.clip(v.values, low.values, high.values)),
}


def evaluate(code: Operand, values: Values) -> Places:
    """An expression of ints, as GLSL says it."""
    text = glsl(code)
    names = {name: Int(numbers) for name, numbers in values.items()}
    found = eval(re.sub(r"(?<![\w.])(\d+)", r"Int(\1)", text), {**FUNCTIONS, **names})
    return np.asarray(found.values)


def grown(of: Known, step: tuple[str, int, int, bool], other: Known) -> Known:
    """One more operation, or the index as it is where the operation cannot take it."""
    (index, value), (op, first, second, flag) = of, step
    low, high, size = min(first, second), max(first, second), abs(first) + 2
    if op == "times":
        return index.times(second), lambda values: value(values) * second
    if op == "clamped":
        return index.clamped(low, high), lambda values: np.clip(value(values), low, high)
    if op in ("over", "modulo"):  # of something with a multiple of the divisor
        index, value = added(of, (other[0].times(size), lambda values: other[1](values) * size), second)
        if index.low < 0:
            return of
        quotient = op == "over"
        return index.over(size) if quotient else index.modulo(
            size
        ), lambda values: value(values) // size if quotient else value(values) % size
    if op == "mirrored":  # what reaches beyond both ends by less than all of it
        size = (index.high - index.low) // 2 + abs(first) + 1
        index, value = added(of, NOTHING, -index.low - abs(second) % size)
        if -size < index.low - (not flag) and index.high < 2 * size - (not flag):
            return index.mirrored(size, flag), lambda values: reflected(value(values), size, flag)
        return of
    return added(of, other, second)


def added(of: Known, other: Known, offset: int) -> Known:
    (index, value), (index_of_other, value_of_other) = of, other
    return index.plus(index_of_other).plus(offset), lambda values: value(values) + value_of_other(values) + offset


def reflected(place: Places, size: int, symmetric: bool) -> Places:
    ends = list(range(size))
    back = ends[::-1] if symmetric else ends[-2::-1]
    before = ends[::-1] if symmetric else ends[:0:-1]
    return np.take(before + ends + back, place + len(before))


def start(name: str) -> Known:
    return Index.variable(Name(name, "int"), *VARIABLES[name]), lambda values: values[name]


OPS = ("plus", "times", "clamped", "over", "modulo", "mirrored")
STEPS = st.tuples(st.sampled_from(OPS), st.integers(-9, 9), st.integers(-9, 9), st.booleans())
NAMES = st.sampled_from(sorted(VARIABLES))


@st.composite
def sums(draw: st.DrawFn) -> Known:
    """Of multiples of variables, and a number that makes it begin near zero."""
    found, value = start(draw(NAMES))
    factors = [draw(st.sampled_from((-4, -1, 1, 2, 3, 4, 6, 8))) for _ in range(draw(st.integers(1, 3)))]
    others = [start(draw(NAMES)) for _ in factors]
    for factor, (index, _) in zip(factors, others, strict=True):
        found = found.plus(index.times(factor))
    offset = draw(st.integers(-2, 4)) - found.low
    return (
        found.plus(offset),
        lambda values: (
            value(values) + sum(f * other(values) for f, (_, other) in zip(factors, others, strict=True)) + offset
        ),
    )


@st.composite
def indices(draw: st.DrawFn) -> Known:
    found = draw(sums())
    for _ in range(draw(st.integers(1, 5))):
        found = grown(found, draw(STEPS), draw(sums()))
    return found


RANGES = [np.arange(low, high + 1) for low, high in VARIABLES.values()]
ALL: Values = dict(zip(VARIABLES, map(np.ravel, np.meshgrid(*RANGES)), strict=True))


def check(index: Index, wanted: Places) -> None:
    names = dict[Value, Name]()
    assert index.low <= wanted.min()
    assert wanted.max() <= index.high
    assert np.all(evaluate(index.code, ALL) == wanted)
    assert index.value is None or np.all(wanted == index.value)
    short = index.with_names(lambda code: names.setdefault(code, Name(f"j{len(names)}", "int")))
    named = {name.name: evaluate(code, ALL) for code, name in names.items()}
    assert np.all(evaluate(short.code, {**ALL, **named}) == wanted)


@settings(max_examples=300, deadline=None)
@given(indices())
def test_expressions_are_what_they_say(known: Known) -> None:
    index, value = known
    check(index, value(ALL))


@pytest.mark.parametrize("divisor", range(1, 9))
def test_quotients_and_remainders(divisor: int) -> None:
    """Of a multiple of the divisor, more than that, and any number that does not make it negative."""
    x, y = start("x"), start("y")
    for factor in (-1, 1, 3):
        for offset in range(-2 * divisor - 3 * factor, 12, 1 + divisor // 3):
            index = x[0].times(factor).plus(y[0].times(divisor)).plus(offset)
            if index.low >= 0:
                numbers = ALL["x"] * factor + ALL["y"] * divisor + offset
                check(index.over(divisor), numbers // divisor)
                check(index.modulo(divisor), numbers % divisor)


@pytest.mark.parametrize("symmetric", [False, True], ids=["reflected", "symmetric"])
def test_mirrors(symmetric: bool) -> None:
    x, _ = start("x")
    for size in range(4, 8):
        for offset in range(1 - size - symmetric, 2 * size - 7):
            check(x.plus(offset).mirrored(size, symmetric), reflected(ALL["x"] + offset, size, symmetric))


def parts_of(condition: Validity) -> list[Operation]:
    """The comparisons that a condition consists of."""
    if isinstance(condition, bool):
        return []
    assert isinstance(condition, Operation)
    if condition.operation != "both":
        return [condition]
    return [part for operand in condition.operands if isinstance(operand, Value) for part in parts_of(operand)]


@settings(max_examples=200, deadline=None)
@given(indices(), st.integers(-2, 2), st.integers(0, 9), st.booleans())
def test_conditions_are_what_they_say(known: Known, offset: int, length: int, ends: bool) -> None:
    index, value = known
    low, wanted = (index.high if ends else index.low) + offset, value(ALL)
    inside = (low <= wanted) & (wanted <= low + length)
    for condition, holds in ((index.below(low), wanted < low), (index.inside(low, low + length), inside)):
        found = np.full(1, condition is not False)
        for part in parts_of(condition):
            left, right = part.operands
            found = found & COMPARISONS[part.operation](evaluate(left, ALL), right)
        assert np.all(found == holds)
