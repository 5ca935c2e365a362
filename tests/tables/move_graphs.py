"""Graphs of ops that move data: how a file may say a cut, other types, and what reads through a move."""

from collections.abc import Callable, Iterator

from tests.model_files.moves import (
    batches,
    cut,
    gathered,
    ints,
    joined,
    mirrored,
    padded,
    reshaped,
    sliced,
    tiled,
    transposed,
)
from tests.model_files.sketch import GraphCase, Sketch

Draw = Callable[..., int | tuple[int, ...]]  # with a Sketch


def _row(op: str, what: str, draw: Draw) -> GraphCase:
    return GraphCase(op, what, draw, tolerance=1e-6)


def _cuts() -> Iterator[GraphCase]:
    """Masks, an ellipsis, dimensions that come or go; places that a file counts from the end; operands that repeat."""
    yield _row(
        "STRIDED_SLICE",
        "backward",
        lambda m: cut(m, m.image(5, 7, 5), (0, 4, -1, -1), (1, 0, -8, -6), (1, -1, -2, -1)),
    )
    yield _row(
        "STRIDED_SLICE",
        "masks",
        lambda m: cut(m, m.image(5, 7, 5), (0, 1, 2, 3), (0, 0, 5, 0), (1, 2, 1, -1), begin_mask=9, end_mask=11),
    )
    yield _row(
        "STRIDED_SLICE",
        "shrinks",
        lambda m: cut(m, m.input((2, 5, 7, 5)), (1, 0, -1, 0), (2, 5, 0, 5), (1, 1, 1, 1), shrink_axis_mask=5),
    )
    yield _row(
        "STRIDED_SLICE",
        "one point of a table",
        lambda m: cut(m, m.input((1, 9, 3)), (0, 4, 0), (1, 5, 2), (1, 1, 1), shrink_axis_mask=2),
    )
    yield _row(
        "STRIDED_SLICE",
        "ellipsis",
        lambda m: cut(m, m.input((2, 5, 7, 5)), (1, 0, 1), (2, 0, 4), (1, 1, 2), ellipsis_mask=2),
    )
    yield _row(
        "STRIDED_SLICE",
        "new dimensions",
        lambda m: cut(m, m.input((5, 7)), (0, 1, 0), (0, 4, 0), (1, 1, 1), new_axis_mask=5),
    )
    yield _row(
        "STRIDED_SLICE",
        "ellipsis, new dimension and shrinking",
        lambda m: cut(
            m, m.input((5, 3, 7)), (2, 0, 0, 6), (3, 0, 0, 0), (1, 1, 1, -2),
            shrink_axis_mask=1, ellipsis_mask=4, new_axis_mask=2, end_mask=8,
        ),
    )  # fmt: skip
    yield _row("SLICE", "to the end", lambda m: sliced(m, m.input((2, 7, 9, 13)), (1, 2, 0, 3), (1, 4, -1, 7)))
    yield _row(
        "SPLIT_V",
        "by what is left, along the last dimension",
        lambda m: m.split(
            "SPLIT_V",
            [m.image(4, 5, 13), ints(m, [4, 8, -1]), ints(m, -1)],
            [(1, 4, 5, 4), (1, 4, 5, 8), (1, 4, 5, 1)],
            num_splits=3,
        ),
    )
    yield _row(
        "UNPACK",
        "axis -1",
        lambda m: m.split("UNPACK", [m.input((2, 4, 5, 3))], [(2, 4, 5)] * 3, axis=-1, num=3),
    )
    yield _row("SQUEEZE", "one", lambda m: m.op("SQUEEZE", [m.input((1, 1, 5, 3))], (1, 5, 3), squeeze_dims=(1,)))
    yield _row("CONCATENATION", "one input twice", lambda m: joined(m, 3, *[m.image(3, 4, 4)] * 2))
    yield _row("GATHER", "one place twice", lambda m: gathered(m, m.input((2, 3, 4, 5)), 3, *[1, 0, 1, 1]))
    yield _row(
        "PAD",
        "behind the channels of a cut",
        lambda m: m.pad(cut(m, m.image(4, 5, 7), (0, 0, 0, 1), (1, 4, 5, 7), (1,) * 4), *((0, 0),) * 3, (0, 3)),
    )
    yield _row(
        "PADV2",
        "with ones, then with channels of zeros",
        lambda m: m.pad(padded(m, m.image(4, 5, 3), 1.0, (0, 0), (1, 2), (0, 1), (0, 0)), *((0, 0),) * 3, (0, 2)),
    )


def _integers(m: Sketch, x: int) -> int:
    return m.op("CAST", [m.binary("MUL", x, m.constant(50.0))], m.shape(x), "int32")


