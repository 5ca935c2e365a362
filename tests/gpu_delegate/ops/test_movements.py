"""The map of coordinates of each op that moves data, evaluated in NumPy, by value and by slices."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.numpy_kernels import Threads
from tests.model_files.graphs import GraphBuilder
from texelflow.gpu_delegate.code.indices import Index, Validity
from texelflow.gpu_delegate.code.vocabulary import Name
from texelflow.gpu_delegate.model.graph import (
    Attributes,
    Axes,
    Axis,
    BatchToSpace,
    Concatenation,
    Graph,
    MirrorPad,
    Node,
    Pad,
    Padding,
    Repeat,
    Shape,
    SpaceToBatch,
    StridedSlice,
    Transpose,
)
from texelflow.gpu_delegate.model.packing import pad_lanes
from texelflow.gpu_delegate.plan.moves import movement_of

Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]

SIDES = ("b", "y", "x", "c")


class Case:
    """One move of inputs whose values are all different, and what NumPy makes of them."""

    def __init__(self, op: str, inputs: Sequence[Floats], attributes: Attributes, wanted: Floats) -> None:
        builder = GraphBuilder()
        tensors = [builder.input(*values.shape) for values in inputs]
        out = builder.node(op, tensors, wanted.shape, attributes)
        self.graph: Graph = builder.graph(out)
        self.node: Node = self.graph.nodes[0]
        self.inputs, self.wanted = inputs, wanted


def numbered(shape: Shape, start: int = 1) -> Floats:
    return (np.arange(np.prod(shape), dtype=np.float32) + start).reshape(shape)


def evaluate(index: Index, values: Mapping[str, Places]) -> Places:
    """Quotients are of numbers that are not negative, as tests/gpu_delegate/code/test_indices.py makes sure."""
    found = Threads(values, {}, np.zeros((0, 4))).value(index.code)
    return np.broadcast_to(np.asarray(found, np.int64), next(iter(values.values())).shape)


def holds(condition: Validity, values: Mapping[str, Places]) -> npt.NDArray[np.bool_]:
    found = Threads(values, {}, np.zeros((0, 4))).value(condition)
    return np.broadcast_to(np.asarray(found, np.bool_), next(iter(values.values())).shape)


def moved(case: Case, looked_up: Floats | None, whole: bool) -> Floats:
    """What the map's code reads: each value of the output, or each slice of it as (b, y, x, slice, lane)."""
    movement, shape = movement_of(case.node), case.wanted.shape
    sizes = (*shape[:3], -(-shape[3] // 4) if whole else shape[3])
    grid = dict(zip(SIDES, np.meshgrid(*map(np.arange, sizes), indexing="ij"), strict=True))
    b, y, x, c = (Index.variable(Name(name, "int"), 0, size - 1) for name, size in zip(SIDES, sizes, strict=True))
    at = [b, y, x, c.times(4) if whole else c]
    if (axis := movement.lookup(case.node)) is not None:
        assert looked_up is not None
        grid["found"] = looked_up.astype(np.int64)[evaluate(at[axis], grid)]
        at[axis] = Index.variable(Name("found", "int"), 0, case.inputs[0].shape[axis] - 1)
    found = np.full((*sizes, 4) if whole else sizes, movement.fill(case.node) if movement.fill else 0, np.float32)
    open_places = np.ones(sizes, np.bool_)
    for source in movement.sources(case.graph, case.node, (at[0], at[1], at[2], at[3])):
        places = [evaluate(index, grid) for index in source.at]
        taken = open_places & holds(source.when, grid)
        values = case.inputs[source.operand]
        for place, size in zip(places, values.shape, strict=True):
            assert place.min() >= 0, "reads in front of its input, if in vain"
            assert place.max() < size, "reads behind its input, if in vain"
        if whole:
            assert not np.any(places[3][taken] % 4)
            values = pad_lanes(values, 3).reshape(*values.shape[:3], -1, 4)
            places[3] = places[3] // 4
        found[taken] = values[tuple(places)][taken]
        open_places &= ~taken
    return found


def check(case: Case, looked_up: Floats | None = None) -> None:
    assert np.array_equal(moved(case, looked_up, whole=False), case.wanted)
    if movement_of(case.node).together(case.graph, case.node):
        slices = moved(case, looked_up, whole=True)
        assert np.array_equal(slices.reshape(*case.wanted.shape[:3], -1)[..., : case.wanted.shape[3]], case.wanted)


SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 5), st.sampled_from((1, 2, 3, 4, 5, 8, 12, 13)))
AXES = st.integers(0, 3)


def amounts(data: st.DataObject, most: Sequence[int]) -> tuple[tuple[int, int], ...]:
    return tuple((data.draw(st.integers(0, size)), data.draw(st.integers(0, size))) for size in most)


@settings(max_examples=60, deadline=None)
@given(st.data(), SHAPES)
def test_pads(data: st.DataObject, shape: Shape) -> None:
    around = amounts(data, (2, 3, 3, data.draw(st.sampled_from((0, 3, 4)))))
    value = data.draw(st.sampled_from((0.0, -2.5)))
    values = numbered(shape)
    check(Case("PADV2", [values], Pad(around, value), np.pad(values, around, constant_values=value)))


@settings(max_examples=60, deadline=None)
@given(st.data(), SHAPES, st.booleans())
def test_mirrors(data: st.DataObject, shape: Shape, symmetric: bool) -> None:
    around = amounts(data, [size - (not symmetric) for size in shape])
    values = numbered(shape)
    wanted = np.pad(values, around, "symmetric") if symmetric else np.pad(values, around, "reflect")
    check(Case("MIRROR_PAD", [values], MirrorPad(around, symmetric), wanted))


