"""Measures what drawing frames takes in Python alone, outside OpenGL.

Entry points of OpenGL, the swap and the look for events, and Dear ImGui's drawing are wrapped by a function that looks
at a clock before and after. The overhead of wrapping is subtracted. On a function that does nothing, called in
a loop, it is easily measured, but amid other work, with cold caches, it is several times as much: there it is measured
by wrapping everything twice.

By the wall clock the rest is what Python costs. By the clock that counts a thread's own CPU time, without Dear ImGui,
which keeps the interpreter's lock while it draws, it is how long the thread holds that lock: waiting for it is not
CPU time. What ctypes takes for calls before it releases the lock is added.
"""

import contextlib
import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from statistics import quantiles
from typing import Any

from texelflow.gpu_delegate.targets.gl.calls import Calls
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.opengl import Uint, entry_point

from ..frame.stages.frame_pipeline import FramePipeline, Stage
from ..overlay.gui import load_imgui
from ..picture.video_frame import VideoFrame

CallClock = Callable[[], int]  # nanoseconds, of which only differences mean anything

_OF_GLFW = ("swap_buffers", "poll_events")
_OF_IMGUI = ("opengl3_new_frame", "opengl3_render_draw_data")
_ROUNDS, _CALLS, _BLOCK = 9, 1000, 10
_MOST_COLD = 4.0  # times what an empty function takes: more is noise of a busy machine


@dataclass(frozen=True)
class Costs:
    """Of a call, in ns: what wrapping adds, what of that does not look like the call, and what ctypes takes for it."""

    wrapping_ns: float = 0.0
    outside_ns: float = 0.0
    call_ns: float = 0.0

    def times(self, factor: float) -> "Costs":
        """The same where everything takes so many times as long."""
        return Costs(self.wrapping_ns * factor, self.outside_ns * factor, self.call_ns * factor)


@dataclass(frozen=True)
class PythonCost:
    """What something took in all but for waiting, outside of calls, and by ctypes for calls, in ms; how many calls.

    Those that are gathered, to be made later, are `gathered`.
    """

    all_ms: float
    own_ms: float
    call_ms: float
    calls: int
    gathered: int = 0


