"""Repeats a run until a rule ends it, and keeps how long each took."""

import gc
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter

MOST_RUNS = 1_000_000  # that may be asked for
MOST_KEPT = 5_000_000  # runs: 80 MB


@dataclass(frozen=True)
class RunRule:
    """As benchmark_model has it: runs go on until there are enough and enough time has passed, or time is over."""

    runs: int
    min_s: float
    max_s: float

    def goes_on(self, count: int, elapsed_s: float) -> bool:
        """Whether there is another run after so many, which took so long in all."""
        wanted = count < self.runs or elapsed_s < self.min_s
        is_late = count > 0 and elapsed_s >= self.max_s
        return wanted and not is_late and count < MOST_KEPT


@dataclass(frozen=True)
class Runs:
    """When each run began, in seconds from the first on, and how many milliseconds it took."""

    at_s: "array[float]" = field(default_factory=lambda: array("d"))
    ms: "array[float]" = field(default_factory=lambda: array("d"))

    def __len__(self) -> int:
        return len(self.ms)


def repeat_runs(run: Callable[[], float], rule: RunRule, stopped: Callable[[], bool] = lambda: False) -> Runs:
    """Call `run`, which returns its milliseconds, as often as the rule says or until `stopped`; at least once, but for
    a rule of no runs at all."""
    runs, was_enabled = Runs(), gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        start, elapsed_s = perf_counter(), 0.0
        while rule.goes_on(len(runs), elapsed_s) and not stopped():
            runs.at_s.append(elapsed_s)
            runs.ms.append(run())
            elapsed_s = perf_counter() - start
    finally:
        if was_enabled:
            gc.enable()
    return runs
