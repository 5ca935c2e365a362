"""Starts a small network with the programs kept in a folder, and says what was loaded and compiled."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.model_files.graphs import GraphBuilder
from texelflow.gpu_delegate.base.disk_cache import DiskCache
from texelflow.gpu_delegate.model.graph import Activated, Conv2D, Graph, Padding, Reduce
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.saving.kept_graph import kept_graph
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.program_cache import ProgramCache
from texelflow.gpu_delegate.targets.gl.runtime import Program, device_of


def small_network(seed: int = 0) -> Graph:
    """A convolution, its mean, a gate, and a constant map."""
    g = GraphBuilder(seed)
    size = Conv2D("RELU", (1, 1), (1, 1), Padding(1, 1, 1, 1))
    y = g.node("CONV_2D", [g.input(1, 9, 7, 3), g.random(6, 3, 3, 3), g.random(6)], (1, 9, 7, 6), size)
    mean = g.node("MEAN", [y], (1, 1, 1, 6), Reduce((1, 2), True))
    gated = g.node("MUL", [y, mean], (1, 9, 7, 6), Activated())
    return g.graph(g.node("ADD", [gated, g.random(1, 9, 7, 6)], (1, 9, 7, 6), Activated()))


@dataclass(frozen=True)
class Start:
    """What one start loaded and compiled, and what the network computed then."""

    loaded: int  # of the driver's programs
    compiled: int
    loaded_graphs: int
    output: npt.NDArray[Any]

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.loaded, self.compiled, self.loaded_graphs


def start(
    context: Context, folder: Path, driver: Sequence[str] = (), source: Graph | None = None, **options: Any
) -> Start:
    """Compile or load, run once, free everything; the context is as before."""
    source, before = source or small_network(), context.programs
    programs = context.programs = ProgramCache(context.gl, driver or before.driver, DiskCache(folder))
    try:
        compiled = kept_graph(programs, source, device_of(context), CompileOptions(**options))
        with Program(context, compiled) as program:
            values = np.random.default_rng(1).normal(0, 1, (1, 9, 7, 3)).astype(np.float32)
            program.write(source.inputs[0], values)
            program.run()
            output = program.read(source.outputs[0])
    finally:
        context.programs = before
    return Start(programs.loaded, programs.compiled, programs.loaded_graphs, output)
