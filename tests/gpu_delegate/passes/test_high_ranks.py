"""Ops on five and six dimensions, against TensorFlow Lite."""

from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np
import pytest

from tests.helpers.delegated import AnyValues
from tests.helpers.engine import run
from tests.helpers.markers import one_in
from tests.helpers.native import native_networks
from tests.model_files.graphs import GraphBuilder
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.model.graph import (
    Activated,
    Axes,
    Axis,
    Concatenation,
    Graph,
    MirrorPad,
    Pad,
    Reduce,
    Repeat,
    Shape,
    Softmax,
    Split,
    StridedSlice,
    Transpose,
)
from texelflow.gpu_delegate.ops.matrix_product import MatrixProduct
from texelflow.gpu_delegate.passes.pipeline import run_passes
from texelflow.gpu_delegate.plan.refusals import find_refusals
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

FIVE, SIX = (2, 3, 4, 2, 5), (2, 3, 2, 4, 2, 3)


def moved(shape: Shape, order: Sequence[int]) -> Graph:
    g = GraphBuilder()
    return g.graph(g.node("TRANSPOSE", [g.input(*shape)], tuple(shape[k] for k in order), Transpose(tuple(order))))


def reduced(op: str, shape: Shape, axes: tuple[int, ...], keep: bool) -> Graph:
    g = GraphBuilder()
    out = tuple(1 if k in axes else n for k, n in enumerate(shape) if keep or k not in axes)
    return g.graph(g.node(op, [g.input(*shape)], out, Reduce(axes, keep)))


def normalized() -> Graph:
    """As in a transformer: elementwise ops, sums over the last dimension, a softmax, then other dimensions."""
    g = GraphBuilder(seed=1)
    x, y = g.input(*FIVE), g.input(*FIVE)
    total = g.node("MUL", [g.node("TANH", [x]), y], attributes=Activated())
    heads = (2, 2, 3, 4, 5)
    turned = g.node("TRANSPOSE", [g.node("SOFTMAX", [total], FIVE, Softmax())], heads, Transpose((0, 3, 1, 2, 4)))
    return g.graph(g.node("RESHAPE", [turned], (2, 2, 12, 5)), g.node("ABS", [turned]))


def products(adjoint: bool) -> Graph:
    g = GraphBuilder(seed=1)
    y = (2, 3, 4, 7, 5) if adjoint else (2, 3, 4, 5, 7)
    inputs = [g.input(*FIVE), g.input(*y)]
    return g.graph(g.node("BATCH_MATMUL", inputs, (2, 3, 4, 2, 7), MatrixProduct(adj_y=adjoint)))


def pixel_shuffle() -> Graph:
    g = GraphBuilder(seed=1)
    x = g.node("RESHAPE", [g.node("NEG", [g.input(1, 12, 5, 7)])], (1, 3, 2, 2, 5, 7))
    turned = g.node("TRANSPOSE", [x], (1, 3, 5, 2, 7, 2), Transpose((0, 1, 4, 2, 5, 3)))
    return g.graph(g.node("ABS", [g.node("RESHAPE", [turned], (1, 3, 10, 14))]))


def sliced(begin: Shape, sizes: Shape, strides: Shape) -> Graph:
    g = GraphBuilder()
    x = g.node("TANH", [g.input(*FIVE)])
    return g.graph(g.node("STRIDED_SLICE", [x], sizes, StridedSlice(begin, sizes, strides)))


def padded(op: str, amounts: tuple[tuple[int, int], ...]) -> Graph:
    g = GraphBuilder()
    out = tuple(size + sum(amount) for size, amount in zip(FIVE, amounts, strict=True))
    attributes = Pad(amounts) if op == "PAD" else MirrorPad(amounts)
    return g.graph(g.node(op, [g.input(*FIVE)], out, attributes))


def joined(axis: int) -> Graph:
    g = GraphBuilder()
    parts = [g.input(*(n if k == axis else size for k, size in enumerate(FIVE))) for n in (1, 2)]
    out = tuple(3 if k == axis else size for k, size in enumerate(FIVE))
    both = g.node("CONCATENATION", parts, out, Concatenation(axis=axis))
    outputs = g.nodes_outputs(
        "SPLIT_V",
        [both],
        [tuple(n if k == axis else s for k, s in enumerate(out)) for n in (2, 1)],
        Split(axis, (2, 1)),
    )
    return g.graph(*outputs)


