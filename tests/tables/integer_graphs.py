"""Graphs of ops on int32 that a model makes of floats, many in each: results are exact."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.model_files.sketch import GraphCase, Shape, Sketch

BOTH_SIGNS = 60.0  # of random inputs, which become integers


def integer_graphs() -> Iterator[GraphCase]:
    """All of them."""
    for shape in ((1, 3, 7, 1), (3, 2, 5, 5)):
        yield _row("FLOOR_DIV", f"int32 {_text(shape)}: quotients", _quotients, shape)
    for shape in ((1, 3, 5, 13), (3, 2, 3, 4)):
        yield _row("ADD", f"int32 {_text(shape)}: sums and extremes", _sums, shape)
    yield _row("SELECT", "int32 3x2x5x3: comparisons and choices", _choices, (3, 2, 5, 3))
    yield _row("SUM", "int32 3x2x5x3: reductions", _reduced, (3, 2, 5, 3))
    for axes in ((3,), (1, 2)):
        yield _row("SUM", f"int32 over {axes}", partial(_folded, axes=axes), (3, 4, 5, 5))
    yield _row("MUL", "int32 up to 2^24", _large, (2, 3, 5))
    yield _row("CAST", "uint8 and int8 without a scale", _bytes, (1, 3, 5, 3))


def _row(op: str, what: str, draw: Any, shape: Shape) -> GraphCase:
    return GraphCase(op, what, lambda m: draw(m, shape), tolerance=0.0, low=-BOTH_SIGNS, high=BOTH_SIGNS)


def _text(shape: Shape) -> str:
    return "x".join(map(str, shape))


def whole(m: Sketch, x: int, low: int = -50, high: int = 60) -> int:
    """A tensor of floats as integers within limits."""
    return clipped(m, cast(m, x, "int32"), low, high)


def cast(m: Sketch, x: int, dtype: str) -> int:
    return m.unary("CAST", x, dtype=dtype)


def clipped(m: Sketch, x: int, low: int, high: int) -> int:
    above = m.binary("MAXIMUM", x, integers(m, low), dtype="int32")
    return m.binary("MINIMUM", above, integers(m, high), dtype="int32")


def integers(m: Sketch, values: Any) -> int:
    return m.constant(values, "int32")


def _quotients(m: Sketch, shape: Shape) -> tuple[int, ...]:
    """Of all signs, by maps, by constants for each channel, and of constants."""
    x, y = whole(m, m.input(shape)), m.input(shape)
    above, below = whole(m, y, 1, 40), whole(m, y, -40, -1)
    divisors = integers(m, m.rng.integers(1, 9, shape[-1:]))
    found = []
    for op in ("DIV", "FLOOR_DIV", "FLOOR_MOD"):
        found += [m.binary(op, x, by, dtype="int32") for by in (above, below, divisors, integers(m, -7))]
        found.append(m.binary(op, integers(m, 59), above, dtype="int32"))
    return tuple(found)


def _sums(m: Sketch, shape: Shape) -> tuple[int, ...]:
    x, y = whole(m, m.input(shape)), whole(m, m.input((*shape[:-1], 1)))
    found = [m.binary(op, x, y, dtype="int32") for op in ("ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM")]
    found.append(m.binary("ADD", x, x, dtype="int32", activation="RELU6"))
    found.append(m.binary("SQUARED_DIFFERENCE", x, y, dtype="int32"))
    found += [m.unary(op, x, dtype="int32") for op in ("NEG", "ABS")]
    found.append(m.op("ADD_N", [x, x, found[0]], shape, "int32"))
    return tuple(found)


def _choices(m: Sketch, shape: Shape) -> tuple[int, ...]:
    x, y = whole(m, m.input(shape), -3, 3), whole(m, m.input(shape), -2, 4)
    ops = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
    truths = [m.binary(op, x, y, dtype="bool") for op in ops]
    same = m.binary("EQUAL", truths[2], truths[3], dtype="bool")
    chosen = [m.op(op, [truths[4], x, y], shape, "int32") for op in ("SELECT", "SELECT_V2")]
    bits = m.op("SELECT_V2", [truths[0], truths[2], truths[5]], shape, "bool")
    return (*truths, same, *chosen, bits, cast(m, same, "int32"), cast(m, chosen[0], "float32"))


def _folded(m: Sketch, shape: Shape, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Products of few small numbers, and of more with a zero among them."""
    x, small = whole(m, m.input(shape)), whole(m, m.input(shape[1:]), -1, 1)
    found = [m.reduce(op, x, axes, dtype="int32") for op in ("SUM", "REDUCE_MAX", "REDUCE_MIN")]
    return (*found, m.reduce("REDUCE_PROD", small, axes[:1] if len(axes) > 1 else (2,), dtype="int32"))


def _large(m: Sketch, shape: Shape) -> tuple[int, ...]:
    """As large as float32 has all integers, and divided by numbers near to them."""
    x = m.binary("MUL", whole(m, m.input(shape), -4095, 4095), integers(m, 4095), dtype="int32")
    y = m.binary("ADD", x, whole(m, m.input(shape), 0, 60), dtype="int32")
    by = clipped(m, m.binary("ADD", m.unary("ABS", x, dtype="int32"), integers(m, 1), dtype="int32"), 1, 1 << 23)
    ops = ("DIV", "FLOOR_DIV", "FLOOR_MOD")
    return (x, y, *(m.binary(op, a, b, dtype="int32") for op in ops for a, b in ((y, by), (y, integers(m, 4095)))))


def _bytes(m: Sketch, shape: Shape) -> tuple[int, ...]:
    """Bytes that are no steps of a scale are integers."""
    constants = [m.constant(m.rng.integers(0, 100, shape), dtype) for dtype in ("uint8", "int8")]
    found = [m.binary("ADD", cast(m, each, "float32"), m.input(shape)) for each in constants]
    return (*found, m.binary("ADD", cast(m, constants[1], "int32"), whole(m, m.input(shape)), dtype="int32"))


def _reduced(m: Sketch, shape: Shape) -> tuple[int, ...]:
    """Integers that are added, compared, counted and sorted."""
    x, small, ones = whole(m, m.input(shape)), whole(m, m.input(shape), -2, 3), whole(m, m.input(shape), 0, 1)
    axes = ((3,), (1, 2), (0, 1, 2, 3))
    found = [m.reduce(op, x, each, dtype="int32") for op in ("SUM", "REDUCE_MAX", "REDUCE_MIN") for each in axes]
    found += [m.reduce("REDUCE_PROD", small, each, dtype="int32") for each in ((1,), (3,))]
    found += [m.extremum("ARG_MAX", x), m.extremum("ARG_MIN", small, 1), *m.top(small, 3)]
    return (*found, m.running_sum(ones, 3), m.running_sum(x, 1, exclusive=True))
