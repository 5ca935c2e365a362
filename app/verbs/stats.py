"""Times go in, by stage and frame; their distribution comes out."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Summary:
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


def summarize(times_ms: Sequence[float] | npt.NDArray[np.float64]) -> Summary:
    """The distribution of at least one time. Raises ValueError for none."""
    if not len(times_ms):
        raise ValueError("there is no time to summarize")
    values = np.asarray(times_ms, np.float64)
    median, p95, p99 = np.percentile(values, (50, 95, 99))
    return Summary(
        float(values.min()), float(median), float(values.mean()), float(p95), float(p99), float(values.max())
    )


class StageTimes:
    """Milliseconds of each stage of each frame, 8 bytes apiece however long the recording."""

    def __init__(self, stages: Sequence[str]) -> None:
        self._series = {name: array("d") for name in stages}

    def add(self, times_ms: Sequence[float]) -> None:
        """One frame's times, in the order of the stages."""
        for series, time_ms in zip(self._series.values(), times_ms, strict=True):
            series.append(time_ms)

    def summaries(self) -> dict[str, Summary]:
        """The distribution of each stage, and of `total`, a frame's stages together. Raises ValueError for no frame."""
        series = {name: np.frombuffer(times, np.float64) for name, times in self._series.items()}
        total = np.sum(list(series.values()), axis=0)
        return {name: summarize(times) for name, times in {**series, "total": total}.items()}
