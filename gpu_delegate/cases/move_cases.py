"""Cases of ops that move data: along each dimension, with whole slices of channels and without."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from ..model.graph import (
    Axes,
    Axis,
    BatchToSpace,
    Concatenation,
    MirrorPad,
    Pad,
    Padding,
    Repeat,
    Shape,
    SpaceToBatch,
    Split,
    StridedSlice,
    Transpose,
)
from .op_case import BATCHES, CHANNELS, LARGE, MAPS, OpCase, case_of, size_text

_Rows = Iterator[OpCase]
_Amounts = tuple[tuple[int, int], ...]
_BIG: Shape = (3, 5, 7, 13)


def _moved(op: str, what: str, *given: object, **more: object) -> OpCase:
    """A case whose outputs are the inputs' values to the bit."""
    return case_of(op, what, *given, tolerance=0.0, **more)  # type: ignore[arg-type]


def _grown(shape: Shape, amounts: _Amounts) -> Shape:
    return tuple(before + size + after for size, (before, after) in zip(shape, amounts, strict=True))


def _pads(op: str) -> _Rows:
    around: _Amounts = ((0, 0), (1, 2), (0, 3), (0, 0))
    rows: list[tuple[Shape, _Amounts]] = [(shape, around) for shape in MAPS]
    rows += [((3, 4, 5, c), ((0, 0), (0, 0), (0, 0), sides)) for c in CHANNELS for sides in ((4, 4), (0, 3), (1, 2))]
    rows += [((2, 3, 4, 5), ((1, 0), (0, 2), (1, 1), (2, 1))), ((7, 5, 3), ((0, 1), (2, 2), (0, 0)))]
    rows += [((3, 5), ((1, 0), (0, 2))), ((5,), ((2, 3),)), (LARGE, around)]
    for c in (1, 3, 5, 8, 13):
        rows += [((1, 4, 5, c), ((0, 0), (1, 2), (0, 1), (0, 0)))]
        rows += [((1, 3, 5, c), ((0, 0), (0, 0), (0, 0), sides)) for sides in ((0, 3), (4, 4), (1, 2), (8, 0))]
    filled = [(shape, amounts, 2.5 if op == "PADV2" else 0.0) for shape, amounts in rows]
    if op == "PADV2":
        filled += [((1, 4, 5, 3), ((0, 0), (1, 2), (0, 1), (2, 3)), -7.0)]
        filled += [((1, 4, 5, 8), ((0, 0), (1, 0), (0, 0), (4, 1)), 2.5)]
    for shape, amounts, value in filled:
        what = f"{size_text(shape)} by {', '.join(f'{a}+{b}' for a, b in amounts)}" + f" of {value:g}" * (value != 0)
        yield _moved(op, what, [shape], _grown(shape, amounts), Pad(amounts, value))


def _mirrors(op: str) -> _Rows:
    rows: list[tuple[Shape, _Amounts]] = [(shape, ((0, 0), (3, 2), (1, 4), (0, 0))) for shape in MAPS]
    rows += [((2, 3, 4, 5), ((1, 0), (2, 2), (0, 3), (4, 1))), ((7, 5), ((6, 1), (0, 4))), (LARGE, rows[0][1])]
    rows += [((1, 4, 5, 5), rows[0][1])]
    for symmetric in (False, True):
        # a pad as wide as the map, which reflecting cannot make
        whole = ((1, 3, 4, 5), ((0, 1), (3, 3), (4, 1), (2, 5)))
        for shape, amounts in (*rows, *[whole] * symmetric):
            what = f"{'symmetric' if symmetric else 'reflect'} {size_text(shape)}"
            yield _moved(op, what, [shape], _grown(shape, amounts), MirrorPad(amounts, symmetric))


def _joined_shape(shapes: Sequence[Shape], axis: int) -> Shape:
    size = sum(shape[axis] for shape in shapes)
    return tuple(size if k == axis else n for k, n in enumerate(shapes[0]))


