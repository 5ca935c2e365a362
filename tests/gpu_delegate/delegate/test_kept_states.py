"""What is kept from run to run is TensorFlow Lite's, run by run; it can be reset, saved and restored."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tflite

import texelflow
from tests.helpers.checked_graphs import CheckedGraph
from tests.helpers.delegated import AnyValues, inferred, interpreter_of
from tests.model_files.model_builder import ModelBuilder
from tests.model_files.sketch import Sketch
from tests.model_files.state_models import lstm_inputs, rnn, sequence
from texelflow.gpu_delegate.delegate.native_delegate import NativePartsDelegate
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.model.feedback import with_feedback
from texelflow.gpu_delegate.model.graph import Opaque
from texelflow.gpu_delegate.ops.variables import VAR_HANDLE, variable_name
from texelflow.gpu_delegate.passes.kept_states import handles_of
from texelflow.gpu_delegate.plan.refusals import find_refusals
from texelflow.gpu_delegate.reading.initial_values import MOST_INITIAL_BYTES
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.reading.writer import write_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gl_states import GlStates
from texelflow.gpu_delegate.targets.gl.runtime import Program, device_of
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.targets.llvm.native_runtime import NativeNetwork
from texelflow.gpu_delegate.targets.llvm.native_states import NativeStates

RUNS = 1000
CHANNELS, STEPS = 5, 3
COUNTED = (1, 2, 3, CHANNELS)


def named(name: str) -> dict[str, Any]:
    return {"container": "", "shared_name": name}


def windows(initial: float = 0.25) -> bytes:
    """The last STEPS rows in a ring of floats, a leaking sum, and a count of runs, of which outputs are made.

    The sum is assigned twice, and read in between; the ring is an output as well; the count is behind no other value.
    """
    m, before = Sketch(seed=3), ModelBuilder()
    for name, values in (("ring", np.full((1, STEPS, CHANNELS), initial)), ("sum", np.zeros((1, CHANNELS)))):
        handle = before.op("VAR_HANDLE", [], (), "resource", **named(name))
        before.op_of("ASSIGN_VARIABLE", [handle, before.constant(values.tolist())], [])
    m.further.append(before)
    m.op_of("CALL_ONCE", [], [], init_subgraph_index=1)
    x = m.input((1, 1, CHANNELS))
    ring, total = (m.op("VAR_HANDLE", [], (), "resource", **named(name)) for name in ("ring", "sum"))
    last = m.op("READ_VARIABLE", [ring], (1, STEPS, CHANNELS))
    now = m.op("CONCATENATION", [last, x], (1, STEPS + 1, CHANNELS), axis=1)
    begin, size = m.constant((0, 1, 0), "int32"), m.constant((1, STEPS, CHANNELS), "int32")
    kept = m.op("SLICE", [now, begin, size], (1, STEPS, CHANNELS))
    m.op_of("ASSIGN_VARIABLE", [ring, kept], [])
    row = m.op("RESHAPE", [x, m.constant((1, CHANNELS), "int32")], (1, CHANNELS))
    half = m.binary("MUL", m.op("READ_VARIABLE", [total], (1, CHANNELS)), m.constant(0.5))
    m.op_of("ASSIGN_VARIABLE", [total, half], [])
    added = m.binary("ADD", m.op("READ_VARIABLE", [total], (1, CHANNELS)), row)
    m.op_of("ASSIGN_VARIABLE", [total, added], [])
    m.output(m.unary("TANH", m.binary("MUL", kept, kept)), kept, m.unary("TANH", added))
    return m.build()


def stream(model: bytes, interpreter: Any, runs: int, reset_at: int = -1) -> list[list[AnyValues]]:
    rng, found = np.random.default_rng(1), []
    for run in range(runs):
        if run == reset_at:
            interpreter.reset_all_variables()
        found.append(inferred(interpreter, [rng.uniform(-1, 1, (1, 1, CHANNELS)).astype(np.float32)]))
    return found


def check_alike(found: list[list[AnyValues]], wanted: list[list[AnyValues]]) -> None:
    for run, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5, err_msg=f"run {run}")


@pytest.mark.gl
def test_a_stream_through_the_delegate_is_that_of_tensorflow_lite() -> None:
    model = windows()
    with texelflow.GpuDelegate(strict=True, quiet=True) as delegate:
        found = stream(model, interpreter_of(model, delegate, xnnpack=False), RUNS, reset_at=RUNS // 2)
        assert [len(each.nodes) for each in delegate.partitions] == [len(read_model(model).nodes)]
    check_alike(found, stream(model, interpreter_of(model, xnnpack=False), RUNS, reset_at=RUNS // 2))


def test_a_stream_in_native_code_is_that_of_tensorflow_lite() -> None:
    model = windows()
    delegate = NativePartsDelegate(threads=1, every_part=True)
    found = stream(model, interpreter_of(model, delegate, xnnpack=False), RUNS)
    assert [len(each.nodes) for each in delegate.partitions] == [len(read_model(model).nodes)]
    check_alike(found, stream(model, interpreter_of(model, xnnpack=False), RUNS))
    delegate.release()


def outputs_of(network: Program | NativeNetwork, values: AnyValues) -> list[AnyValues]:
    if isinstance(network, NativeNetwork):
        return list(network.run([values]))
    network.write(network.compiled.source.inputs[0], values)
    network.run()
    return [network.read(tensor) for tensor in network.compiled.source.outputs]


def check_saved_and_restored(one: Program | NativeNetwork, other: Program | NativeNetwork) -> None:
    """What one keeps, the other knows nothing of, until it is restored there."""
    rows = np.random.default_rng(4).uniform(-1, 1, (9, 1, 1, CHANNELS)).astype(np.float32)
    for row in rows[:4]:
        outputs_of(one, row)
    assert not np.allclose(outputs_of(one, rows[4])[1], outputs_of(other, rows[4])[1])
    saved = one.states()
    assert {name: values.shape for name, values in saved.items()} == {
        "ring": (1, STEPS, CHANNELS),
        "sum": (1, CHANNELS),
    }
    before = [outputs_of(one, row) for row in rows[5:]]
    other.restore_states(saved)
    after = [outputs_of(other, row) for row in rows[5:]]
    for ours, theirs in zip(after, before, strict=True):
        for first, second in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(first, second)
    other.reset_states()
    np.testing.assert_array_equal(other.states()["ring"], np.full((1, STEPS, CHANNELS), 0.25, np.float32))
    with pytest.raises(texelflow.UsageError, match="there is no state 'rings'; there are: ring, sum"):
        other.restore_states({"rings": saved["ring"]})
    with pytest.raises(texelflow.UsageError, match="ring"):
        other.restore_states({"ring": saved["sum"]})


@pytest.mark.gl
def test_states_are_saved_and_restored_on_the_gpu(context: Context) -> None:
    compiled = compile_graph(read_model(windows()), device_of(context))
    with Program(context, compiled) as one, Program(context, compiled) as other:
        check_saved_and_restored(one, other)


def test_states_are_saved_and_restored_in_native_code() -> None:
    network = NativeNetwork.load(read_model(windows()), threads=1)
    check_saved_and_restored(network, network.copy())
    network.close()


@pytest.mark.gl
def test_programs_share_variables_on_the_gpu(context: Context) -> None:
    """What is loaded later leaves what the first keeps as it is."""
    compiled, row = compile_graph(read_model(windows()), device_of(context)), np.ones((1, 1, CHANNELS), np.float32)
    states = GlStates(context)
    with Program(context, compiled, states=states) as one:
        wanted = [outputs_of(one, row * k)[2] for k in range(5)]
        one.reset_states()
        first = [outputs_of(one, row * k)[2] for k in range(2)]
        with Program(context, compiled, states=states) as other:
            np.testing.assert_array_equal([*first, *(outputs_of(other, row * k)[2] for k in range(2, 5))], wanted)
    states.release()


def test_networks_share_variables_in_native_code() -> None:
    graph, row, states = read_model(windows()), np.ones((1, 1, CHANNELS), np.float32), NativeStates()
    one, other = (NativeNetwork.load(graph, threads=1, states=states) for _ in range(2))
    wanted = [outputs_of(one, row * k)[2] for k in range(5)]
    one.reset_states()
    found = [outputs_of(each, row * k)[2] for k, each in enumerate((one, other, other, one, other))]
    np.testing.assert_array_equal(found, wanted)
    one.close()
    other.close()


def test_what_a_variable_begins_with_is_bounded() -> None:
    """Zeros may be as many as there are."""
    for values, reason in ((np.zeros, ""), (np.ones, "sum, a variable, begins with")):
        m, before = Sketch(seed=3), ModelBuilder()
        handle = before.op("VAR_HANDLE", [], (), "resource", **named("sum"))
        shape = (1, MOST_INITIAL_BYTES // 4 + 1)
        before.op_of("ASSIGN_VARIABLE", [handle, before.constant(values(shape).tolist())], [])
        m.further.append(before)
        m.op_of("CALL_ONCE", [], [], init_subgraph_index=1)
        handle = m.op("VAR_HANDLE", [], (), "resource", **named("sum"))
        total = m.binary("ADD", m.op("READ_VARIABLE", [handle], shape), m.input(shape))
        m.op_of("ASSIGN_VARIABLE", [handle, total], [])
        m.output(total)
        reasons = [getattr(node.attributes, "reason", "") for node in read_model(m.build()).nodes]
        assert any(each.startswith(reason) for each in reasons if each) == bool(reason)


@pytest.mark.parametrize("lacking", ["READ_VARIABLE", "ASSIGN_VARIABLE"])
def test_operators_without_their_inputs_are_refused(lacking: str) -> None:
    """The one that reads has none, or the one that assigns the variable alone."""
    m = Sketch(seed=3)
    handle = m.op("VAR_HANDLE", [], (), "resource", **named("sum"))
    total = m.binary("ADD", m.op("READ_VARIABLE", [handle][lacking == "READ_VARIABLE" :], COUNTED), m.input(COUNTED))
    m.op_of("ASSIGN_VARIABLE", [handle, total][: 2 - (lacking == "ASSIGN_VARIABLE")], [])
    m.output(total)
    graph = read_model(m.build())
    reasons = find_refusals(graph, SOFTWARE).reasons
    wrong = next(number for number, node in enumerate(graph.nodes) if node.op == lacking)
    assert "inputs, from" in reasons[wrong]


def test_a_variable_has_the_name_of_its_container_as_well() -> None:
    assert variable_name(b"a", b"b") == "a/b"
    assert variable_name(None, b"b") == variable_name(b"", b"b") == "b"


def counters(odd: bool = False) -> bytes:
    """Two signatures that count with one variable: one adds its input, the other one takes it away, perhaps oddly."""
    graphs = Sketch(seed=3), Sketch(seed=4)
    for m, op in zip(graphs, ("ADD", "SUB"), strict=True):
        m.op_of("CALL_ONCE", [], [], init_subgraph_index=2)
        handle, x = m.op("VAR_HANDLE", [], (), "resource", **named("count")), m.input(COUNTED)
        x = m.cpu_op(x) if odd and op == "SUB" else x
        now = m.binary(op, m.op("READ_VARIABLE", [handle], COUNTED), x)
        m.op_of("ASSIGN_VARIABLE", [handle, now], [])
        m.output(m.unary("NEG", now))
    before = ModelBuilder()
    handle = before.op("VAR_HANDLE", [], (), "resource", **named("count"))
    before.op_of("ASSIGN_VARIABLE", [handle, before.constant(np.full(COUNTED, 2.0).tolist())], [])
    graphs[0].further += [graphs[1], before]
    graphs[0].signatures = {"plus": 0, "minus": 1}
    return graphs[0].build()


def counted(interpreter: Any) -> list[AnyValues]:
    """What the signatures give in turn."""
    rng, found = np.random.default_rng(5), list[AnyValues]()
    for name in ("plus", "plus", "minus", "plus", "minus", "minus"):
        values = rng.uniform(-1, 1, COUNTED).astype(np.float32)
        found += interpreter.get_signature_runner(name)(in0=values).values()
    return found


@pytest.mark.gl
@pytest.mark.parametrize("odd", [False, True])
@pytest.mark.parametrize("kind", ["gl", "native"])
def test_signatures_share_a_variable(kind: str, odd: bool) -> None:
    """Where TensorFlow Lite runs one of them in part, it has the variable of both."""
    model = counters(odd)
    wanted = counted(interpreter_of(model, xnnpack=False))
    delegate = (
        texelflow.GpuDelegate(strict=True, quiet=True, min_nodes_per_partition=1)
        if kind == "gl"
        else NativePartsDelegate(threads=1, every_part=True)
    )
    np.testing.assert_allclose(counted(interpreter_of(model, delegate, xnnpack=False)), wanted, atol=1e-6)
    taken = sum(len(each.nodes) for each in delegate.partitions)
    assert taken == (4 if odd else 12)
    delegate.release()


def unlike(how: str) -> bytes:
    """Two signatures with one variable, of which not all is the same in both."""
    graphs, scales = (Sketch(seed=3), Sketch(seed=4)), (0.05, 0.1 if how == "scale" else 0.05)
    dtype = "int8" if how == "scale" else "float32"
    for number, m in enumerate(graphs):
        if how not in ("set by one", "computed in one") or number:
            m.op_of("CALL_ONCE", [], [], init_subgraph_index=2 + number * (how == "set by each"))
        said: dict[str, Any] = {"scales": (scales[number],), "zero_points": (3,)} if how == "scale" else {}
        handle = m.op("VAR_HANDLE", [], (), "resource", **named("count"))
        x, before, after = (m.tensor(COUNTED, dtype, **said) for _ in range(3))
        m.inputs.append(x)
        m.op_of("READ_VARIABLE", [handle], [before])
        m.op_of("ADD", [before, x], [after])
        m.op_of("ASSIGN_VARIABLE", [handle, after], [])
        m.output(after)
    for value in (2, 7):
        before_all = ModelBuilder()
        handle = before_all.op("VAR_HANDLE", [], (), "resource", **named("count"))
        given = before_all.tensor(COUNTED, dtype, np.full(COUNTED, value, dtype).tobytes())
        given = before_all.op("NEG", [given], COUNTED) if how == "computed in one" else given
        before_all.op_of("ASSIGN_VARIABLE", [handle, given], [])
        graphs[0].further.append(before_all)
    graphs[0].further.insert(0, graphs[1])
    graphs[0].signatures = {"one": 0, "other": 1}
    return graphs[0].build()


@pytest.mark.gl
@pytest.mark.parametrize("how", ["scale", "set by one", "set by each", "computed in one"])
@pytest.mark.parametrize("kind", ["gl", "native"])
def test_signatures_do_not_share_what_is_not_the_same_in_both(kind: str, how: str) -> None:
    model = unlike(how)
    delegate = (
        texelflow.GpuDelegate(strict=True, quiet=True, min_nodes_per_partition=1)
        if kind == "gl"
        else NativePartsDelegate(threads=1, every_part=True)
    )
    interpreters = interpreter_of(model, xnnpack=False), interpreter_of(model, delegate, xnnpack=False)
    rng = np.random.default_rng(6)
    for name in ("other", "one", "other", "one"):
        values = rng.integers(-9, 9, COUNTED).astype("int8" if how == "scale" else "float32")
        wanted, found = (list(each.get_signature_runner(name)(in0=values).values()) for each in interpreters)
        np.testing.assert_array_equal(found, wanted)
    delegate.release()


def recurrent(*seeds: int) -> bytes:
    """An LSTM over time, which keeps states itself, as each of so many signatures: tensors have the same names."""
    first, *further = (Sketch(seed=seed) for seed in seeds)
    for m in (first, *further):
        m.output(m.unary("TANH", sequence(m)))
    first.further += further
    first.signatures = {f"s{number}": number for number in range(len(seeds))}
    return first.build()


def after_steps(interpreter: Any, steps: int, rng: np.random.Generator) -> AnyValues:
    """The output of a run on so many steps."""
    (given,) = interpreter.get_input_details()
    if given["shape"][1] != steps:
        interpreter.resize_tensor_input(given["index"], (2, steps, 6))
        interpreter.allocate_tensors()
    return inferred(interpreter, [rng.uniform(-1, 1, (2, steps, 6)).astype(np.float32)])[0]


@pytest.mark.gl
def test_states_are_those_of_the_program_for_the_present_shapes() -> None:
    model, drawn = recurrent(5), [np.random.default_rng(1) for _ in range(2)]
    with texelflow.GpuDelegate(strict=True, quiet=True) as delegate:
        ours, theirs = interpreter_of(model, delegate, xnnpack=False), interpreter_of(model, xnnpack=False)
        for steps in (4, 4, 7, 7, 4, 3, 3, 7):
            found, wanted = (after_steps(each, steps, rng) for each, rng in zip((ours, theirs), drawn, strict=True))
            np.testing.assert_allclose(found, wanted, atol=1e-5)
            kept: Mapping[str, AnyValues] = delegate.states()
            for name, values in kept.items():
                np.testing.assert_allclose(values, theirs.get_tensor(int(name.split(":")[1])), atol=1e-5)


@pytest.mark.gl
def test_states_stay_where_shapes_change_during_runs() -> None:
    """TensorFlow Lite resets nothing there: the program for other shapes goes on with what there is."""
    m, rng = Sketch(seed=5), np.random.default_rng(4)
    x, end = m.input((2, 9, 6)), m.tensor((3,), "int32")
    m.inputs.append(end)
    begin, strides = (m.constant((value,) * 3, "int32") for value in (0, 1))
    cut = m.unary("RELU", m.op("STRIDED_SLICE", [x, begin, end, strides], (2, 4, 6)))
    options: dict[str, Any] = {"table": "UnidirectionalSequenceLSTMOptions", "activation": "TANH"}
    m.output(m.op("UNIDIRECTIONAL_SEQUENCE_LSTM", [cut, *lstm_inputs(m, 6, 5, 5)], (2, 4, 5), **options))
    with texelflow.GpuDelegate(strict=True, quiet=True, min_nodes_per_partition=1) as delegate:
        ours, theirs = (interpreter_of(m.build(), *each, xnnpack=False) for each in ([delegate], []))
        for steps in (4, 7, 7, 4, 3, 4):
            given = [rng.uniform(-1, 1, (2, 9, 6)).astype(np.float32), np.array((2, steps, 6), np.int32)]
            np.testing.assert_allclose(inferred(ours, given)[0], inferred(theirs, given)[0], atol=1e-5)
        assert delegate.partitions
        del ours


@pytest.mark.gl
def test_states_of_operators_are_restored_before_the_first_run() -> None:
    """What TensorFlow Lite has set to zero before that is no reason to reset them in the run."""
    model, rows = recurrent(5), np.random.default_rng(2).uniform(-1, 1, (4, 2, 4, 6)).astype(np.float32)
    with texelflow.GpuDelegate(quiet=True) as one, texelflow.GpuDelegate(quiet=True) as other:
        first, second = interpreter_of(model, one, xnnpack=False), interpreter_of(model, other, xnnpack=False)
        for row in rows[:3]:
            inferred(first, [row])
        other.restore_states(one.states())
        np.testing.assert_array_equal(inferred(second, [rows[3]]), inferred(first, [rows[3]]))
        second.reset_all_variables()
        assert not any(values.any() for values in other.states().values())
        del first, second


@pytest.mark.gl
def test_signatures_keep_states_apart_that_have_one_name() -> None:
    model, rng = recurrent(5, 6), np.random.default_rng(3)
    with texelflow.GpuDelegate(quiet=True) as delegate:
        interpreter = interpreter_of(model, delegate, xnnpack=False)
        runners = [interpreter.get_signature_runner(name) for name in ("s0", "s1")]
        row = rng.uniform(-1, 1, (2, 4, 6)).astype(np.float32)
        for runner in (runners[0], *runners):
            runner(in0=row)
        saved = delegate.states()
        assert len(saved) == 4
        wanted = [runner(in0=-row) for runner in runners]
        delegate.restore_states(saved)
        for runner, before in zip(runners, wanted, strict=True):
            np.testing.assert_array_equal(list(runner(in0=-row).values()), list(before.values()))
        del interpreter, runners, runner


def fed_back() -> bytes:
    """A leaking average and a count, each an input and an output, beside an output of what comes of both."""
    m = Sketch(seed=6)
    x, average, count = m.input((1, 3, CHANNELS)), m.input((1, 3, CHANNELS)), m.input((1, 1))
    mixed = m.binary("ADD", m.binary("MUL", average, m.constant(0.9)), m.binary("MUL", x, m.constant(0.1)))
    more = m.binary("ADD", count, m.constant(0.01))
    m.output(m.unary("TANH", m.binary("MUL", mixed, more)), mixed, more)
    return m.build()


@pytest.mark.gl
def test_outputs_are_fed_back(context: Context) -> None:
    """1,000 runs, as TensorFlow Lite's whose caller copies; the inputs can be set in between."""
    model, plain = fed_back(), interpreter_of(fed_back(), xnnpack=False)
    graph = read_model(model)
    fed = with_feedback(graph, dict(zip(graph.inputs[1:], graph.outputs[1:], strict=True)))
    rows = np.random.default_rng(7).uniform(-1, 1, (RUNS, 1, 3, CHANNELS)).astype(np.float32)
    wanted, kept = list[list[AnyValues]](), [np.zeros((1, 3, CHANNELS), np.float32), np.zeros((1, 1), np.float32)]
    for row in rows:
        wanted.append(inferred(plain, [row, *kept]))
        kept = wanted[-1][1:]
    network = NativeNetwork.load(fed, threads=1)
    with Program(context, compile_graph(fed, device_of(context))) as program:
        for run, row in enumerate(rows):
            network.write(graph.inputs[0], row)
            network.compute()
            program.write(graph.inputs[0], row)
            program.run()
            for tensor, values in zip(graph.outputs, wanted[run], strict=True):
                np.testing.assert_allclose(network.read(tensor), values, atol=1e-5)
                if run % 50 == 0:
                    np.testing.assert_allclose(program.read(tensor), values, atol=1e-5)
        saved = program.states()
        assert len(saved) == 2
        program.reset_states()
        assert not any(values.any() for values in program.states().values())
        program.write(graph.inputs[2], np.full((1, 1), 3.0, np.float32))
        program.run()
        np.testing.assert_allclose(program.read(graph.outputs[2]), [[3.01]], atol=1e-6)
    network.close()