def one(op: str, out: Shape, attributes: Axes | Repeat) -> Graph:
    g = GraphBuilder()
    return g.graph(g.node(op, [g.input(*FIVE)], out, attributes))


def gathered() -> Graph:
    g = GraphBuilder()
    return g.graph(g.node("GATHER", [g.input(*FIVE), g.constant([3, 0, 1], "int32")], (2, 3, 3, 2, 5), Axis(2)))


GRAPHS: dict[str, Callable[[], Graph]] = {
    "heads": normalized,
    "products": lambda: products(adjoint=False),
    "products with columns": lambda: products(adjoint=True),
    "pixel shuffle": pixel_shuffle,
    "mean of some": lambda: reduced("MEAN", FIVE, (1, 3), keep=False),
    "sums of all but one": lambda: reduced("SUM", SIX, (0, 2, 4), keep=True),
    "greatest of the last": lambda: reduced("REDUCE_MAX", SIX, (5,), keep=False),
    "slices": lambda: sliced((1, 0, 1, 0, 4), (1, 3, 2, 2, 3), (1, 1, 2, 1, -2)),
    "slices of all": lambda: sliced((0, 1, 1, 0, 1), (1, 2, 3, 1, 4), (1, 1, 1, 1, 1)),
    "padding": lambda: padded("PAD", ((0, 0), (1, 0), (0, 2), (0, 0), (3, 1))),
    "mirrors": lambda: padded("MIRROR_PAD", ((0, 0), (1, 0), (0, 2), (0, 0), (2, 1))),
    "parts of the second": lambda: joined(1),
    "parts of the last": lambda: joined(4),
    "repeated": lambda: one("TILE", (4, 3, 4, 6, 5), Repeat((2, 1, 1, 3, 1))),
    "reversed": lambda: one("REVERSE_V2", FIVE, Axes((1,))),
    "picked": gathered,
}


def check(name: str, graph: Graph, found: Sequence[AnyValues], inputs: list[AnyValues]) -> None:
    for values, wanted in zip(found, Reference(graph).run(inputs), strict=True):
        assert values.shape == wanted.shape
        np.testing.assert_allclose(values, wanted, atol=1e-5, err_msg=name)


def drawn(graph: Graph) -> list[AnyValues]:
    rng = np.random.default_rng(2)
    return [rng.normal(0, 1, graph.tensors[i].shape).astype(np.float32) for i in graph.inputs]


def test_native_code_has_the_results_of_tensorflow_lite() -> None:
    graphs = {name: build() for name, build in GRAPHS.items()}
    for name, network in native_networks(graphs).items():
        assert not find_refusals(graphs[name], SOFTWARE).reasons, name
        inputs = drawn(graphs[name])
        check(name, graphs[name], network.run(inputs), inputs)


@pytest.mark.gl
@one_in(4, "name", [*GRAPHS])
def test_so_has_the_gpu(name: str, context: Context) -> None:
    graph = GRAPHS[name]()
    program, inputs = Program(context, compile_graph(graph, SOFTWARE)), drawn(graph)
    check(name, graph, run(program, inputs), inputs)
    program.release()


def test_every_order_of_five_dimensions() -> None:
    """In NumPy, by the moves that are left: at most four dimensions each."""
    values = np.arange(np.prod(FIVE), dtype=np.float32).reshape(FIVE)
    for order in permutations(range(5)):
        graph, _ = run_passes(moved(FIVE, order))
        known = {graph.inputs[0]: values}
        for node in graph.nodes:
            before, shape = (graph.tensors[i].shape for i in (node.inputs[0], node.outputs[0]))
            x = known[node.inputs[0]].reshape(before)
            turned = x.transpose(node.attributes.order) if isinstance(node.attributes, Transpose) else x
            known[node.outputs[0]] = turned.reshape(shape)
        found = known[graph.outputs[0]] if graph.nodes else values
        assert np.array_equal(found.reshape([FIVE[k] for k in order]), values.transpose(order)), order
