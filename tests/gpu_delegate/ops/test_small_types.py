"""Truth values and small integers that only are moved, or are logic: as TensorFlow Lite has them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from tests.helpers.native import native_networks
from tests.model_files.model_builder import Array, ModelBuilder, Shape
from tests.quantized.ours import our_run
from tests.quantized.runs import TfliteRun
from texelflow.gpu_delegate.reading.reader import read_model

SHAPE = (1, 4, 5, 6)
X: Sequence[int] = ()  # where an op has the model's input, among its constants
Move = tuple[Sequence[Any], Shape, dict[str, Any]]
MOVES: Mapping[str, Move] = MappingProxyType(
    {
        "RESHAPE": ([X, (1, 20, 6)], (1, 20, 6), {}),
        "TRANSPOSE": ([X, (0, 3, 1, 2)], (1, 6, 4, 5), {}),
        "PAD": ([X, ((0, 0), (1, 1), (0, 0), (0, 2))], (1, 6, 5, 8), {}),
        "GATHER": ([X, (1, 0)], (1, 2, 5, 6), {"axis": 1}),
        "TILE": ([X, (1, 2, 1, 1)], (1, 8, 5, 6), {}),
        "SLICE": ([X, (0, 1, 0, 1), (1, 2, 5, 4)], (1, 2, 5, 4), {}),
        "STRIDED_SLICE": ([X, (0, 1, 0, 0), (1, 4, 5, 6), (1, 2, 1, 1)], (1, 2, 5, 6), {}),
        "CONCATENATION": ([X, X], (1, 4, 5, 12), {"axis": 3}),
        "REVERSE_V2": ([X, (2,)], SHAPE, {}),
    }
)
LACKS = MappingProxyType({"uint16": "PAD GATHER CONCATENATION REVERSE_V2"})  # of TensorFlow Lite
TYPES = ("int16", "uint16", "int8", "uint8", "bool")


def drawn(dtype: str) -> Array:
    rng, low, high = np.random.default_rng(0), 0, 2
    if dtype != "bool":
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max + 1
    return rng.integers(low, high, SHAPE).astype(dtype)


def moves(dtype: str) -> bytes:
    """A model with an output for each move."""
    model = ModelBuilder()
    x = model.input(SHAPE, dtype)
    for op, (inputs, out, options) in MOVES.items():
        if op not in LACKS.get(dtype, "").split():
            given = [x if each is X else model.constant(each, "int32") for each in inputs]
            model.output(model.op(op, given, out, dtype, **options))
    return model.build()


def logic() -> bytes:
    """What is made of truth values, and how they are made of numbers and these of them."""
    model = ModelBuilder()
    x, y = (model.input(SHAPE, "bool") for _ in range(2))
    axes = model.constant((1, 2), "int32")
    for op in ("LOGICAL_AND", "LOGICAL_OR", "EQUAL", "NOT_EQUAL"):
        model.output(model.op(op, [x, y], SHAPE, "bool"))
    model.output(model.op("LOGICAL_NOT", [x], SHAPE, "bool"), model.op("SELECT", [x, y, x], SHAPE, "bool"))
    for op in ("REDUCE_ANY", "REDUCE_ALL"):
        model.output(model.op(op, [x, axes], (1, 1, 1, 6), "bool", keep_dims=True))
    for dtype in ("float32", "int32"):
        numbers = model.op("CAST", [x], SHAPE, dtype)
        model.output(numbers, model.op("CAST", [numbers], SHAPE, "bool"))
    return model.build()


def test_native_code_moves_small_types() -> None:
    files = {dtype: moves(dtype) for dtype in TYPES}
    networks = native_networks({dtype: read_model(data) for dtype, data in files.items()})
    for dtype, data in files.items():
        for found, right in zip(networks[dtype].run([drawn(dtype)]), TfliteRun(data)([drawn(dtype)]), strict=True):
            np.testing.assert_array_equal(found, right)
            assert found.dtype == right.dtype == dtype


@pytest.mark.gl
@pytest.mark.parametrize("dtype", ["int16", "uint16"])
def test_the_delegate_moves_shorts(dtype: str) -> None:
    with our_run(moves(dtype), "delegate") as run:
        for found, right in zip(run([drawn(dtype)]), TfliteRun(moves(dtype))([drawn(dtype)]), strict=True):
            np.testing.assert_array_equal(found, right)


def test_truth_values_are_computed_as_they_are() -> None:
    values = [drawn("bool"), drawn("bool")[:, ::-1]]
    with our_run(logic(), "native") as run:
        for found, right in zip(run(values), TfliteRun(logic())(values), strict=True):
            np.testing.assert_array_equal(found, right)


def test_shorts_become_other_numbers() -> None:
    model = ModelBuilder()
    for dtype in ("int16", "uint16"):
        x = model.input(SHAPE, dtype)
        model.output(model.op("CAST", [x], SHAPE, "float32"), model.op("CAST", [x], SHAPE, "int32"))
    values = [drawn("int16"), drawn("uint16")]
    with our_run(model.build(), "native") as run:
        for found, right in zip(run(values), TfliteRun(model.build())(values), strict=True):
            np.testing.assert_array_equal(found, right)