def test_only_like_is_fed_back() -> None:
    graph = read_model(fed_back())
    with pytest.raises(texelflow.UsageError, match="fed back as an input of its kind"):
        with_feedback(graph, {graph.inputs[1]: graph.outputs[2]})
    with pytest.raises(texelflow.UsageError, match="is no output"):
        with_feedback(graph, {graph.inputs[1]: graph.inputs[1]})
    fed = with_feedback(graph, {graph.inputs[1]: graph.outputs[1]})
    with pytest.raises(texelflow.UsageError, match="is fed back already"):
        with_feedback(fed, {graph.inputs[1]: graph.outputs[1]})
    m = Sketch(seed=6)
    x, before = m.input((2, 3)), m.input((2, 3))
    m.output(m.binary("ADD", x, before), before)
    graph = read_model(m.build())
    with pytest.raises(texelflow.UsageError, match="is an output, too"):
        with_feedback(graph, {graph.inputs[1]: graph.outputs[0]})


def summed(m: Sketch, name: str, x: int, initial: float = 2.0) -> int:
    """What a variable is with x added, which it is from then on."""
    shape, before = m.shape(x), ModelBuilder()
    handle = before.op("VAR_HANDLE", [], (), "resource", **named(name))
    before.op_of("ASSIGN_VARIABLE", [handle, before.constant(np.full(shape, initial).tolist())], [])
    m.further.append(before)
    m.op_of("CALL_ONCE", [], [], init_subgraph_index=len(m.further))
    handle = m.op("VAR_HANDLE", [], (), "resource", **named(name))
    total = m.binary("ADD", m.op("READ_VARIABLE", [handle], shape), x)
    m.op_of("ASSIGN_VARIABLE", [handle, total], [])
    return total