def _types() -> Iterator[GraphCase]:
    """Integers and truth values, which kernels compute and callers read."""
    moves: dict[str, Callable[[Sketch, int], int]] = {
        "slice": lambda m, x: sliced(m, x, (0, 1, 1, 3), (1, 4, 5, 9)),
        "strided slice": lambda m, x: cut(m, x, (0, 4, 0, 0), (1, 0, 7, 13), (1, -1, 2, 3)),
        "concatenation": lambda m, x: joined(m, 3, x, x),
        "reshape": lambda m, x: reshaped(m, x, 5, 13, 7),
        "transpose": lambda m, x: transposed(m, x, 0, 3, 1, 2),
        "tile": lambda m, x: tiled(m, x, 1, 2, 1, 1),
        "gather": lambda m, x: gathered(m, x, 3, 12, 0, 3),
    }
    numbers = moves | {
        "pad": lambda m, x: padded(m, x, -7, (0, 0), (1, 0), (0, 2), (0, 3)),
        "mirror": lambda m, x: mirrored(m, x, (0, 0), (1, 2), (0, 3), (2, 0)),
        "batches": lambda m, x: batches(m, x, (2, 2), (0, 1), (1, 0)),
    }
    for what, move in numbers.items():
        yield _row("moved", f"integers, {what}", lambda m, f=move: f(m, _integers(m, m.image(5, 7, 13))))
    for what, move in moves.items():
        yield _row(
            "moved",
            f"truth values, {what}",
            lambda m, f=move: f(m, m.op("LESS", [m.image(5, 7, 13), m.constant(0.5)], (1, 5, 7, 13), "bool")),
        )


def _read_through() -> Iterator[GraphCase]:
    """What follows a move: windows, convolutions, elementwise ops, means, and other moves."""

    def row(what: str, draw: Draw) -> GraphCase:
        return GraphCase("moved", what, draw)

    yield row("slice, conv 3x3", lambda m: m.conv(sliced(m, m.image(9, 9, 8), (0, 1, 2, 4), (1, 7, 6, 4)), 5, (3, 3)))
    yield row("transpose, depthwise", lambda m: m.depthwise(transposed(m, m.image(5, 7, 5), 0, 2, 1, 3)))
    yield row("mirror, max pool", lambda m: m.pool("MAX_POOL_2D", mirrored(m, m.image(5, 7, 5), *_EDGE), (3, 3)))
    yield row(
        "pad with 2, average", lambda m: m.pool("AVERAGE_POOL_2D", padded(m, m.image(5, 7, 5), 2.0, *_EDGE), (2, 2))
    )
    yield row("tile, resize", lambda m: m.resize(tiled(m, m.image(3, 4, 5), 1, 2, 2, 1), (9, 11)))
    yield row("pad of channels, residual", _padded_residual)
    yield row("concatenation, conv", lambda m: m.conv(joined(m, 3, m.image(5, 7, 8), m.image(5, 7, 5)), 9))
    yield row("concatenation, conv 3x3", lambda m: m.conv(joined(m, 3, m.image(5, 7, 4), m.image(5, 7, 5)), 3, (3, 3)))
    yield row("convs, concatenation", _joined_convolutions)
    yield row("convs, concatenation, conv", lambda m: m.conv(_joined_convolutions(m), 5, (3, 3)))
    yield row("heads of a detector", _heads)
    yield row("slice, mean", lambda m: m.mean(sliced(m, m.image(9, 9, 5), (0, 1, 2, 0), (1, 7, 6, 5))))
    yield row("halves added", _halves)
    yield row("two moves", lambda m: transposed(m, mirrored(m, m.image(5, 7, 5), *_EDGE), 0, 2, 1, 3))
    yield row("transpose of channels, slice", _transposed_slice)
    yield row("slice broadcast", lambda m: m.binary("MUL", m.image(5, 7, 5), _strip(m)))
    yield row("batch 2, slice, conv", lambda m: m.conv(_middle(m, m.input((2, 9, 9, 8))), 5, (3, 3)))
    yield row("output and read", lambda m: (x := _middle(m, m.image(9, 9, 8)), m.conv(x, 3)))
    yield row("vector split to gates", _gates)
    yield row("depth to space of one, multiply", _blocks_of_one)
    yield row("depth to space of one, convolution", _blocks_beside)
    yield row("depth to space of a batch, read by others", _deep)
    yield row("slice, depthwise, gate", _gated_slice)
    yield row("nine mirrors, max pool", _mirrors)
    yield row("gather beside a window", _gathered_beside)
    yield row("many parts, relu", lambda m: m.unary("RELU", joined(m, 3, *(m.image(5, 7, c) for c in (3, 5, 1, 13)))))
    yield row("channels sliced, sum", lambda m: m.reduce("SUM", sliced(m, m.image(4, 5, 13), (0, 0, 0, 4), _SIX)))
    yield row("slices padded with 2.5, max", lambda m: m.reduce("REDUCE_MAX", padded(m, m.image(4, 5, 8), 2.5, *_FIVE)))
    yield row("concatenations, each an output", _nested)
    yield row(
        "reshape alone, twice", lambda m: (x := m.image(4, 6, 8), reshaped(m, x, 24, 8), reshaped(m, x, 6, 4, 8))[1:]
    )


_EDGE = ((0, 0), (1, 2), (2, 1), (0, 0))


