"""The pass that aligns ranks: what each op computes before and after, by NumPy, and what is refused."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.model_files.graphs import GraphBuilder
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.model.graph import (
    Activated,
    Attributes,
    Axes,
    Axis,
    Concatenation,
    Graph,
    MirrorPad,
    Node,
    Pad,
    Reduce,
    Repeat,
    Shape,
    Softmax,
    StridedSlice,
    Tensor,
    Transpose,
)
from texelflow.gpu_delegate.model.layout import aligned_shape
from texelflow.gpu_delegate.model.rewrite import Rewriter
from texelflow.gpu_delegate.passes.ranks import align_ranks

Values = npt.NDArray[Any]


def computed(node: Node, xs: Sequence[Values], shape: Shape | None = None) -> Values:
    """A node's output as its attributes define it."""
    x = xs[0]
    match node.attributes:
        case Reduce(axes, keep_dims):
            return np.asarray(np.mean(x, axes, keepdims=keep_dims))
        case Pad(amounts, value):
            return np.pad(x, amounts, constant_values=value)
        case MirrorPad(amounts, symmetric):
            return np.pad(x, amounts, mode="symmetric" if symmetric else "reflect")
        case StridedSlice(begin, sizes, strides):
            ranges = [b + s * np.arange(n) for b, n, s in zip(begin, sizes, strides, strict=True)]
            return np.asarray(x[np.ix_(*ranges)].reshape(shape or ()))
        case Transpose(order):
            return x.transpose(order)
        case Axis(axis):
            found = np.take(x, xs[1].astype(int), axis)
            return found if shape is None else found.reshape(shape)  # aligned indices are a list, whatever their shape
        case Axes(axes):
            return np.flip(x, axes)
        case Repeat(repeats):
            return np.tile(x, repeats)
        case Softmax(beta):
            powers = np.exp(beta * (x - x.max(axis=-1, keepdims=True)))
            return np.asarray(powers / powers.sum(axis=-1, keepdims=True))
        case Concatenation(axis=axis):
            return np.concatenate(xs, axis)
    if node.op == "FULLY_CONNECTED":
        return np.asarray(x.reshape(-1, xs[1].shape[1]) @ xs[1].T).reshape(shape or ())
    return np.asarray(xs[0] + xs[1]) if node.op == "ADD" else x.reshape(shape or ())


def outputs(graph: Graph, given_values: Sequence[Values]) -> list[Values]:
    """The graph's outputs; every node gives the shape that its output is said to have."""
    values = {i: t.data for i, t in graph.tensors.items() if t.data is not None}
    values |= {i: value.reshape(graph.tensors[i].shape) for i, value in zip(graph.inputs, given_values, strict=True)}
    for node in graph.nodes:
        shape = graph.tensors[node.outputs[0]].shape
        values[node.outputs[0]] = computed(node, [np.asarray(values[i]) for i in node.inputs], shape)
        assert values[node.outputs[0]].shape == shape, node
    return [np.asarray(values[i]) for i in graph.outputs]


