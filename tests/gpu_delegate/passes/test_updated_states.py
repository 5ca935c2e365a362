"""Rows of what is kept are overwritten where they lie, unless others read what was there: as TensorFlow Lite has it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.helpers.delegated import AnyValues, inferred, interpreter_of
from tests.model_files.sketch import Shape, Sketch
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.ops.lookup import OVERWRITES
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import Program, device_of
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.targets.llvm.native_runtime import NativeNetwork

NAMES: dict[str, Any] = {"container": "", "shared_name": "rows"}
SHAPES = {
    "columns": ((1, 3, 9, 5), (1, 3, 2, 5)),
    "rows of several maps": ((2, 7, 3, 13), (2, 1, 3, 13)),
    "maps": ((5, 3, 2, 4), (2, 3, 2, 4)),
    "three dimensions": ((11, 2, 6), (4, 2, 6)),
    "one channel": ((1, 2, 6, 1), (1, 2, 3, 1)),
}
OTHERS = {"channels": ((1, 3, 4, 9), (1, 3, 4, 3)), "two dimensions": ((1, 5, 6, 4), (1, 2, 3, 4))}
STARTS = (0, 2, 3, -5, (1 << 31) - 1, 1)


def updated(shape: Shape, update: Shape, reads: bool = False) -> bytes:
    """A variable that is updated from a start on, the same along all dimensions; perhaps an output of what it was."""
    m, first = Sketch(seed=3), Sketch(seed=4)
    handle = first.op("VAR_HANDLE", [], (), "resource", **NAMES)
    first.op_of("ASSIGN_VARIABLE", [handle, first.random(*shape)], [])
    m.further.append(first)
    m.op_of("CALL_ONCE", [], [], init_subgraph_index=1)
    handle = m.op("VAR_HANDLE", [], (), "resource", **NAMES)
    rows, starts = m.input(update), m.input((len(shape),), "int32")
    before = m.op("READ_VARIABLE", [handle], shape)
    more = m.unary("TANH", rows)
    after = m.op("DYNAMIC_UPDATE_SLICE", [before, more, starts], shape)
    m.op_of("ASSIGN_VARIABLE", [handle, after], [])
    m.output(m.unary("NEG", after), *([m.unary("ABS", before)] if reads else []))
    return m.build()


def runs_of(update: Shape) -> Iterator[list[AnyValues]]:
    rng = np.random.default_rng(4)
    for start in STARTS:
        yield [rng.uniform(-1, 1, update).astype(np.float32), np.full(len(update), start, np.int32)]


def check_network(network: Program | NativeNetwork, graph: Graph, model: bytes, update: Shape) -> None:
    plain = interpreter_of(model, xnnpack=False)
    for values in runs_of(update):
        wanted = inferred(plain, values)
        for tensor, given in zip(graph.inputs, values, strict=True):
            network.write(tensor, given)
        network.compute() if isinstance(network, NativeNetwork) else network.run()
        for tensor, theirs in zip(graph.outputs, wanted, strict=True):
            np.testing.assert_allclose(network.read(tensor), theirs, atol=1e-6)


@pytest.mark.gl
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_rows_are_overwritten_where_they_lie(shapes: tuple[Shape, Shape], context: Context) -> None:
    """However tensors are placed, and with a kernel for each op as well."""
    model = updated(*shapes)
    graph = read_model(model)
    for options in (CompileOptions(), CompileOptions(fuse=False), CompileOptions().with_memory(uses_views=False)):
        compiled = compile_graph(graph, device_of(context), options)
        assert OVERWRITES in {node.op for node in compiled.graph.nodes}
        (state,) = compiled.graph.states
        assert compiled.plan.places[state.read] == compiled.plan.places[state.written]
        with Program(context, compiled) as program:
            check_network(program, graph, model, shapes[1])
    network = NativeNetwork.load(graph, threads=2)
    check_network(network, graph, model, shapes[1])
    network.close()


@pytest.mark.gl
@pytest.mark.parametrize("reads", [False, True])
def test_what_others_read_too_is_copied(reads: bool, context: Context) -> None:
    for shapes in (SHAPES["columns"],) if reads else OTHERS.values():
        model = updated(*shapes, reads=reads)
        graph = read_model(model)
        compiled = compile_graph(graph, device_of(context))
        assert OVERWRITES not in {node.op for node in compiled.graph.nodes}
        with Program(context, compiled) as program:
            check_network(program, graph, model, shapes[1])
        network = NativeNetwork.load(graph, threads=2)
        check_network(network, graph, model, shapes[1])
        network.close()