_SIX = (1, 4, 5, 6)
_FIVE = ((0, 0), (1, 0), (0, 0), (4, 1))


def _mirrors(m: Sketch) -> int:
    x = m.image(5, 7, 5)
    for _ in range(9):
        x = sliced(m, mirrored(m, x, *_EDGE), (0, 1, 1, 0), (1, 5, 7, 5))
    return m.pool("MAX_POOL_2D", x, (3, 3))


def _gathered_beside(m: Sketch) -> int:
    places = m.op("CAST", [m.unary("ABS", m.input((7,)))], (7,), "int32")
    x = m.op("GATHER", [m.image(5, 9, 5), places], (1, 5, 7, 5), axis=2)
    return m.binary("ADD", x, m.depthwise(m.image(5, 7, 5)))


def _blocks_of_one(m: Sketch) -> tuple[int, ...]:
    x = m.conv(m.image(5, 7, 5), 6)
    y = m.op("DEPTH_TO_SPACE", [x], (1, 5, 7, 6), block_size=1)
    return m.binary("MUL", y, y), y


def _blocks_beside(m: Sketch) -> tuple[int, ...]:
    """A value that one loop computes slice by slice, and another holds."""
    x = m.unary("TANH", m.image(6, 6, 1))
    return m.conv(x, 16), m.op("DEPTH_TO_SPACE", [x], (1, 6, 6, 1), block_size=1)


def _deep(m: Sketch) -> tuple[int, ...]:
    x = m.conv(m.input((2, 4, 5, 6)), 45)
    y = m.op("DEPTH_TO_SPACE", [x], (2, 12, 15, 5), block_size=3)
    return y, m.conv(y, 3), m.unary("RELU", x)


def _gated_slice(m: Sketch) -> int:
    """A window over a part of a map, in a kernel that computes a vector first."""
    x = m.image(9, 9, 12)
    gate = m.unary("LOGISTIC", m.conv(sliced(m, m.mean(x), (0, 0, 0, 4), (1, 1, 1, 4)), 4))
    return m.binary("MUL", m.depthwise(sliced(m, x, (0, 1, 1, 4), (1, 6, 6, 4))), gate)


def _nested(m: Sketch) -> tuple[int, ...]:
    """A concatenation in a concatenation, both outputs and read, and so are parts."""
    x = m.image(8, 8, 3)
    part, other = m.conv(x, 8), m.conv(x, 4)
    inner = joined(m, 3, part, other)
    outer = joined(m, 3, inner, m.conv(x, 16))
    return inner, outer, part, m.unary("RELU", other), m.conv(outer, 3)


def _middle(m: Sketch, x: int) -> int:
    return sliced(m, x, (0, 1, 2, 4), (-1, 7, 6, 4))


def _strip(m: Sketch) -> int:
    return sliced(m, m.image(9, 7, 5), (0, 2, 0, 0), (1, 1, 7, 5))


def _transposed_slice(m: Sketch) -> int:
    return sliced(m, transposed(m, m.image(5, 7, 5), 0, 3, 1, 2), (0, 1, 0, 2), (1, 3, 5, 5))


def _padded_residual(m: Sketch) -> int:
    x = m.image(8, 8, 12)
    small = m.pool("MAX_POOL_2D", x, (2, 2), stride=(2, 2))
    wide = m.pad(small, (0, 0), (0, 0), (0, 0), (0, 6))
    return m.unary("RELU", m.binary("ADD", m.conv(m.depthwise(x, stride=(2, 2)), 18), wide))


def _joined_convolutions(m: Sketch) -> int:
    x = m.image(6, 7, 5)
    return joined(m, 3, m.conv(x, 8), m.conv(x, 4, (3, 3)), m.unary("RELU", m.conv(x, 13)))


def _heads(m: Sketch) -> tuple[int, ...]:
    x = m.image(8, 8, 6)
    y = m.conv(x, 7, (3, 3), stride=(2, 2))
    boxes = [reshaped(m, m.conv(f, n * 6, (3, 3)), 1, s, 6) for f, n, s in ((x, 2, 128), (y, 3, 48))]
    scores = [reshaped(m, m.conv(f, 2), 1, s, 1) for f, s in ((x, 128), (y, 32))]
    return joined(m, 1, *boxes), m.unary("LOGISTIC", joined(m, 1, *scores))


def _halves(m: Sketch) -> int:
    a, b = m.split("SPLIT", [ints(m, 3), m.conv(m.image(5, 7, 5), 16)], [(1, 5, 7, 8)] * 2, num_splits=2)
    return m.binary("ADD", m.unary("RELU", a), b)


def _gates(m: Sketch) -> int:
    x = m.image(4, 5, 6)
    a, b = m.split("SPLIT", [ints(m, 3), m.conv(m.mean(x), 12)], [(1, 1, 1, 6)] * 2, num_splits=2)
    return m.binary("ADD", m.binary("MUL", x, m.unary("LOGISTIC", a)), b)


MOVE_GRAPHS: tuple[GraphCase, ...] = (*_cuts(), *_types(), *_read_through())