@pytest.mark.gl
def test_operators_of_variables_in_an_odd_order_are_left_to_tensorflow_lite() -> None:
    """A handle is used before there is one, or a variable before it is set once; a handle is no value either."""
    m = Sketch(seed=1)
    x, handle, now = m.input(COUNTED), m.tensor((), "resource"), m.tensor(COUNTED)
    m.op_of("READ_VARIABLE", [handle], [now])
    m.op_of("VAR_HANDLE", [], [handle], **named("count"))
    m.op_of("ASSIGN_VARIABLE", [handle, m.binary("ADD", now, x)], [])
    m.output(m.unary("NEG", x))
    with texelflow.GpuDelegate(quiet=True, min_nodes_per_partition=1) as delegate:
        interpreter_of(m.build(), delegate, xnnpack=False)
        assert "reads tensor 1 before anything has written it" in str(delegate.error)
    m = Sketch(seed=1)
    x = m.input(COUNTED)
    handle = m.op("VAR_HANDLE", [], (), "resource", **named("count"))
    m.op_of("ASSIGN_VARIABLE", [handle, x], [])
    m.output(summed(m, "count", x))
    m.op_of("ASSIGN_VARIABLE", [handle, handle], [])
    reasons = [getattr(node.attributes, "reason", "") for node in read_model(m.build()).nodes]
    assert "variables are set once behind operators that use them" in reasons
    assert any("assigns a variable itself" in reason for reason in reasons)


