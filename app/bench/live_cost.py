"""`texelflow bench live`: measures what Python costs for each frame of live, beside OpenGL.

The window is the real one, on the display that there is or an Xvfb, with the test pattern at a camera's pace, refined
masks, and a new one for each frame.
"""

import contextlib
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from texelflow.gpu_delegate.base.errors import DeviceError, UsageError

from ..console import Console
from ..displays import some_display
from ..frame.stages.frame_pipeline import FrameRecord
from ..frame.stages.stats import summarize
from ..live.sourcing import Waker, open_source
from ..models.model_loading import load_segmentation
from ..session.session import Session
from ..session.session_opening import open_host_with_window, open_session
from ..settings.config_watch import ConfigWatch
from ..window.glfw_window import Window
from .python_cost import PythonCost, PythonCostMeter, another_thread

LIMITS_MS: Mapping[str, float] = {"off": 1.0, "on": 2.0}  # of Python's own, by overlay; the lock has half of it
MOST_FRAMES = 100_000
METHOD = (
    "own: wall time less the time inside OpenGL, swap, events and Dear ImGui's drawing; lock: CPU time of the window's "
    "thread outside OpenGL, swap and events, and what ctypes takes for those calls, while another thread computes in "
    "Python; both without what measuring adds, which wrapping all calls twice tells"
)
_WARM_UP, _PATIENCE_S = 15, 10.0


@dataclass(frozen=True)
class LiveBench:
    """What `bench live` is asked to do."""

    model: str = "selfie"
    size: str = "640x480"
    effect: str = "blur"
    backend: str = "gl"
    frames: int = 120
    cpu: str = "auto"
    threads: int = 0


def bench_live(options: LiveBench, console: Console) -> dict[str, Any]:
    """Measure; `reached` says whether the medians keep the limits. Raises TexelflowError."""
    if not 1 <= options.frames <= MOST_FRAMES:
        raise UsageError(f"--frames goes from 1 to {MOST_FRAMES}")
    with _opened(options, console) as (window, bench):
        sides = {overlay: bench.measured(overlay == "on", options.frames) for overlay in LIMITS_MS}
        return {
            "reached": all(side["own_reached"] and side["lock_reached"] for side in sides.values()),
            "overlay": sides,
            "renderer": window.context.renderer,
            "gl_version": window.context.gl_version,
            **vars(options),
            "method": METHOD,
        }


def show_bench_live(figures: Mapping[str, Any], console: Console) -> None:
    """The same as tables."""
    rows = []
    for overlay, side in figures["overlay"].items():
        for name, what in (("own", "Python's own"), ("lock", "interpreter's lock")):
            times, limit = side[f"{name}_ms"], side[f"{name}_limit_ms"]
            verdict = "yes" if side[f"{name}_reached"] else "no"
            rows.append((overlay, what, times["median_ms"], times["p95_ms"], limit, verdict))
    columns = ("overlay", "of each frame", "ms (median)", "ms (p95)", "limit (median)", "reached")
    console.table(f"live, {figures['size']}, {figures['frames']} frames", columns, rows)
    off, on = (figures["overlay"][overlay]["stages"] for overlay in ("off", "on"))
    stages = [(name, off[name]["wall_ms"], off[name]["own_ms"], on[name]["own_ms"], off[name]["calls"]) for name in off]
    console.table("Where it goes", ("stage", "wall ms", "own ms", "with overlay", "calls"), stages)
    console.say(f"on {figures['renderer']}")


