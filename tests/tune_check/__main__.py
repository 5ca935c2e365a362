"""Checks that the tuner, given the settings of another family, finds a software renderer's own speed again.

`make tune-check` runs it. It starts from the hardware family's settings, tunes, and compares the network with that of
the software family by the clock, in turn. While it searches, kernels are timed by the processor's seconds of this
process alone, in which llvmpipe does all work, so that what else runs on the machine does not count.
"""

import argparse
import sys
from dataclasses import replace
from time import perf_counter, process_time

import numpy as np

from texelflow.app.models.catalogue import resolve
from texelflow.gpu_delegate.device.device import Device
from texelflow.gpu_delegate.device.families import TUNINGS
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.reading.reader import load_model
from texelflow.gpu_delegate.targets.gl.context import Context, open_context
from texelflow.gpu_delegate.targets.gl.runtime import Program, device_of
from texelflow.gpu_delegate.targets.gl.span_clock import Commands, SpanClock
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.tuning.halving import Budget
from texelflow.gpu_delegate.tuning.isolated import sample
from texelflow.gpu_delegate.tuning.kernel_timer import KernelTimer
from texelflow.gpu_delegate.tuning.tuner import Tuner

MOST_RATIO = 1.1
ROUNDS = 100


class ProcessorClock(SpanClock):
    """Seconds of all threads of this process."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._opened = context

    def seconds(self, work: Commands) -> float:
        self._opened.gl.glFinish()
        start = process_time()
        work()
        self._opened.gl.glFinish()
        return process_time() - start


def tuned(context: Context, graph: Graph, start: Device, budget_s: float) -> Device:
    """The device with what was found."""
    clock = ProcessorClock(context)
    tuner = Tuner(KernelTimer(context, clock), graph, start, Budget(budget_s, process_time))
    for number, step in enumerate(tuner.steps()):
        if number % 500 == 0:
            print(f"  {step.what}, {step.share:.0%} of the time looked at", file=sys.stderr)
    return tuner.device


def compared(context: Context, graph: Graph, devices: dict[str, Device]) -> dict[str, float]:
    """Milliseconds of a run, the least of many in turn; fails where results differ."""
    clock, outputs = ProcessorClock(context), []
    programs = {name: Program(context, compile_graph(graph, device)) for name, device in devices.items()}
    for program in programs.values():
        for tensor in graph.inputs:
            program.write(tensor, sample(graph, tensor))
        program.run()
        outputs.append(program.read(graph.outputs[0]))
    for output in outputs[1:]:
        np.testing.assert_allclose(output, outputs[0], rtol=0, atol=1e-4)
    wall_ms, worked_ms = ({name: float("inf") for name in programs} for _ in range(2))
    for _ in range(ROUNDS):
        for name, program in programs.items():
            wall_ms[name] = min(wall_ms[name], _wall_ms(context, program.run))
            worked_ms[name] = min(worked_ms[name], clock.seconds(program.run) * 1e3)
    for name, program in programs.items():
        count = len(program.compiled.kernels)
        print(f"{name:18} {count:3} dispatches {wall_ms[name]:8.2f} ms, {worked_ms[name]:8.2f} ms of the processor")
        program.release()
    return wall_ms


def _wall_ms(context: Context, work: Commands) -> float:
    context.gl.glFinish()
    start = perf_counter()
    work()
    context.gl.glFinish()
    return (perf_counter() - start) * 1e3


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="selfie")
    parser.add_argument("--start", default="hardware", choices=[*TUNINGS])
    parser.add_argument("--budget", type=float, default=300.0, help="seconds of the processor")
    options = parser.parse_args()
    graph = load_model(resolve(options.model).path)
    with open_context() as context:
        own = device_of(context)
        start = replace(own, tuning=TUNINGS[options.start])
        found = tuned(context, graph, start, options.budget)
        names = "its own family", f"family {options.start}", "tuned from there"
        times = compared(context, graph, dict(zip(names, (own, start, found), strict=True)))
    ratio = times["tuned from there"] / times["its own family"]
    print(f"{context.renderer}: {ratio:.2f} times as long as its own settings; at most {MOST_RATIO} is allowed")
    return int(ratio > MOST_RATIO)


if __name__ == "__main__":
    sys.exit(main())
