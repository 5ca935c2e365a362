"""The distributions of times, by stage and frame."""

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:  # summaries need no video to be loaded
    from .frame_pipeline import FrameRecord

_BATCH = 32
_PERCENTILES = (0, 50, 95, 99, 100)


@dataclass(frozen=True)
class TimeSummary:
    """The distribution of one series of times in milliseconds."""

    min_ms: float
    median_ms: float
    mean_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float

    def rounded(self) -> dict[str, float]:
        """By name, to the microsecond, for JSON."""
        return {name: round(value, 3) for name, value in vars(self).items()}


def summarize(times_ms: Sequence[float] | npt.NDArray[np.float64]) -> TimeSummary:
    """The distribution of at least one time. Raises ValueError for none."""
    if not len(times_ms):
        raise ValueError("there is no time to summarize")
    return summarize_columns(np.asarray(times_ms, np.float64)[:, None])[0]


def summarize_columns(times_ms: npt.NDArray[np.float64]) -> list[TimeSummary]:
    """The distributions of several series of the same length, each a column of (times, series)."""
    rows = np.percentile(times_ms, _PERCENTILES, axis=0).T.tolist()
    means = times_ms.mean(axis=0).tolist()
    return [
        TimeSummary(least, median, mean, p95, p99, most)
        for (least, median, p95, p99, most), mean in zip(rows, means, strict=True)
    ]


class RecordBatch:
    """Keeps frames' records for work that nobody waits for: many at once take a fraction of what each takes alone,
    whose code and data are no longer in the CPU's caches."""

    def __init__(self, work: "Callable[[FrameRecord], None]", most: int = _BATCH) -> None:
        """`work` gets each record, in order, when `most` are kept or somebody settles them."""
        self._work, self._most = work, most
        self._kept: list[FrameRecord] = []

    def add(self, record: "FrameRecord") -> None:
        """Keep one."""
        self._kept.append(record)
        if len(self._kept) >= self._most:
            self.settle()

    def settle(self) -> None:
        """Do the work for all that are kept."""
        kept, self._kept = self._kept, []
        for record in kept:
            self._work(record)


class StageTimes:
    """Milliseconds of each stage of each frame on CPU and GPU, 8 bytes apiece however long the recording."""

    def __init__(self, stages: Sequence[str]) -> None:
        """`stages` begin with decode."""
        self._on_cpu = {name: array("d") for name in stages}
        self._on_gpu = {name: array("d") for name in stages}

    def add(self, record: "FrameRecord") -> None:
        """One more frame, with the same stages."""
        for stage, on_cpu in zip(record.stages, self._on_cpu.values(), strict=True):
            on_cpu.append(stage.cpu_ms)
            if stage.gpu_ms is not None:
                self._on_gpu[stage.name].append(stage.gpu_ms)

    def summaries(self) -> dict[str, TimeSummary]:
        """The distribution of each stage, and of `total`, a frame's stages together. Raises ValueError for no frame."""
        return _with_total(self._on_cpu)

    def gpu_summaries(self) -> dict[str, TimeSummary]:
        """The same on the GPU, for stages and frames whose times are known; empty if none is."""
        known = {name: times for name, times in self._on_gpu.items() if times}
        return _with_total(known) if known else {}


def _with_total(series: Mapping[str, "array[float]"]) -> dict[str, TimeSummary]:
    """All series have the same length."""
    values = {name: np.array(times, np.float64) for name, times in series.items()}
    total = np.sum(list(values.values()), axis=0)
    return {name: summarize(times) for name, times in {**values, "total": total}.items()}
