"""Rows of the table of op cases for ops that compute value by value, and for reductions."""

from collections.abc import Iterator
from functools import partial
from itertools import cycle
from typing import Any

from tests.model_files.sketch import OpCase, Shape, Sketch

CHANNELS = (1, 3, 5, 13)  # that leave lanes of a texel empty


def value_by_value() -> Iterator[OpCase]:
    """All of them."""
    yield from _unary()
    yield from _binary()
    yield from _prelu()
    yield from _comparisons()
    yield from _choices()
    for dtype in ("int32", "bool", "float32"):
        yield OpCase("CAST", f"float32 to {dtype} and back", lambda m, to=dtype: _cast(m, _cast(m, _whole(m), to)))
    yield OpCase("CAST", "fractions to int32", lambda m: _cast(m, m.image(4, 6, 13), "int32"), low=-1e6, high=1e6)
    yield OpCase("CAST", "bool to float32", lambda m: m.binary("MUL", _cast(m, _conditions(m)[0]), m.image(4, 6, 5)))
    yield OpCase("CAST", "bool to int32", lambda m: _cast(m, _conditions(m)[0], "int32"))
    for count in (2, 3, 20):
        yield OpCase("ADD_N", f"of {count}", lambda m, n=count: m.op("ADD_N", _images(m, n), (1, 4, 5, 3)))


def _images(m: Sketch, count: int) -> list[int]:
    return [m.image(4, 5, 3) for _ in range(count)]


def _unary() -> Iterator[OpCase]:
    def row(op: str, channels: int, low: float = -4.0, high: float = 4.0, **options: Any) -> OpCase:
        what = " ".join(
            [f"5x7x{channels} of {low:g} to {high:g}", *(f"{key}={value}" for key, value in options.items())]
        )
        return OpCase(op, what, lambda m: m.unary(op, m.image(5, 7, channels), **options), low=low, high=high)

    ops = ("RELU_0_TO_1", "ELU", "SIGN", "CEIL", "FLOOR", "ROUND", "SIN", "COS")
    yield from (row(op, channels) for op, channels in zip(ops, cycle(CHANNELS), strict=False))
    for approximate in (False, True):
        yield row("GELU", 5, approximate=approximate)
        yield row("GELU", 3, -40.0, 40.0, approximate=approximate)
    yield row("SIN", 13, -60.0, 60.0)
    yield row("COS", 3, -60.0, 60.0)
    yield row("ELU", 5, -200.0, 200.0)


def _binary() -> Iterator[OpCase]:
    def row(op: str, what: str, draw: Any, low: float = -2.0) -> OpCase:
        return OpCase(op, what, lambda m: m.binary(op, *draw(m)), low=low)

    counts = cycle(((1, 13), (3, 5)))
    for op in ("SQUARED_DIFFERENCE", "POW", "FLOOR_DIV", "FLOOR_MOD", "ATAN2"):
        low = 0.3 if op == "POW" else -2.0
        for c in next(counts):
            yield row(op, f"4x6x{c} two inputs", lambda m, c=c: (m.image(4, 6, c), m.image(4, 6, c)), low)
        yield row(op, "vectors", lambda m: (m.image(1, 1, 5), m.image(1, 1, 5)), low)
        if op == "ATAN2":  # which does not broadcast
            continue
        yield row(op, "map and constant vector", lambda m: (m.image(4, 6, 5), m.random(5)), low)
        yield row(op, "scalar and map", lambda m: (m.constant(0.7), m.image(4, 6, 5)), low)
        yield row(op, "map and mask, inputs", lambda m: (m.image(4, 6, 5), m.image(4, 6, 1)), low)
    for exponent in (-3.0, 2.0, 3.0):  # below zero
        yield row("POW", f"to {exponent:g}", lambda m, e=exponent: (m.image(4, 6, 5), m.constant(e)), -2.0)
    yield row("FLOOR_MOD", "many multiples", lambda m: (_times(m, 1e6), m.image(4, 6, 5)))
    yield OpCase(
        "POW",
        "padding lanes that are infinite",
        lambda m: m.conv(m.binary("POW", m.image(4, 6, 5), m.constant(-1.0)), 13),
        low=0.3,
    )


def _times(m: Sketch, factor: float) -> int:
    return m.binary("MUL", m.image(4, 6, 5), m.constant(factor))