def _concatenations(op: str) -> _Rows:
    sizes: tuple[tuple[int, ...], ...] = ((1, 3), (4, 5), (13, 4), (5, 1, 3), (8, 4), (1,) * 5, (3, 4, 13, 1))
    rows: list[tuple[int, list[Shape]]] = [
        *((3, list[Shape]((batch, 5, 7, channels) for channels in parts)) for batch in BATCHES for parts in sizes),
        *((axis, [(*_BIG[:axis], size, *_BIG[axis + 1 :]) for size in (2, 3, 4)]) for axis in (0, 1, 2)),
    ]
    rows += [(1, [(7, 5), (7, 3)]), (0, [(5,), (3,)]), (2, [(3, 7, 5), (3, 7, 4)]), (3, [LARGE, LARGE])]
    rows += [(1, [(1, 1, 5, 3)] * 17), (3, [(1, 4, 5, 4)] * 18), (1, [(1, 1 + k % 3) for k in range(40)])]
    rows += [(3, [(1, 4, 5, c) for c in parts]) for parts in ((3, 5), (4, 8, 1), (8, 4), (13, 3), (1,) * 5)]
    rows += [(axis, [(*(2, 3, 4, 5)[:axis], n, *(2, 3, 4, 5)[axis + 1 :]) for n in (2, 3)]) for axis in (0, 1, 2)]
    rows += [(1, [(1, 7, 3), (1, 4, 3)]), (1, [(1, 7), (1, 6)])]
    for axis, shapes in rows:
        what = f"{' + '.join(map(size_text, shapes[:5]))}{f' and {len(shapes) - 5} more' * (len(shapes) > 5)}"
        yield _moved(op, f"along {axis} {what}", shapes, _joined_shape(shapes, axis), Concatenation(axis=axis))
    both: list[Shape] = [(1, 3, 4, 5), (1, 3, 4, 3)]
    yield _moved(op, "and a constant", both[:1], _joined_shape(both, 3), Concatenation(axis=3), both[1:])


def _packs(op: str) -> _Rows:
    for shape in ((5, 7), (3, 5, 7), (1, 5, 13), (13,)):
        for axis in range(len(shape) + 1):
            out = (*shape[:axis], 3, *shape[axis:])
            yield _moved(op, f"3 of {size_text(shape)} along {axis}", [shape] * 3, out, Axis(axis))
    for axis, out in enumerate(((2, 4, 5), (4, 2, 5), (4, 5, 2))):
        yield _moved(op, f"2 of 4x5 along {axis}", [(4, 5)] * 2, out, Axis(axis))


def _unpacks(op: str) -> _Rows:
    for shape in ((3, 5, 7, 4), (1, 5, 4, 13), (2, 4, 5, 3), (7, 5), (3, 5, 3)):
        for axis, count in enumerate(shape):
            part = (*shape[:axis], *shape[axis + 1 :])
            yield _moved(op, f"{size_text(shape)} along {axis}", [shape], part, Axis(axis), others=[part] * (count - 1))


def _splits(op: str) -> _Rows:
    rows: list[tuple[Shape, int, tuple[int, ...]]] = [
        ((1, 5, 7, 6), 3, (3, 3)), ((1, 4, 5, 6), 3, (3, 3)), ((1, 6, 5, 8), 1, (2, 2, 2)),
        ((3, 5, 7, 16), 3, (8, 8)), ((3, 6, 5, 8), 1, (2, 2, 2)), ((1, 4, 6, 13), 2, (3, 3)),
        ((4, 3, 5, 5), 0, (2, 2)), ((3, 7, 10), 2, (5, 5)), ((7, 3), 1, (1, 1, 1)), ((1, 61, 67, 36), 3, (12,) * 3),
    ]  # fmt: skip
    if op == "SPLIT_V":
        rows += [
            ((1, 5, 7, 13), 3, (4, 8, 1)), ((3, 5, 7, 13), 3, (1, 3, 9)), ((3, 7, 5, 4), 1, (2, 5)),
            ((1, 4, 5, 13), 3, (4, 8, 1)),
            ((3, 5, 7, 3), 2, (1, 4, 2)), ((3, 4, 5, 1), 0, (1, 2)),
        ]  # fmt: skip
    for shape, axis, sizes in rows:
        parts = [tuple(size if k == axis else n for k, n in enumerate(shape)) for size in sizes]
        what = f"{size_text(shape)} along {axis} into {'+'.join(map(str, sizes))}"
        yield _moved(op, what, [shape], parts[0], Split(axis, sizes), others=parts[1:])


