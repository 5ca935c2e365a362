"""Op cases of what moves data: each op alone, and what reads through it, at odd sizes and odd numbers of channels."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tests.model_files.sketch import OpCase, Shape, Sketch

Draw = Callable[..., int | tuple[int, ...]]  # with a Sketch


def ints(m: Sketch, values: Any) -> int:
    return m.constant(np.array(values), "int32")


def _row(op: str, what: str, draw: Draw) -> OpCase:
    return OpCase(op, what, draw, tolerance=1e-6)


def cut(m: Sketch, x: int, begin: Sequence[int], end: Sequence[int], strides: Sequence[int], **masks: int) -> int:
    """STRIDED_SLICE with the shape that NumPy gives."""
    names = ("begin_mask", "end_mask", "shrink_axis_mask", "ellipsis_mask", "new_axis_mask")
    bits = {name: masks.get(name, 0) for name in names}
    slices: list[Any] = []
    for k, (first, last, step) in enumerate(zip(begin, end, strides, strict=True)):
        open_begin, open_end, shrinks, rest, new = (bits[name] >> k & 1 for name in names)
        if rest or new:
            slices.append(... if rest else None)
        elif shrinks:
            slices.append(first)
        else:
            slices.append(slice(None if open_begin else first, None if open_end else last, step))
    shape = np.empty(m.shape(x))[tuple(slices)].shape
    options: dict[str, Any] = {**bits}
    return m.op(
        "STRIDED_SLICE", [x, *(ints(m, v) for v in (begin, end, strides))], shape, m.tensors[x].dtype, **options
    )


def sliced(m: Sketch, x: int, begin: Sequence[int], sizes: Sequence[int]) -> int:
    shape = tuple(n - b if s == -1 else s for n, b, s in zip(m.shape(x), begin, sizes, strict=True))
    return m.op("SLICE", [x, ints(m, begin), ints(m, sizes)], shape, m.tensors[x].dtype)


def joined(m: Sketch, axis: int, *xs: int) -> int:
    shape = list(m.shape(xs[0]))
    shape[axis] = sum(m.shape(x)[axis] for x in xs)
    return m.op("CONCATENATION", xs, tuple(shape), m.tensors[xs[0]].dtype, axis=axis)


def reshaped(m: Sketch, x: int, *shape: int) -> int:
    return m.op("RESHAPE", [x, ints(m, shape)], shape, m.tensors[x].dtype)


def transposed(m: Sketch, x: int, *order: int) -> int:
    return m.op("TRANSPOSE", [x, ints(m, order)], tuple(m.shape(x)[k] for k in order), m.tensors[x].dtype)


def tiled(m: Sketch, x: int, *repeats: int) -> int:
    shape = tuple(size * times for size, times in zip(m.shape(x), repeats, strict=True))
    return m.op("TILE", [x, ints(m, repeats)], shape, m.tensors[x].dtype)


def mirrored(m: Sketch, x: int, *amounts: tuple[int, int], symmetric: bool = False) -> int:
    shape = tuple(before + size + after for size, (before, after) in zip(m.shape(x), amounts, strict=True))
    return m.op("MIRROR_PAD", [x, ints(m, amounts)], shape, m.tensors[x].dtype, mode=int(symmetric))


def padded(m: Sketch, x: int, value: float, *amounts: tuple[int, int]) -> int:
    shape = tuple(before + size + after for size, (before, after) in zip(m.shape(x), amounts, strict=True))
    dtype = m.tensors[x].dtype
    return m.op("PADV2", [x, ints(m, amounts), m.constant(np.array(value), dtype)], shape, dtype)


def gathered(m: Sketch, x: int, axis: int, *places: int) -> int:
    shape = (*m.shape(x)[:axis], len(places), *m.shape(x)[axis + 1 :])
    return m.op("GATHER", [x, ints(m, places)], shape, m.tensors[x].dtype, axis=axis)


def batches(m: Sketch, x: int, block: tuple[int, int], *amounts: tuple[int, int]) -> int:
    b, h, w, c = m.shape(x)
    (top, bottom), (left, right) = amounts
    shape = (b * block[0] * block[1], (h + top + bottom) // block[0], (w + left + right) // block[1], c)
    return m.op("SPACE_TO_BATCH_ND", [x, ints(m, block), ints(m, amounts)], shape, m.tensors[x].dtype)


def spaces(m: Sketch, x: int, block: tuple[int, int], *crops: tuple[int, int]) -> int:
    b, h, w, c = m.shape(x)
    (top, bottom), (left, right) = crops
    shape = (b // (block[0] * block[1]), h * block[0] - top - bottom, w * block[1] - left - right, c)
    return m.op("BATCH_TO_SPACE_ND", [x, ints(m, block), ints(m, crops)], shape, m.tensors[x].dtype)


def _pads() -> Iterator[OpCase]:
    for channels in (1, 3, 5, 8, 13):
        around = ((0, 0), (1, 2), (0, 1), (0, 0))
        yield _row(
            "PAD", f"rows and columns of {channels}", lambda m, c=channels, a=around: m.pad(m.image(4, 5, c), *a)
        )
        for before, after in ((0, 3), (4, 4), (1, 2), (8, 0)):
            amounts = ((0, 0), (0, 0), (0, 0), (before, after))
            yield _row(
                "PAD",
                f"channels {before}+{channels}+{after}",
                lambda m, c=channels, a=amounts: m.pad(m.image(3, 5, c), *a),
            )
    yield _row("PAD", "all dimensions", lambda m: m.pad(m.input((2, 3, 4, 5)), (1, 0), (0, 2), (1, 1), (2, 1)))
    yield _row("PAD", "a vector", lambda m: m.pad(m.input((5,)), (2, 3)))
    yield _row("PAD", "rows of a table", lambda m: m.pad(m.input((3, 5)), (1, 0), (0, 2)))
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
    yield _row("PADV2", "with -7", lambda m: padded(m, m.image(4, 5, 3), -7.0, (0, 0), (1, 2), (0, 1), (2, 3)))
    yield _row("PADV2", "slices with 2.5", lambda m: padded(m, m.image(4, 5, 8), 2.5, (0, 0), (1, 0), (0, 0), (4, 1)))
    yield _row("MIRROR_PAD", "reflect", lambda m: mirrored(m, m.image(4, 5, 5), (0, 0), (3, 2), (1, 4), (0, 0)))
    yield _row(
        "MIRROR_PAD", "reflect all", lambda m: mirrored(m, m.input((2, 3, 4, 5)), (1, 0), (2, 2), (0, 3), (4, 1))
    )
    yield _row(
        "MIRROR_PAD",
        "symmetric",
        lambda m: mirrored(m, m.input((1, 3, 4, 5)), (0, 1), (3, 3), (4, 1), (2, 5), symmetric=True),
    )


def _slices() -> Iterator[OpCase]:
    yield _row("SLICE", "all dimensions", lambda m: sliced(m, m.input((2, 7, 9, 13)), (1, 2, 0, 3), (1, 4, -1, 7)))
    yield _row("SLICE", "whole slices", lambda m: sliced(m, m.image(5, 7, 16), (0, 0, 0, 4), (1, 5, 7, 8)))
    yield _row("SLICE", "of a table", lambda m: sliced(m, m.input((7, 9)), (2, 3), (4, 5)))
    yield _row(
        "STRIDED_SLICE", "strides", lambda m: cut(m, m.image(9, 11, 5), (0, 1, 2, 0), (1, 9, 11, 5), (1, 3, 2, 2))
    )
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
    yield _row("REVERSE_V2", "columns", lambda m: m.op("REVERSE_V2", [m.image(4, 5, 3), ints(m, [2])], (1, 4, 5, 3)))
    yield _row("REVERSE_V2", "channels", lambda m: m.op("REVERSE_V2", [m.image(4, 5, 13), ints(m, [3])], (1, 4, 5, 13)))


def _splits() -> Iterator[OpCase]:
    yield _row(
        "SPLIT",
        "channels",
        lambda m: m.split("SPLIT", [ints(m, 3), m.image(4, 5, 6)], [(1, 4, 5, 3)] * 2, num_splits=2),
    )
    yield _row(
        "SPLIT", "rows", lambda m: m.split("SPLIT", [ints(m, 1), m.image(6, 5, 8)], [(1, 2, 5, 8)] * 3, num_splits=3)
    )
    yield _row(
        "SPLIT_V",
        "channels",
        lambda m: m.split(
            "SPLIT_V",
            [m.image(4, 5, 13), ints(m, [4, 8, -1]), ints(m, -1)],
            [(1, 4, 5, 4), (1, 4, 5, 8), (1, 4, 5, 1)],
            num_splits=3,
        ),
    )
    for axis, shape in ((1, (2, 5, 3)), (2, (2, 4, 3)), (-1, (2, 4, 5))):
        yield _row(
            "UNPACK",
            f"axis {axis}",
            lambda m, a=axis, s=shape: m.split(
                "UNPACK", [m.input((2, 4, 5, 3))], [s] * (2, 4, 5, 3)[a], axis=a, num=(2, 4, 5, 3)[a]
            ),
        )
    for axis, out in ((0, (2, 4, 5)), (1, (4, 2, 5)), (2, (4, 5, 2))):
        yield _row(
            "PACK",
            f"axis {axis}",
            lambda m, a=axis, s=out: m.op("PACK", [m.input((4, 5)), m.input((4, 5))], s, axis=a, values_count=2),
        )


def _concatenations() -> Iterator[OpCase]:
    for parts in ((3, 5), (4, 8, 1), (8, 4), (13, 3), (1, 1, 1, 1, 1)):
        name = "+".join(map(str, parts))
        yield _row("CONCATENATION", f"channels {name}", lambda m, p=parts: joined(m, 3, *(m.image(4, 5, c) for c in p)))
    for axis in (0, 1, 2):
        shapes = [tuple(2 + k if axis == d else size for d, size in enumerate((2, 3, 4, 5))) for k in range(2)]
        yield _row(
            "CONCATENATION", f"axis {axis}", lambda m, a=axis, s=shapes: joined(m, a, *(m.input(one) for one in s))
        )
    yield _row("CONCATENATION", "of tables", lambda m: joined(m, 1, m.input((1, 7, 3)), m.input((1, 4, 3))))
    yield _row("CONCATENATION", "of vectors", lambda m: joined(m, 1, m.input((1, 7)), m.input((1, 6))))
    yield _row("CONCATENATION", "one input twice", lambda m: joined(m, 3, *[m.image(3, 4, 4)] * 2))
    yield _row("CONCATENATION", "40 vectors", lambda m: joined(m, 1, *(m.input((1, 1 + k % 3)) for k in range(40))))
    yield _row("CONCATENATION", "18 maps of four", lambda m: joined(m, 3, *(m.image(4, 5, 4) for _ in range(18))))
    yield _row("CONCATENATION", "17 rows", lambda m: joined(m, 1, *(m.image(1, 5, 3) for _ in range(17))))
    yield _row("CONCATENATION", "with a constant", lambda m: joined(m, 3, m.image(3, 4, 5), m.random(1, 3, 4, 3)))


def _reshapes() -> Iterator[OpCase]:
    pairs: tuple[tuple[Shape, Shape], ...] = (
        ((1, 2, 3, 5), (1, 30)), ((1, 30), (1, 2, 3, 5)), ((1, 4, 6, 3), (1, 8, 3, 3)), ((1, 4, 6, 8), (1, 6, 2, 16)),
        ((1, 4, 6, 8), (1, 96, 2)), ((1, 6, 10), (1, 5, 3, 4)), ((2, 3, 4, 5), (4, 5, 3, 2)), ((12,), (3, 4)),
        ((1, 1, 1, 13), (1, 13)), ((1, 16, 16, 2), (1, 512, 1)), ((1, 8, 8, 32), (1, 128, 16)), ((1,), ()),
    )  # fmt: skip
    for source, target in pairs:
        what = f"{'x'.join(map(str, source))} to {'x'.join(map(str, target)) or 'a scalar'}"
        if target:
            yield _row("RESHAPE", what, lambda m, s=source, t=target: reshaped(m, m.input(s), *t))
    yield _row("SQUEEZE", "all", lambda m: m.op("SQUEEZE", [m.input((1, 1, 5, 3))], (5, 3)))
    yield _row("SQUEEZE", "one", lambda m: m.op("SQUEEZE", [m.input((1, 1, 5, 3))], (1, 5, 3), squeeze_dims=(1,)))
    yield _row("EXPAND_DIMS", "inside", lambda m: m.op("EXPAND_DIMS", [m.input((4, 5)), ints(m, 1)], (4, 1, 5)))


def _coordinates() -> Iterator[OpCase]:
    for order in ((0, 2, 1, 3), (0, 3, 1, 2), (0, 2, 3, 1), (3, 2, 1, 0), (1, 0, 2, 3)):
        yield _row("TRANSPOSE", str(order), lambda m, o=order: transposed(m, m.input((2, 3, 4, 5)), *o))
    yield _row("TRANSPOSE", "of a table", lambda m: transposed(m, m.input((5, 13)), 1, 0))
    for repeats in ((1, 2, 3, 1), (2, 1, 1, 3)):
        yield _row("TILE", str(repeats), lambda m, r=repeats: tiled(m, m.input((1, 3, 4, 5)), *r))
    yield _row("TILE", "whole slices", lambda m: tiled(m, m.image(3, 4, 8), 1, 1, 2, 3))
    for source in ((1, 1, 5), (4, 1), (1,)):
        yield _row(
            "BROADCAST_TO",
            f"{source} to (3, 4, 5)",
            lambda m, s=source: m.op("BROADCAST_TO", [m.input(s), ints(m, (3, 4, 5))], (3, 4, 5)),
        )
    for axis in (0, 1, 2, 3):
        yield _row(
            "GATHER", f"axis {axis}", lambda m, a=axis: gathered(m, m.input((2, 3, 4, 5)), a, *[1, 0, 1, 1][: a + 1])
        )
    for block, channels in ((2, 1), (2, 3), (2, 4), (3, 5)):
        yield _row(
            "SPACE_TO_DEPTH",
            f"{block} of {channels}",
            lambda m, b=block, c=channels: m.op(
                "SPACE_TO_DEPTH", [m.image(2 * b, 3 * b, c)], (1, 2, 3, c * b * b), block_size=b
            ),
        )
    yield _row("SPACE_TO_BATCH_ND", "2x3", lambda m: batches(m, m.input((2, 3, 5, 5)), (2, 3), (0, 1), (2, 2)))
    yield _row("BATCH_TO_SPACE_ND", "2x3", lambda m: spaces(m, m.input((12, 2, 3, 5)), (2, 3), (1, 0), (2, 2)))


def _integers(m: Sketch, x: int) -> int:
    return m.op("CAST", [m.binary("MUL", x, m.constant(50.0))], m.shape(x), "int32")


def _types() -> Iterator[OpCase]:
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


def _read_through() -> Iterator[OpCase]:
    """What follows a move: windows, convolutions, elementwise ops, means, and other moves."""

    def row(what: str, draw: Draw) -> OpCase:
        return OpCase("moved", what, draw)

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


MOVE_CASES: tuple[OpCase, ...] = (
    *_pads(),
    *_slices(),
    *_splits(),
    *_concatenations(),
    *_reshapes(),
    *_coordinates(),
    *_types(),
    *_read_through(),
)
