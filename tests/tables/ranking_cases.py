"""Rows of the table of op cases for ops that compare values and give positions, with many values that are equal, for
running sums, and for normalizations over neighbors."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from tests.model_files.sketch import OpCase, Shape, Sketch


def rankings() -> Iterator[OpCase]:
    """All of them; a model has several ops, since each is a kernel of its own anyway."""
    yield from _extrema()
    yield from _tops()
    yield from _running_sums()
    yield from _neighborhoods()


def _equal_ones(m: Sketch, shape: Shape) -> int:
    """Whole numbers, of which many are equal."""
    return m.unary("ROUND", m.input(shape))


def _extrema() -> Iterator[OpCase]:
    def row(op: str, what: str, shape: Shape, axes: tuple[int, ...], dtype: str = "int32") -> OpCase:
        def draw(m: Sketch) -> tuple[int, ...]:
            x = _equal_ones(m, shape)
            return tuple(m.extremum(op, x, axis, dtype) for axis in axes)

        return OpCase(op, what, draw, tolerance=0.0)

    for op, other in (("ARG_MAX", "ARG_MIN"), ("ARG_MIN", "ARG_MAX")):
        yield row(op, "along each dimension of 3x4x6x5", (3, 4, 6, 5), (0, 1, 2, 3, -1))
        yield row(op, "along each dimension of 1x5x7x13, int64", (1, 5, 7, 13), (0, 1, 2, 3), "int64")
        yield row(op, "of one channel", (2, 4, 6, 1), (3,))
        yield row(op, "of a vector of 1001", (1, 1001), (1,), "int64")
        yield row(op, "along each dimension of 3x300x17", (3, 300, 17), (0, 1, 2))
        yield row(op, "along 500 columns", (1, 500, 13), (1,))
        yield OpCase(
            op,
            "of an upsampling",
            lambda m, op=op: m.extremum(op, m.resize(m.image(5, 7, 21), (13, 15)), dtype="int64"),
            tolerance=0.0,
        )
        yield OpCase(op, "of a convolution", lambda m, op=op: m.extremum(op, m.conv(m.image(9, 7, 5), 13)))
        yield OpCase(
            op,
            "of values that are all infinite",
            lambda m, op=op, other=other: tuple(
                m.extremum(each, m.unary("LOG", m.binary("MUL", m.image(4, 3, 7), m.constant(0.0))))
                for each in (op, other)
            ),
            tolerance=0.0,
        )


def _tops() -> Iterator[OpCase]:
    def row(count: int, shape: Shape) -> OpCase:
        what = f"{count} of {'x'.join(map(str, shape))}"
        return OpCase("TOPK_V2", what, lambda m: m.top(_equal_ones(m, shape), count), 0.0, -9.0, 9.0)

    rows: list[tuple[int, Shape]] = [
        *((3, (1, 5, 7, 13)), (5, (2, 4, 6, 5)), (1, (1, 3, 4, 1)), (2, (1, 3, 4, 3)), (5, (1, 1001))),
        *((7, (7,)), (4, (300, 17)), (64, (3, 4, 6, 70))),
    ]
    for count, shape in rows:
        yield row(count, shape)
    yield OpCase("TOPK_V2", "positions alone", lambda m: m.top(_equal_ones(m, (1, 9, 9, 21)), 6)[1], 0.0)
    yield OpCase("TOPK_V2", "of an upsampling", lambda m: m.top(m.resize(m.image(5, 7, 21), (13, 15)), 4))
    yield OpCase(
        "TOPK_V2",
        "before a sum",
        lambda m: m.reduce("SUM", m.top(m.conv(m.image(5, 7, 3), 21), 5)[0]),
    )
    yield OpCase(
        "TOPK_V2",
        "of negative infinity",
        lambda m: m.top(m.unary("LOG", m.binary("MUL", m.image(4, 3, 7), m.constant(0.0))), 6)[1],
        tolerance=0.0,
    )
    yield OpCase(
        "TOPK_V2",
        "65 of 70",
        lambda m: m.top(m.image(2, 3, 70), 65),
        refused="model: operator 0 (TOPK_V2): the greatest 65 values, 64 are allowed",
    )


def _running_sums() -> Iterator[OpCase]:
    shapes: tuple[Shape, ...] = ((3, 4, 6, 5), (1, 12, 9, 13), (70, 3), (2, 300))
    for (exclusive, reverse), shape in zip(product((False, True), repeat=2), shapes, strict=True):
        options = {"exclusive": exclusive, "reverse": reverse}
        named = ", ".join(name for name, value in options.items() if value) or "plain"
        for each in (shape, (1, 1, 7, 1)):
            yield OpCase(
                "CUMSUM",
                f"{named} along each dimension of {'x'.join(map(str, each))}",
                lambda m, s=each, o=options: tuple(
                    m.running_sum(x, axis, **o) for x in [m.input(s)] for axis in range(len(s))
                ),
            )
    yield OpCase("CUMSUM", "of a convolution", lambda m: m.running_sum(m.conv(m.image(5, 7, 3), 13), 3))


def _neighborhoods() -> Iterator[OpCase]:
    def normalized(m: Sketch, radius: int, channels: int) -> int:
        options: dict[str, Any] = {"radius": radius, "bias": 1.5, "alpha": 0.5, "beta": 0.75}
        return m.op("LOCAL_RESPONSE_NORMALIZATION", [m.image(4, 5, channels)], (1, 4, 5, channels), **options)

    for radius, channels in ((2, 13), (0, 5), (50, 3), (1, 1)):
        what = f"radius {radius} of {channels}"
        yield OpCase("LOCAL_RESPONSE_NORMALIZATION", what, lambda m, r=radius, c=channels: normalized(m, r, c))
    for padding, activation in (("SAME", "NONE"), ("VALID", "RELU6")):
        options = {"stride": (2, 1), "padding": padding, "activation": activation}
        yield OpCase(
            "L2_POOL_2D",
            f"{padding} {activation}",
            lambda m, o=options: m.pool("L2_POOL_2D", m.image(9, 8, 5), (3, 2), **o),
        )
