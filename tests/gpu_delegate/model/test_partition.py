"""Partitions: which operators stay on the CPU and why, how the others are grouped, and equal results."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.generators.profiles import random_graph
from tests.helpers.slow_partitioner import slow_claim, slow_partitions
from tests.model_files.graphs import GraphBuilder
from tests.model_files.model_builder import ModelBuilder, selfie_like
from tests.model_files.sparse import Traversal, encoded
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.model.graph import Activated, Graph
from texelflow.gpu_delegate.model.partition import crossing_bytes, partition_graph, subgraph
from texelflow.gpu_delegate.model.reasons import CONSTANT_OF_CPU, CONSTANT_OUTPUT
from texelflow.gpu_delegate.ops.registry import OPS, SUPPORTED_OPS
from texelflow.gpu_delegate.passes.verification import verify
from texelflow.gpu_delegate.plan.refusals import find_refusals
from texelflow.gpu_delegate.programs.support import example_graph
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import Program, device_of
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.targets.glsl.compiled_partitions import compile_partitions

CUSTOM = "TheirOwnOp"


@st.composite
def wired(draw: st.DrawFn) -> tuple[Graph, frozenset[int], frozenset[int]]:
    """A graph of sums, the nodes that are refused, and those of constants alone."""
    made = GraphBuilder()
    values, constant = [made.input(2), made.input(2)], [made.constant([1.0, 2.0])]
    constants = set[int]()
    for number in range(draw(st.integers(1, 25))):
        if draw(st.integers(0, 4)) == 0:
            constant.append(made.node("ADD", [draw(st.sampled_from(constant)) for _ in range(2)], (2,), Activated()))
            constants.add(number)
        else:
            reads = [draw(st.sampled_from(values)), draw(st.sampled_from([*values, *constant]))]
            values.append(made.node("ADD", reads, (2,), Activated()))
    further = draw(st.sets(st.sampled_from([*values[2:], *constant[1:]]))) if len(made.nodes) > 1 else ()
    graph = made.graph(*{values[-1]: None, **dict.fromkeys(further)})
    ordinary = sorted({*range(len(graph.nodes))} - constants)
    refused = draw(st.sets(st.sampled_from(ordinary))) if ordinary else set[int]()
    loops = {number for number in refused if draw(st.integers(0, 3)) == 0}
    nodes = [replace(node, op="WHILE") if number in loops else node for number, node in enumerate(graph.nodes)]
    return replace(graph, nodes=tuple(nodes)), frozenset(refused), frozenset(constants)


@given(wired())
def test_partitions_hold_all_that_is_left_and_can_run_one_after_the_other(
    drawn: tuple[Graph, frozenset[int], frozenset[int]],
) -> None:
    graph, refused, constants = drawn
    partitions = partition_graph(graph, refused, constants)
    covered = [number for partition in partitions for number in partition.nodes]
    assert len(covered) == len({*covered}), "no node is in two"
    assert {*covered} - constants == {*range(len(graph.nodes))} - refused - constants
    known = {*graph.inputs, *(i for number in constants for i in graph.nodes[number].outputs)}
    known |= {i for i, tensor in graph.tensors.items() if tensor.is_constant}
    waiting = refused
    for partition in partitions:
        waiting = frozenset(_run(graph, waiting, known))
        assert {*partition.inputs} <= known, "it needs nothing of a later one: it is convex"
        part = subgraph(graph, partition)
        verify(part)
        assert {*part.inputs} == {*partition.inputs} or part is graph
        known |= {*part.outputs}
    assert not [*_run(graph, waiting, known)]
    assert {*graph.outputs} <= known


def _run(graph: Graph, waiting: frozenset[int], known: set[int]) -> Iterator[int]:
    """Adds what the CPU's nodes can compute to what is known; those that are left."""
    for number in sorted(waiting):
        node = graph.nodes[number]
        if {*node.inputs} <= known:
            known.update(node.outputs)
        else:
            yield number


@given(wired())
def test_groups_are_those_of_tensorflow_lite(drawn: tuple[Graph, frozenset[int], frozenset[int]]) -> None:
    graph, refused, constants = drawn
    partitions = partition_graph(graph, refused, constants)
    assert [{*partition.nodes} - constants for partition in partitions] == slow_partitions(graph, refused, constants)
    covered = {number for partition in partitions for number in partition.nodes}
    assert covered == slow_claim(graph, refused, constants)