def _slices(op: str) -> _Rows:
    """By first position, number and step of each dimension."""
    rows: list[tuple[Shape, StridedSlice]] = []
    for batch, height, width, channels in MAPS:
        least = min(channels, 3)
        rows.append(
            (
                (batch, height, width, channels),
                StridedSlice((0, 1, 2, channels - least), (batch, 3, 4, least), (1,) * 4),
            )
        )
    rows += [
        ((3, 5, 7, 16), StridedSlice((1, 0, 0, 4), (2, 5, 7, 8), (1,) * 4)),
        ((2, 7, 9, 13), StridedSlice((1, 2, 0, 3), (1, 4, 9, 7), (1,) * 4)),
        ((1, 5, 7, 16), StridedSlice((0, 0, 0, 4), (1, 5, 7, 8), (1,) * 4)),
        ((7, 9), StridedSlice((2, 3), (4, 5), (1, 1))),
        ((13,), StridedSlice((5,), (7,), (1,))),
        ((3, 7, 5), StridedSlice((1, 2, 3), (1, 4, 2), (1, 1, 1))),
        (LARGE, StridedSlice((0, 1, 2, 3), (1, 58, 61, 31), (1,) * 4)),
    ]
    if op == "STRIDED_SLICE":
        rows += [
            ((3, 9, 11, 5), StridedSlice((0, 1, 2, 0), (2, 3, 5, 3), (2, 3, 2, 2))),
            ((1, 9, 11, 5), StridedSlice((0, 1, 2, 0), (1, 3, 5, 3), (1, 3, 2, 2))),
            ((1, 5, 7, 5), StridedSlice((0, 4, 6, 4), (1, 4, 4, 5), (1, -1, -2, -1))),
            ((3, 5, 7, 5), StridedSlice((2, 4, 6, 4), (3, 5, 4, 5), (-1, -1, -2, -1))),
            ((1, 5, 7, 13), StridedSlice((0, 4, 0, 12), (1, 5, 7, 4), (1, -1, 1, -3))),
            ((7, 5), StridedSlice((6, 0), (4, 3), (-2, 2))),
        ]
    for shape, cut in rows:
        steps = "" if set(cut.strides) == {1} else f" by {','.join(map(str, cut.strides))}"
        what = f"{size_text(shape)} from {','.join(map(str, cut.begin))}{steps}"
        yield _moved(op, what, [shape], cut.sizes, cut)


def _reverses(op: str) -> _Rows:
    for shape in (*MAPS, LARGE):
        yield _moved(op, f"{size_text(shape)} channels", [shape], shape, Axes((3,)))
    for axis in (0, 1, 2):
        yield _moved(op, f"{size_text(_BIG)} along {axis}", [_BIG], _BIG, Axes((axis,)))
    for shape, axis in (((7, 5), 0), ((1, 4, 5, 3), 2), ((1, 4, 5, 13), 3)):
        yield _moved(op, f"{size_text(shape)} along {axis}", [shape], shape, Axes((axis,)))


def _reshapes(op: str) -> _Rows:
    pairs: Sequence[tuple[Shape, Shape]] = {
        "RESHAPE": (
            *((shape, (shape[0] * 7, shape[3], 5)) for shape in MAPS), ((1, 30), (1, 2, 3, 5)), ((12,), (3, 4)),
            ((1, 4, 6, 8), (1, 6, 2, 16)), ((3, 4, 5, 5), (5, 3, 4, 5)), ((1, 1, 1, 13), (13,)),
            ((1, 61, 67, 37), (61, 1, 37, 67)), ((3, 6, 10), (1, 5, 9, 4)),
            ((1, 2, 3, 5), (1, 30)), ((1, 4, 6, 3), (1, 8, 3, 3)), ((1, 4, 6, 8), (1, 96, 2)),
            ((1, 6, 10), (1, 5, 3, 4)), ((2, 3, 4, 5), (4, 5, 3, 2)), ((1, 1, 1, 13), (1, 13)),
            ((1, 16, 16, 2), (1, 512, 1)),
            ((1, 8, 8, 32), (1, 128, 16)),
        ),
        "SQUEEZE": (
            *(((batch, 1, 7, channels), (batch, 7, channels)) for batch, _, _, channels in MAPS),
            ((1, 1, 5, 3), (5, 3)), ((1, 1, 5, 3), (1, 5, 3)), ((1, 1, 1, 13), (13,)), ((1, 5, 1, 4), (5, 4)),
        ),
        "EXPAND_DIMS": (
            *(((batch, 7, channels), (batch, 1, 7, channels)) for batch, _, _, channels in MAPS),
            ((5, 3), (1, 5, 3)), ((4, 5), (4, 1, 5)), ((13,), (13, 1)), ((7, 5), (7, 1, 5)), ((3, 5, 4), (3, 5, 4, 1)),
        ),
    }[op]  # fmt: skip
    for source, target in pairs:
        yield _moved(op, f"{size_text(source)} to {size_text(target)}", [source], target)


