"""Runs quantized models here: on OpenGL, in the CPU's own code, or through the delegate."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

import texelflow
from tests.helpers.native import native_networks
from tests.model_files.model_builder import Array
from tests.quantized.judge import Run
from tests.quantized.runs import REFERENCE, TfliteRun
from texelflow.gpu_delegate.model.graph import Hybrid
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import open_context
from texelflow.gpu_delegate.targets.gl.runtime import Program, device_of
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

WAYS = ("gl", "native", "delegate")


@contextmanager
def our_run(model: bytes, way: str, hybrid: Hybrid = "expanded") -> Iterator[Run]:
    """Raises UnsupportedError for a model that is not computed as a whole, but through the delegate."""
    if way == "delegate":
        delegate = texelflow.GpuDelegate(model=model, min_nodes_per_partition=1, strict=True, quiet=True)
        yield TfliteRun(model, REFERENCE, delegates=[delegate])
    elif way == "native":
        network = native_networks({0: replace(read_model(model), hybrid=hybrid)})[0]
        yield lambda given: [np.array(output) for output in network.run(given)]
    else:
        with (
            open_context() as context,
            Program(context, compile_graph(replace(read_model(model), hybrid=hybrid), device_of(context))) as program,
        ):

            def run(given: Sequence[Array]) -> list[Array]:
                graph = program.compiled.source
                for tensor, values in zip(graph.inputs, given, strict=True):
                    program.write(tensor, values)
                program.run()
                return [program.read(tensor) for tensor in graph.outputs]

            yield run
