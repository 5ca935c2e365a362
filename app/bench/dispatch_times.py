"""A program on the GPU goes in; how long each of its dispatches takes comes out.

Each dispatch is repeated between two time stamps of the GPU until the span is long enough to be told from the waiting
around it: between two glFinish, 20 to 60 us pass for a dispatch of 5. Dispatches are measured in turn, in several
rounds, in the order of a run, with the data and behind the barriers that they have there.
"""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from time import perf_counter

from texelflow.gpu_delegate import opengl
from texelflow.gpu_delegate.runtime import Program

from ..frame.gpu_timer import GpuTimer

ROUNDS = 7
TIME_STAMPS = "time stamps of the GPU"
_SPAN_S = 0.002  # of the repeats of one dispatch: 30 times what waiting for the GPU takes
_MOST_REPEATS = 2000
_GROWTH = 8  # at most, from one trial to the next
_PLAUSIBLE = (0.3, 1.05)  # stamped time in parts of the CPU's, over a round that keeps the GPU busy
_TRIES = 4  # of a round: where the machine has others to serve, the CPU's time may be any


@dataclass(frozen=True)
class DispatchTimes:
    """Milliseconds of each dispatch, how often it was repeated in a span, and by which clock."""

    least_ms: tuple[float, ...]
    median_ms: tuple[float, ...]
    repeats: tuple[int, ...]
    clock: str


def time_dispatches(program: Program, rounds: int = ROUNDS) -> DispatchTimes:
    """Measure on the context's thread; the inputs have been written and the program has run."""
    repeats = [_repeats(program, number) for number in range(len(program.compiled.kernels))]
    if not repeats:
        return DispatchTimes((), (), (), TIME_STAMPS)
    spans_ms, why_not = _stamped_rounds(program, repeats, rounds)
    if why_not:
        spans_ms = [_finished_round(program, repeats) for _ in range(rounds)]
    each = [[span / count for span in spans] for spans, count in zip(zip(*spans_ms, strict=True), repeats, strict=True)]
    clock = f"the CPU's clock between two glFinish ({why_not})" if why_not else TIME_STAMPS
    return DispatchTimes(tuple(map(min, each)), tuple(map(median, each)), tuple(repeats), clock)


def next_repeats(count: int, took_s: float) -> int:
    """How many repeats to try after `count` of them took so long; no more than `count` where that is enough."""
    if took_s >= _SPAN_S:
        return count
    wanted = int(count * min(_GROWTH, 1.2 * _SPAN_S / max(took_s, 1e-9))) + 1
    return min(wanted, _MOST_REPEATS)


def is_plausible(stamped_ms: float, wall_ms: float) -> bool:
    """Whether time stamps tell how long the GPU worked, by the CPU's clock for the same work."""
    low, high = _PLAUSIBLE
    return low * wall_ms <= stamped_ms <= high * wall_ms


def _repeats(program: Program, number: int) -> int:
    """As many repeats of a dispatch as make a span."""
    count = 1
    while (more := next_repeats(count, _finished_ms(program, number, count) / 1e3)) > count:
        count = more
    return count


def _finished_ms(program: Program, number: int, count: int) -> float:
    gl = program.context.gl
    gl.glFinish()
    start = perf_counter()
    program.repeat(number, count)
    gl.glFinish()
    return (perf_counter() - start) * 1e3


def _finished_round(program: Program, repeats: Sequence[int]) -> list[float]:
    return [_finished_ms(program, number, count) for number, count in enumerate(repeats)]


def _stamped_rounds(program: Program, repeats: Sequence[int], rounds: int) -> tuple[list[list[float]], str]:
    """Milliseconds of each span by time stamps, and "", or why they tell nothing."""
    gl, bits = program.context.gl, ctypes.c_int()
    gl.glGetQueryiv(opengl.TIMESTAMP, opengl.QUERY_COUNTER_BITS, ctypes.byref(bits))
    if not bits.value:
        return [], "the GPU's time stamps have 0 bits"
    timer, found = GpuTimer(program.context, borders=len(repeats) + 1, depth=1), list[list[float]]()
    try:
        for _ in range(rounds):
            spans_ms, why_not = _plausible_round(program, repeats, timer)
            if why_not:
                return [], why_not
            found.append(spans_ms)
    finally:
        timer.release()
    return found, ""


def _plausible_round(program: Program, repeats: Sequence[int], timer: GpuTimer) -> tuple[list[float], str]:
    """Milliseconds of each span, and "", or why the time stamps tell nothing."""
    why_not = ""
    for _ in range(_TRIES):
        spans_ms, wall_ms = _stamped_round(program, repeats, timer)
        if spans_ms is None:
            why_not = "the GPU's time stamps do not come, or run backwards"
        elif is_plausible(sum(spans_ms), wall_ms):
            return spans_ms, ""
        else:
            why_not = f"the GPU's time stamps say {sum(spans_ms):.3g} ms for what takes {wall_ms:.3g} ms"
    return [], why_not


def _stamped_round(program: Program, repeats: Sequence[int], timer: GpuTimer) -> tuple[list[float] | None, float]:
    """Milliseconds of each span, None where they are unknown, and of all by the CPU's clock."""
    gl = program.context.gl
    gl.glFinish()
    start = perf_counter()
    timer.begin()
    timer.mark()
    for number, count in enumerate(repeats):
        program.repeat(number, count)
        timer.mark()
    timer.end()
    gl.glFinish()
    wall_ms, borders = (perf_counter() - start) * 1e3, timer.last()
    if borders is None:
        return None, wall_ms
    return [(end - begin) / 1e6 for begin, end in pairwise(borders)], wall_ms