def _sizes(op: str) -> _Rows:
    """SHAPE, of which a reader is given to have anything to run."""
    for shape in (*MAPS, (13,), (7, 5)):
        made = _moved(op, size_text(shape), [shape], (len(shape),))
        yield replace(made, example=replace(made.example, out_dtype="int32"))


def _transposes(op: str) -> _Rows:
    orders: tuple[Shape, ...] = ((0, 2, 1, 3), (0, 3, 1, 2), (0, 2, 3, 1), (3, 2, 1, 0), (1, 0, 2, 3))
    rows: list[tuple[Shape, Shape]] = [((3, 5, 7, channels), order) for channels in CHANNELS for order in orders]
    rows += [((2, 3, 4, 5), order) for order in orders]
    rows += [(LARGE, (0, 3, 1, 2)), (LARGE, (0, 2, 1, 3)), ((1, 5, 7, 13), (0, 2, 1, 3))]
    for shape, order in [*rows, ((5, 13), (1, 0)), ((3, 7, 5), (2, 0, 1)), ((3, 7, 4), (0, 2, 1))]:
        out = tuple(shape[k] for k in order)
        yield _moved(op, f"{size_text(shape)} {','.join(map(str, order))}", [shape], out, Transpose(order))


def _tiles(op: str) -> _Rows:
    rows = [*((shape, (1, 2, 3, 1)) for shape in MAPS), *(((1, 3, 5, c), (2, 1, 1, 3)) for c in CHANNELS)]
    rows += [((1, 3, 4, 5), (1, 2, 3, 1)), ((1, 3, 4, 5), (2, 1, 1, 3)), ((1, 3, 4, 8), (1, 1, 2, 3))]
    for shape, repeats in [*rows, ((5,), (3,)), ((7, 3), (1, 4)), ((3, 5, 4), (2, 1, 2)), (LARGE, (1, 1, 1, 2))]:
        out = tuple(size * times for size, times in zip(shape, repeats, strict=True))
        yield _moved(op, f"{size_text(shape)} {','.join(map(str, repeats))}", [shape], out, Repeat(tuple(repeats)))


def _broadcasts(op: str) -> _Rows:
    rows: list[tuple[Shape, Shape]] = [((batch, 1, 7, c), (batch, 5, 7, c)) for batch, _, _, c in MAPS]
    rows += [
        ((1, 5, 7, 1), (3, 5, 7, 13)),
        ((5,), (3, 4, 5)),
        ((4, 1), (3, 4, 5)),
        ((1, 1, 5), (3, 4, 5)),
        ((1,), (3, 4, 5)),
        ((1,), (7, 5)),
        ((1, 1, 5), (3, 7, 5)),
    ]
    for source, target in [*rows, ((1, 61, 1, 37), LARGE)]:
        yield _moved(op, f"{size_text(source)} to {size_text(target)}", [source], target)


def _gathers(op: str) -> _Rows:
    """By constant positions: as many as there are, in another order, or one of them."""
    for shape in (*MAPS, LARGE):
        yield _moved(op, f"{size_text(shape)} along 3", [shape], shape, Axis(3), [(shape[3],)])
    for axis in (0, 1, 2):
        yield _moved(op, f"{size_text(_BIG)} along {axis}", [_BIG], _BIG, Axis(axis), [(_BIG[axis],)])
    for shape, axis in (((7, 5), 0), ((7, 5), 1), ((13,), 0), ((3, 7, 5), 1)):
        yield _moved(op, f"{size_text(shape)} along {axis}", [shape], shape, Axis(axis), [(shape[axis],)])
    shape = (2, 3, 4, 5)
    for axis in range(4):
        out = (*shape[:axis], axis + 1, *shape[axis + 1 :])
        what = f"{axis + 1} of {size_text(shape)} along {axis}"
        yield _moved(op, what, [shape], out, Axis(axis), [(axis + 1,)])


