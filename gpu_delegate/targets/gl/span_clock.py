"""Measures seconds of work on the GPU, by the best clock that its driver has.

Time stamps of the device where they tell it: between two glFinish, 20 to 60 us pass on a GPU for a dispatch of 5, and
it clocks down. On a software renderer the CPU's clock between two glFinish. A driver that executes nothing (Mesa's over
a fake device) has no times: its time stamps are 0, and what the CPU measures there is the driver alone.
"""

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from time import perf_counter
from typing import Literal

import numpy as np

from ...model.layout import TEXEL_BYTES
from ..glsl.shader import load
from . import opengl
from .context import Context, compile_compute
from .gl_buffers import device_buffer, read_buffer
from .gpu_timer import GpuTimer
from .opengl import BufferRange

ClockKind = Literal["time stamps", "glFinish", "none"]
Commands = Callable[[], None]  # issues them

MOST_REPEATS = 2000
_GROWTH = 8  # of repeats at most, from one trial to the next
_PLAUSIBLE = (0.3, 1.05)  # stamped time in parts of the CPU's, over work that keeps the GPU busy
_TRIES = 4  # where the machine has others to serve, the CPU's time may be any
_TRIAL_S = 0.005  # of work that stamps are tried on: waiting for the GPU is little beside it
_MOST_TRIAL = 1 << 12  # dispatches
_GROUP, _GROUPS = 64, 256
_WRITTEN = 3.0  # by the first thread of peak_macs.comp: the sum of three values that approach 1


@dataclass(frozen=True)
class ClockChoice:
    """Which clock is used, and why it is not the GPU's time stamps."""

    kind: ClockKind
    reason: str = ""

    @property
    def line(self) -> str:
        """For people who read the times."""
        if self.kind == "time stamps":
            return "time stamps of the GPU"
        return (
            f"no times: {self.reason}"
            if self.kind == "none"
            else f"the CPU's clock between two glFinish ({self.reason})"
        )


@dataclass(frozen=True)
class Trial:
    """What the two clocks say of the same work; by the GPU's None where it does not answer, or runs backwards."""

    stamped_s: float | None
    wall_s: float

    @property
    def is_plausible(self) -> bool:
        """Whether the time stamps tell how long the GPU worked."""
        low, high = _PLAUSIBLE
        return self.stamped_s is not None and low * self.wall_s <= self.stamped_s <= high * self.wall_s


@dataclass(frozen=True)
class DriverSigns:
    """What decides which clock is used; the trials come last, since only then they are needed."""

    is_software: bool
    computes: bool = True  # what a shader has written is there
    counter_bits: int = 64
    trials: Sequence[Trial] = ()


def choose_clock(signs: DriverSigns) -> ClockChoice:
    """The clock by what is known; without trials, whether time stamps are worth trying."""
    if signs.is_software:
        return ClockChoice("glFinish", "the time stamps of a software renderer do not tell how long work takes")
    if not signs.computes:
        return ClockChoice("none", "the driver executes no shaders")
    if not signs.counter_bits:
        return ClockChoice("glFinish", "the GPU's time stamps have 0 bits")
    if not signs.trials or any(trial.is_plausible for trial in signs.trials):
        return ClockChoice("time stamps")
    last = signs.trials[-1]
    if last.stamped_s is None:
        return ClockChoice("glFinish", "the GPU's time stamps do not come, or run backwards")
    said = f"{last.stamped_s * 1e3:.3g} ms for what takes {last.wall_s * 1e3:.3g} ms"
    return ClockChoice("glFinish", f"the GPU's time stamps say {said}")


class SpanClock:
    """Times of pieces of work on one context, on its thread. On a GPU it takes some 30 ms to make one."""

    def __init__(self, context: Context, choice: ClockChoice | None = None) -> None:
        """`choice` is what another clock of this context has chosen. Raises DeviceError."""
        self._context = context
        self.choice = choice or choose_clock(_signs(context))

    def seconds(self, work: Commands) -> float | None:
        """Of one piece; None where there is no time."""
        found = self.spans([work])
        return found[0] if found else None

    def spans(self, pieces: Sequence[Commands]) -> tuple[float, ...] | None:
        """Seconds of pieces that follow each other; None where there are no times.

        By time stamps the GPU is waited for once, behind them all, else behind each.
        """
        if self.choice.kind == "none":
            return None
        if self.choice.kind == "glFinish":
            return tuple(finished_seconds(self._context, work) for work in pieces)
        for _ in range(_TRIES):  # counters wrap to 0 now and then
            if found := stamped_seconds(self._context, pieces):
                return found
        return None


