"""Sparse constants: any traversal gives the dense array, as in TensorFlow Lite; contradictory tables are refused."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.original_file import run_original
from tests.model_files.model_builder import ModelBuilder
from tests.model_files.sparse import Traversal, encoded
from texelflow.gpu_delegate.base.errors import ModelError
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.reading.sparsity import SparseLayout, SparseLevel, dense_constant
from texelflow.gpu_delegate.reading.writer import write_model
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

Array = Any


def sparse_array(shape: tuple[int, ...], seed: int, dtype: str = "float32") -> Array:
    """Mostly zeros, some whole rows of them; the first value is none."""
    rng = np.random.default_rng(seed)
    array = rng.integers(1, 9, shape) * (rng.random(shape) < 0.3) * (rng.random((*shape[:-1], 1)) < 0.6)
    array.reshape(-1)[0] = 5
    return array.astype(dtype)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Array, Traversal]:
    rank = draw(st.integers(1, 4))
    blocks = tuple((i, draw(st.integers(1, 4))) for i in range(rank) if draw(st.booleans()))
    factor = dict(blocks)
    shape = tuple(draw(st.integers(1, 3)) * factor.get(i, 1) for i in range(rank))
    inner = draw(st.permutations(range(rank, rank + len(blocks))))
    order = (*draw(st.permutations(range(rank))), *inner)
    compressed = tuple(draw(st.booleans()) if i < rank else False for i in order)
    return sparse_array(shape, draw(st.integers(0, 1000))), Traversal(order, compressed, blocks)


@settings(max_examples=150, deadline=None)
@given(cases())
def test_any_traversal_gives_the_array_back(case: tuple[Array, Traversal]) -> None:
    dense, traversal = case
    values, layout = encoded(dense, traversal)
    found = dense_constant(values, dense.shape, layout)
    np.testing.assert_array_equal(found, dense)
    assert not found.flags.writeable


ROWS = Traversal((0, 1, 2, 3), (False, True, False, True))
BLOCKS = Traversal((0, 1, 2, 3, 5, 4), (False, False, False, True, False, False), ((0, 4), (3, 2)))


def model(dense: Array, traversal: Traversal, half: bool = False) -> bytes:
    """x (1, 3, 3, channels) times the constant of as many values, which is sparse in the file."""
    builder, shape = ModelBuilder(), dense.shape
    values, layout = encoded(dense, traversal)
    constant = builder.op("DENSIFY", [builder.sparse(values, layout, shape)], shape, dense.dtype.name)
    if half:
        constant = builder.op("DEQUANTIZE", [constant], shape)
    builder.output(builder.op("MUL", [builder.input(shape), constant], shape))
    return builder.build()


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("traversal", [ROWS, BLOCKS], ids=["rows", "blocks"])
def test_tensorflow_lite_makes_the_same_of_it(traversal: Traversal, half: bool) -> None:
    dense = sparse_array((4, 3, 3, 6), 7, "float16" if half else "float32")
    data = model(dense, traversal, half)
    x = np.random.default_rng(1).random(dense.shape, np.float32)
    graph = read_model(data)
    assert not graph.opaque
    constant = graph.tensors[graph.nodes[0].inputs[0]].data
    assert constant is not None
    np.testing.assert_array_equal(constant, dense)
    (wanted,) = run_original(data, [x])
    for keep_all in (False, True):
        reference = Reference(graph, keep_all_tensors=keep_all)
        np.testing.assert_array_equal(reference.run(x)[0], wanted)
    np.testing.assert_array_equal(reference.tensor(graph.nodes[0].outputs[0]), dense)
    assert "DENSIFY" not in {node.op for node in read_model(write_model(graph)).nodes}


@pytest.mark.parametrize("half", [False, True])
def test_it_is_folded_for_the_gpu(half: bool) -> None:
    dense = sparse_array((1, 3, 3, 6), 7, "float16" if half else "float32")
    compiled = compile_graph(read_model(model(dense, ROWS, half)), SOFTWARE)
    assert [node.op for node in compiled.graph.nodes] == ["MUL"]


GOOD = SparseLayout((0, 1), (), (SparseLevel(2), SparseLevel(0, np.array([0, 1, 3]), np.array([2, 0, 1]))))


def with_level(number: int, **changes: Any) -> SparseLayout:
    levels = list(GOOD.levels)
    levels[number] = replace(levels[number], **changes)
    return replace(GOOD, levels=tuple(levels))


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        (replace(GOOD, order=(0, 0)), "traversed"),
        (replace(GOOD, order=(0,)), "traversed"),
        (replace(GOOD, levels=GOOD.levels[:1]), "traversed"),
        (replace(GOOD, order=(0, 1, 2), block_map=(2,), levels=(*GOOD.levels, SparseLevel(1))), "blocks of the dim"),
        (replace(GOOD, order=(0, 1, 2), block_map=(1,), levels=(*GOOD.levels, SparseLevel(2))), "blocks of 2 in"),
        (replace(GOOD, order=(0, 1, 2), block_map=(1,), levels=(*GOOD.levels, SparseLevel(0))), "blocks of 0 in"),
        (with_level(0, size=3), "has 3 places instead of 2"),
        (with_level(0, size=1 << 30), "instead of 2"),
        (with_level(1, segments=np.array([0, 3])), "segments"),
        (with_level(1, segments=np.array([0, 4, 3])), "segments"),
        (with_level(1, segments=np.array([1, 2, 3])), "segments"),
        (with_level(1, segments=np.array([0, 1, 9])), "segments"),
        (with_level(1, indices=np.array([2, 0, 3])), "index outside its 3 places"),
        (with_level(1, indices=np.array([2, 0, -1])), "index outside"),
        (with_level(1, segments=np.array([0, 1, 7]), indices=np.zeros(7, int)), "7 indices for 6 places"),
        (with_level(1, segments=np.array([0, 1, 2]), indices=np.array([2, 0])), "2 places has 3 values"),
    ],
)
def test_refuses_tables_that_lie(layout: SparseLayout, said: str) -> None:
    values = np.array([1, 2, 3], np.float32)
    assert dense_constant(values, (2, 3), GOOD).tolist() == [[0, 0, 1], [2, 3, 0]]
    with pytest.raises(ModelError, match=said):
        dense_constant(values, (2, 3), layout)


def test_refuses_more_memory_than_a_model_may_take() -> None:
    """A file of a few kilobytes that would be gigabytes of zeros."""
    builder = ModelBuilder()
    layout = SparseLayout((0,), (), (SparseLevel(0, np.array([0, 1]), np.array([0])),))
    large = [builder.sparse(np.ones(1, np.float32), layout, (1 << 25,)) for _ in range(3)]
    x = builder.input((1 << 25,))
    for constant in large:
        x = builder.op("ADD", [x, builder.op("DENSIFY", [constant], (1 << 25,))], (1 << 25,))
    builder.output(x)
    with pytest.raises(ModelError, match="sparse constants that take more than 268435456 bytes"):
        read_model(builder.build())
