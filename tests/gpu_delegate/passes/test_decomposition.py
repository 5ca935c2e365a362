"""Ops replaced by others: the nodes that result, and that TensorFlow Lite computes the same from them."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.model_files.graph_writer import Values, run_graph
from tests.model_files.graphs import GraphBuilder
from texelflow.gpu_delegate.model.graph import (
    Activated,
    Axis,
    Concatenation,
    Graph,
    Padding,
    Pool2D,
    Reduce,
    Softmax,
    Split,
    StridedSlice,
)
from texelflow.gpu_delegate.model.rewrite import Pass
from texelflow.gpu_delegate.ops.normalization import LocalResponse, MeanStddev
from texelflow.gpu_delegate.ops.top import Top
from texelflow.gpu_delegate.passes.decomposition import (
    decompose_normalizations,
    split_concatenations,
    split_reductions,
    split_sums,
    split_to_slices,
    split_top,
    unify_moves,
)
from texelflow.gpu_delegate.passes.verification import verify

Draw = Callable[[GraphBuilder], int | tuple[int, ...]]


def check(step: Pass, draw: Draw, ops: list[str], scale: float = 1.0, tolerance: float = 1e-6) -> Graph:
    """The nodes that a pass makes, and the same results on inputs of -scale to scale."""
    g = GraphBuilder()
    outputs = draw(g)
    graph = g.graph(*(outputs if isinstance(outputs, tuple) else (outputs,)))
    changed, outcome = step(graph)
    verify(changed)
    assert [node.op for node in changed.nodes] == ops
    assert outcome.applied == 1
    assert step(changed)[1].applied == 0
    inputs: list[Values] = [
        (g.rng.uniform(-scale, scale, graph.tensors[i].shape)).astype(graph.tensors[i].dtype) for i in graph.inputs
    ]
    for found, wanted in zip(run_graph(changed, inputs), run_graph(graph, inputs), strict=True):
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        assert np.allclose(found, wanted, rtol=tolerance, atol=tolerance)
    return changed


@pytest.mark.parametrize(("axis", "op"), [(0, "SPLIT"), (2, "SPLIT"), (3, "SPLIT"), (3, "SPLIT_V"), (1, "SPLIT_V")])
def test_splits(axis: int, op: str) -> None:
    shape = (2, 4, 6, 8)
    sizes = (1, shape[axis] - 2, 1) if op == "SPLIT_V" else (shape[axis] // 2,) * 2
    shapes = [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]
    changed = check(
        split_to_slices,
        lambda g: g.nodes_outputs(op, [g.input(*shape)], shapes, Split(axis, sizes)),
        ["STRIDED_SLICE"] * len(sizes),
    )
    for node, begin in zip(changed.nodes, np.cumsum((0, *sizes)), strict=False):
        assert isinstance(node.attributes, StridedSlice)
        assert node.attributes.begin[axis] == begin


@pytest.mark.parametrize("axis", [0, 1, 3])
def test_unpack(axis: int) -> None:
    shape = (2, 3, 4, 5)
    shapes = [(*shape[:axis], *shape[axis + 1 :])] * shape[axis]
    check(
        split_to_slices,
        lambda g: g.nodes_outputs("UNPACK", [g.input(*shape)], shapes, Axis(axis)),
        ["STRIDED_SLICE", "RESHAPE"] * shape[axis],
    )


def test_types_other_than_float_are_kept() -> None:
    def draw(g: GraphBuilder) -> tuple[int, ...]:
        return g.nodes_outputs("UNPACK", [g.input(3, 2, dtype="int32")], [(3,)] * 2, Axis(1), dtype="int32")

    changed = check(split_to_slices, draw, ["STRIDED_SLICE", "RESHAPE"] * 2, scale=9)
    assert {tensor.dtype for tensor in changed.tensors.values()} == {"int32"}


@pytest.mark.parametrize("axis", [0, 1, 3])
def test_pack(axis: int) -> None:
    shape = tuple(np.insert((2, 4, 5), axis, 3).tolist())

    def draw(g: GraphBuilder) -> int:
        x = g.input(2, 4, 5)
        return g.node("PACK", [x, g.input(2, 4, 5), x], shape, Axis(axis))

    check(unify_moves, draw, ["RESHAPE", "RESHAPE", "CONCATENATION"])


@pytest.mark.parametrize(("rows", "count", "ops", "most"), [(2, 16, 3, 15), (2, 100, 10, 15), (65537, 8, 3, 7)])
def test_concatenations_of_many(rows: int, count: int, ops: int, most: int) -> None:
    """More than all devices have texture units for; or more than they have storage buffers, where parts are large."""

    def draw(g: GraphBuilder) -> int:
        sizes = [1 + k % 3 for k in range(count - 1)]
        parts = [g.input(rows, size) for size in sizes]
        return g.node("CONCATENATION", [*parts, parts[0]], (rows, sum(sizes) + 1), Concatenation(axis=1))

    changed = check(split_concatenations, draw, ["CONCATENATION"] * ops)
    assert max(len(node.inputs) for node in changed.nodes) <= most


def test_moves_of_one_kind() -> None:
    part = StridedSlice((0, 1, 0, 2), (1, 2, 4, 3), (1, 1, 1, 1))
    check(unify_moves, lambda g: g.node("SLICE", [g.input(1, 3, 4, 5)], part.sizes, part), ["STRIDED_SLICE"])
    check(unify_moves, lambda g: g.node("EXPAND_DIMS", [g.input(3, 4)], (3, 1, 4)), ["RESHAPE"])
    check(unify_moves, lambda g: g.node("SQUEEZE", [g.input(1, 3, 1, 4)], (3, 4)), ["RESHAPE"])


@pytest.mark.parametrize("shape", [(1, 7), (1, 3, 4, 5), (4, 9), (1, 1, 1, 1)], ids=str)
@pytest.mark.parametrize("scale", [1.0, 80.0])
def test_softmax(shape: tuple[int, ...], scale: float) -> None:
    """Also of numbers whose powers of e no float32 holds."""
    ops = ["REDUCE_MAX", "SUB", "EXP", "SUM", "DIV"]
    check(decompose_normalizations, lambda g: g.node("SOFTMAX", [g.input(*shape)], None, Softmax()), ops, scale, 1e-5)


def test_softmax_with_beta() -> None:
    ops = ["REDUCE_MAX", "SUB", "MUL", "EXP", "SUM", "DIV"]
    check(decompose_normalizations, lambda g: g.node("SOFTMAX", [g.input(1, 9)], None, Softmax(0.25)), ops, 9.0, 1e-5)


@pytest.mark.parametrize("scale", [1.0, 80.0])
def test_log_softmax(scale: float) -> None:
    ops = ["REDUCE_MAX", "SUB", "EXP", "SUM", "LOG", "SUB"]
    check(decompose_normalizations, lambda g: g.node("LOG_SOFTMAX", [g.input(1, 3, 4, 5)]), ops, scale, 1e-5)


@pytest.mark.parametrize("scale", [1.0, 0.0, 1e-9, 100.0])
def test_l2_normalization(scale: float) -> None:
    """Also of nothing but zeros."""
    ops = ["SQUARE", "SUM", "SQRT", "MAXIMUM", "DIV"]
    draw: Draw = lambda g: g.node("L2_NORMALIZATION", [g.input(1, 3, 4, 5)], None, Activated())  # noqa: E731
    check(decompose_normalizations, draw, ops, scale, 1e-5)


@pytest.mark.parametrize("scale", [0.01, 200.0])
def test_normalization_to_mean_and_deviation(scale: float) -> None:
    """No file has it: what it is is said in NumPy."""
    g = GraphBuilder()
    graph = g.graph(g.node("MEAN_STDDEV_NORMALIZATION", [g.input(2, 3, 13)], (2, 3, 13), MeanStddev(1e-8)))
    changed, _ = decompose_normalizations(graph)
    verify(changed)
    assert [node.op for node in changed.nodes] == ["MEAN", "SUB", "SQUARE", "MEAN", "ADD", "RSQRT", "MUL"]
    x = np.random.default_rng(0).uniform(-scale, scale, (2, 3, 13)).astype(np.float32)
    x[0, 0] = scale
    (found,) = run_graph(changed, [x])
    centered = x - x.mean(axis=2, keepdims=True)
    wanted = centered / np.sqrt(np.square(centered).mean(axis=2, keepdims=True) + 1e-8)
    assert np.allclose(found, wanted, atol=2e-5)


@pytest.mark.parametrize("activation", ["NONE", "RELU6"])
def test_pools_of_squares(activation: str) -> None:
    ops = ["SQUARE", "AVERAGE_POOL_2D", "SQRT", *([activation] if activation != "NONE" else [])]
    pool = Pool2D(activation, (3, 2), (2, 1), Padding(1, 1, 0, 1))
    check(
        decompose_normalizations,
        lambda g: g.node("L2_POOL_2D", [g.input(1, 5, 6, 3)], (1, 3, 6, 3), pool),
        ops,
        9.0,
    )


def test_normalization_by_neighbors() -> None:
    local = LocalResponse(2, 1.0, 0.5, 0.75)
    draw: Draw = lambda g: g.node("LOCAL_RESPONSE_NORMALIZATION", [g.input(1, 3, 4, 9)], None, local)  # noqa: E731
    check(decompose_normalizations, draw, ["SQUARE", "CONV_2D", "POW", "MUL"])


def test_the_greatest_values_and_their_places() -> None:
    g = GraphBuilder()
    values, places = g.nodes_outputs("TOPK_V2", [g.input(2, 7)], [(2, 3)] * 2, Top(3))
    changed, outcome = split_top(g.graph(values, places))
    assert outcome.applied == 1
    assert [(node.op, node.outputs) for node in changed.nodes] == [
        ("TOPK_VALUES", (values,)),
        ("TOPK_INDICES", (places,)),
    ]


def test_sums_of_many() -> None:
    check(split_sums, lambda g: g.node("ADD_N", [g.input(2, 3) for _ in range(4)], (2, 3)), ["ADD"] * 3)


@pytest.mark.parametrize(
    ("axes", "parts"),
    [((1, 2, 3), [(1, 2), (3,)]), ((0, 3), [(0,), (3,)]), ((0, 1, 2, 3), [(0, 1, 2), (3,)])],
)
@pytest.mark.parametrize("op", ["MEAN", "SUM", "REDUCE_MIN"])
def test_reductions(op: str, axes: tuple[int, ...], parts: list[tuple[int, ...]]) -> None:
    shape = tuple(1 if k in axes else size for k, size in enumerate((2, 3, 4, 5)))
    changed = check(
        split_reductions, lambda g: g.node(op, [g.input(2, 3, 4, 5)], shape, Reduce(axes, True)), [op, op], 1.0, 1e-5
    )
    assert [node.attributes for node in changed.nodes] == [Reduce(part, True) for part in parts]


def test_a_reduction_of_one_pixel_is_one_of_channels() -> None:
    g = GraphBuilder()
    graph = g.graph(g.node("SUM", [g.input(1, 1, 1, 5)], (1, 1, 1, 1), Reduce((1, 2, 3), True)))
    changed, _ = split_reductions(graph)
    assert [node.attributes for node in changed.nodes] == [Reduce((3,), True)]