def mean_seconds(clock: SpanClock, repeat: Callable[[int], None], span_s: float) -> tuple[int, float | None]:
    """How often something was repeated to take so long, and seconds of each time; None, after one, if there is no time.

    `repeat` issues commands so many times. It is called once before each span: what compiles or fills caches happens
    there, and the device has work while the span's commands are handed over.
    """
    count = 1
    while True:
        repeat(1)
        took_s = clock.seconds(partial(repeat, count))
        if took_s is None:
            return 1, None
        if (more := next_repeats(count, took_s, span_s)) <= count:
            return count, took_s / count
        count = more


def next_repeats(count: int, took_s: float, span_s: float) -> int:
    """How many repeats to try after `count` of them took so long; no more than `count` where that is enough."""
    if took_s >= span_s:
        return count
    wanted = int(count * min(_GROWTH, 1.2 * span_s / max(took_s, 1e-9))) + 1
    return min(wanted, MOST_REPEATS)


def finished_seconds(context: Context, work: Commands) -> float:
    """Seconds by the CPU's clock, waiting for the device before and after."""
    context.gl.glFinish()
    start = perf_counter()
    work()
    context.gl.glFinish()
    return perf_counter() - start


def stamped_seconds(context: Context, pieces: Sequence[Commands]) -> tuple[float, ...] | None:
    """Seconds of each piece by the device's clock; None if it does not answer, or runs backwards."""
    timer = GpuTimer(context, stamps=len(pieces) + 1, depth=1)
    try:
        timer.begin()
        timer.mark()
        for work in pieces:
            work()
            timer.mark()
        timer.end()
        context.gl.glFinish()
        stamps = timer.last()
    finally:
        timer.release()
    return None if stamps is None else tuple((end - start) / 1e9 for start, end in pairwise(stamps))


def _signs(context: Context) -> DriverSigns:
    """Ask the driver, and try its time stamps only where they decide."""
    if context.is_software:
        return DriverSigns(is_software=True)
    bits = ctypes.c_int()
    if context.gl.time_stamps:
        context.gl.glGetQueryiv(opengl.TIMESTAMP, opengl.QUERY_COUNTER_BITS, ctypes.byref(bits))
    computes, trials = _tried(context, with_stamps=bits.value > 0)
    return DriverSigns(False, computes, bits.value, trials)


def _tried(context: Context, with_stamps: bool) -> tuple[bool, tuple[Trial, ...]]:
    """Whether what a shader writes arrives, and what both clocks say of work of some milliseconds."""
    gl, size_bytes = context.gl, _GROUP * _GROUPS * TEXEL_BYTES
    program = compile_compute(context, load("peak_macs.comp", {"GROUP": _GROUP, "ROUNDS": 64}), "trial of the clock")
    buffer = device_buffer(context, size_bytes, np.zeros(size_bytes, np.uint8))
    try:
        gl.glUseProgram(program)
        gl.glBindBufferBase(opengl.SHADER_STORAGE_BUFFER, 0, buffer)
        gl.glDispatchCompute(_GROUPS, 1, 1)
        written = read_buffer(context, BufferRange(buffer, 0, TEXEL_BYTES)).view(np.float32)
        computes = bool(np.allclose(written, _WRITTEN))
        return computes, tuple(_trials(context)) if computes and with_stamps else ()
    finally:
        gl.glDeleteProgram(program)
        gl.delete("Buffers", buffer)


def _trials(context: Context) -> list[Trial]:
    """Of the program in use; the first that is plausible is the last."""
    count, found = 1, list[Trial]()
    while count < _MOST_TRIAL and finished_seconds(context, partial(_dispatch, context, count)) < _TRIAL_S:
        count *= 2
    while len(found) < _TRIES and not (found and found[-1].is_plausible):
        found.append(_trial(context, partial(_dispatch, context, count)))
    return found


def _trial(context: Context, work: Commands) -> Trial:
    context.gl.glFinish()
    start = perf_counter()
    stamped = stamped_seconds(context, [work])
    return Trial(stamped[0] if stamped else None, perf_counter() - start)


def _dispatch(context: Context, count: int) -> None:
    for _ in range(count):
        context.gl.glMemoryBarrier(opengl.SHADER_STORAGE_BARRIER_BIT)
        context.gl.glDispatchCompute(_GROUPS, 1, 1)