class Counter:
    """Counts calls, and the time in them by a clock."""

    def __init__(self, clock: CallClock) -> None:
        self.inside_ns = self.calls = 0
        self._clock = clock

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, counted."""
        clock = self._clock

        def counted(*arguments: Any) -> Any:
            start_ns = clock()
            result = function(*arguments)
            self.inside_ns += clock() - start_ns
            self.calls += 1
            return result

        return counted


class PythonCostMeter:
    """Tells what one thread spends, by a clock."""

    def __init__(self, clock: CallClock = time.perf_counter_ns) -> None:
        self._clock = clock
        self._calls, self._waits, self._ballast = Counter(clock), Counter(clock), Counter(clock)
        self.wrap, self.wrap_waiting = self._calls.wrap, self._waits.wrap
        self.costs = Costs()
        self.costs = self._measured_costs()

    def settle(self, draw: Callable[[], object], context: Context, imgui: bool = True, frames: int = 80) -> None:
        """Find what wrapping costs amid this work, of `frames` or more, by the faster ones among them."""
        own_ms: dict[bool, list[float]] = {False: [], True: []}
        calls = 0
        for number in range(max(2 * _BLOCK, frames)):
            twice = number // _BLOCK % 2 == 1
            with self.watching(context, imgui, twice):
                cost = self.of(draw)
            own_ms[twice].append(cost.own_ms)
            calls = max(calls, cost.calls)
        once_ms, twice_ms = (quantiles(own_ms[twice], n=4)[0] for twice in (False, True))
        added_ns = (twice_ms - once_ms) * 1e6 / max(1, calls)
        self.costs = self.costs.times(min(max(1.0, added_ns / max(1.0, self.costs.wrapping_ns)), _MOST_COLD))

    @contextlib.contextmanager
    def watching(self, context: Context, imgui: bool = True, twice: bool = False) -> Iterator[None]:
        """Wraps what draws in this context's window. Without `imgui` Dear ImGui's drawing counts as Python's own.

        `twice`: everything is wrapped once more, to measure what wrapping costs.
        """
        import glfw  # only windows need it

        wrapped: list[tuple[Any, str]] = [(context.gl, name) for name in vars(context.gl) if name.startswith("gl")]
        wrapped += [(glfw, name) for name in _OF_GLFW]
        wrapped += [(load_imgui().backends, name) for name in _OF_IMGUI] if imgui else []
        wrapped += [(context.calls, "make")] if context.calls.make else []
        with contextlib.ExitStack() as stack:
            for owner, name in wrapped:
                _replace(stack, owner, name, self.wrap)
                if twice:
                    _replace(stack, owner, name, self._ballast.wrap)
            _replace(stack, glfw, "wait_events_timeout", self.wrap_waiting)
            yield

    @contextlib.contextmanager
    def watching_stages(self, pipeline: FramePipeline, calls: Calls) -> Iterator[dict[str, list[PythonCost]]]:
        """What each stage takes, by name; what native code does for several together belongs to none."""
        found: dict[str, list[PythonCost]] = {}

        def told(stage: Stage) -> Stage:
            costs = found.setdefault(stage.name, [])

            def run(frame: VideoFrame) -> None:
                before = len(calls.gathered)
                cost = self.of(lambda: stage.run(frame))
                costs.append(replace(cost, gathered=sum(len(each.calls) for each in calls.gathered[before:])))

            return replace(stage, run=run)

        before = pipeline.stages
        pipeline.stages = tuple(map(told, before))
        try:
            yield found
        finally:
            pipeline.stages = before

    def begin(self) -> Callable[[], PythonCost]:
        """What tells, when it is called, what was spent from now on until then."""
        calls, waits = self._calls, self._waits
        inside_ns, waited_ns, before, start_ns = calls.inside_ns, waits.inside_ns, calls.calls, self._clock()

        def end() -> PythonCost:
            all_ns = self._clock() - start_ns - (waits.inside_ns - waited_ns)
            count, costs = calls.calls - before, self.costs
            own_ns = all_ns - (calls.inside_ns - inside_ns) - count * costs.outside_ns
            return PythonCost(
                (all_ns - count * costs.wrapping_ns) / 1e6, own_ns / 1e6, count * costs.call_ns / 1e6, count
            )

        return end

    def of(self, work: Callable[[], object]) -> PythonCost:
        """Do it, and tell what it took."""
        end = self.begin()
        work()
        return end()

    def _measured_costs(self) -> Costs:
        """By a function of the interpreter that does nothing, called as OpenGL's are: the least of some rounds."""
        address = ctypes.cast(ctypes.pythonapi.Py_IsInitialized, ctypes.c_void_p).value
        nothing = entry_point(address or 0, Callable[[Uint, Uint, Uint], Uint])

        def least(function: Callable[..., Any]) -> PythonCost:
            def call() -> None:
                for _ in range(_CALLS):
                    function(1, 2, 3)

            return min((self.of(call) for _ in range(_ROUNDS)), key=lambda cost: cost.all_ms)

        bare, wrapped = least(nothing), least(self.wrap(nothing))
        per_call = 1e6 / _CALLS
        return Costs((wrapped.all_ms - bare.all_ms) * per_call, wrapped.own_ms * per_call, bare.all_ms * per_call)


def _replace(stack: contextlib.ExitStack, owner: Any, name: str, wrap: Callable[..., Any]) -> None:
    """Have a function wrapped until the stack ends."""
    real, own = getattr(owner, name), name in vars(owner)
    setattr(owner, name, wrap(real))
    stack.callback(setattr, owner, name, real) if own else stack.callback(delattr, owner, name)


@contextlib.contextmanager
def another_thread() -> Iterator[None]:
    """One that computes in Python meanwhile, in the smallest steps, and wants the interpreter's lock for each."""
    ended = threading.Event()

    def run() -> None:
        steps = 0
        while not ended.is_set():
            steps += 1
            time.sleep(0)  # lets go of the lock

    thread = threading.Thread(target=run, name="another", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
