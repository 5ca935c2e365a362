"""Models of which parts run in native code and the rest in TensorFlow Lite: results, what runs where, and why."""

from pathlib import Path

import numpy as np
import pytest

from tests.generators.profiles import random_graph
from tests.gpu_delegate.delegate.test_random_partial import QUICK
from tests.helpers.markers import one_in
from tests.model_files.called_models import loop
from tests.model_files.model_builder import ModelBuilder
from tests.model_files.partial_models import cast_and_back, segments, with_detections
from tests.model_files.short_models import ShortSketch, short_inputs
from tests.model_files.sketch import Sketch
from tests.quantized.networks import Net
from tests.quantized.quantizer import Scheme, quantized_twin
from tests.quantized.runs import TfliteRun
from texelflow.gpu_delegate.base import cache_folder
from texelflow.gpu_delegate.base.disk_cache import DiskCache
from texelflow.gpu_delegate.base.errors import ModelError, UnsupportedError, UsageError
from texelflow.gpu_delegate.cpu.array_pipe import AnyArray
from texelflow.gpu_delegate.cpu.delegation import Delegation
from texelflow.gpu_delegate.cpu.interpreter import InterpreterOptions, LocalInterpreter
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.delegate.native_delegate import NativePartsDelegate, native_delegate
from texelflow.gpu_delegate.delegate.native_parts import PartTimes, kept_times, native_parts, parse_part_times
from texelflow.gpu_delegate.delegate.selection import COSTS_MORE
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.partition import subgraph
from texelflow.gpu_delegate.programs.model_sharing import ModelSharing
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.reading.writer import write_model
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.pool import WorkerPool


def values_for(graph: Graph, seed: int = 0) -> list[AnyArray]:
    rng, found = np.random.default_rng(seed), list[AnyArray]()
    for tensor in map(graph.tensors.__getitem__, graph.inputs):
        whole = tensor.dtype != "float32"
        drawn = rng.integers(-128, 128, tensor.shape) if whole else rng.uniform(0, 1, tensor.shape)
        found.append(drawn.astype(tensor.dtype))
    return found


def in_parts(graph: Graph, threads: int = 1) -> tuple[Reference, Delegation]:
    """Every part that has native code there, whether it pays or not."""
    made = Reference(graph, threads, delegate=native_delegate(threads, every_part=True))
    assert made.delegation is not None
    return made, made.delegation


def detector() -> Net:
    """Boxes and scores of a picture."""
    net = Net(3)
    x = net.conv(net.image(24, 24, 3), 8, (3, 3), stride=(2, 2), activation="RELU6")
    boxes = net.reshaped(net.conv(net.separable(x, 16), 4), 1, 144, 4)
    scores = net.reshaped(net.unary("LOGISTIC", net.conv(net.separable(x, 16), 3)), 1, 144, 3)
    net.output(boxes, scores)
    return net


def broken_in_two() -> Net:
    """A network with an op in its middle that has no native code."""
    net = Net(5)
    x = net.conv(net.image(20, 20, 3), 8, (3, 3), activation="RELU6")
    x = net.separable(net.cpu_op(x), 12)
    net.output(x, net.mean(x))
    return net


def quantized(net: Net, border: str) -> Graph:
    rng = np.random.default_rng(1)
    samples = [[rng.uniform(0, 1, net.shape(index)).astype(np.float32) for index in net.inputs] for _ in range(2)]
    return read_model(quantized_twin(net, samples, Scheme(border=border)))


@pytest.mark.parametrize("process", ["in this process", "in a process of its own"])
def test_an_op_in_the_middle(process: str) -> None:
    graph = read_model(segments(in_parts=True))
    if process == "in a process of its own":
        graph = read_model(cast_and_back(read_model(segments()), 0.25))
    found, delegation = in_parts(graph, threads=2)
    assert (found.process_id is None) == (process == "in this process")
    assert delegation.dispatches == 0, "on the GPU"
    assert delegation.renderer == f"{native_target().name} code on the CPU, 2 threads"
    taken = f"{sum(map(len, delegation.partitions))} of {len(graph.nodes)} operators"
    assert delegation.line == f"{taken} in the CPU's own code in 2 partitions, the rest in TensorFlow Lite"
    for seed in range(2):
        (wanted,), (mask,) = (each.run(values_for(graph, seed)) for each in (Reference(graph), found))
        np.testing.assert_allclose(mask, wanted, rtol=0, atol=1e-5)
    found.close()


