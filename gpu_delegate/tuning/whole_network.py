"""Compares a whole network with and without tuned choices: time and results."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ..base.errors import DeviceError
from ..device.device import Device
from ..model.graph import Graph
from ..model.layout import Precision
from ..plan.compile_options import CompileOptions
from ..targets.gl.context import Context
from ..targets.gl.runtime import Program
from ..targets.gl.span_clock import SpanClock, mean_seconds
from ..targets.glsl.compiled_graph import compile_graph
from .isolated import sample
from .outputs import agrees, same_bits

_ROUNDS = 5  # of both in turn
_SPAN_S = 0.02


@dataclass(frozen=True)
class WholeComparison:
    """The least milliseconds of a run, and how the outputs compare."""

    default_ms: float
    ms: float
    dispatches: tuple[int, int]  # by default, with the choices
    agrees: bool  # within the tolerance that models are checked with
    same_bits: bool


def compare_whole(
    context: Context, source: Graph, default: Device, tuned: Device, precision: Precision = "fp32"
) -> WholeComparison:
    """Run both on the same input. Raises as compile_graph, and DeviceError."""
    clock = SpanClock(context)
    compiled = [compile_graph(source, device, CompileOptions(precision=precision)) for device in (default, tuned)]
    with Program(context, compiled[0]) as before, Program(context, compiled[1]) as after:
        results, least_s = [], [float("inf")] * 2
        context.calls.settle()
        for program in (before, after):
            for tensor in source.inputs:
                program.write(tensor, sample(source, tensor))
            program.run()
            results.append([program.read(tensor) for tensor in source.outputs])
        for _ in range(_ROUNDS):
            for number, program in enumerate((before, after)):
                _, seconds = mean_seconds(clock, partial(_run, program.run), _SPAN_S)
                if seconds is None:
                    raise DeviceError(f"{context.renderer}: {clock.choice.line}")
                least_s[number] = min(least_s[number], seconds)
    wanted, found = results
    kernels = len(compiled[0].kernels), len(compiled[1].kernels)
    right, exact = agrees(found, wanted, precision != "fp32"), same_bits(found, wanted)
    return WholeComparison(least_s[0] * 1e3, least_s[1] * 1e3, kernels, right, exact)


def _run(run: Callable[[], None], times: int) -> None:
    for _ in range(times):
        run()
