"""Shapes that a file omits or records wrongly are inferred as TensorFlow Lite infers them, for every op."""

from typing import Any

import numpy as np
import pytest

from tests.helpers.case_group import CaseGroup
from tests.helpers.markers import one_in
from tests.helpers.runtimes import runtime
from tests.model_files.model_builder import ModelBuilder
from tests.model_files.recorded_shapes import NO_SHAPE, allocated_shapes, recording, written_tensors
from tests.op_table.__main__ import is_custom
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.cases.table import cases_of
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.model.graph import Shape
from texelflow.gpu_delegate.ops.registry import SUPPORTED_OPS
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.reading.writer import write_model
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

__all__ = ["runtime"]

WRONG: tuple[Shape, ...] = (NO_SHAPE, (3,), (1, 2, 3, 1, 1))
BELIEVED = "SLICE"  # whose recorded shape TensorFlow Lite wants to be right
OPS = [op for op in SUPPORTED_OPS if cases_of(op) and not is_custom(op) and op != BELIEVED]
X = (1, 4, 6, 8)


@one_in(6, "op", OPS)
def test_shapes_are_those_that_the_interpreter_allocates(op: str, runtime: Any) -> None:
    data = write_model(CaseGroup(cases_of(op)).graph)
    written = written_tensors(data)
    wrong = recording(data, {index: WRONG[k % len(WRONG)] for k, index in enumerate(written)})
    assert wrong != data
    graph, wanted = read_model(wrong), allocated_shapes(runtime, wrong)
    assert not graph.opaque
    assert {index: graph.tensors[index].shape for index in written} == {index: wanted[index] for index in written}


def test_what_the_file_leaves_open_is_known_where_the_inputs_are() -> None:
    m = ModelBuilder()
    y, z = (m.tensor(shape, signature=signature) for shape, signature in (((1, 1, 1, 8), (-1, -1, -1, 8)), ((), ())))
    m.op_of("RESIZE_BILINEAR", [m.input(X), m.constant((8, 12), "int32")], [y])
    m.op_of("RELU", [y], [z])
    m.output(z)
    graph = read_model(m.build())
    assert [graph.tensors[index].shape for index in (y, z)] == [(1, 8, 12, 8)] * 2
    compile_graph(graph, SOFTWARE)


def test_what_an_unknown_operator_writes_stays_open() -> None:
    m = ModelBuilder()
    y = m.tensor((1, 1), "int64", signature=(-1, -1))
    m.op_of("WHERE", [m.op("GREATER", [m.input(X), m.constant(0.0)], X, "bool")], [y])
    m.output(m.op("CAST", [y], (1, 4), table="CastOptions"))
    graph = read_model(m.build())
    assert [node.op for node in graph.opaque] == ["WHERE", "CAST"]


@pytest.mark.parametrize("sizes", [(1 << 20, 1 << 20), (1, 0), (3, -4)])
def test_sizes_that_nothing_may_have_are_left_to_tensorflow_lite(sizes: tuple[int, int]) -> None:
    m = ModelBuilder()
    m.output(m.op("RESIZE_BILINEAR", [m.input(X), m.constant(sizes, "int32")], X))
    graph = read_model(m.build())
    assert [node.op for node in graph.opaque] == ["RESIZE_BILINEAR"]
    with pytest.raises(UnsupportedError, match=r"bytes, at most 268435456|would have the shape"):
        compile_graph(graph, SOFTWARE)


def test_two_outputs_of_one_operator_are_inferred() -> None:
    m = ModelBuilder()
    parts = [m.tensor(NO_SHAPE) for _ in range(2)]
    m.op_of("SPLIT", [m.constant(3, "int32"), m.input(X)], parts, num_splits=2)
    m.output(*parts)
    graph = read_model(m.build())
    assert [graph.tensors[index].shape for index in parts] == [(1, 4, 6, 4)] * 2


def test_a_constant_may_be_longer_than_its_tensor() -> None:
    m = ModelBuilder()
    longer = m.tensor((8,), data=np.arange(11, dtype=np.float32).tobytes())
    m.output(m.op("ADD", [m.input(X), longer], X))
    graph, data = read_model(m.build()), np.arange(8, dtype=np.float32)
    assert np.array_equal(np.asarray(graph.tensors[longer].data), data)
    np.testing.assert_array_equal(Reference(graph).run(np.ones(X, np.float32))[0], np.ones(X, np.float32) + data)
