"""Sizes that a model computes from shapes are known when it is read, so what needs them runs on the GPU."""

import numpy as np
import pytest

from tests.helpers.engine import on_cpu, on_gpu, worst
from tests.helpers.original_file import run_original
from tests.model_files.model_builder import ModelBuilder
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

X = (1, 4, 6, 8)


def flattened() -> bytes:
    """RESHAPE to [batch, -1, 2 * channels], as converters write it where the batch was unknown once."""
    m = ModelBuilder()
    x = m.input(X)
    y = m.op("RELU", [x], X)
    shape = m.op("SHAPE", [y], (4,), "int32", out_type=2)

    def size(place: int) -> int:
        ends = [m.constant((place + k,), "int32") for k in range(2)]
        return m.op("STRIDED_SLICE", [shape, *ends, m.constant((1,), "int32")], (), "int32", shrink_axis_mask=1)

    twice = m.op("MUL", [size(3), m.constant(2, "int32")], (), "int32")
    wanted = m.op("PACK", [size(0), m.constant(-1, "int32"), twice], (3,), "int32", values_count=3)
    m.output(m.op("RESHAPE", [y, wanted], (1, 12, 16)))
    return m.build()


def test_runs_on_the_gpu_and_as_the_original_does(context: Context) -> None:
    graph, x = read_model(flattened()), np.random.default_rng(0).uniform(-1, 1, X).astype(np.float32)
    compiled = compile_graph(graph, SOFTWARE)
    wanted = on_cpu(flattened(), [x])
    assert not graph.opaque
    assert [node.op for kernel in compiled.kernels for node in kernel.nodes] == ["RELU", "RESHAPE"]
    assert worst(on_gpu(context, compiled, [x]), wanted) == 0
    assert np.array_equal(run_original(flattened(), [x])[0], wanted[0])


def test_sizes_that_are_inputs_are_unknown() -> None:
    m = ModelBuilder()
    m.output(m.op("RESHAPE", [m.input(X), m.input((3,), "int32")], (1, 12, 16)))
    with pytest.raises(UnsupportedError, match="dynamic shapes: input 1 is not a constant"):
        compile_graph(read_model(m.build()), SOFTWARE)
