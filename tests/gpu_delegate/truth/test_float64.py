"""The evaluation in float64, against TensorFlow Lite's kernels and against what can be said without any."""

import math

import numpy as np
import pytest

from tests.helpers.case_group import CaseGroup
from tests.helpers.markers import exhaustive
from tests.model_files.model_builder import ModelBuilder
from tests.op_table.__main__ import chosen, is_custom, on_own_kernels
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.cases.op_case import CaseArray, OpCase
from texelflow.gpu_delegate.cases.table import cases_of
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.quantization import has_quantized
from texelflow.gpu_delegate.ops.registry import OPS, SUPPORTED_OPS
from texelflow.gpu_delegate.ops.variables import VARIABLE_OPS
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.truth.float64 import true_values, without_truth
from texelflow.gpu_delegate.truth.true_arithmetic import ARITHMETIC, TrueValues
from texelflow.gpu_delegate.truth.true_landmarks import LANDMARKS
from texelflow.gpu_delegate.truth.true_moves import MOVES
from texelflow.gpu_delegate.truth.true_sums import SUMS

MEANT = {*ARITHMETIC, *SUMS, *MOVES, *LANDMARKS}


def known(graph: Graph, *inputs: CaseArray) -> dict[int, TrueValues]:
    return {tensor: values for tensor, values in true_values(graph, inputs) if values is not None}


def only(model: ModelBuilder, *inputs: CaseArray) -> TrueValues:
    """The first output of a model."""
    graph = read_model(model.build())
    return known(graph, *inputs)[graph.outputs[0]]


def differing(cases: tuple[OpCase, ...], seed: int) -> dict[str, float]:
    """The cases of floats in which TensorFlow Lite computes something else."""
    group = CaseGroup([case for case in cases if not has_quantized(case.graph())])
    values = group.inputs(seed)
    found, graph = known(group.graph, *values), group.graph
    ours = [found[tensor].astype(graph.tensors[tensor].dtype) for tensor in graph.outputs]
    return group.differing(ours, on_own_kernels(group).run(values))


def test_it_has_all_ops_but_those_that_round_to_steps() -> None:
    spectra = {"RFFT2D", "COMPLEX_ABS", "REAL", "IMAG"}  # complex numbers, which it has none of
    recurrent = {op for op in SUPPORTED_OPS if (form := OPS[op].file) and form.variables and op != "LSTM"}
    assert set(SUPPORTED_OPS) - MEANT == {"QUANTIZE", "FAKE_QUANT", *VARIABLE_OPS, *spectra, *recurrent}
    assert set(SUPPORTED_OPS) >= MEANT


def test_it_agrees_with_tensorflow_lite() -> None:
    """Some cases of each op; those of the custom ones that it lacks are in test_custom_ops.py and test_landmarks.py."""
    ops = [op for op in SUPPORTED_OPS if op in MEANT and not is_custom(op)]
    assert differing(tuple(case for op in ops for case in chosen(op)), 0) == {}


@exhaustive
@pytest.mark.parametrize("op", [op for op in SUPPORTED_OPS if op in MEANT and not is_custom(op)])
def test_it_agrees_with_tensorflow_lite_in_all_cases(op: str) -> None:
    assert differing(cases_of(op), 1) == {}


def test_its_numbers_are_float64() -> None:
    model = ModelBuilder()
    x = model.input((1, 4))
    model.output(model.op("ADD", [x, model.constant([2.0**-40] * 4)], (1, 4)))
    assert (only(model, np.ones((1, 4), np.float32)) == 1 + 2.0**-40).all()


def test_sums_whose_values_are_known() -> None:
    """A window of ones counts what it covers; probabilities are what their logarithms were; a mean of a ramp."""
    model = ModelBuilder()
    x = model.input((1, 5, 5, 2))
    weights = model.constant(np.ones((1, 3, 3, 2)))
    model.output(model.op("CONV_2D", [x, weights, -1], (1, 5, 5, 1), stride=(1, 1), padding="SAME"))
    inside = np.minimum(np.minimum(np.arange(1, 6), np.arange(5, 0, -1)) + 1, 3)
    np.testing.assert_array_equal(
        only(model, np.ones((1, 5, 5, 2), np.float32))[0, ..., 0], 2 * np.outer(inside, inside)
    )

    model = ModelBuilder()
    model.output(model.op("SOFTMAX", [model.input((1, 3))], (1, 3), beta=1.0))
    np.testing.assert_allclose(only(model, np.zeros((1, 3), np.float32)), 1 / 3, rtol=1e-15)

    model = ModelBuilder()
    model.output(model.op("GELU", [model.input((1, 2))], (1, 2)))
    np.testing.assert_allclose(
        only(model, np.array([[1, -1]], np.float32)),
        [[(1 + math.erf(math.sqrt(0.5))) / 2, (math.erf(math.sqrt(0.5)) - 1) / 2]],
    )


def test_weights_of_bytes_and_halves_are_what_they_mean() -> None:
    model = ModelBuilder()
    x = model.input((1, 2))
    steps = np.array([[3, 5], [-4, 1]], np.int8).tobytes()
    weights = model.tensor((2, 2), "int8", steps, scales=(0.125, 0.5), zero_points=(0, 0))
    model.output(model.op("FULLY_CONNECTED", [x, weights, model.half([0.5, -0.25])], (1, 2)))
    found = only(model, np.array([[1, 2]], np.float32))
    np.testing.assert_allclose(found, [[0.125 * 13 + 0.5, 0.5 * -2 - 0.25]], rtol=1e-15)


def test_what_follows_from_an_op_that_it_lacks_is_not_known() -> None:
    model = ModelBuilder()
    x = model.input((1, 4))
    before, beside = model.op("NEG", [x], (1, 4)), model.op("ABS", [x], (1, 4))
    lacking = model.op("NobodysOp", [before], (1, 4), custom=b"")
    after = model.op("NEG", [lacking], (1, 4))
    model.output(after, beside)
    graph = read_model(model.build())
    assert without_truth(graph) == ("NobodysOp",)
    assert set(known(graph, np.ones((1, 4), np.float32))) == {before, beside}


def test_a_window_of_too_many_taps_is_not_known() -> None:
    for side, lacking in ((181, ()), (182, ("CONV_2D",))):
        model = ModelBuilder()
        weights = model.constant(np.ones((1, side, side, 1)))
        inputs = [model.input((1, side, side, 1)), weights, -1]
        model.output(model.op("CONV_2D", inputs, (1, 1, 1, 1), stride=(1, 1), padding="VALID"))
        graph = read_model(model.build())
        assert without_truth(graph) == lacking
        found = known(graph, np.ones((1, side, side, 1), np.float32))
        assert [values.item() for values in found.values()] == ([] if lacking else [side * side])


def test_an_index_outside_is_no_error() -> None:
    model = ModelBuilder()
    x, places = model.input((3, 2)), model.input((1,), "int32")
    model.output(model.op("GATHER", [x, places], (1, 2), axis=0))
    graph, values = read_model(model.build()), np.ones((3, 2), np.float32)
    assert known(graph, values, np.array([2], np.int32)) != {}
    assert known(graph, values, np.array([9], np.int32)) == {}


def test_inputs_of_another_shape_are_refused() -> None:
    model = ModelBuilder()
    model.output(model.op("NEG", [model.input((1, 4))], (1, 4)))
    with pytest.raises(UsageError, match=r"takes inputs of shapes \[\[1, 4\]\]"):
        known(read_model(model.build()), np.ones((1, 5), np.float32))