class _Bench:
    """A session that is measured, frame by frame."""

    def __init__(self, session: Session, window: Window, records: Sequence[FrameRecord]) -> None:
        """`records` grows with each frame."""
        self._session, self._window, self._records = session, window, records

    def measured(self, overlay: bool, frames: int) -> dict[str, Any]:
        """All figures, with the overlay or without. Raises TexelflowError."""
        self._session.controller.change(overlay=overlay)
        self._window.context.calls.wait()
        for _ in range(_WARM_UP):
            self._draw()
        context, limit_ms = self._window.context, LIMITS_MS["on" if overlay else "off"]
        meter, by_cpu = PythonCostMeter(), PythonCostMeter(time.thread_time_ns)
        meter.settle(self._draw, context, frames=frames)
        with meter.watching(context):
            costs = [meter.of(self._draw) for _ in range(frames)]
            drawn = len(self._records)
            with meter.watching_stages(self._session.parts.pipeline, context.calls) as stages:
                whole = [meter.of(self._draw) for _ in range(frames)]
        with another_thread():
            by_cpu.settle(self._draw, context, imgui=False, frames=frames)
            with by_cpu.watching(context, imgui=False):
                locked = [by_cpu.of(self._draw) for _ in range(frames)]
        return {
            "wall_ms": _summary(one.all_ms for one in costs),
            **_judged("own", [one.own_ms for one in costs], limit_ms),
            **_judged("lock", [one.own_ms + one.call_ms for one in locked], limit_ms / 2),
            "measuring_ms": round(summarize([one.calls for one in costs]).median_ms * meter.costs.wrapping_ns / 1e6, 3),
            "stages": _by_stage(stages, whole, self._records[drawn:]),
        }

    def _draw(self) -> None:
        """One frame, and whatever the loop does until it is there."""
        drawn, deadline = len(self._records), time.perf_counter() + _PATIENCE_S
        while len(self._records) == drawn:
            self._session.step()
            if self._window.closed:
                raise UsageError("the window was closed before everything was measured")
            if time.perf_counter() > deadline:
                raise DeviceError(f"no picture was drawn for {_PATIENCE_S:g} s; leave the window where it is seen")


@contextlib.contextmanager
def _opened(options: LiveBench, console: Console) -> Iterator[tuple[Window, _Bench]]:
    """The window and everything in it, by these options and no file of settings. Raises TexelflowError."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(some_display(console))
        watch = _watch(options, Path(stack.enter_context(tempfile.TemporaryDirectory())))
        with console.download() as progress:
            model = load_segmentation(options.model, progress=progress)
        wake, records = Waker(), list[FrameRecord]()
        source = open_source(watch.settings, wake)
        stack.callback(source.close)
        host = stack.enter_context(open_host_with_window(source.for_session(), model, "live", watch, console))
        wake.loop = host.wake
        host.observers.append(records.append)
        opened = open_session(host, source.for_session(), model, watch.settings, lambda settings: None)
        session = stack.enter_context(opened)
        assert host.window is not None
        host.window.context.calls.load()
        yield host.window, _Bench(session, host.window, records)


def _watch(options: LiveBench, folder: Path) -> ConfigWatch:
    """Settings that no file changes. Raises UsageError for a size or an effect that there is not."""
    empty = folder / "empty.toml"
    empty.touch()
    flags = {name: getattr(options, name) for name in ("model", "size", "effect", "backend", "cpu", "threads")}
    return ConfigWatch(empty, {"camera": "pattern", "start_hint": False, **flags})


def _judged(name: str, times_ms: Sequence[float], limit_ms: float) -> dict[str, Any]:
    times = summarize(times_ms).rounded()
    return {f"{name}_ms": times, f"{name}_limit_ms": limit_ms, f"{name}_reached": times["median_ms"] < limit_ms}


def _by_stage(
    stages: Mapping[str, Sequence[PythonCost]], whole: Sequence[PythonCost], records: Sequence[FrameRecord]
) -> dict[str, dict[str, float]]:
    """Medians of stages, and of what is beside them; wall times are those of the records, which wait for the device."""
    wall = {
        name: [stage.cpu_ms for record in records for stage in record.stages if stage.name == name] for name in stages
    }
    rows = {name: _row(wall[name], costs) for name, costs in stages.items()}
    total = _row([costs.all_ms for costs in whole], whole)
    rows["rest"] = {key: max(0.0, value - sum(row[key] for row in rows.values())) for key, value in total.items()}
    for name, costs in stages.items():
        rows[name]["calls"] += summarize([one.gathered for one in costs]).median_ms
    return {name: {key: round(value, 3) for key, value in row.items()} for name, row in rows.items()}


def _row(wall_ms: Sequence[float], costs: Sequence[PythonCost]) -> dict[str, float]:
    times = {
        "wall_ms": wall_ms,
        "own_ms": [one.own_ms for one in costs],
        "calls": [one.calls for one in costs],
    }
    return {key: summarize(values).median_ms for key, values in times.items()}


def _summary(times_ms: Iterator[float]) -> dict[str, float]:
    return summarize([*times_ms]).rounded()
