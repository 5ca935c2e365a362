"""LSTM, RNN and SVDF over many runs, their states fed back, against TensorFlow Lite; and what passes make of them."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import pytest

from tests.helpers.engine import DEVICES, kernel_names, run
from tests.helpers.markers import one_in
from tests.helpers.native import native_networks
from tests.helpers.streams import as_function, worst_of_stream
from tests.model_files.sketch import Sketch
from tests.model_files.state_models import (
    basic_lstm,
    drawn,
    lstm,
    lstm_inputs,
    rnn,
    rnn_over_time,
    sequence,
    svdf,
    svdf_of_bytes,
)
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.ops.recurrent import MOST_STEPS
from texelflow.gpu_delegate.passes.integer_ranges import whole_ranges
from texelflow.gpu_delegate.passes.kept_states import express_states
from texelflow.gpu_delegate.passes.pipeline import run_passes
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.reading.writer import write_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

MOST_ERROR = 1e-5
Draw = Callable[[Sketch], int]


def form(draw: Callable[..., int], **options: Any) -> Callable[..., int]:
    return partial(draw, **options)


FORMS: Mapping[str, Draw] = MappingProxyType(
    {
        "LSTM": lstm,
        "LSTM, one row, limited": form(lstm, batch=1, units=13, cifg=True, cell_clip=0.2),
        "basic LSTM": basic_lstm,
        "plain": sequence,
        "one row": form(sequence, batch=1, units=7, steps=5),
        "one row, time first": form(sequence, batch=1, units=8, time_major=True),
        "one step": form(sequence, batch=3, steps=1),
        "coupled gates": form(sequence, cifg=True, time_major=True, units=6),
        "peepholes": form(sequence, peephole=True, cell_clip=0.3),
        "coupled gates with peepholes": form(sequence, peephole=True, cifg=True, batch=1),
        "a projection": form(sequence, projection=3, proj_clip=0.2, batch=3),
        "a projection without a bias": form(sequence, projection=9, projection_bias=False, time_major=True),
        "normalized": form(sequence, norm=True, peephole=True, projection=3),
        "normalized, coupled gates": form(sequence, norm=True, cifg=True, batch=1, steps=3),
        "RELU": form(sequence, activation="RELU", cell_clip=1.0),
        "RELU6": form(sequence, activation="RELU6", cell_clip=1.0),
        "RELU_N1_TO_1": form(sequence, activation="RELU_N1_TO_1"),
        "RNN": rnn,
        "RNN, limited": form(rnn, activation="RELU6"),
        "RNN over time": rnn_over_time,
        "RNN over time, time first": form(rnn_over_time, time_major=True, batch=1, steps=3),
        "SVDF": svdf,
        "SVDF of rank 1": form(svdf, batch=1, rank=1, units=13, steps=9, activation="NONE"),
        "SVDF without a bias": form(svdf, batch=3, rank=3, depth=13, bias=False, activation="TANH"),
        "SVDF of one step": form(svdf, steps=1, activation="RELU6"),
    }
)
HYBRID: Mapping[str, Callable[..., int]] = MappingProxyType(
    {
        "plain": sequence,
        "all": form(sequence, peephole=True, projection=3, norm=True),
        "coupled gates": form(sequence, cifg=True, asymmetric_quantize_inputs=True),
        "RNN": rnn,
        "SVDF": svdf,
    }
)


@one_in(3, "name", FORMS)
def test_a_stream_is_that_of_tensorflow_lite(context: Context, name: str) -> None:
    model = drawn(FORMS[name])
    graph = as_function(model)
    assert worst_of_stream(model, native_networks({0: graph})[0].run, 100) < MOST_ERROR
    with Program(context, compile_graph(graph, DEVICES["software"])) as program:
        assert worst_of_stream(model, partial(run, program), 8) < MOST_ERROR


@one_in(3, "name", HYBRID)
def test_bytes_of_weights_are_real_numbers(name: str) -> None:
    """The same as TensorFlow Lite makes of the real numbers, and near to what it makes of bytes."""
    model = drawn(lambda m: HYBRID[name](m, weights="int8"))
    network = native_networks({0: as_function(model)})[0]
    expanded = drawn(lambda m: HYBRID[name](m, weights="expanded"))
    assert worst_of_stream(expanded, network.run, 20) < MOST_ERROR
    assert worst_of_stream(model, network.run, 20) < 0.1


BYTES: Mapping[str, Callable[[Sketch], int]] = MappingProxyType(
    {
        "of rank 2": svdf_of_bytes,
        "of rank 1, one row": form(svdf_of_bytes, batch=1, rank=1, units=13, steps=8, zero_points=(-128, -128)),
        "without a bias": form(svdf_of_bytes, rank=3, depth=13, bias=False, zero_points=(5, 7)),
        "of one step": form(svdf_of_bytes, steps=1, most=32767),
        "with sums that overflow": form(svdf_of_bytes, units=13, steps=20, most=32767),
    }
)


@one_in(2, "name", BYTES)
def test_filters_of_bytes_are_those_of_tensorflow_lite(context: Context, name: str) -> None:
    m = Sketch(5)
    m.output(BYTES[name](m))
    model = m.build()
    graph = as_function(model)
    assert worst_of_stream(model, native_networks({0: graph})[0].run, 100) == 0
    with Program(context, compile_graph(graph, DEVICES["software"])) as program:
        assert worst_of_stream(model, partial(run, program), 8) == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"activation": "RELU6"}, "RELU6, not RELU, fused into an op of bytes"),
        ({"depth": 2500}, "which float32 does not hold"),
        ({"steps": 300}, "sums over time that float32 does not hold"),
    ],
)
def test_filters_of_bytes_that_are_left_to_the_cpu(options: dict[str, Any], reason: str) -> None:
    m = Sketch(5)
    m.output(svdf_of_bytes(m, **options))
    with pytest.raises(UnsupportedError, match=reason):
        run_passes(as_function(m.build()))


@pytest.mark.parametrize("name", FORMS)
def test_what_is_written_is_what_was_read(name: str) -> None:
    graph = read_model(drawn(FORMS[name]))
    assert not graph.opaque
    again = read_model(write_model(graph))
    assert [(node.op, node.attributes) for node in again.nodes] == [(node.op, node.attributes) for node in graph.nodes]


def test_a_step_of_several_rows_is_two_kernels() -> None:
    """The layer of all gates, and arithmetic; in front of all steps is one layer, behind them one move."""
    for steps in (4, 9):
        names = kernel_names(compile_graph(as_function(drawn(form(sequence, steps=steps))), DEVICES["software"]))
        assert len(names) == 3 + 2 * steps


@pytest.mark.parametrize("device", ["software", "hardware"])
def test_a_step_of_one_row_is_less_than_a_kernel(device: str) -> None:
    """As many nodes as fit, in shared memory; behind many steps are moves of several activations each."""
    for steps in (4, 16):
        graph = as_function(drawn(form(sequence, batch=1, steps=steps)))
        assert len(kernel_names(compile_graph(graph, DEVICES[device]))) <= 3 + steps


def test_gates_are_one_product_of_all_steps_and_one_of_each() -> None:
    graph, _ = run_passes(as_function(drawn(form(sequence, steps=6))))
    assert sum(node.op == "CONV_2D" for node in graph.nodes) == 1 + 6


def without(position: int, draw: Draw) -> bytes:
    """A model whose operator lacks an input."""
    m = Sketch(5)
    m.output(draw(m))
    *before, op = m.ops
    inputs = list(op.inputs)
    inputs[position] = -1
    m.ops[:] = [*before, type(op)(op.name, tuple(inputs), op.outputs, op.options)]
    return m.build()


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lambda: drawn(form(sequence, steps=MOST_STEPS + 1)), f"{MOST_STEPS + 1} steps over time"),
        (lambda: without(2, sequence), "input 2 is missing"),
        (lambda: without(1, sequence), "input 5 is there"),
        (lambda: without(16, form(sequence, projection=3)), "5 units give 3 values without a projection"),
        (lambda: without(9, form(sequence, peephole=True)), "input 9 is missing"),
        (lambda: without(10, form(sequence, peephole=True)), "input 10 is missing"),
        (lambda: without(21, form(sequence, norm=True)), "input 21 is missing"),
        (lambda: without(18, sequence), "input 18 is missing"),
        (lambda: drawn(form(sequence, activation="NONE")), "no activation"),
        (lambda: drawn(form(sequence, cell_clip=-1.0)), "limits of -1 and 0"),
        (lambda: drawn(form(sequence, diagonal_recurrent_tensors=True)), "weights that are diagonals"),
        (lambda: without(2, rnn), "5 inputs, from 5 to 5 are possible"),
        (lambda: without(4, svdf), "input 4 is missing"),
        (lambda: drawn(form(svdf, activation="SIGN_BIT")), "fused activation 5"),
    ],
)
def test_what_is_refused_has_a_reason(model: Callable[[], bytes], reason: str) -> None:
    (node,) = read_model(model()).opaque
    assert reason in node.attributes.reason  # type: ignore[attr-defined]
    assert "\n" not in node.attributes.reason  # type: ignore[attr-defined]


def test_weights_that_are_computed_are_refused() -> None:
    def draw(m: Sketch) -> int:
        x, state = m.connected(m.input((2, 7)), 6), m.tensor((2, 5), is_variable=True)
        inputs = [x, m.unary("NEG", m.input((5, 6))), m.random(5, 5), m.random(5), state]
        return m.op("RNN", inputs, (2, 5), table="RNNOptions", activation="TANH")

    with pytest.raises(UnsupportedError, match="weights that the model computes"):
        run_passes(as_function(drawn(draw)))


def test_weights_of_half_precision_are_folded() -> None:
    def draw(m: Sketch) -> int:
        x, state = m.connected(m.input((2, 7)), 6), m.tensor((2, 5), is_variable=True)
        weights = [m.half(m.rng.uniform(-1, 1, each)) for each in ((5, 6), (5, 5), (5,))]
        return m.op("RNN", [x, *weights, state], (2, 5), table="RNNOptions", activation="TANH")

    model = drawn(draw)
    assert worst_of_stream(model, native_networks({0: as_function(model)})[0].run, 5) < MOST_ERROR


def test_nothing_is_known_of_what_whole_inputs_make() -> None:
    """Its second input is the weights of one gate, or none at all."""
    for coupled in (False, True):
        m = Sketch(seed=5)
        x = m.unary("ROUND", m.unary("TANH", m.input((2, 4, 6))))
        inputs = lstm_inputs(m, 6, 5, 5, cifg=coupled)
        options: dict[str, Any] = {
            "table": "UnidirectionalSequenceLSTMOptions",
            "activation": "TANH",
            "time_major": False,
        }
        y = m.op("UNIDIRECTIONAL_SEQUENCE_LSTM", [x, *inputs], (2, 4, 5), **options)
        m.output(y)
        graph, _ = express_states(read_model(m.build()))
        assert graph.nodes[-1].outputs[0] not in whole_ranges(graph)


def test_layers_that_keep_one_tensor_go_on_with_each_others_state() -> None:
    m = Sketch(seed=9)
    x, state = m.input((2, 6)), m.tensor((2, 8 * 5), is_variable=True)
    for _ in range(2):
        inputs = [x, m.random(8, 6), m.random(8, 5), m.random(4), state]
        m.output(m.op("SVDF", inputs, (2, 4), table="SVDFOptions", rank=2, activation="RELU"))
    model = m.build()
    assert worst_of_stream(model, native_networks({0: as_function(model)})[0].run, 20) < MOST_ERROR
