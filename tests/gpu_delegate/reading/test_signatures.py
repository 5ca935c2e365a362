"""Models of several signatures: each subgraph is read by name or number, and runs as in TensorFlow Lite."""

from typing import Any

import numpy as np
import pytest

from tests.helpers.runtimes import runtime
from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.reading.reader import read_model

__all__ = ["runtime"]

SHAPES = ((1, 4, 5, 3), (2, 7))


def one_op(op: str, k: int) -> ModelBuilder:
    """A subgraph: an op of two inputs, plus a constant of its own."""
    part = ModelBuilder()
    shape = SHAPES[k % len(SHAPES)]
    a, b = part.input(shape), part.input(shape)
    part.output(part.op("ADD", [part.op(op, [a, b], shape), part.constant(np.full(shape[-1], k + 1.0))], shape))
    return part


def several(**changes: int) -> bytes:
    model = one_op("ADD", 0)
    model.further = [one_op("MUL", 1), one_op("SUB", 2)]
    model.signatures = {"sum": 0, "product": 1, "difference": 2, **changes}
    return model.build()


def loops() -> bytes:
    """Two signatures, each a loop over subgraphs of its own, so that TensorFlow Lite needs the whole file."""
    parts = []
    for k, step in enumerate((2.0, 3.0)):
        part, condition, body = ModelBuilder(), ModelBuilder(), ModelBuilder()
        part.output(
            part.op(
                "WHILE",
                [part.input((1,))],
                (1,),
                table="WhileOptions",
                cond_subgraph_index=3 * k + 1,
                body_subgraph_index=3 * k + 2,
            )
        )
        condition.output(
            condition.op(
                "LESS", [condition.input((1,)), condition.constant([100.0])], (1,), "bool", table="LessOptions"
            )
        )
        body.output(body.op("MUL", [body.input((1,)), body.constant([step])], (1,)))
        parts += [part, condition, body]
    parts[0].further, parts[0].signatures = parts[1:], {"twos": 0, "threes": 3}
    return parts[0].build()


def described(graph: Graph) -> tuple[Any, ...]:
    first, shapes = graph.nodes[0].op, [graph.tensors[i].shape for i in graph.inputs]
    return first, shapes, graph.subgraph, graph.signature, graph.other_signatures


@pytest.mark.parametrize(("k", "name", "op"), [(0, "sum", "ADD"), (1, "product", "MUL"), (2, "difference", "SUB")])
def test_each_signature_is_read_by_its_name_and_its_number(k: int, name: str, op: str) -> None:
    data = several()
    others = tuple(other for other in ("sum", "product", "difference") if other != name)
    for wanted in (k, name):
        assert described(read_model(data, "m", wanted)) == (op, [SHAPES[k % 2]] * 2, k, name, others)


def test_the_first_subgraph_is_read_where_none_is_named() -> None:
    assert described(read_model(several())) == ("ADD", [SHAPES[0]] * 2, 0, "sum", ("product", "difference"))
    assert described(read_model(one_op("SUB", 0).build())) == ("SUB", [SHAPES[0]] * 2, 0, "", ())


@pytest.mark.parametrize(("k", "name"), [(0, "sum"), (1, "product"), (2, "difference")])
def test_each_signature_computes_what_its_runner_does(k: int, name: str, runtime: Any) -> None:
    data, rng = several(), np.random.default_rng(k)
    inputs = [rng.uniform(-1, 1, SHAPES[k % 2]).astype(np.float32) for _ in range(2)]
    runner = runtime.Interpreter(model_content=data).get_signature_runner(name)
    (expected,) = runner(in0=inputs[0], in1=inputs[1]).values()
    (found,) = Reference(read_model(data, "m", name)).run(inputs)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("name", "expected"), [("twos", 128.0), ("threes", 243.0)])
def test_what_needs_the_whole_file_runs_the_subgraph_that_is_named(name: str, expected: float) -> None:
    graph = read_model(loops(), "m", name)
    assert graph.original
    assert Reference(graph).run(np.ones(1, np.float32))[0] == expected


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        ("prodct", "m: there is no signature 'prodct'; there are: sum, product, difference; did you mean product?"),
        ("zzz\n", "m: there is no signature 'zzz?'; there are: sum, product, difference"),
        (3, "m: there is no subgraph 3; there are 3, from 0 on"),
        (-1, "m: there is no subgraph -1; there are 3, from 0 on"),
    ],
)
def test_a_wrong_name_is_one_line(wanted: str | int, line: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_model(several(), "m", wanted)
    assert str(caught.value) == line


def test_a_model_without_signatures_says_so() -> None:
    with pytest.raises(UsageError, match="m: there is no signature 'sum': the file names none; leave it out"):
        read_model(one_op("ADD", 0).build(), "m", "sum")


def test_a_signature_that_leads_nowhere_is_no_signature() -> None:
    data = several(lost=7)
    with pytest.raises(UsageError, match="there is no signature 'lost'; there are: sum, product, difference"):
        read_model(data, "m", "lost")
    assert read_model(data, "m", "product").other_signatures == ("sum", "difference")