@settings(max_examples=80, deadline=None)
@given(st.data(), SHAPES)
def test_slices(data: st.DataObject, shape: Shape) -> None:
    begin = tuple(data.draw(st.integers(0, size - 1)) for size in shape)
    strides = tuple(data.draw(st.sampled_from((-2, -1, 1, 1, 3))) for _ in shape)
    ranges = [range(b, n if s > 0 else -1, s) for b, n, s in zip(begin, shape, strides, strict=True)]
    sizes = tuple(data.draw(st.integers(1, len(places))) for places in ranges)
    values = numbered(shape)
    wanted = values[np.ix_(*(list(places)[:size] for places, size in zip(ranges, sizes, strict=True)))]
    check(Case("STRIDED_SLICE", [values], StridedSlice(begin, sizes, strides), wanted))


@settings(max_examples=40, deadline=None)
@given(SHAPES, st.sets(AXES, min_size=1))
def test_reverses(shape: Shape, axes: set[int]) -> None:
    """Of several dimensions too, of which old versions of TensorFlow Lite reverse but the first."""
    values = numbered(shape)
    check(Case("REVERSE_V2", [values], Axes(tuple(sorted(axes))), np.flip(values, tuple(axes))))


@settings(max_examples=80, deadline=None)
@given(st.data(), SHAPES, AXES, st.integers(1, 5))
def test_concatenations(data: st.DataObject, shape: Shape, axis: int, count: int) -> None:
    sizes = st.sampled_from((1, 2, 3, 4, 8, 12))
    shapes = [(*shape[:axis], data.draw(sizes), *shape[axis + 1 :]) for _ in range(count)]
    parts = [numbered(part, 1 + 1000 * k) for k, part in enumerate(shapes)]
    check(Case("CONCATENATION", parts, Concatenation(axis=axis), np.concatenate(parts, axis)))


@settings(max_examples=80, deadline=None)
@given(st.data(), SHAPES)
def test_reshapes(data: st.DataObject, shape: Shape) -> None:
    target, left = list[int](), int(np.prod(shape))
    for _ in range(3):
        target.append(data.draw(st.sampled_from([n for n in range(1, left + 1) if left % n == 0])))
        left //= target[-1]
    wanted = data.draw(st.permutations([*target, left]))
    values = numbered(shape)
    check(Case("RESHAPE", [values], Attributes(), values.reshape(wanted)))


@settings(max_examples=40, deadline=None)
@given(SHAPES, st.permutations(range(4)))
def test_transposes(shape: Shape, order: list[int]) -> None:
    values = numbered(shape)
    check(Case("TRANSPOSE", [values], Transpose(tuple(order)), values.transpose(order)))


@settings(max_examples=40, deadline=None)
@given(SHAPES, st.tuples(*[st.integers(1, 3)] * 4), st.tuples(*[st.booleans()] * 4))
def test_tiles_and_broadcasts(shape: Shape, repeats: Shape, ones: tuple[bool, ...]) -> None:
    values = numbered(shape)
    check(Case("TILE", [values], Repeat(repeats), np.tile(values, repeats)))
    small = numbered(tuple(1 if one else size for one, size in zip(ones, shape, strict=True)))
    check(Case("BROADCAST_TO", [small], Attributes(), np.broadcast_to(small, shape)))


@settings(max_examples=40, deadline=None)
@given(st.data(), SHAPES, AXES)
def test_gathers(data: st.DataObject, shape: Shape, axis: int) -> None:
    places = data.draw(st.lists(st.integers(0, shape[axis] - 1), min_size=1, max_size=6))
    values, indices = numbered(shape), np.array(places, np.float32)
    case = Case("GATHER", [values, indices.reshape(1, 1, 1, -1)], Axis(axis), np.take(values, places, axis))
    check(case, indices)


BLOCKS = st.tuples(st.integers(1, 3), st.integers(1, 3))


@settings(max_examples=60, deadline=None)
@given(SHAPES, BLOCKS, st.tuples(*[st.integers(0, 3)] * 4))
def test_blocks(shape: Shape, block: tuple[int, int], around: tuple[int, int, int, int]) -> None:
    (batch, height, width, channels), (tall, wide) = shape, block
    deep = numbered((batch, height * tall, width * tall, channels))
    parts = deep.reshape(batch, height, tall, width, tall, channels).transpose(0, 1, 3, 2, 4, 5)
    check(Case("SPACE_TO_DEPTH", [deep], Attributes(), parts.reshape(batch, height, width, -1)))
    top, bottom, left, right = around
    bottom += -(top + height + bottom) % tall
    right += -(left + width + right) % wide
    values = numbered(shape)
    padded = np.pad(values, ((0, 0), (top, bottom), (left, right), (0, 0)))
    rows, columns = padded.shape[1] // tall, padded.shape[2] // wide
    spread = padded.reshape(batch, rows, tall, columns, wide, channels).transpose(2, 4, 0, 1, 3, 5)
    spread = spread.reshape(-1, rows, columns, channels)
    padding = Padding(top, bottom, left, right)
    check(Case("SPACE_TO_BATCH_ND", [values], SpaceToBatch(block, padding), spread))
    check(Case("BATCH_TO_SPACE_ND", [spread], BatchToSpace(block, padding), values))