@pytest.mark.gl
def test_names_of_states_may_be_one() -> None:
    """Of a variable and what an operator keeps: TensorFlow Lite runs both; a variable and an input are refused."""
    m = Sketch(seed=5)
    y = rnn(m)
    (own,) = (number for number, tensor in enumerate(m.tensors) if tensor.is_variable)
    m.output(m.unary("TANH", summed(m, f"tensor{own}:{own}", y)))
    model, rows = m.build(), np.random.default_rng(8).uniform(-1, 1, (3, 2, 7)).astype(np.float32)
    with texelflow.GpuDelegate(strict=True, quiet=True, min_nodes_per_partition=1) as delegate:
        ours, theirs = interpreter_of(model, delegate, xnnpack=False), interpreter_of(model, xnnpack=False)
        for row in rows:
            np.testing.assert_allclose(inferred(ours, [row]), inferred(theirs, [row]), atol=1e-5)
        del ours
    m = Sketch(seed=5)
    x, fed = m.input((2, 5)), m.input((2, 5))
    m.output(m.binary("SUB", summed(m, "tensor1", x), fed))
    graph = read_model(m.build())
    with pytest.raises(texelflow.UnsupportedError, match="tensor1 is an input that is fed back, and"):
        NativeNetwork.load(with_feedback(graph, {graph.inputs[1]: graph.outputs[0]}), threads=1)


