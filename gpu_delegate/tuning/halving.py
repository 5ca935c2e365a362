"""Finds the fastest of several candidates with few measurements, by successive halving.

Successive halving: all are measured a little, the better half of them more, until one is left. Source: Jamieson and
Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization" (arXiv 1502.07943). Times are the
least of several: whatever else a machine does makes them longer, never shorter.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

LEAST_GAIN = 0.05  # of the default's time: less is taken for noise
_FIRST_PASSES = 2  # of all candidates; later ones have more
_DUEL = 6  # measurements of the winner and the default, in turn

_Candidate = TypeVar("_Candidate")
MeasureMs = Callable[[_Candidate], float | None]  # milliseconds of one try; None: it cannot be used


class Budget:
    """Seconds that may be spent, by a clock."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._end = clock() + seconds

    @property
    def left_s(self) -> float:
        """At least 0."""
        return max(0.0, self._end - self._clock())

    @property
    def is_spent(self) -> bool:
        return self.left_s <= 0.0


@dataclass(frozen=True)
class Winner(Generic[_Candidate]):
    """What is used from now on: the default, unless another one is faster by LEAST_GAIN; least milliseconds of both."""

    candidate: _Candidate
    ms: float
    default_ms: float


def winners(
    default: _Candidate, others: Sequence[_Candidate], measure: MeasureMs[_Candidate], budget: Budget
) -> Iterator[Winner[_Candidate] | None]:
    """Yields None after each measurement, so that callers can do other work in between, and the winner at the end.

    There is no winner where the budget is spent before the end, or where the default itself cannot be measured.
    """
    least: dict[int, float] = {}
    candidates, alive, passes = [default, *others], list(range(1 + len(others))), _FIRST_PASSES
    while len(alive) > 1:
        for number in alive * passes:  # in turn: what disturbs a machine lasts longer than one measurement
            if budget.is_spent:
                return
            if least.get(number) == math.inf:
                continue
            found = measure(candidates[number])
            yield None
            least[number] = math.inf if found is None else min(found, least.get(number, math.inf))
        usable = [number for number in alive if least[number] < math.inf]
        alive = sorted(usable, key=least.__getitem__)[: (len(alive) + 1) // 2]
        passes += 1
    yield from _duel(default, candidates[alive[0] if alive else 0], measure, budget)


def _duel(
    default: _Candidate, other: _Candidate, measure: MeasureMs[_Candidate], budget: Budget
) -> Iterator[Winner[_Candidate] | None]:
    """The default against what has won, in turn: the machine may have been faster when one of them was measured."""
    times: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(_DUEL):
        for is_other in (False, True) if other is not default else (False,):
            if budget.is_spent:
                return
            found = measure(other if is_other else default)
            yield None
            if found is None:
                return
            times[is_other].append(found)
    default_ms = min(times[False])
    ms = min(times[True], default=default_ms)
    if ms < default_ms * (1 - LEAST_GAIN):
        yield Winner(other, ms, default_ms)
    else:
        yield Winner(default, default_ms, default_ms)
