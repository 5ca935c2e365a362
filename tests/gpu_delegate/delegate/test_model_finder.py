"""The model that an interpreter runs is found in its memory, and told from any other that is given for it."""

import ctypes
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.contexts import visit_context
from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.base.errors import ModelError
from texelflow.gpu_delegate.delegate.model_finder import FoundModel, differences, find_model
from texelflow.gpu_delegate.delegate.structs import TfLiteContext
from texelflow.gpu_delegate.reading.reader import load_model, read_model


def small(channels: int = 4, op: str = "RELU", custom: str = "", twice: bool = False, dtype: str = "float32") -> bytes:
    builder = ModelBuilder()
    value = builder.input((1, 2, 3, channels), dtype)
    value = builder.op("ADD", [value, builder.constant(np.ones(channels), dtype)], (1, 2, 3, channels), dtype)
    value = builder.op(custom or op, [value], (1, 2, 3, channels), dtype)
    if twice:
        value = builder.op(op, [value], (1, 2, 3, channels), dtype)
    builder.output(value)
    return builder.build()


def swapped(reverse: bool) -> bytes:
    builder = ModelBuilder()
    sides = [builder.input((1, 2)), builder.constant(np.ones((1, 2)))]
    builder.output(builder.op("SUB", sides[::-1] if reverse else sides, (1, 2)))
    return builder.build()


def without_constants() -> bytes:
    builder = ModelBuilder()
    builder.output(builder.op("RELU", [builder.input((1, 4))], (1, 4)))
    return builder.build()


def given(model: str | bytes | Path) -> Callable[[TfLiteContext], FoundModel]:
    return partial(find_model, given=model)


@pytest.mark.parametrize("is_path", [False, True])
def test_it_is_what_the_file_says(tmp_path: Path, is_path: bool) -> None:
    model, path = small() + b"some metadata behind it", tmp_path / "some.tflite"
    path.write_bytes(model)
    found = visit_context(path if is_path else model, find_model)
    assert not list(differences(read_model(model), found.graph))
    assert [tensor.name for tensor in found.graph.tensors.values()] == ["tensor0", "tensor1", "tensor2", "tensor3"]
    assert [node.op for node in found.graph.nodes] == ["ADD", "RELU"]
    assert not list(differences(read_model(found.data), found.graph))


def test_the_catalogues_models_are_found(selfie_model: Path, selfie_landscape_model: Path) -> None:
    for path in (selfie_model, selfie_landscape_model):
        graph = load_model(path)
        found = visit_context(path, find_model).graph
        assert not list(differences(graph, found))
        assert (found.inputs, found.outputs) == (graph.inputs, graph.outputs)


def test_what_is_changed_in_memory_is_found() -> None:
    """Before there is a delegate: constants, through the bytes that the interpreter was given."""
    model = bytes(bytearray(small()))

    def find(context: TfLiteContext) -> FoundModel:
        constant = context.tensors[1]
        ctypes.memset(constant.data, 0, constant.bytes)
        return find_model(context)

    found = visit_context(model, find).graph.tensors[1]
    assert found.data is not None
    assert not found.data.any()


@pytest.mark.parametrize("as_bytes", [False, True])
def test_a_model_that_is_given(tmp_path: Path, as_bytes: bool) -> None:
    path = tmp_path / "some.tflite"
    path.write_bytes(without_constants())
    found = visit_context(without_constants(), given(path.read_bytes() if as_bytes else path))
    assert not list(differences(read_model(path.read_bytes()), found.graph))
    assert found.graph.name == ("model" if as_bytes else "some")


@pytest.mark.parametrize(
    ("model", "other", "line"),
    [
        (small(), small(5), r"tensor 0 has the shape \[1, 2, 3, 5\] instead of \[1, 2, 3, 4\]"),
        (small(), small(op="TANH"), "operator 1 is TANH instead of RELU"),
        (small(), small(twice=True), "3 operators instead of 2"),
        (small(twice=True), small(), "2 operators instead of 3"),
        (small(), small(dtype="int32"), "tensor 0 is int32 instead of float32"),
        (small(custom="Mine"), small(custom="Yours"), "operator 1 is Yours instead of Mine"),
        (swapped(False), swapped(True), r"operator 0 reads tensors \[1, 0\] instead of \[0, 1\]"),
    ],
)
def test_another_model_is_told_from_it(model: bytes, other: bytes, line: str) -> None:
    with pytest.raises(ModelError, match=f"model=.* is not the model of this interpreter: {line}"):
        visit_context(model, given(other))


def test_a_file_that_does_not_exist_or_is_damaged(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such file"):
        visit_context(small(), given(tmp_path / "none.tflite"))
    with pytest.raises(ModelError, match="damaged"):
        visit_context(small(), given(small()[:100]))


def test_a_model_without_constants() -> None:
    found = visit_context(without_constants(), find_model).graph
    assert [(node.op, node.inputs, node.outputs) for node in found.nodes] == [("RELU", (0,), (1,))]
    assert (found.inputs, found.outputs) == ((0,), (1,))


def test_a_model_whose_input_nothing_reads() -> None:
    builder = ModelBuilder()
    builder.input((1, 4))
    builder.output(builder.op("RELU", [builder.constant(np.ones((1, 4)))], (1, 4)))
    found = visit_context(builder.build(), find_model).graph
    assert (found.inputs, found.outputs) == ((0,), (2,))
