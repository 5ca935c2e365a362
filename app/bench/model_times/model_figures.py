"""The figures of a measured model by name, for JSON and for tables.

The names count, first, curr, min, max, avg and std are those of TensorFlow Lite's benchmark_model, in microseconds.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.targets.gl.dispatch_times import DispatchTimes
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph
from texelflow.gpu_delegate.targets.glsl.roofline import Cost, Peaks, cost_of

from ...frame.stages.stats import summarize
from ...process_usage import ProcessUsage
from ..measuring.run_rule import Runs

MOST_POINTS = 20_000  # of a series


def stat_figures(times_ms: Sequence[float]) -> dict[str, float]:
    """As benchmark_model sums up a series of times, in microseconds; empty for none."""
    if not len(times_ms):
        return {}
    us = np.asarray(times_ms, np.float64) * 1e3
    first, last, least, most = (round(float(value)) for value in (us[0], us[-1], us.min(), us.max()))
    average, deviation = round(float(us.mean()), 1), round(float(us.std()), 1)
    return {
        "count": len(us), "first": first, "curr": last, "min": least, "max": most, "avg": average, "std": deviation,
    }  # fmt: skip


def init_figures(init_ms: Mapping[str, float], *_: Runs) -> dict[str, Any]:
    """Initialization alone."""
    return {
        "init_ms": round(sum(init_ms.values()), 3),
        "init_steps_ms": {name: round(value, 3) for name, value in init_ms.items()},
    }


def time_figures(init_ms: Mapping[str, float], warmup: Runs, runs: Runs) -> dict[str, Any]:
    """Initialization, the first inference, and the distribution of the runs that count."""
    first_ms = (warmup if len(warmup) else runs).ms[0]
    return {
        **stat_figures(runs.ms),
        "warmup": stat_figures(warmup.ms),
        **init_figures(init_ms),
        "first_ms": round(first_ms, 3),
        **summarize(runs.ms).rounded(),
        "std_ms": round(float(np.std(np.asarray(runs.ms))), 3),
    }


def memory_figures(before: ProcessUsage, settled: ProcessUsage, after: ProcessUsage) -> dict[str, int | None]:
    """Bytes of the process: growth since before the model was read, until it was ready and until the end, and peak."""

    def growth(now: ProcessUsage) -> int | None:
        if now.resident_bytes is None or before.resident_bytes is None:
            return None
        return now.resident_bytes - before.resident_bytes

    return {"init_growth_bytes": growth(settled), "growth_bytes": growth(after), "peak_bytes": after.peak_bytes}


def share_figures(macs: int, mean_ms: float, peaks: Peaks | None) -> dict[str, float]:
    """How much of the arithmetic that the GPU can do it did, by the mean; nothing where it does none."""
    if peaks is None:
        return {}
    rate = macs / mean_ms * 1e3
    return {
        "gmacs": round(rate / 1e9, 6),
        "peak_gmacs": round(peaks.macs_per_s / 1e9, 3),
        "peak_share": round(rate / peaks.macs_per_s, 6),
    }


def per_op_figures(
    compiled: CompiledGraph, times: DispatchTimes, whole_ms: float, peaks: Peaks | None
) -> dict[str, Any]:
    """Each dispatch with its roof, and the sum of all beside a whole run; no rows where there are no times."""
    kernels = compiled.kernels if times.repeats else ()
    rows = [
        {
            "name": kernel.name,
            "ms": round(least, 4),
            "median_ms": round(middle, 4),
            "repeats": count,
            "mmac": round(kernel.macs / 1e6, 3),
            **_roof_figures(cost_of(compiled, kernel), peaks),
        }
        for kernel, least, middle, count in zip(kernels, times.least_ms, times.median_ms, times.repeats, strict=True)
    ]
    return {
        "clock": times.clock,
        "sum_ms": round(sum(times.least_ms), 3),
        "sum_median_ms": round(sum(times.median_ms), 3),
        "whole_ms": whole_ms,
        "rows": rows,
    }


def _roof_figures(cost: Cost, peaks: Peaks | None) -> dict[str, Any]:
    """Bytes that a dispatch moves at least, and the least time that the peaks allow it."""
    if peaks is None:
        return {"moved_bytes": cost.moved_bytes}
    return {"moved_bytes": cost.moved_bytes, "least_ms": round(peaks.least_ms(cost), 4), "roof": peaks.roof(cost)}


def series_figures(runs: Runs, most: int = MOST_POINTS) -> dict[str, Any]:
    """When runs began and how long they took; where there are very many, means of some each."""
    each = -(-len(runs) // most)
    return {
        "runs_per_point": each,
        "at_s": [round(float(value), 4) for value in np.asarray(runs.at_s)[::each]],
        "ms": [round(float(value), 4) for value in _means(np.asarray(runs.ms), each)],
    }


def _means(values: npt.NDArray[np.float64], each: int) -> npt.NDArray[np.float64]:
    starts = np.arange(0, len(values), each)
    counts = np.minimum(each, len(values) - starts)
    means: npt.NDArray[np.float64] = np.add.reduceat(values, starts) / counts
    return means
