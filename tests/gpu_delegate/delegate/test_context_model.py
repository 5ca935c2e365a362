"""The model read from an interpreter's memory equals its file: every op, option and scale, in each runtime."""

import ctypes
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.helpers.contexts import visit_context
from tests.helpers.markers import one_in
from tests.model_files.altered_models import altered_models
from tests.model_files.model_builder import ModelBuilder
from tests.model_files.quantized_models import SCHEMES, small_quantized
from texelflow.gpu_delegate.base.errors import ModelError, UnsupportedError
from texelflow.gpu_delegate.delegate.builtin_structs import STRUCTS
from texelflow.gpu_delegate.delegate.context_model import scales_of
from texelflow.gpu_delegate.delegate.model_finder import differences, find_model
from texelflow.gpu_delegate.delegate.structs import (
    AFFINE_QUANTIZATION,
    TfLiteAffineQuantization,
    TfLiteTensor,
    int_array,
)
from texelflow.gpu_delegate.model.graph import Graph, Quantization
from texelflow.gpu_delegate.model.operators import Operator
from texelflow.gpu_delegate.ops.registry import OPS, SUPPORTED_OPS
from texelflow.gpu_delegate.programs.support import TYPES, _typed_example, example_graph
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.reading.sparsity import SparseLayout, SparseLevel
from texelflow.gpu_delegate.reading.writer import write_model


def example_model(op: str) -> bytes:
    return write_model(example_graph(OPS[op]))


def graph_of(read: Any) -> Graph | str:
    """What a call gives, or that it refuses."""
    try:
        found: Graph = read()
    except ModelError as error:
        return str(error)
    return found


def check_altered(model: bytes, runtime: Any) -> int:
    """How many models that differ from `model` in one thing have been told from it."""
    told, original = 0, read_model(model)
    for altered in altered_models(model):
        said = graph_of(partial(read_model, altered.data))
        try:
            held = graph_of(partial(visit_context, altered.data, find_model, runtime))
        except (ValueError, RuntimeError):  # TensorFlow Lite does not read it
            continue
        if isinstance(said, str) or isinstance(held, str):
            assert said == held, altered.what
            continue
        found = held.graph  # type: ignore[attr-defined]
        assert not list(differences(said, found)), altered.what
        differs = list(differences(original, said))
        assert list(differences(original, found)) == differs, altered.what
        told += bool(differs)
    return told


@one_in(4, "op", SUPPORTED_OPS)
def test_every_option_and_constant_of_every_op(op: str, runtime: Any) -> None:
    model = example_model(op)
    found = visit_context(model, find_model, runtime).graph
    assert not list(differences(read_model(model), found))
    check_altered(model, runtime)


@one_in(3, "scheme", SCHEMES)
def test_every_scale_and_zero_point(scheme: str, runtime: Any) -> None:
    assert check_altered(small_quantized(SCHEMES[scheme]), runtime) > 30


@one_in(4, "dtype", TYPES)
def test_ops_of_other_types(dtype: str, runtime: Any) -> None:
    """Of each op that takes them: the interpreter's model is the file's."""
    for op in SUPPORTED_OPS:
        try:
            model = write_model(_typed_example(OPS[op], dtype))
            said = read_model(model)
            held = visit_context(model, find_model, runtime).graph
        except (ModelError, UnsupportedError, KeyError, ValueError, RuntimeError):
            continue
        assert not list(differences(said, held)), op


def test_every_option_that_is_read_is_taken_from_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """An op that reads options which no struct gives would get the defaults."""
    asked, options = set[tuple[str, str]](), Operator.options

    def noted(operator: Operator, name: str) -> Any:
        asked.add((operator.op, name))
        return options(operator, name)

    monkeypatch.setattr(Operator, "options", noted)
    for op in SUPPORTED_OPS:
        read_model(example_model(op))
    assert asked
    assert {(op, table) for op, table in asked if op not in STRUCTS or STRUCTS[op].table != table} == set()


def test_sparse_constants_are_dense(runtime: Any) -> None:
    layout = SparseLayout(
        (0, 1), (), (SparseLevel(3), SparseLevel(0, np.array([0, 1, 1, 3]), np.array([2, 0, 3], np.int64)))
    )
    builder = ModelBuilder()
    weights = builder.sparse(np.array([5, -2, 3], np.float32), layout, (3, 4))
    builder.output(builder.op("FULLY_CONNECTED", [builder.input((1, 4)), weights, -1], (1, 3)))
    held = visit_context(builder.build(), find_model, runtime).graph
    assert not list(differences(read_model(builder.build()), held))
    assert held.tensors[weights].data.tolist() == [[0, 0, 5, 0], [0, 0, 0, 0], [-2, 0, 0, 3]]  # type: ignore[union-attr]


def test_zero_points_that_a_runtime_keeps_once() -> None:
    scales, zero_points = (ctypes.c_float * 4)(), int_array((5,))
    ctypes.c_int.from_buffer(scales).value = 3
    scales[1:] = [0.5, 0.25, 2.0]
    kept = TfLiteAffineQuantization(ctypes.addressof(scales), ctypes.addressof(zero_points), 1)
    tensor = TfLiteTensor(quantization_type=AFFINE_QUANTIZATION, quantization_params=ctypes.addressof(kept))
    assert scales_of(tensor) == Quantization((0.5, 0.25, 2.0), (5, 5, 5), 1)


def test_options_that_a_file_leaves_out(runtime: Any) -> None:
    """TensorFlow Lite has zeros then; a padding that is neither of the two is no kernel's."""
    builder = ModelBuilder()
    x = builder.input((1, 4, 4, 3))
    y = builder.op("MAX_POOL_2D", [x], (1, 4, 4, 3), table=None)
    builder.output(builder.op("SOFTMAX", [y], (1, 4, 4, 3), table=None))
    pool, softmax = visit_context(builder.build(), find_model, runtime).graph.nodes
    assert (pool.op, pool.attributes.reason) == ("MAX_POOL_2D", "not supported")  # type: ignore[attr-defined]
    assert softmax.attributes.beta == 0.0  # type: ignore[attr-defined]


def test_sizes_that_are_unknown_stay_unknown(runtime: Any) -> None:
    """Those of inputs are what they are at first; those of others the reader infers where it knows the op."""
    builder = ModelBuilder()
    x, y = (builder.tensor((1, 1, 3), signature=(1, -1, 3)) for _ in range(2))
    builder.inputs.append(x)
    builder.op_of("TheirOwnOp", [x], [y], custom=b"")
    builder.output(builder.op("NEG", [y], (1, 1, 3)))
    graph = visit_context(builder.build(), find_model, runtime).graph
    assert not graph.tensors[x].unusable
    assert "dynamic shapes ([1, -1, 3])" in graph.tensors[y].unusable
