"""Times the calls of several functions, called in turn, so that what disturbs one disturbs each."""

import gc
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter, sleep, thread_time

_TURN_S, _FEWEST = 2e-3, 2  # of one function before the next one's turn
_THREADS_TURN_S = 20e-3
_PAUSE_S = 50e-3  # for which idle threads of libraries wait busily: XNNPACK's and OpenMP's would fight for the cores


@dataclass(frozen=True)
class CallTimes:
    """Of each call, in seconds: by the clock, and of the CPU by the calling thread, which others do not lengthen."""

    wall_s: "array[float]" = field(default_factory=lambda: array("d"))
    cpu_s: "array[float]" = field(default_factory=lambda: array("d"))

    def figures(self) -> dict[str, float]:
        """The least and the median by both, in microseconds, and how many calls there were."""
        parts = {"": self.wall_s, "cpu_": self.cpu_s}
        least = {f"{name}min_us": round(min(seconds) * 1e6, 3) for name, seconds in parts.items()}
        middle = {f"{name}median_us": round(median(seconds) * 1e6, 3) for name, seconds in parts.items()}
        return {**least, **middle, "count": len(self.wall_s)}


def call_in_turn(
    calls: Mapping[str, Callable[[], object]], seconds: float, threads: int = 1, is_over: Callable[[], bool] = bool
) -> dict[str, CallTimes]:
    """Times of calls by name, over about so many seconds of all together, at least one turn each unless `is_over`.

    Before a turn one call brings back into caches what the others have displaced; with several threads, a pause has
    the others' fall asleep.
    """
    found = {name: CallTimes() for name in calls}
    turn_s = _TURN_S if threads == 1 else _THREADS_TURN_S
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        end_s = perf_counter() + seconds
        while not is_over():
            for name, call in calls.items():
                if threads > 1:
                    sleep(_PAUSE_S)
                _take_turn(call, turn_s, found[name])
            if perf_counter() >= end_s:
                break
    finally:
        if was_enabled:
            gc.enable()
    return found


def _take_turn(call: Callable[[], object], turn_s: float, found: CallTimes) -> None:
    call()
    begun, count, end = perf_counter(), 0, 0.0
    while count < _FEWEST or end - begun < turn_s:
        cpu_start = thread_time()
        start = perf_counter()
        call()
        end = perf_counter()
        found.cpu_s.append(thread_time() - cpu_start)
        found.wall_s.append(end - start)
        count += 1
