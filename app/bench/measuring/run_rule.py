"""Repeats a run until a rule ends it, and keeps how long each took."""

import gc
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter, sleep

MOST_RUNS = 1_000_000  # that may be asked for
MOST_KEPT = 5_000_000  # runs: 80 MB


@dataclass(frozen=True)
class RunRule:
    """As benchmark_model has it: runs go on until there are enough and enough time has passed, or time is over."""

    runs: int
    min_s: float
    max_s: float
    delay_s: float = 0.0  # between runs
    per_s: float = 0.0  # runs begin so often, as far as they are fast enough, whatever the delay; 0: one after another

    def pause_s(self, count: int, elapsed_s: float) -> float:
        """Seconds to wait for the next run after so many, which took so long in all; what is late catches up."""
        return max(0.0, count / self.per_s - elapsed_s) if self.per_s else self.delay_s

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


def repeat_runs(
    run: Callable[[], float],
    rule: RunRule,
    stopped: Callable[[], bool] = lambda: False,
    between: Callable[[], None] = lambda: None,
) -> Runs:
    """Call `run`, which returns its milliseconds, as often as the rule says or until `stopped`; at least once, but for
    a rule of no runs at all. `between` is called behind each."""
    runs, was_enabled = Runs(), gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        start, elapsed_s = perf_counter(), 0.0
        while rule.goes_on(len(runs), elapsed_s) and not stopped():
            runs.at_s.append(elapsed_s)
            runs.ms.append(run())
            between()
            elapsed_s = perf_counter() - start
            pause_s = rule.pause_s(len(runs), elapsed_s)
            if pause_s and rule.goes_on(len(runs), elapsed_s):
                sleep(min(pause_s, max(0.0, rule.max_s - elapsed_s)))
                elapsed_s = perf_counter() - start
    finally:
        if was_enabled:
            gc.enable()
    return runs
