"""Broken graphs are refused with what is broken, and the pass that broke one is named."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.model_files.graphs import GraphBuilder
from texelflow.gpu_delegate.base.errors import ModelError
from texelflow.gpu_delegate.model.graph import (
    Attributes,
    Axis,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    Graph,
    Node,
    Pad,
    Padding,
    Pool2D,
    Reduce,
    StridedSlice,
    Transpose,
    TransposeConv2D,
)
from texelflow.gpu_delegate.model.rewrite import Outcome
from texelflow.gpu_delegate.passes import pipeline
from texelflow.gpu_delegate.passes.pipeline import is_verifying, run_passes
from texelflow.gpu_delegate.passes.verification import verify


def sound() -> Graph:
    """x, ADD, NEG."""
    g = GraphBuilder()
    return g.graph(g.node("NEG", [g.node("ADD", [g.input(1, 4, 5, 3), g.random(3)])]))


def with_nodes(graph: Graph, *nodes: Node) -> Graph:
    return replace(graph, nodes=nodes)


def without(graph: Graph, tensor: int) -> Graph:
    return replace(graph, tensors={i: t for i, t in graph.tensors.items() if i != tensor})


ORDER: dict[str, tuple[Callable[[Graph], Graph], str]] = {
    "early": (lambda g: with_nodes(g, *g.nodes[::-1]), r"node 0 \(NEG\) reads tensor 2 \(t2\) before anything"),
    "removed": (lambda g: with_nodes(g, g.nodes[1]), r"node 0 \(NEG\) reads tensor 2 \(t2\) before anything"),
    "twice": (
        lambda g: with_nodes(g, g.nodes[0], *g.nodes),
        r"node 1 \(ADD\) writes tensor 2 \(t2\), which has a value",
    ),
    "constant": (
        lambda g: with_nodes(g, replace(g.nodes[0], outputs=(1,)), g.nodes[1]),
        r"node 0 \(ADD\) writes tensor 1 \(t1\), which has a value",
    ),
    "input": (
        lambda g: with_nodes(g, replace(g.nodes[0], outputs=(0,)), g.nodes[1]),
        r"node 0 \(ADD\) writes tensor 0 \(t0\), which has a value",
    ),
    "at once": (lambda g: with_nodes(g, replace(g.nodes[0], outputs=(2, 2)), g.nodes[1]), r"writes a tensor twice"),
    "unwritten": (lambda g: with_nodes(g, g.nodes[0]), "nothing writes output tensor 3"),
    "missing": (lambda g: without(g, 1), r"node 0 \(ADD\) reads tensor 1, which is missing"),
    "missing result": (lambda g: without(g, 2), r"node 0 \(ADD\) writes tensor 2, which is missing"),
    "missing output": (lambda g: without(g, 3), "tensor 3, an input or output of the graph, is missing"),
}


@pytest.mark.parametrize("name", ORDER)
def test_order_and_tensors(name: str) -> None:
    verify(sound())
    damage, message = ORDER[name]
    with pytest.raises(ModelError, match=message):
        verify(damage(sound()))


def test_a_constant_may_be_an_output() -> None:
    g = GraphBuilder()
    g.input(1)
    verify(g.graph(g.random(3)))


# An op with inputs of these shapes and attributes, a shape of its output that is right, and others that are not.
SHAPES: dict[str, tuple[list[tuple[int, ...]], Attributes, tuple[int, ...], list[tuple[int, ...]]]] = {
    "ADD": ([(1, 4, 5, 3), (3,)], Attributes(), (1, 4, 5, 3), [(1, 4, 5, 1), (4, 5, 3)]),
    "RELU": ([(1, 4, 5, 3)], Attributes(), (1, 4, 5, 3), [(1, 5, 4, 3)]),
    "RESHAPE": ([(1, 4, 5, 3)], Attributes(), (4, 15), [(4, 14), (1, 4, 5)]),
    "CONV_2D": (
        [(2, 5, 6, 3), (7, 2, 3, 3), (7,)],
        Conv2D(padding=Padding(1, 0, 2, 0), stride=(2, 1)),
        (2, 3, 6, 7),
        [(2, 3, 6, 3), (2, 2, 6, 7), (2, 3, 5, 7), (1, 3, 6, 7)],
    ),
    "CONV_2D dilated": ([(1, 9, 9, 3), (7, 3, 3, 3)], Conv2D(dilation=(2, 3)), (1, 5, 3, 7), [(1, 7, 7, 7)]),
    "CONV_2D vector": ([(1, 5), (3, 1, 1, 5), (3,)], Conv2D(), (1, 3), [(1, 5)]),
    "CONV_2D grouped": ([(1, 5, 5, 4), (4, 1, 1, 2)], Conv2D(), (1, 5, 5, 4), [(1, 5, 5, 5)]),
    "CONV_2D channels": ([(1, 5, 5, 4), (4, 1, 1, 3)], Conv2D(), (), [(1, 5, 5, 4)]),
    "CONV_2D bias": ([(1, 5, 5, 4), (4, 1, 1, 4), (3,)], Conv2D(), (), [(1, 5, 5, 4)]),
    "CONV_2D attributes": ([(1, 5, 5, 4), (4, 1, 1, 4)], Attributes(), (), [(1, 5, 5, 4)]),
    "DEPTHWISE_CONV_2D": (
        [(1, 5, 6, 3), (1, 2, 2, 6), (6,)],
        DepthwiseConv2D(multiplier=2),
        (1, 4, 5, 6),
        [(1, 4, 5, 3), (1, 5, 6, 6)],
    ),
    "TRANSPOSE_CONV": (
        [(1, 5, 6, 3), (7, 2, 2, 3), (7,)],
        TransposeConv2D(stride=(2, 2)),
        (1, 10, 12, 7),
        [(1, 10, 12, 3), (2, 10, 12, 7)],
    ),
    "FULLY_CONNECTED": ([(2, 6), (5, 3), (5,)], Attributes(), (4, 5), [(2, 5), (5, 4)]),
    "MAX_POOL_2D": ([(1, 5, 6, 3)], Pool2D(kernel=(2, 2)), (1, 4, 5, 3), [(1, 5, 6, 3), (1, 4, 5, 2)]),
    "RESIZE_BILINEAR": ([(1, 5, 6, 3)], Attributes(), (1, 9, 9, 3), [(1, 9, 9, 4), (9, 9, 3)]),
    "MEAN": ([(1, 5, 6, 3)], Reduce((1, 2), True), (1, 1, 1, 3), [(1, 3), (1, 5, 1, 3)]),
    "SUM": ([(1, 5, 6, 3)], Reduce((3,)), (1, 5, 6), [(1, 5, 6, 1)]),
    "CONCATENATION": ([(1, 2, 3), (1, 4, 3)], Concatenation(axis=1), (1, 6, 3), [(1, 6, 4), (1, 5, 3)]),
    "CONCATENATION axis": ([(1, 2, 3), (1, 4, 3)], Concatenation(axis=2), (), [(1, 2, 6)]),
    "PAD": ([(2, 3)], Pad(((1, 0), (0, 2))), (3, 5), [(2, 3), (4, 5)]),
    "STRIDED_SLICE": ([(4, 5)], StridedSlice((3, 1), (2, 3), (-2, 1)), (2, 3), [(2, 2)]),
    "STRIDED_SLICE outside": ([(4, 5)], StridedSlice((3, 1), (2, 3), (-4, 1)), (), [(2, 3)]),
    "TRANSPOSE": ([(2, 3, 4)], Transpose((2, 0, 1)), (4, 2, 3), [(2, 3, 4)]),
    "TRANSPOSE order": ([(2, 2)], Transpose((0, 0)), (), [(2, 2)]),
    "PACK": ([(2, 3), (2, 3)], Axis(1), (2, 2, 3), [(2, 3, 2)]),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str) -> None:
    inputs, attributes, right, wrong = SHAPES[name]
    op = name.partition(" ")[0]
    for shape in ([right] if right else []) + wrong:
        g = GraphBuilder()
        tensors = [g.input(*inputs[0]), *(g.random(*other) for other in inputs[1:])]
        graph = g.graph(g.node(op, tensors, shape, attributes))
        if shape == right:
            verify(graph)
        else:
            with pytest.raises(ModelError, match=rf"node 0 \({op}\) does not make"):
                verify(graph)


def breaks(graph: Graph) -> tuple[Graph, Outcome]:
    """Loses a node."""
    return with_nodes(graph, *graph.nodes[1:]), Outcome(1)


def keeps(graph: Graph) -> tuple[Graph, Outcome]:
    """Does nothing."""
    return graph, Outcome(0)


def test_the_pass_that_broke_a_graph_is_named() -> None:
    with pytest.raises(RuntimeError, match=r"pass breaks broke the graph: node 0 \(NEG\) reads tensor 2"):
        run_passes(sound(), (keeps, breaks, keeps))


def test_a_graph_that_comes_broken_is_no_fault_of_a_pass() -> None:
    with pytest.raises(ModelError, match="reads tensor 2"):
        run_passes(breaks(sound())[0], (keeps,))


def test_users_verify_with_debug_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "is_verifying", is_verifying)  # the function itself: in tests all graphs are verified
    run_passes(sound(), (breaks,))
    monkeypatch.setenv("DEBUG", "1")
    with pytest.raises(RuntimeError, match="pass breaks"):
        run_passes(sound(), (breaks,))