@pytest.mark.gl
@pytest.mark.parametrize("channels", [1, 5])
def test_what_a_variable_was_is_an_output(context: Context, channels: int) -> None:
    """It is no part of the variable's memory, which has the next value by then; one channel is stored as four."""
    m, before, names = Sketch(seed=8), ModelBuilder(), {"container": "", "shared_name": "last"}
    handle = before.op("VAR_HANDLE", [], (), "resource", **names)
    before.op_of("ASSIGN_VARIABLE", [handle, before.constant([[0.5] * channels] * 2)], [])
    m.further.append(before)
    m.op_of("CALL_ONCE", [], [], init_subgraph_index=1)
    x = m.input((2, channels))
    handle = m.op("VAR_HANDLE", [], (), "resource", **names)
    was = m.op("READ_VARIABLE", [handle], (2, channels))
    m.op_of("ASSIGN_VARIABLE", [handle, m.unary("TANH", m.binary("SUB", x, was))], [])
    m.output(was, m.unary("NEG", was))
    rows = np.random.default_rng(9).uniform(-2, 2, (4, 2, channels)).astype(np.float32)
    checked = CheckedGraph(m.build(), [[row] for row in rows])
    assert [checked.difference(way, context) for way in ("native", "software", "hardware", "delegate")] == [""] * 4


def test_custom_options_of_a_file_set_no_variable() -> None:
    """TensorFlow Lite does not look at them; the engine's own are of models that it has read from memory."""
    m = Sketch(seed=3)
    handle = m.op("VAR_HANDLE", [], (), "resource", **named("sum"))
    total = m.binary("ADD", m.op("READ_VARIABLE", [handle], (1, CHANNELS)), m.input((1, CHANNELS)))
    m.op_of("ASSIGN_VARIABLE", [handle, total], [])
    m.output(total)
    graph = read_model(m.build())
    ones = np.ones(CHANNELS, np.float32).tobytes()
    options = (("SharedName", b"sum"),)
    said = Opaque(
        code=tflite.BuiltinOperator.VAR_HANDLE, table="VarHandleOptions", options=options, custom_options=ones
    )
    nodes = tuple(replace(node, attributes=said) if node.op == VAR_HANDLE else node for node in graph.nodes)
    file = write_model(replace(graph, nodes=nodes))
    assert ones in file
    (found,) = handles_of(read_model(file)).values()
    assert not found.initial
