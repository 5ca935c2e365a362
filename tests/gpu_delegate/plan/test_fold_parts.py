"""Reductions whose loops several threads share: every pixel counts exactly once."""

import numpy as np

from tests.helpers.boundless import BoundlessProgram
from tests.helpers.engine import kernel_names, on_cpu, run, worst
from tests.helpers.markers import one_in
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE
from texelflow.gpu_delegate.passes.pipeline import run_passes
from texelflow.gpu_delegate.plan.fusion import group_nodes
from texelflow.gpu_delegate.plan.split_k import possible_fold_parts
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph

# Few pixels and many, rows and columns that parts divide or not, groups with threads past the edges.
DEVICES = {
    "hardware": HARDWARE,
    "fewer parts": HARDWARE.with_tuning(least_threads=600),
    "small groups": HARDWARE.with_tuning(sum_group_threads=32, group_threads=16),
}


def shared_loops(compiled: CompiledGraph) -> list[int]:
    """How many threads share the loops of each kernel."""
    return [kernel.local[2] for kernel in compiled.kernels]


def reductions() -> bytes:
    """Of batches, over rows, columns and both, alone and with what reads them value by value."""
    m = Sketch(0)
    x, y, z = m.input((3, 37, 23, 5)), m.input((1, 5, 300, 13)), m.input((70, 2, 3, 5))
    spread = m.binary("SUB", m.reduce("REDUCE_MAX", x, (1, 2)), m.reduce("REDUCE_MIN", x, (1, 2)))
    near_one = m.binary("ADD", m.binary("MUL", y, m.constant(0.001)), m.constant(1.0))
    m.output(spread, m.unary("RELU", m.mean(x)), m.reduce("REDUCE_PROD", near_one, (2,)), m.reduce("SUM", z, (0,)))
    m.output(m.reduce("REDUCE_MIN", y, (2,)), m.conv(m.mean(x), 13))
    return m.build()


@one_in(3, "name", DEVICES)
def test_threads_that_share_loops(context: Context, name: str) -> None:
    model = reductions()
    compiled = compile_graph(read_model(model), DEVICES[name])
    assert sum(parts > 1 for parts in shared_loops(compiled)) >= 5, kernel_names(compiled)
    rng = np.random.default_rng(1)
    inputs = [rng.uniform(-2, 2, compiled.tensor(i).shape).astype(np.float32) for i in compiled.graph.inputs]
    with BoundlessProgram(context, compiled) as program:
        assert worst(run(program, inputs), on_cpu(model, inputs)) < 2e-6
        assert not program.strayed()


def test_every_place_counts_once(context: Context) -> None:
    for shape in ((2, 33, 65, 3), (3, 64, 4, 5), (2, 3, 127, 1)):
        m = Sketch(0)
        m.output(m.reduce("SUM", m.input(shape), (1, 2)))
        compiled = compile_graph(read_model(m.build()), HARDWARE)
        assert max(shared_loops(compiled)) > 1
        with BoundlessProgram(context, compiled) as program:
            (found,) = run(program, [np.ones(shape, np.float32)])
        assert np.unique(found).tolist() == [shape[1] * shape[2]]


def parts_of(model: Sketch) -> list[list[int]]:
    graph, _ = run_passes(read_model(model.build()))
    return [possible_fold_parts(body, SOFTWARE.tuning) for body in group_nodes(graph, SOFTWARE).bodies]


def test_who_may_share() -> None:
    """Long loops, and nothing that threads would have to repeat, or that they share already."""
    long, short, channels, window = Sketch(0), Sketch(0), Sketch(0), Sketch(0)
    long.output(long.mean(long.input((2, 40, 300, 3))))
    short.output(short.mean(short.input((2, 4, 7, 3))))
    channels.output(channels.reduce("SUM", channels.input((2, 4, 7, 300))))
    window.output(window.depthwise(window.input((1, 40, 40, 3))))
    assert parts_of(long) == [[1, 2, 4, 8, 16, 32, 64]]
    assert [parts_of(each) for each in (short, channels, window)] == [[[1]]] * 3
