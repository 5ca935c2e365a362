"""Times runs on frames in RAM, one after the other, and the energy that they take."""

import gc
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from ...picture.convert import Rgba
from ...picture.picture import Picture, rgba_picture
from .energy import EnergyMeter, energy_counters, energy_figures


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
