"""Times of frames go in, by stage; their distribution comes out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


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


def summarize(times_ms: Sequence[float]) -> Summary:
    """The distribution of at least one time. Raises ValueError for none."""
    if not len(times_ms):
        raise ValueError("there is no time to summarize")
    values = np.asarray(times_ms, np.float64)
    median, p95, p99 = np.percentile(values, (50, 95, 99))
    return Summary(
        float(values.min()), float(median), float(values.mean()), float(p95), float(p99), float(values.max())
    )