class _Chain(GraphBuilder):
    """A graph of ops one behind the other, from draws of Hypothesis."""

    def __init__(self, draw: Any) -> None:
        super().__init__()
        self.draw = draw
        rank = draw(st.integers(0, 5))
        self.input(*draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank)))

    @property
    def last(self) -> Tensor:
        return self.tensors[len(self.tensors) - 1]

    def counted(self, shape: Shape) -> int:
        return self.constant(np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape))

    def step(self) -> None:
        """One op on what was made last, with an output as NumPy says it is."""
        x, rank = self.last, len(self.last.shape)
        kinds = ["reshape", "add", "connected"]
        kinds += ["mean", "pad", "slice", "transpose", "gather", "flip", "tile", "softmax", "joined"] * bool(rank)
        op, inputs, attributes, shape = getattr(self, self.draw(st.sampled_from(kinds)))(x, rank)
        read = [np.zeros(self.tensors[i].shape) if (data := self.tensors[i].data) is None else data for i in inputs]
        if shape is None:
            shape = computed(Node(op, tuple(inputs), (-1,), attributes), read).shape
        self.node(op, inputs, shape, attributes)

    def each(self, strategy: Any, rank: int) -> tuple[Any, ...]:
        return tuple(self.draw(strategy) for _ in range(rank))

    def reshape(self, x: Tensor, rank: int) -> tuple[str, list[int], Attributes, Shape | None]:
        shape = list(self.draw(st.permutations(x.shape)))
        shape = [size for size in shape if size > 1 or self.draw(st.booleans())]
        if self.draw(st.booleans()):
            shape.insert(self.draw(st.integers(0, len(shape))), 1)
        return "RESHAPE", [x.index], Attributes(), tuple(shape)

    def add(self, x: Tensor, rank: int) -> tuple[str, list[int], Attributes, Shape | None]:
        shape = tuple(size if self.draw(st.booleans()) else 1 for size in x.shape)
        return "ADD", [x.index, self.counted(shape[self.draw(st.integers(0, rank)) :])], Attributes(), None

    def connected(self, x: Tensor, rank: int) -> tuple[str, list[int], Attributes, Shape | None]:
        count = int(np.prod(x.shape))
        depth = self.draw(st.sampled_from([n for n in (1, 2, 3, count, *x.shape[-1:]) if count % n == 0]))
        keep = rank > 0 and depth == x.shape[-1] and self.draw(st.booleans())
        shape = (*(x.shape[:-1] if keep else (count // depth,)), 2)
        return "FULLY_CONNECTED", [x.index, self.counted((2, depth))], Attributes(), shape

    def mean(self, x: Tensor, rank: int) -> tuple[str, list[int], Attributes, Shape | None]:
        axes = tuple(k for k in range(rank) if self.draw(st.booleans()))
        return "MEAN", [x.index], Reduce(axes, self.draw(st.booleans())), None

    def pad(self, x: Tensor, rank: int) -> tuple[str, list[int], Attributes, Shape | None]:
        amounts = self.each(st.sampled_from([(0, 0), (0, 0), (0, 1), (1, 0)]), rank)
        mirrored = MirrorPad(amounts, symmetric=True)
        return "PAD", [x.index], self.draw(st.sampled_from([Pad(amounts, 2.0), mirrored])), None

    def slice(self, x: Tensor, rank: int) -> tuple[str, list[int], Attributes, Shape | None]:
        begin = tuple(self.draw(st.integers(0, size - 1)) for size in x.shape)
        strides = self.each(st.sampled_from([-2, -1, 1, 2]), rank)
        room = [b + 1 if s < 0 else n - b for b, n, s in zip(begin, x.shape, strides, strict=True)]
        sizes = tuple(self.draw(st.integers(1, -(-n // abs(s)))) for n, s in zip(room, strides, strict=True))
        shape = tuple(n for n in sizes if n > 1 or self.draw(st.booleans()))
        return "STRIDED_SLICE", [x.index], StridedSlice(begin, sizes, strides), shape

    def transpose(self, x: Tensor, rank: int) -> tuple[str, list[int], Attributes, Shape | None]:
        return "TRANSPOSE", [x.index], Transpose(tuple(self.draw(st.permutations(range(rank))))), None

    def gather(self, x: Tensor, rank: int) -> tuple[str, list[int], Attributes, Shape | None]:
        axis = self.draw(st.integers(0, rank - 1))
        shape = self.draw(st.sampled_from([(), (1,), (2,), (2, 2)]))
        index = np.asarray(self.draw(st.integers(0, x.shape[axis] - 1)))
        indices = self.constant(np.broadcast_to(index, shape), "int32")
        return "GATHER", [x.index, indices], Axis(axis), None

    def flip(self, x: Tensor, rank: int) -> tuple[str, list[int], Attributes, Shape | None]:
        return "REVERSE_V2", [x.index], Axes((self.draw(st.integers(0, rank - 1)),)), None

    def tile(self, x: Tensor, rank: int) -> tuple[str, list[int], Attributes, Shape | None]:
        return "TILE", [x.index], Repeat(self.each(st.sampled_from([1, 1, 2]), rank)), None

    def softmax(self, x: Tensor, rank: int) -> tuple[str, list[int], Attributes, Shape | None]:
        return "SOFTMAX", [x.index], Softmax(0.5), None

    def joined(self, x: Tensor, rank: int) -> tuple[str, list[int], Attributes, Shape | None]:
        axis = self.draw(st.integers(0, rank - 1))
        other = self.counted((*x.shape[:axis], self.draw(st.integers(1, 2)), *x.shape[axis + 1 :]))
        return "CONCATENATION", [x.index, other], Concatenation(axis=axis), None


@st.composite
def chains(draw: Any) -> Graph:
    chain = _Chain(draw)
    for _ in range(draw(st.integers(1, 5))):
        assume(np.prod(chain.last.shape) < 1000 and len(chain.last.shape) <= 6)
        chain.step()
    return chain.graph(chain.last.index)


@settings(max_examples=300, deadline=None)
@given(chains())
def test_aligned_graphs_compute_the_same(graph: Graph) -> None:
    try:
        aligned, _ = align_ranks(graph)
    except UnsupportedError:
        assert max(len(tensor.shape) for tensor in graph.tensors.values()) > 4
        return
    weights = {node.inputs[1] for node in aligned.nodes if node.op in ("FULLY_CONNECTED", "GATHER")}
    assert {len(t.shape) for i, t in aligned.tensors.items() if i not in weights} == {4}
    x = np.random.default_rng(0).uniform(-2, 2, graph.tensors[0].shape)
    for found, wanted in zip(outputs(aligned, [x]), outputs(graph, [x]), strict=True):
        np.testing.assert_allclose(found, wanted.reshape(aligned_shape(wanted.shape)), rtol=1e-5)


def graph_of(node: Node, *shapes: Shape, data: Mapping[int, Values] = MappingProxyType({})) -> Graph:
    """A graph of one node on tensors of these shapes; the last one is the output."""
    tensors = {i: Tensor(i, f"t{i}", shape, data=data.get(i)) for i, shape in enumerate(shapes)}
    inputs = tuple(i for i in node.inputs if i not in data)
    return Graph("one", MappingProxyType(tensors), (node,), inputs, node.outputs)


def test_a_mean_that_drops_rows_of_a_batch_gets_a_reshape() -> None:
    graph, outcome = align_ranks(graph_of(Node("MEAN", (0,), (1,), Reduce((1, 2))), (2, 5, 7, 3), (2, 3)))
    assert [(node.op, graph.tensors[node.outputs[0]].shape) for node in graph.nodes] == [
        ("MEAN", (2, 1, 1, 3)),
        ("RESHAPE", (1, 1, 2, 3)),
    ]
    assert graph.nodes[0].attributes == Reduce((1, 2), keep_dims=True)
    assert outcome.applied == 1


def test_dimensions_of_size_1_are_dropped_where_there_are_too_many() -> None:
    node = Node("TRANSPOSE", (0,), (1,), Transpose((0, 3, 1, 4, 2)))
    graph, _ = align_ranks(graph_of(node, (2, 3, 5, 1, 7), (2, 1, 3, 7, 5)))
    assert graph.nodes[0].attributes == Transpose((0, 1, 3, 2))
    assert [graph.tensors[i].shape for i in (0, 1)] == [(2, 3, 5, 7), (2, 3, 7, 5)]


def test_five_dimensions_that_no_pass_has_merged_are_refused() -> None:
    graph = graph_of(Node("ADD", (0, 0), (1,), index=7), (2, 3, 5, 2, 7), (2, 3, 5, 2, 7))
    with pytest.raises(UnsupportedError, match=r"t0.*\[2, 3, 5, 2, 7\].*at most 4 dimensions"):
        align_ranks(graph)


def test_many_dimensions_of_which_none_is_1_have_their_first_ones_as_one() -> None:
    assert aligned_shape((2, 3, 5, 2, 7)) == (6, 5, 2, 7)
    assert aligned_shape((2, 1, 3, 5, 2, 7)) == (6, 5, 2, 7)


def test_an_operator_of_which_passes_made_several_is_named() -> None:
    node = Node("SUM", (0,), (1,), Reduce((1, 2, 3)))
    graph = graph_of(node, (2, 3, 5, 2, 7), (2, 7))
    after = Node("NEG", (1,), (2,), index=7)
    graph = replace(graph, tensors={**graph.tensors, 2: Tensor(2, "t2", (2, 7))}, nodes=(node, after), outputs=(2,))
    with pytest.raises(UnsupportedError, match=r"SUM \(of operator 7, t0\) does not run"):
        align_ranks(graph)


def test_a_constant_that_is_a_weight_too_keeps_its_form_there() -> None:
    values = np.ones((3, 5), np.float32)
    node = Node("FULLY_CONNECTED", (0, 1), (2,), Activated())
    graph = graph_of(node, (4, 5), (3, 5), (4, 3), data={1: values})
    tensors = {**graph.tensors, 3: Tensor(3, "t3", (1, 3, 5))}
    graph = replace(
        graph, tensors=tensors, nodes=(*graph.nodes, Node("ADD", (1, 3), (4,))), inputs=(0, 3), outputs=(2, 4)
    )
    graph = replace(graph, tensors={**tensors, 4: Tensor(4, "t4", (1, 3, 5))})
    aligned, _ = align_ranks(graph)
    assert aligned.tensors[aligned.nodes[0].inputs[1]].shape == (3, 5)
    assert aligned.tensors[aligned.nodes[1].inputs[0]].shape == (1, 1, 3, 5)


def test_numbers_of_dropped_tensors_are_not_used_again() -> None:
    graph = graph_of(Node("RELU", (0,), (1,)), (1, 2, 3, 5), (1, 2, 3, 5))
    smaller = replace(graph, outputs=(0,)).with_changes(())
    assert list(smaller.tensors) == [0]
    assert Rewriter(smaller).new_tensor("new", (1,)) == 2
