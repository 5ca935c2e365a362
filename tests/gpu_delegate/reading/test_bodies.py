"""Operators that run a subgraph are read with what that computes; TensorFlow Lite's own results are equal."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from ai_edge_litert import interpreter as newer

from tests.helpers.native import native_networks
from tests.model_files.called_models import calling, chain, doubling, giving_back, loop, norms, running
from tests.model_files.graphs import GraphBuilder, ops_of
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.delegate.delegate import GpuDelegate
from texelflow.gpu_delegate.model.graph import CalledBody, Graph
from texelflow.gpu_delegate.passes.inlining import inline_bodies
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.reading.resizing import read_resized

Arrays = list[npt.NDArray[Any]]
MODELS = {"norms": norms(), "one row": norms(1, 9), "chain": chain([2, 5, 1]), "loop": loop(), "no turn": loop(0)}


def random_inputs(graph: Graph) -> Arrays:
    rng = np.random.default_rng(7)
    return [rng.normal(0, 1, graph.tensors[i].shape).astype(np.float32) for i in graph.inputs]


def results(model: bytes, inputs: Arrays, *delegates: GpuDelegate) -> Arrays:
    """What TensorFlow Lite gives, of the runtime that knows composites."""
    made = newer.Interpreter(model_content=model, experimental_delegates=list(delegates))
    for details, values in zip(made.get_input_details(), inputs, strict=True):
        made.resize_tensor_input(details["index"], values.shape)
    made.allocate_tensors()
    for details, values in zip(made.get_input_details(), inputs, strict=True):
        made.set_tensor(details["index"], values)
    made.invoke()
    return [made.get_tensor(details["index"]) for details in made.get_output_details()]


def check_close(found: Any, expected: Arrays) -> None:
    for values, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(values, wanted, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_native_code_and_the_reference_compute_it(name: str) -> None:
    graph = read_model(MODELS[name])
    assert not graph.opaque
    assert not graph.original
    inputs = random_inputs(graph)
    expected = results(MODELS[name], inputs)
    network = native_networks({name: graph})[name]
    check_close(network.run(inputs), expected)
    check_close(Reference(graph).run(inputs), expected)  # in a file without composites


def test_an_input_a_constant_and_one_result_twice_are_outputs() -> None:
    """Of which TensorFlow Lite leaves the constant's memory as it was."""
    graph = read_model(giving_back())
    inputs = random_inputs(graph)
    network = native_networks({0: graph})[0]
    constant = np.random.default_rng(0).uniform(-1, 1, (2, 3))
    expected = [np.tanh(each) for each in (-inputs[0], constant, inputs[1] - inputs[0], inputs[1] - inputs[0])]
    check_close(network.run(inputs), expected)
    check_close(Reference(graph).run(inputs), expected)


@pytest.mark.gl
@pytest.mark.parametrize("name", MODELS)
def test_the_delegate_takes_the_operator_that_the_interpreter_has(name: str) -> None:
    graph = read_model(MODELS[name])
    delegate, inputs = GpuDelegate(strict=True), random_inputs(graph)
    check_close(results(MODELS[name], inputs, delegate), results(MODELS[name], inputs))
    assert [each.nodes for each in delegate.partitions] == [tuple(range(len(graph.nodes)))]


@pytest.mark.gl
def test_the_delegate_takes_other_sizes() -> None:
    inputs = random_inputs(read_model(norms(6, 5)))
    check_close(results(norms(4, 5), inputs, GpuDelegate(strict=True)), results(norms(6, 5), inputs))


def test_shapes_and_constants_are_those_of_the_place_where_it_runs() -> None:
    graph = read_resized(norms(3, 5), read_model(norms(3, 5)), {0: (7, 5)})
    inlined, _ = inline_bodies(graph)
    again, _ = inline_bodies(read_model(norms(7, 5)))
    assert [inlined.tensors[node.outputs[0]].shape for node in inlined.nodes] == [
        again.tensors[node.outputs[0]].shape for node in again.nodes
    ]
    assert {node.index for node in inlined.nodes} == {0, 1, 2}


def test_call_is_one_of_them() -> None:
    inlined, _ = inline_bodies(read_model(norms(op="CALL")))
    assert ops_of(inlined) == ops_of(inline_bodies(read_model(norms()))[0])


def reason(model: bytes) -> str:
    node, *_ = read_model(model).opaque
    return node.attributes.reason  # type: ignore[attr-defined, no-any-return]


def test_what_cannot_be_put_in_place_stays_one_operator() -> None:
    assert reason(chain([2, 1, 2])).endswith("subgraph 2 runs itself")
    assert "more than 16 subgraphs" in reason(chain(list(range(1, 20))))
    assert "more than 10000 operators" in reason(doubling(15))
    g, body = GraphBuilder(), GraphBuilder()
    x = g.input(2, 3)
    g.node("STABLEHLO_COMPOSITE", [x, x], (2, 3), running(1))
    body.node("NEG", [body.input(2, 3)])
    assert reason(calling(g.graph(1), {1: body.graph(1)})) == "2 inputs for 1 of subgraph 1"
    assert reason(calling(g.graph(1), {})).startswith("it runs subgraph 1 of 1")


def test_loops_that_are_long_or_depend_on_values_stay() -> None:
    assert len(read_model(loop(64)).opaque) == 0
    assert reason(loop(65)) == "runs other subgraphs, more than 64 times or 1024 operators"
    assert reason(loop(is_given=True)) == "runs other subgraphs, as often as values say that it computes"


def test_bodies_within_bodies_are_counted_where_they_lie() -> None:
    (first, _) = read_model(doubling(5)).nodes
    assert isinstance(first.attributes, CalledBody)
    assert len(inline_bodies(read_model(doubling(5)))[0].nodes) == 2**6


@pytest.mark.gl
def test_the_body_of_a_loop_that_ends_by_values_is_delegated() -> None:
    model = loop(7, is_given=True, columns=40)
    rng = np.random.default_rng(3)
    for start in (0, 4, 9):  # the last one runs no turn
        inputs = [rng.normal(0, 1, (3, 40)).astype(np.float32), np.array([start], np.int32)]
        with GpuDelegate(strict=True, quiet=True, min_nodes_per_partition=1) as delegate:
            check_close(results(model, inputs, delegate), results(model, inputs))
            assert [(each.subgraph, each.nodes) for each in delegate.partitions] == [
                (0, (0,)),
                (0, (2,)),
                (1, (0,)),
                (2, (0, 1, 2, 3, 4)),
            ]
