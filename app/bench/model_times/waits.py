"""`texelflow bench waits`: how long the CPU waits for the GPU in each of the delegate's ways, and how busy it is."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from statistics import median
from time import perf_counter, process_time, thread_time
from typing import Any, get_args

import numpy as np

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.delegate.io_binding import IoBinding
from texelflow.gpu_delegate.delegate.repacking import RepackingPrograms
from texelflow.gpu_delegate.delegate.synchronization import WaitType
from texelflow.gpu_delegate.targets.gl.context import open_context
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.tuning.store import tuned_device

from ...console import Console
from ...models.model_loading import load_graph
from ..measuring.run_rule import MOST_RUNS
from .model_inputs import random_values

WAIT_TYPES: tuple[WaitType, ...] = get_args(WaitType)
_WARMUP = 3
_Clock = Callable[[], float]
_CLOCKS: tuple[_Clock, ...] = (perf_counter, thread_time, process_time)


@dataclass(frozen=True)
class WaitFigures:
    """Of one wait type, medians but for the least."""

    wait_type: WaitType
    latency_ms: float  # from inputs in RAM to outputs in RAM; without a wait, until the call returns
    least_ms: float
    thread_cpu_ms: float  # of the thread that waits
    process_cpu_ms: float  # of all threads: those of a software renderer, too


def bench_waits(name_or_path: str, runs: int, console: Console) -> dict[str, Any]:
    """A row for each wait type. Raises TexelflowError."""
    if not 1 <= runs <= MOST_RUNS:
        raise UsageError(f"--runs goes from 1 to {MOST_RUNS}")
    with console.download() as progress:
        graph = load_graph(name_or_path, progress)
    with open_context() as context:
        compiled = compile_graph(graph, tuned_device(context))
        with console.compilation() as progress:
            program = Program(context, compiled, progress)
        with program:
            rows = [asdict(row) for row in measure_waits(program, runs)]
        where = {"renderer": context.renderer, "gl_version": context.gl_version}
        return {"model": graph.name, **where, "runs": runs, "waits": rows}


def measure_waits(program: Program, runs: int) -> tuple[WaitFigures, ...]:
    """Inferences with each wait type in turn, so that all of them see the machine in the same state."""
    shaders = RepackingPrograms(program.context)
    series = [_Series(program, shaders, wait_type) for wait_type in WAIT_TYPES]
    try:
        program.context.calls.settle()
        for number in range(_WARMUP + runs):
            for one in series:
                one.run(counts=number >= _WARMUP)
    finally:
        for one in series:
            one.io.release()
        shaders.release()
    return tuple(one.figures() for one in series)


@dataclass
class _Series:
    """The runs of one wait type."""

    program: Program
    shaders: RepackingPrograms
    wait_type: WaitType
    times_ms: list[tuple[float, ...]] = field(default_factory=list)  # by clock

    def __post_init__(self) -> None:
        graph = self.program.compiled.source
        inputs, outputs = ([graph.tensors[t] for t in tensors] for tensors in (graph.inputs, graph.outputs))
        self.io = IoBinding(self.program, self.shaders, self.wait_type)
        values = random_values([tensor.shape for tensor in inputs], [tensor.dtype for tensor in inputs])
        self.inputs = list(zip(graph.inputs, values, strict=True))
        self.outputs = [(tensor.index, np.empty(tensor.shape, tensor.dtype)) for tensor in outputs]

    def run(self, counts: bool) -> None:
        """One inference. What has no wait is waited for outside the clock."""
        start = [clock() for clock in _CLOCKS]
        for tensor, values in self.inputs:
            self.io.upload(tensor, values.ctypes.data, values.nbytes)
        self.io.run()
        if self.wait_type != "do-not-wait":
            self.io.read_all([(tensor, values.ctypes.data, values.nbytes) for tensor, values in self.outputs])
        taken_ms = tuple((clock() - at) * 1e3 for clock, at in zip(_CLOCKS, start, strict=True))
        self.program.context.gl.glFinish()
        if counts:
            self.times_ms.append(taken_ms)

    def figures(self) -> WaitFigures:
        """Of the runs that count."""
        latency_ms, *cpu_ms = zip(*self.times_ms, strict=True)
        medians = [round(median(series), 3) for series in (latency_ms, *cpu_ms)]
        return WaitFigures(self.wait_type, medians[0], round(min(latency_ms), 3), *medians[1:])


def show_waits(figures: dict[str, Any], console: Console) -> None:
    """The same as a table."""
    titles = ("wait type", "latency ms", "least ms", "CPU ms of its thread", "CPU ms of all threads")
    console.table(f"{figures['model']}: waiting for the GPU", titles, [tuple(row.values()) for row in figures["waits"]])
    console.say(f"on {figures['renderer']}; do-not-wait: until the call returns, the others: until outputs are in RAM")
