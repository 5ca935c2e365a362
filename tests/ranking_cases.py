"""Rows of the table of op cases for ops that compare values and give positions, with many values that are equal."""

from collections.abc import Iterator

from tests.sketch import OpCase, Shape, Sketch


def rankings() -> Iterator[OpCase]:
    """All of them; a model has several ops, since each is a kernel of its own anyway."""
    yield from _extrema()


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
        yield row(op, "of maps of one and three channels", (1, 4, 6, 3), (3,))
        yield row(op, "of one channel", (2, 4, 6, 1), (3,))
        yield row(op, "of a vector of 1001", (1, 1001), (1,), "int64")
        yield row(op, "of five values", (5,), (0,))
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