def _blocks(op: str) -> _Rows:
    """SPACE_TO_DEPTH and back, blocks of 2 and 3."""
    for channels in CHANNELS:
        for batch, block in ((1, 2), (3, 2), (1, 3)):
            wide, deep = (batch, 3 * block, 5 * block, channels), (batch, 3, 5, channels * block * block)
            source, target = (wide, deep) if op == "SPACE_TO_DEPTH" else (deep, wide)
            yield _moved(op, f"{size_text(source)} to {size_text(target)}", [source], target)
    for block, channels in ((2, 1), (2, 3), (2, 4), (3, 5)) if op == "SPACE_TO_DEPTH" else ((4, 13), (2, 20)):
        small = (2, 3) if op == "SPACE_TO_DEPTH" else (3, 5)
        wide, deep = (1, small[0] * block, small[1] * block, channels), (1, *small, channels * block * block)
        source, target = (wide, deep) if op == "SPACE_TO_DEPTH" else (deep, wide)
        yield _moved(op, f"{size_text(source)} to {size_text(target)}", [source], target)
    wide, deep = (1, 122, 134, 9), (1, 61, 67, 36)
    source, target = (wide, deep) if op == "SPACE_TO_DEPTH" else (deep, wide)
    yield _moved(op, f"{size_text(source)} to {size_text(target)}", [source], target)


def _batches(op: str) -> _Rows:
    for channels in CHANNELS:
        for batch, block, padding in ((1, (2, 2), Padding(1, 0, 0, 1)), (3, (2, 3), Padding(0, 1, 2, 0))):
            wide, tall = 5, 6 if block == (2, 3) else 7
            rows, columns = (wide + padding.top + padding.bottom) // block[0], tall + padding.left + padding.right
            columns, left = divmod(columns, block[1])
            padding = replace(padding, right=padding.right + (block[1] - left) % block[1])
            columns += left > 0
            small, many = (batch, wide, tall, channels), (batch * block[0] * block[1], rows, columns, channels)
            source, target = (small, many) if op == "SPACE_TO_BATCH_ND" else (many, small)
            attributes = SpaceToBatch(block, padding) if op == "SPACE_TO_BATCH_ND" else BatchToSpace(block, padding)
            yield _moved(op, f"{size_text(source)} to {size_text(target)}", [source], target, attributes)
    for channels, part, ends in ((5, 4, Padding(0, 0, 3, 1)), (8, 2, Padding(0, 0, 0, 1))):
        row, parts = (2, 4 * part - ends.left - ends.right, channels), (2 * part, 4, channels)
        if op == "SPACE_TO_BATCH_ND":
            yield _moved(op, f"rows by {part}", [row], parts, SpaceToBatch((1, part), ends))
        else:
            yield _moved(op, f"rows by {part}", [parts], row, BatchToSpace((1, part), ends))
    few, many = (2, 3, 5, 5), (12, 2, 3, 5)
    if op == "SPACE_TO_BATCH_ND":
        yield _moved(op, "around a map", [few], many, SpaceToBatch((2, 3), Padding(0, 1, 2, 2)))
    else:
        yield _moved(op, "out of a map", [many], few, BatchToSpace((2, 3), Padding(1, 0, 2, 2)))


MOVE_CASES: Mapping[str, Callable[[str], _Rows]] = MappingProxyType(
    {
        "PAD": _pads,
        "PADV2": _pads,
        "MIRROR_PAD": _mirrors,
        "CONCATENATION": _concatenations,
        "PACK": _packs,
        "UNPACK": _unpacks,
        "SPLIT": _splits,
        "SPLIT_V": _splits,
        "SLICE": _slices,
        "STRIDED_SLICE": _slices,
        "REVERSE_V2": _reverses,
        **dict.fromkeys(("RESHAPE", "SQUEEZE", "EXPAND_DIMS"), _reshapes),
        "SHAPE": _sizes,
        "TRANSPOSE": _transposes,
        "TILE": _tiles,
        "BROADCAST_TO": _broadcasts,
        "GATHER": _gathers,
        "SPACE_TO_DEPTH": _blocks,
        "DEPTH_TO_SPACE": _blocks,
        "SPACE_TO_BATCH_ND": _batches,
        "BATCH_TO_SPACE_ND": _batches,
    }
)
