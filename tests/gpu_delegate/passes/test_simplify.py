"""Moves joined and dropped: what remains, and that TensorFlow Lite computes the same from it."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gpu_delegate.passes.test_merging import check_same_results
from tests.model_files.graphs import PLAIN, GraphBuilder, ops_of
from texelflow.gpu_delegate.model.graph import (
    Activated,
    Attributes,
    Axes,
    BatchToSpace,
    Concatenation,
    Graph,
    MirrorPad,
    Pad,
    Padding,
    Reduce,
    Repeat,
    SpaceToBatch,
    StridedSlice,
    Transpose,
)
from texelflow.gpu_delegate.passes.pipeline import PASSES, run_passes
from texelflow.gpu_delegate.passes.simplify import drop_unused, join_moves, remove_identities

SHAPE = (1, 3, 4, 5)
NOTHING = ((0, 0),) * 4
IDENTITIES: dict[str, Attributes] = {
    "RESHAPE": PLAIN,
    "BROADCAST_TO": PLAIN,
    "PAD": Pad(NOTHING),
    "PADV2": Pad(NOTHING, 3.0),
    "MIRROR_PAD": MirrorPad(NOTHING),
    "TILE": Repeat((1, 1, 1, 1)),
    "STRIDED_SLICE": StridedSlice((0,) * 4, SHAPE, (1,) * 4),
    "TRANSPOSE": Transpose((0, 1, 2, 3)),
    "REVERSE_V2": Axes((0,)),
    "SUM": Reduce((0,), True),
    "REDUCE_MAX": Reduce((0,), True),
    "CONCATENATION": Concatenation(axis=2),
    "SPACE_TO_BATCH_ND": SpaceToBatch(),
    "BATCH_TO_SPACE_ND": BatchToSpace(),
}
CHANGES: dict[str, Attributes] = {
    "STRIDED_SLICE": StridedSlice((0, 2, 0, 0), SHAPE, (1, -1, 1, 1)),
    "TRANSPOSE": Transpose((0, 2, 1, 3)),
    "REVERSE_V2": Axes((1,)),
    "CONCATENATION": Concatenation("RELU", 2),
    "SPACE_TO_BATCH_ND": SpaceToBatch((1, 1), Padding(1)),
}


def around(op: str, attributes: Attributes, shape: tuple[int, ...] = SHAPE) -> Graph:
    """Something before and after the op, so that it is no output."""
    g = GraphBuilder()
    return g.graph(g.node("NEG", [g.node(op, [g.node("NEG", [g.input(*shape)])], shape, attributes)]))


@pytest.mark.parametrize("op", IDENTITIES)
def test_identities_are_removed(op: str) -> None:
    graph = around(op, IDENTITIES[op])
    changed, outcome = remove_identities(graph)
    assert ops_of(changed) == ["NEG", "NEG"]
    assert outcome.applied == 1
    check_same_results(graph, changed)


@pytest.mark.parametrize("op", CHANGES)
def test_what_changes_values_stays(op: str) -> None:
    """Though all dimensions have the same size, and the output that of the input."""
    changed, outcome = remove_identities(around(op, CHANGES[op], (1, 3, 3, 3)))
    assert ops_of(changed) == ["NEG", op, "NEG"]
    assert outcome.applied == 0


@pytest.mark.parametrize(
    ("op", "value", "removed"),
    [("ADD", 0, True), ("SUB", 0, True), ("MUL", 1, True), ("DIV", 1, True), ("ADD", 1, False), ("MUL", 0, False)],
)
def test_arithmetic_that_changes_nothing(op: str, value: float, removed: bool) -> None:
    g = GraphBuilder()
    graph = g.graph(g.node("NEG", [g.node(op, [g.input(*SHAPE), g.constant([value] * 5)], None, Activated())]))
    assert ops_of(remove_identities(graph)[0]) == (["NEG"] if removed else [op, "NEG"])
    g = GraphBuilder()
    larger = g.graph(g.node("NEG", [g.node(op, [g.input(1, 3, 4, 1), g.constant([value] * 5)], None, Activated())]))
    assert ops_of(remove_identities(larger)[0]) == [op, "NEG"]


def test_a_constant_minus_a_value_stays() -> None:
    g = GraphBuilder()
    graph = g.graph(g.node("NEG", [g.node("SUB", [g.constant([0.0] * 5), g.input(*SHAPE)], None, Activated())]))
    assert ops_of(remove_identities(graph)[0]) == ["SUB", "NEG"]


def test_a_reshape_to_the_same_shape_does_not_keep_two_moves_apart() -> None:
    g = GraphBuilder()
    x = g.node("TRANSPOSE", [g.input(3, 2, 4, 5)], (2, 3, 4, 5), Transpose((1, 0, 2, 3)))
    x = g.node("TRANSPOSE", [g.node("RESHAPE", [x], (2, 3, 4, 5))], (2, 3, 5, 4), Transpose((0, 1, 3, 2)))
    graph = g.graph(g.node("ABS", [x]))
    changed, _ = run_passes(graph, (join_moves, remove_identities, drop_unused))
    assert ops_of(changed) == ["TRANSPOSE", "ABS"]
    check_same_results(graph, changed)


@settings(max_examples=60)
@given(data=st.data())
def test_chains_of_moves_compute_the_same(data: st.DataObject) -> None:
    """RESHAPE and TRANSPOSE in any order, read in between or not; few are left."""
    g = GraphBuilder()
    x = g.input(*data.draw(st.permutations((1, 2, 3, 4))))
    moved, outputs = x, []
    for _ in range(data.draw(st.integers(1, 5))):
        shape = g.shape(moved)
        if data.draw(st.booleans()):
            order = tuple(data.draw(st.permutations(range(len(shape)))))
            moved = g.node("TRANSPOSE", [moved], tuple(shape[k] for k in order), Transpose(order))
        else:
            shape = data.draw(st.sampled_from(((24,), (4, 6), (1, 3, 8), (2, 1, 12, 1), (3, 2, 2, 2))))
            moved = g.node("RESHAPE", [moved], shape)
        if data.draw(st.booleans()):
            outputs.append(g.node("NEG", [moved]))
    graph = g.graph(*outputs, g.node("ABS", [moved]))
    changed, _ = run_passes(graph, (join_moves, remove_identities, drop_unused))
    assert len(changed.nodes) <= len(graph.nodes)
    producers = changed.producers()
    for node in changed.nodes:
        before = producers.get(node.inputs[0])
        assert before is None or before.op != node.op, "two moves of one kind in a row"
    check_same_results(graph, changed)


@pytest.mark.parametrize(
    ("shape", "order", "op"),
    [
        ((1, 3, 1, 5), (0, 2, 1, 3), "RESHAPE"),
        ((1, 3, 1, 5), (1, 0, 3, 2), "RESHAPE"),
        ((1, 3, 4, 1), (0, 2, 1, 3), "TRANSPOSE"),
        ((1, 1, 1, 5), (3, 2, 1, 0), "RESHAPE"),
    ],
)
def test_transpose_of_sizes_of_one(shape: tuple[int, ...], order: tuple[int, ...], op: str) -> None:
    g = GraphBuilder()
    graph = g.graph(g.node("TRANSPOSE", [g.input(*shape)], tuple(shape[k] for k in order), Transpose(order)))
    changed, _ = join_moves(graph)
    assert ops_of(changed) == [op]
    check_same_results(graph, changed)


def classifier_tail(g: GraphBuilder) -> Graph:
    """As converters end a classifier: a window over everything, no dimensions of one, SOFTMAX, a shape."""
    x = g.node("SQUEEZE", [g.node("MEAN", [g.input(1, 3, 3, 5)], (1, 1, 1, 5), Reduce((1, 2), True))], (1, 5))
    x = g.node("ADD", [g.node("MUL", [x, g.random(5)], None, Activated("RELU6")), g.random(1)], None, Activated())
    return g.graph(g.node("RESHAPE", [g.node("EXPAND_DIMS", [x], (1, 1, 5))], (1, 5)))


def norm_between_moves(g: GraphBuilder) -> Graph:
    x = g.node("TRANSPOSE", [g.input(1, 4, 3, 2)], (1, 2, 4, 3), Transpose((0, 3, 1, 2)))
    y = g.node("L2_NORMALIZATION", [x], None, Activated())
    back = g.node("TRANSPOSE", [y], (1, 4, 3, 2), Transpose((0, 2, 3, 1)))
    zeros = g.constant(np.zeros((1, 1, 3, 2)))
    return g.graph(g.node("CONCATENATION", [zeros, back, zeros], (1, 6, 3, 2), Concatenation(axis=1)))


@pytest.mark.parametrize("draw", [classifier_tail, norm_between_moves], ids=lambda draw: draw.__name__)
def test_all_passes_together_compute_the_same(draw: Callable[[GraphBuilder], Graph]) -> None:
    graph = draw(GraphBuilder())
    changed, _ = run_passes(graph)
    again, reports = run_passes(changed)
    assert ops_of(again) == ops_of(changed)
    assert sum(report.applied for report in reports) == 0, [report.name for report in reports if report.applied]
    check_same_results(graph, changed)


def test_every_pass_is_listed_once() -> None:
    assert len(set(PASSES)) == len(PASSES)
