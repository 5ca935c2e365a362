"""Measures how long each dispatch of a program takes.

Each dispatch is repeated until the span is long against the clock's step and what is around it. Dispatches are measured
in turn, in several rounds, in the order of a run, with the data and behind the barriers that they have there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from .runtime import Program
from .span_clock import SpanClock, mean_seconds

ROUNDS = 7
_SPAN_S = 0.002  # of the repeats of one dispatch: 30 times what waiting for the GPU takes


@dataclass(frozen=True)
class DispatchTimes:
    """Milliseconds of each dispatch, how often it was repeated in a span, and by which clock.

    Where there are no times (SpanClock says why), there are no rows either.
    """

    least_ms: tuple[float, ...]
    median_ms: tuple[float, ...]
    repeats: tuple[int, ...]
    clock: str


def measure(clock: SpanClock, program: Program, number: int, repeats: int) -> float | None:
    """Seconds of one dispatch of a program, the mean of repeats behind one that does not count; None: no time."""
    program.repeat(number, 1)  # what compiles or fills caches once happens here, and the GPU has work meanwhile
    took_s = clock.seconds(partial(program.repeat, number, repeats))
    return None if took_s is None else took_s / repeats


def time_dispatches(program: Program, rounds: int = ROUNDS) -> DispatchTimes:
    """Measure on the context's thread; the inputs have been written and the program has run."""
    clock, numbers = SpanClock(program.context), range(len(program.compiled.kernels))
    repeats = tuple(mean_seconds(clock, partial(program.repeat, number), _SPAN_S)[0] for number in numbers)
    spans_s = [_round(clock, program, repeats) for _ in range(rounds if repeats else 0)]
    whole = [spans for spans in spans_s if spans is not None]
    measured, counts = list(zip(*whole, strict=True)), repeats if whole else ()
    each_ms = [[span * 1e3 / count for span in spans] for spans, count in zip(measured, counts, strict=True)]
    return DispatchTimes(tuple(map(min, each_ms)), tuple(map(median, each_ms)), counts, clock.choice.line)


def _round(clock: SpanClock, program: Program, repeats: Sequence[int]) -> tuple[float, ...] | None:
    """Seconds of each dispatch's repeats."""
    return clock.spans([partial(program.repeat, number, count) for number, count in enumerate(repeats)])