@given(wired())
def test_constants_belong_to_their_readers(drawn: tuple[Graph, frozenset[int], frozenset[int]]) -> None:
    graph, refused, constants = drawn
    partitions = partition_graph(graph, refused, constants)
    home = {number: place for place, partition in enumerate(partitions) for number in partition.nodes}
    consumers = graph.consumers()
    position = {id(node): number for number, node in enumerate(graph.nodes)}
    for number in constants:
        readers = {position[id(node)] for i in graph.nodes[number].outputs for node in consumers.get(i, ())}
        if partitions:
            is_output = not {*graph.nodes[number].outputs}.isdisjoint(graph.outputs)
            assert (number in home) == (readers <= home.keys() and not is_output)
        if number in home:
            assert home[number] == min((home[reader] for reader in readers), default=0)
        made = {*graph.nodes[number].outputs}
        assert not any(made & {*partition.inputs, *partition.outputs} for partition in partitions)


def test_a_whole_model_is_one_partition_and_the_graph_itself() -> None:
    graph = read_model(selfie_like(3))
    found = compile_partitions(graph, SOFTWARE)
    (partition,) = found.partitions
    assert not found.reasons
    assert partition.nodes == tuple(range(len(graph.nodes)))
    assert (partition.inputs, partition.outputs) == (graph.inputs, graph.outputs)
    assert found.compiled[0].source is graph
    assert crossing_bytes(graph, partition.inputs) == 72 * 88 * 3 * 4


def test_the_example_of_every_op_runs_alone() -> None:
    for op in SUPPORTED_OPS:
        if OPS[op].role == "folded":  # what it gives is an output here
            continue
        assert not find_refusals(example_graph(OPS[op]), SOFTWARE).reasons, op
        assert not find_refusals(example_graph(OPS[op]), SOFTWARE, fuse=False).reasons, op


def _model(build: Callable[[ModelBuilder, int], int]) -> Graph:
    """A model of RELU, whatever is asked for, and RELU again."""
    model = ModelBuilder()
    x = model.op("RELU", [model.input((1, 30, 30, 4))], (1, 30, 30, 4))
    out = build(model, x)
    model.output(model.op("RELU", [out], model.tensors[out].shape))
    return read_model(model.build())


def _window(model: ModelBuilder, x: int) -> int:
    return model.op("MAX_POOL_2D", [x], (1, 30, 30, 4), kernel=(129, 129), stride=(1, 1), padding="SAME")


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda m, x: m.op(CUSTOM, [x], (1, 30, 30, 4)), "a custom op that is not known here"),
        (lambda m, x: m.op("BITCAST", [x], (1, 30, 30, 4)), "an op that is not supported"),
        (_window, "a window of 16641 pixels, 16384 are allowed"),
        (lambda m, x: m.op("ADD", [x, x], (1, 30, 30, 4), activation="SIGN_BIT"), "fused activation 5"),
    ],
)
def test_what_the_gpu_cannot_take_has_a_reason(build: Callable[[ModelBuilder, int], int], reason: str) -> None:
    graph = _model(build)
    found = compile_partitions(graph, SOFTWARE)
    assert reason in found.reasons[1]
    others = {number for partition in found.partitions for number in partition.nodes}
    assert others.isdisjoint(found.reasons)
    assert others | found.reasons.keys() == {*range(len(graph.nodes))}


def test_constants_that_the_cpu_reads_too_stay_there_and_are_folded_on_the_gpu() -> None:
    model = ModelBuilder()
    weights, own = model.half(np.ones((5, 1, 1, 5))), model.half(np.ones((5, 1, 1, 5)))
    window: dict[str, Any] = {"stride": (1, 1), "padding": "SAME"}
    x = model.op("CONV_2D", [model.input((1, 7, 6, 5)), weights, -1], (1, 7, 6, 5), **window)
    x = model.op(CUSTOM, [x, weights], (1, 7, 6, 5))
    model.output(model.op("CONV_2D", [x, own, -1], (1, 7, 6, 5), **window))
    found = compile_partitions(read_model(model.build()), SOFTWARE)
    assert [partition.nodes for partition in found.partitions] == [(2,), (1, 4)]
    assert [partition.constants for partition in found.partitions] == [(0,), (1,)]
    assert [len(partition.inputs) for partition in found.partitions] == [1, 1], "only what is computed crosses"
    assert found.reasons == {0: CONSTANT_OF_CPU, 3: "a custom op that is not known here"}


