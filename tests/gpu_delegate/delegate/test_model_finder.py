"""The file that an interpreter runs, found in memory or given, and told from every other."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.contexts import visit_context
from tests.model_builder import ModelBuilder
from texelflow.gpu_delegate.delegate import model_finder
from texelflow.gpu_delegate.delegate.model_finder import FoundModel, find_model
from texelflow.gpu_delegate.delegate.structs import TfLiteContext
from texelflow.gpu_delegate.errors import ModelError


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
def test_the_file_is_found_to_the_last_byte(tmp_path: Path, is_path: bool) -> None:
    model, path = small() + b"some metadata behind it", tmp_path / "some.tflite"
    path.write_bytes(model)
    found = visit_context(path if is_path else model, find_model)
    assert found.data == model
    assert [node.op for node in found.graph.nodes] == ["ADD", "RELU"]


def test_the_catalogues_models_are_found(selfie_model: Path, selfie_landscape_model: Path) -> None:
    for path in (selfie_model, selfie_landscape_model):
        assert visit_context(path, find_model).data == path.read_bytes()


@pytest.mark.parametrize("as_bytes", [False, True])
def test_a_model_that_is_given(tmp_path: Path, as_bytes: bool) -> None:
    path = tmp_path / "some.tflite"
    path.write_bytes(without_constants())
    found = visit_context(without_constants(), given(path.read_bytes() if as_bytes else path))
    assert found.data == path.read_bytes()
    assert found.graph.name == ("model" if as_bytes else "some")


@pytest.mark.parametrize(
    ("model", "other", "line"),
    [
        (small(), small(5), r"tensor 0 has the shape \[1, 2, 3, 5\] instead of \[1, 2, 3, 4\]"),
        (small(), small(op="TANH"), "operator 1 is builtin 28 instead of 19"),
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
    with pytest.raises(ModelError, match=r"without constants cannot be found in memory; give its file: .*model=PATH"):
        visit_context(without_constants(), find_model)


def test_never_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(context: TfLiteContext) -> FoundModel:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "platform", "win32")
            return find_model(context)

    with pytest.raises(ModelError, match="on Windows the model cannot be found in memory; give its file"):
        visit_context(small(), find)


class TestGarbage:
    """What is no Allocation is never followed: neither read where nothing is, nor called."""

    @pytest.mark.parametrize("kind", ["nowhere", "odd", "null", "data", "table of data", "unreadable"])
    def test_it_is_not_followed(self, kind: str) -> None:
        zeros, ones = (np.full(64, value, np.uint64) for value in (0, 0x4141414141414141))
        table = np.full(8, zeros.ctypes.data, np.uint64)
        holder = np.full(1, table.ctypes.data, np.uint64)
        place = {
            "nowhere": 0x10,
            "odd": int(zeros.ctypes.data) + 1,
            "null": int(zeros.ctypes.data),
            "data": int(ones.ctypes.data),
            "table of data": int(holder.ctypes.data),
            "unreadable": 0x7FFFFFFFF000,
        }[kind]
        self.find_with_allocation(place)

    def find_with_allocation(self, place: int) -> None:
        def find(context: TfLiteContext) -> FoundModel:
            constant = context.tensors[1]
            kept, constant.allocation = constant.allocation, place
            try:
                return find_model(context)
            finally:
                constant.allocation = kept

        with pytest.raises(ModelError, match="the model cannot be found in memory; give its file"):
            visit_context(small(), find)

    def test_addresses(self) -> None:
        values = np.zeros(1 << 20, np.uint8)
        memory, place = model_finder._Memory(), int(values.ctypes.data)
        assert memory.is_readable(place, values.nbytes)
        assert not memory.is_readable(place, 1 << 46)
        assert not memory.is_code(place)
        assert not memory.is_readable(0, 1)
        assert not memory.is_readable((1 << 64) - 8, 8)