def _prelu() -> Iterator[OpCase]:
    shapes: tuple[Shape, ...] = ((), (5,), (1, 1, 5), (1, 1, 1, 1), (1, 4, 6, 1), (1, 4, 6, 5))
    for shape in shapes:
        alpha = "x".join(map(str, shape)) or "scalar"
        yield OpCase("PRELU", f"slopes {alpha}", lambda m, s=shape: m.binary("PRELU", m.image(4, 6, 5), m.random(*s)))
    yield OpCase("PRELU", "slopes that are an input", lambda m: m.binary("PRELU", m.image(4, 6, 5), m.image(4, 6, 5)))
    yield OpCase(
        "PRELU",
        "behind a convolution",
        lambda m: m.binary("PRELU", m.conv(m.image(4, 6, 3), 5, (3, 3)), m.random(1, 1, 5)),
    )


def _compared(m: Sketch, op: str, x: int, y: int) -> int:
    return m.binary(op, x, y, dtype="bool")


def _cast(m: Sketch, x: int, dtype: str = "float32") -> int:
    return m.unary("CAST", x, dtype=dtype)


def _whole(m: Sketch, channels: int = 5) -> int:
    """A map of whole numbers, of which many are equal."""
    return m.unary("ROUND", m.image(4, 6, channels))


def _comparisons() -> Iterator[OpCase]:
    ops = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
    for op, channels in zip(ops, cycle(CHANNELS), strict=False):
        yield OpCase(
            op,
            "two maps",
            lambda m, op=op, c=channels: _compared(m, op, _whole(m, c), _whole(m, c)),
        )
        yield OpCase(op, "map and scalar", lambda m, op=op: _compared(m, op, _whole(m), m.constant(1.0)))
        yield OpCase(op, "vector and map", lambda m, op=op: _compared(m, op, m.constant([-1, 0, 0, 1, 2]), _whole(m)))
    for op in ("LOGICAL_AND", "LOGICAL_OR"):
        yield OpCase(op, "two maps", lambda m, op=op: _compared(m, op, *_conditions(m)))
        yield OpCase(
            op,
            "map and constant",
            lambda m, op=op: _compared(m, op, _conditions(m)[0], m.constant([True, False, True, True, False], "bool")),
        )
    yield OpCase("LOGICAL_NOT", "map", lambda m: m.unary("LOGICAL_NOT", _conditions(m)[0], dtype="bool"))


def _conditions(m: Sketch) -> tuple[int, int]:
    x, y = m.image(4, 6, 5), m.image(4, 6, 5)
    return _compared(m, "GREATER", x, m.constant(0.0)), _compared(m, "LESS", x, y)


def _choices() -> Iterator[OpCase]:
    def chosen(m: Sketch, op: str, condition: int, x: int, y: int) -> int:
        return m.op(op, [condition, x, y], m.shape(x))

    for op in ("SELECT", "SELECT_V2"):
        yield OpCase(
            op, "of maps", lambda m, op=op: chosen(m, op, _conditions(m)[0], m.image(4, 6, 5), m.image(4, 6, 5))
        )
        yield OpCase(
            op,
            "of one channel",
            lambda m, op=op: chosen(
                m,
                op,
                _compared(m, "GREATER", m.image(3, 5, 1), m.constant(0.0)),
                m.image(3, 5, 1),
                m.random(1, 3, 5, 1),
            ),
        )
        yield OpCase(
            op,
            "by one constant",
            lambda m, op=op: chosen(m, op, m.constant(True, "bool"), m.image(4, 6, 5), m.image(4, 6, 5)),
        )
    yield OpCase(
        "SELECT_V2",
        "by a mask, between a map and a scalar",
        lambda m: chosen(
            m,
            "SELECT_V2",
            _compared(m, "GREATER", m.image(4, 6, 1), m.constant(0.0)),
            m.image(4, 6, 5),
            m.constant(7.0),
        ),
    )
    yield OpCase(
        "SELECT_V2",
        "behind a convolution",
        lambda m: chosen(
            m,
            "SELECT_V2",
            _compared(m, "LESS", c := m.conv(m.image(4, 6, 3), 5, (3, 3)), m.constant(0.0)),
            c,
            m.random(5),
        ),
    )


