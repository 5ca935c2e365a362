"""Times runs on frames in RAM, one after the other, and the energy that they take."""

import gc
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, Protocol, TypeVar

import numpy as np

from ...console import Console
from ...frame.stages.stats import summarize
from ...picture.convert import Rgba
from ...picture.picture import Picture, rgba_picture
from .energy import EnergyMeter, energy_counters, energy_figures


class TimedJob(Protocol):
    """What is done with one frame after the other. `note`: what is to be said of where that runs; "" if nothing."""

    @property
    def note(self) -> str: ...
    def run(self, picture: Picture) -> object: ...


_Job = TypeVar("_Job", bound=TimedJob)


def measure_job(
    make: Callable[[], _Job],
    settle: Callable[[], None],
    frames: Sequence[Rgba],
    warmup: int,
    runs: int,
    console: Console,
) -> tuple[_Job, dict[str, Any]]:  # fmt: skip
    """The job that `make` made, and its times: `init_ms` to the end of its first frame, then those of measure_runs.

    `settle` readies it for long runs.
    """
    start = perf_counter()
    job = make()
    job.run(rgba_picture(np.array(frames[0])))
    init_ms = (perf_counter() - start) * 1e3
    if job.note:
        console.note_once(job.note)
    settle()
    times_ms, energy = measure_runs(job.run, frames, warmup, runs)
    return job, {**summarize(times_ms).rounded(), "init_ms": round(init_ms, 2), "energy": energy}


def measure_runs(
    run: Callable[[Picture], object], frames: Sequence[Rgba], warmup: int, runs: int
) -> tuple[list[float], dict[str, Any]]:
    """Milliseconds of each run after the warm-up, the frames used in turn and in RAM when the clock starts; and the
    energy of these runs, with the copies of frames between them."""
    times_ms = []
    counters, reasons = energy_counters()
    meter = EnergyMeter(counters)
    gc.collect()
    gc.disable()
    try:
        for number in range(warmup + runs):
            if number == warmup:
                meter = EnergyMeter(counters)
            meter.look()
            frame = rgba_picture(np.array(frames[number % len(frames)]))
            start = perf_counter()
            run(frame)
            times_ms.append((perf_counter() - start) * 1e3)
    finally:
        gc.enable()
    meter.stop()
    return times_ms[warmup:], energy_figures(counters, reasons, meter, runs)