def test_a_custom_op_at_the_end() -> None:
    net = detector()
    graph = read_model(with_detections(read_model(net.build())))
    found, delegation = in_parts(graph)
    assert [len(nodes) for nodes in delegation.partitions] == [len(graph.nodes) - 1]
    inputs = values_for(graph)
    for one, other in zip(found.run(inputs), Reference(graph, judges=True).run(inputs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    found.close()


def test_bytes_are_those_of_the_reference_kernels() -> None:
    at_the_end = read_model(with_detections(quantized(detector(), "float32")))
    for graph in (at_the_end, quantized(broken_in_two(), "own")):
        found, delegation = in_parts(graph)
        taken = {number for nodes in delegation.partitions for number in nodes}
        left = {graph.nodes[number].op for number in range(len(graph.nodes)) if number not in taken}
        assert len(left) == 1, "the op that has no native code"
        judge = Reference(graph, judges=True)
        for seed in range(3):
            inputs = values_for(graph, seed)
            for one, other in zip(found.run(inputs), judge.run(inputs), strict=True):
                np.testing.assert_array_equal(one, other)
        found.close()


def test_a_model_whose_operators_all_have_native_code_is_taken_whole() -> None:
    model = ShortSketch()
    x, scores = model.given((3, 7), 1e-3, zero_point=5), model.short((3, 7), 0.05, "int8", 3)
    shares, whole = model.short((3, 7), 2**-16, zero_point=-(1 << 15)), model.short((3, 7), 2**-15, "int32")
    for op, given, made in (("QUANTIZE", x, scores), ("SOFTMAX", scores, shares), ("QUANTIZE", shares, whole)):
        model.op_of(op, [given], [made], **({"beta": 1.0} if op == "SOFTMAX" else {}))
    model.output(whole)
    delegate = NativePartsDelegate(1, every_part=True)
    values, data = short_inputs(model, 0), model.build()
    (found,) = TfliteRun(data, delegates=[delegate])(values)
    assert [set(partition.computed) for partition in delegate.subgraphs[0].found.partitions] == [{0, 1, 2}]
    assert delegate.error is None
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, TfliteRun(data)(values)[0])


def test_several_inputs_and_outputs_and_what_parts_hand_to_each_other() -> None:
    """The first part's value is read by the second alone, which waits for TensorFlow Lite as well."""
    net = Sketch(0)
    x, y = net.image(9, 7, 6), net.image(9, 7, 6)
    first, theirs = net.unary("RELU", net.conv(x, 6)), net.cpu_op(net.unary("ABS", y))
    net.output(net.binary("ADD", first, theirs), theirs, net.conv(y, 3))
    graph = read_model(net.build())
    cache = ModelSharing()
    delegates = [NativePartsDelegate(1, each, every_part=True) for each in (None, cache, cache)]
    options = InterpreterOptions(1, len(graph.outputs))
    found = [LocalInterpreter(write_model(graph), options, delegate) for delegate in delegates]
    cache.finalize_soft()
    for delegate in delegates:
        assert [[*map(len, part.gives.values())] for part in delegate.partitions] == [[1], []]
    for seed in range(2):
        inputs = values_for(graph, seed)
        wanted = Reference(graph).run(inputs)
        for one, other in ((one, other) for each in found for one, other in zip(each.run(inputs), wanted, strict=True)):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-4)
    for each in found:
        each.close()


def test_what_does_not_pay_is_tensorflow_lites() -> None:
    """A crumb by estimate, and what is slower by measure; what is faster stays."""
    graph, pool = read_model(segments(in_parts=True)), WorkerPool(native_target(), 1)
    whole = native_parts(graph, pool, every_part=True)
    assert [len(each.nodes) for each in whole.partitions] == [2, 3]

    def first_is_slow(part: Graph, *_: object) -> PartTimes:
        return PartTimes(2.0, 1.0 if len(part.nodes) == 2 else 3.0)

    found = native_parts(graph, pool, times_of=first_is_slow)
    assert [each.nodes for each in found.partitions] == [whole.partitions[1].nodes]
    assert {found.reasons[0], found.reasons[1]} == {PartTimes(2.0, 1.0).reason}
    assert found.reasons[0].startswith(f"{COSTS_MORE}2.00 ms against 1.00 ms in TensorFlow Lite")
    crumbs = read_model(cast_and_back(read_model(segments(size=4, channels=2)), 0.25))
    left = native_parts(crumbs, pool, times_of=lambda *_: pytest.fail("a crumb is not measured"))
    assert not left.partitions
    with pytest.raises(UnsupportedError, match="why; none of 1 operator in the CPU's own code"):
        Delegation((), 1, 0, 0, 0, "", "of this", ("in the CPU's own code", "in TensorFlow Lite")).check_taken("why")