REDUCTIONS = ("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN")
DIMENSIONS = ("batch", "rows", "columns", "channels")


def reductions() -> Iterator[OpCase]:
    """All of them."""

    def row(op: str, what: str, draw: Any, **options: Any) -> OpCase:
        return OpCase(op, what, draw, **options)

    every = ((1,), (2,), (1, 2), (0,), (0, 2), (1, 3), (0, 1, 2), (1, 2, 3), (0, 1, 2, 3))
    for op in REDUCTIONS:
        for channels in (1, 3, 13, 70) if op == "SUM" else (5,):
            yield row(
                op, f"over channels of 4x6x{channels}", lambda m, op=op, c=channels: m.reduce(op, m.image(4, 6, c))
            )
        for axes in every if op == "MEAN" else ((2,), (0, 1), (1, 2, 3)):
            dimensions = ", ".join(DIMENSIONS[axis] for axis in axes)
            yield row(op, f"over {dimensions}", lambda m, op=op, a=axes: m.reduce(op, m.input((2, 4, 6, 5)), a))
        yield row(op, "of a map", lambda m, op=op: m.reduce(op, m.image(37, 23, 13), (1, 2)), low=0.99, high=1.01)
        yield row(op, "of a vector", lambda m, op=op: m.reduce(op, m.image(1, 1, 1001)), low=0.99, high=1.01)
    yield row("SUM", "over channels, dropped", lambda m: m.reduce("SUM", m.image(4, 6, 5), keep_dims=False))
    yield row("REDUCE_MAX", "of all values of a map", lambda m: m.reduce("REDUCE_MAX", m.image(5, 7, 6), (1, 2, 3)))
    yield row("SUM", "of a long vector", lambda m: m.reduce("SUM", m.image(1, 1, 5000)))
    for op in ("REDUCE_ANY", "REDUCE_ALL"):
        for axes in ((3,), (1, 2), (2,)):
            yield row(
                op,
                f"over {axes}",
                lambda m, op=op, a=axes: m.reduce(op, _conditions(m)[0], a, dtype="bool"),
            )
    yield row("SUM", "of a convolution", lambda m: m.reduce("SUM", m.conv(m.image(4, 6, 3), 13, (3, 3))))
    yield row("SUM", "of products", lambda m: m.reduce("SUM", m.binary("MUL", m.image(4, 6, 13), m.image(4, 6, 13))))
    yield row(
        "REDUCE_MAX", "before a gate", lambda m: m.binary("MUL", x := m.image(4, 6, 13), m.reduce("REDUCE_MAX", x))
    )
    yield row("REDUCE_MIN", "of negative infinity in padding lanes", _logarithms, low=0.1)
    yield row("SUM", "before a convolution", lambda m: m.conv(m.reduce("SUM", m.image(4, 6, 13)), 5, (3, 3)))
    for size, channels in (
        ((4, 6), 3),
        ((33, 33), 21),
        ((1, 896), 2),
        ((4, 6), 1),
        ((1, 1), 1001),
        ((1, 1), 5),
        ((3, 3), 300),
    ):
        what = f"{size[0]}x{size[1]}x{channels}"
        yield row("fused", f"softmax of {what}", lambda m, s=size, c=channels: m.softmax(m.image(*s, c)))
        yield row(
            "fused",
            f"softmax of {what}, large",
            lambda m, s=size, c=channels: m.softmax(m.image(*s, c)),
            low=-900,
            high=900,
        )
    yield row("fused", "softmax of a convolution", lambda m: m.softmax(m.conv(m.image(9, 7, 5), 13)))
    for op, options in (("SOFTMAX", {"beta": 0.5}), ("LOG_SOFTMAX", {}), ("L2_NORMALIZATION", {})):
        draw = partial(_normalized, op=op, options=options)
        yield row(op, "4x6x13", draw)
    yield row("fused", "classifier", lambda m: m.softmax(m.conv(m.mean(m.image(5, 6, 13)), 101)))


def _normalized(m: Sketch, op: str, options: dict[str, float]) -> int:
    return m.unary(op, m.image(4, 6, 13), **options)


def _logarithms(m: Sketch) -> int:
    return m.reduce("REDUCE_MIN", m.unary("LOG", m.image(4, 6, 5)))