def test_constants_that_are_outputs_stay_on_the_cpu_and_are_folded_on_the_gpu() -> None:
    """Here with their readers behind them: TensorFlow Lite computes the constant before the convolution can run."""
    model = ModelBuilder()
    x = model.op("RELU", [model.input((1, 7, 6, 5))], (1, 7, 6, 5))
    weights = model.half(np.ones((5, 1, 1, 5)))
    model.output(model.op("CONV_2D", [x, weights, -1], (1, 7, 6, 5), stride=(1, 1), padding="SAME"), weights)
    found = compile_partitions(read_model(model.build()), SOFTWARE)
    assert [(partition.nodes, partition.constants) for partition in found.partitions] == [((0,), ()), ((2,), (1,))]
    assert found.reasons == {1: CONSTANT_OUTPUT}


def test_a_chain_of_constants_belongs_to_the_gpu_as_far_as_only_the_gpu_reads_it() -> None:
    model = ModelBuilder()
    values, layout = encoded(np.eye(5, dtype=np.float16)[:, None, None], Traversal((0, 1, 2, 3), (True,) * 4))
    dense = model.op("DENSIFY", [model.sparse(values, layout, (5, 1, 1, 5))], (5, 1, 1, 5), "float16")
    weights = model.op("DEQUANTIZE", [dense], (5, 1, 1, 5))
    x = model.op("CONV_2D", [model.input((1, 7, 6, 5)), weights, -1], (1, 7, 6, 5), stride=(1, 1), padding="SAME")
    model.output(x)
    assert [each.nodes for each in compile_partitions(read_model(model.build()), SOFTWARE).partitions] == [(0, 1, 2)]
    model.output(model.op(CUSTOM, [dense], (5, 1, 1, 5)))
    found = compile_partitions(read_model(model.build()), SOFTWARE)
    assert [(partition.nodes, partition.constants) for partition in found.partitions] == [((1, 2), (0, 1))]
    assert found.reasons[0] == CONSTANT_OF_CPU


def test_limits_of_the_device_are_reasons() -> None:
    """Planning does not see the size of memory: what compiles alone only is refused alone, the rest runs."""
    graph = _model(lambda m, x: m.op("MEAN", [x, m.constant((1, 2), "int32")], (1, 1, 1, 4), keep_dims=True))
    found = compile_partitions(graph, SOFTWARE.with_limits(storage_block_bytes=10_000))
    assert "this device allows 0 MiB a tensor" in found.reasons[0]
    assert [partition.nodes for partition in found.partitions] == [(2,)]


def test_what_fails_as_a_whole_is_a_reason_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = read_model(selfie_like(3))
    needed = max(kernel.weights.nbytes for kernel in compile_graph(graph, SOFTWARE).kernels)
    monkeypatch.setattr("texelflow.gpu_delegate.plan.bounds.MOST_WEIGHT_BYTES", 4 * needed)
    found = compile_partitions(graph, SOFTWARE)
    assert not found.partitions
    assert any(reason.startswith("as one program of") for reason in found.reasons.values())
    assert set(found.reasons) == set(range(len(graph.nodes)))


@pytest.mark.parametrize("seed", [1, 5, 12])
def test_partitions_compute_what_the_whole_computes(context: Context, seed: int) -> None:
    """Some operators are left out; every partition gets its inputs from TensorFlow Lite and gives what that gives."""
    network = random_graph(seed, "segmentation")
    graph = read_model(network.build())
    found = find_refusals(graph, device_of(context))
    ordinary = [number for number in range(len(graph.nodes)) if number not in found.constants]
    refused = {number for number in ordinary if network.rng.random() < 0.3}
    reference = Reference(graph, keep_all_tensors=True)
    reference.run([network.rng.uniform(0, 1, shape).astype(np.float32) for shape in reference.input_shapes])
    partitions = partition_graph(graph, {*refused, *found.reasons}, found.constants)
    for partition in partitions:
        compiled = compile_graph(subgraph(graph, partition), device_of(context))
        with Program(context, compiled) as program:
            for tensor in partition.inputs:
                program.write(tensor, reference.tensor(tensor))
            program.run()
            for tensor in partition.outputs:
                expected = reference.tensor(tensor)
                largest = max(1.0, float(np.abs(expected).max(initial=0.0)))
                assert np.abs(program.read(tensor) - expected).max(initial=0.0) < 1e-4 * largest


def test_a_malicious_chain_is_partitioned_at_once() -> None:
    """GPU and CPU in turn, ten thousand times."""
    made = GraphBuilder()
    x = made.input(2)
    for _ in range(10_000):
        x = made.node("ADD", [x, x], (2,), Activated())
    partitions = partition_graph(made.graph(x), range(1, 10_000, 2), frozenset())
    assert [partition.nodes for partition in partitions] == [(number,) for number in range(0, 10_000, 2)]