def test_times_are_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache_folder.VARIABLE, str(tmp_path))
    graph, pool = read_model(segments(in_parts=True)), WorkerPool(native_target(), 1)
    found = native_parts(graph, pool, every_part=True)
    part, network = subgraph(found.graph, found.partitions[0]), found.compiled[0]
    times = kept_times(part, network, 1)
    assert times.native_ms > 0 < times.tflite_ms
    assert kept_times(part, network, 1) == times
    assert [entry.kind for entry in DiskCache().entries() if entry.key.startswith("part ")] == ["backends"]
    assert kept_times(part, network, 2) != times, "with other threads it is another question"
    for damaged in (b"", b"[]", b'{"native_ms": 1}', b'{"native_ms": -1.0, "tflite_ms": 1.0}'):
        assert parse_part_times(damaged) is None


@pytest.mark.parametrize("times", [PartTimes(1.0, 2.0), PartTimes(0.0, 0.0)])
def test_what_is_faster_or_could_not_be_measured_stays(times: PartTimes) -> None:
    assert not times.reason


def test_errors_are_one_line() -> None:
    graph = read_model(segments(in_parts=True))
    found, _ = in_parts(graph)
    with pytest.raises(UsageError, match="finite"):
        found.run(np.full((1, 48, 48, 3), np.nan, np.float32))
    np.testing.assert_array_equal(found.run(values_for(graph))[0], found.run(values_for(graph))[0])
    found.close()
    model = ModelBuilder()
    x = model.input((1, 8, 8, 4))
    model.output(model.op("TheirOwnOp", [model.op("ABS", [x], (1, 8, 8, 4))], (1, 8, 8, 4)))
    with pytest.raises(ModelError) as lacking:
        in_parts(read_model(model.build()))
    assert str(lacking.value).startswith("TensorFlow Lite cannot run this model on the CPU: ")
    assert "TheirOwnOp" in str(lacking.value)
    assert "\n" not in str(lacking.value)


@one_in(13, "seed", [seed for seed in QUICK if seed != 98])  # of which TensorFlow Lite gives a constant output as 0
def test_random_networks(seed: int) -> None:
    graph = read_model(random_graph(seed, "partial", 1 + seed % 4 // 3).build())
    found, _ = in_parts(graph)
    inputs = values_for(graph, seed)
    for one, other in zip(found.run(inputs), Reference(graph, judges=True).run(inputs), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-4 * max(1.0, float(np.abs(other).max(initial=0))))
    found.close()


def test_instances_share_a_weights_cache() -> None:
    graph, cache = read_model(segments(in_parts=True)), ModelSharing()
    first, second = (Reference(graph, 1, delegate=native_delegate(1, cache, every_part=True)) for _ in range(2))
    with pytest.raises(UsageError, match="finalize_soft"):
        first.run(values_for(graph))
    cache.finalize_soft()
    np.testing.assert_array_equal(first.run(values_for(graph)), second.run(values_for(graph)))
    for each in (first, second):
        each.close()


def test_loops_of_known_length_run_where_the_interpreter_has_a_file() -> None:
    """Its memory does not tell the order of a body's inputs; the file does."""
    model, values = loop(), np.random.default_rng(0).uniform(-1, 1, (3, 6)).astype(np.float32)
    delegate = NativePartsDelegate(1, every_part=True)
    interpreter, plain = (
        LocalInterpreter(model, InterpreterOptions(1, 2), delegate=each, sharing=None) for each in (delegate, None)
    )
    assert [len(part.nodes) for part in delegate.partitions] == [3]
    for found, wanted in zip(interpreter.run([values]), plain.run([values]), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)
    interpreter.close()
