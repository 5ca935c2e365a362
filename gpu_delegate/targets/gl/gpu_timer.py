"""Measures stages of a frame with the GPU's time stamps, without waiting for them.

Time stamp queries in a ring: one between two stages and at both ends. A result that has not come when its place in
the ring is needed again is dropped.
"""

import ctypes
from collections import deque
from collections.abc import Iterator
from time import perf_counter, perf_counter_ns

from . import opengl
from .calls import CallCache
from .context import Context

TimeStamps = tuple[int, ...]  # ns by the device's clock

_DEPTH = 4  # frames; one is in flight
_RENEWAL_NS = 5_000_000_000  # two clocks drift apart by some µs a second
_LEAST_RENEWAL_NS = 1_000_000_000
_SAMPLES = 3
_WORK_BYTES, _WORK_TIMES = 1 << 24, 4
_LEAST_NS = 1000  # the fastest memory takes ten times as long for that work
_PATIENCE_S = 2.0


class GpuTimer:
    """Times of frames with the same number of stamps. Belongs to the context's thread."""

    def __init__(self, context: Context, stamps: int, depth: int = _DEPTH) -> None:
        """`depth` frames may be under way."""
        self._gl, self._count = context.gl, stamps
        self._calls = CallCache(context.calls)
        self._free = deque(tuple(self._gl.generate("Queries") for _ in range(stamps)) for _ in range(depth))
        self._waiting: deque[tuple[int, ...]] = deque()
        self._given_up = 0
        self._marks = 0

    def begin(self) -> None:
        """A new frame; the oldest one is given up if there is no place. A frame that never ends does not count."""
        if not self._free:
            self._free.append(self._waiting.popleft())
            self._given_up += 1
        self._marks = 0

    def mark(self) -> None:
        """The next stamp: the device notes the time when it is done with what was issued before."""
        query = self._free[0][self._marks]
        self._calls.run(query, lambda: self._gl.glQueryCounter(query, opengl.TIMESTAMP))
        self._marks += 1

    def end(self) -> None:
        """All stamps of the frame are marked."""
        assert self._marks == self._count, f"{self._marks} of {self._count} stamps are marked"
        self._waiting.append(self._free.popleft())

    def collect(self) -> Iterator[TimeStamps | None]:
        """What has arrived, oldest frame first; None for one given up, or whose clock was implausible."""
        while self._given_up:
            self._given_up -= 1
            yield None
        while self._waiting and self._available(self._waiting[0][-1]):
            queries = self._waiting.popleft()
            self._free.append(queries)
            stamps = tuple(map(self._result, queries))
            yield stamps if stamps == tuple(sorted(stamps)) and not self._is_disjoint() else None

    def drain(self) -> Iterator[TimeStamps | None]:
        """All frames: for the end of a run, when the device has nothing left to do."""
        yield from self.collect()
        while self._waiting:
            self._free.append(self._waiting.popleft())
            yield None

    def last(self) -> TimeStamps | None:
        """The one frame under way; None as of collect, and if it has not come after two seconds."""
        deadline = perf_counter() + _PATIENCE_S
        while not (found := list(self.collect())) and perf_counter() < deadline:
            pass
        return found[0] if found else None

    def release(self) -> None:
        """Delete the queries; what was not collected is lost."""
        for queries in (*self._free, *self._waiting):
            for query in queries:
                self._gl.delete("Queries", query)
        self._free.clear()
        self._waiting.clear()

    def _available(self, query: int) -> bool:
        """Then those issued before it are, too."""
        available = ctypes.c_int()
        self._gl.glGetQueryObjectiv(query, opengl.QUERY_RESULT_AVAILABLE, ctypes.byref(available))
        return bool(available.value)

    def _is_disjoint(self) -> bool:
        """Whether the clock has jumped since this was asked last: OpenGL ES tells."""
        return self._gl.is_es and bool(self._gl.integer(opengl.GPU_DISJOINT))

    def _result(self, query: int) -> int:
        time_ns = ctypes.c_uint64()
        self._gl.glGetQueryObjectui64v(query, opengl.QUERY_RESULT, ctypes.byref(time_ns))
        return time_ns.value


class GpuClock:
    """Turns the device's time into that of perf_counter_ns, and is set anew now and then.

    Counters of some devices, Intel's among them, wrap to 0 now and then, whatever number of bits the driver states.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._set_ns = self._offset_ns = 0
        self._set()

    def cpu_ns(self, gpu_ns: int) -> int:
        """A time of the device on the CPU's clock, which is set anew first if that seems far from now."""
        now_ns = perf_counter_ns()
        is_far = abs(gpu_ns + self._offset_ns - now_ns) > 2 * _RENEWAL_NS
        if is_far and now_ns - self._set_ns > _LEAST_RENEWAL_NS:
            self._set()
        return gpu_ns + self._offset_ns

    def renew(self) -> None:
        """Set it again if that was long ago."""
        if perf_counter_ns() - self._set_ns > _RENEWAL_NS:
            self._set()

    def _set(self) -> None:
        """By the sample that took the least time: the device's clock was read somewhere in it."""
        samples = []
        for _ in range(_SAMPLES):
            before = perf_counter_ns()
            gpu_ns = self._context.gl.integer64(opengl.TIMESTAMP)
            self._set_ns = perf_counter_ns()
            samples.append((self._set_ns - before, (before + self._set_ns) // 2 - gpu_ns))
        self._offset_ns = min(samples)[1]


def timer_health(context: Context) -> str | None:
    """None if time stamps tell how long the device works; else what is wrong with them. Takes some milliseconds."""
    if context.is_software:
        return "the time stamps of a software renderer do not tell how long work takes"
    if not context.gl.time_stamps:
        return "OpenGL below 3.3 and OpenGL ES without EXT_disjoint_timer_query have no time stamps"
    bits = ctypes.c_int()
    context.gl.glGetQueryiv(opengl.TIMESTAMP, opengl.QUERY_COUNTER_BITS, ctypes.byref(bits))
    if not bits.value:
        return f"{context.renderer} has no time stamps: their counter has 0 bits"
    took_ns, wall_ns = _work_ns(context)
    if took_ns is None:
        return f"{context.renderer} does not deliver its time stamps"
    if took_ns < _LEAST_NS:
        return f"{context.renderer} says {took_ns} ns for what takes {wall_ns / 1e6:.2f} ms"
    return None


def _work_ns(context: Context) -> tuple[int | None, int]:
    """Nanoseconds of copying much memory, by the device (None: it does not say) and by the CPU's clock."""
    gl, timer = context.gl, GpuTimer(context, stamps=2, depth=1)
    pair = (opengl.COPY_READ_BUFFER, opengl.COPY_WRITE_BUFFER)
    buffers = [gl.generate("Buffers") for _ in pair]
    for target, buffer in zip(pair, buffers, strict=True):
        gl.glBindBuffer(target, buffer)
        gl.glBufferData(target, _WORK_BYTES, None, opengl.DYNAMIC_COPY)
    gl.glFinish()
    start_ns = perf_counter_ns()
    timer.begin()
    timer.mark()
    for _ in range(_WORK_TIMES):
        gl.glCopyBufferSubData(*pair, 0, 0, _WORK_BYTES)
    timer.mark()
    timer.end()
    gl.glFinish()
    wall_ns, stamps = perf_counter_ns() - start_ns, timer.last()
    timer.release()
    for buffer in buffers:
        gl.delete("Buffers", buffer)
    return (stamps[1] - stamps[0] if stamps else None), wall_ns
