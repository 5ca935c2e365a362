"""A bound on the steps and the time of a search."""

import time
from collections.abc import Callable

_STEPS_A_LOOK = 256  # at the clock


class BudgetSpent(Exception):  # noqa: N818  a search is told to end, nothing went wrong
    """A search has taken all its steps or time."""


class SearchBudget:
    """Steps that searches may take together, and seconds from now on. With steps alone they always end the same."""

    def __init__(self, steps: int, seconds: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.steps = steps  # left
        self._clock = clock
        self._end_s = None if seconds is None else clock() + seconds
        self._whole: SearchBudget | None = None

    def half(self) -> "SearchBudget":
        """A budget of half the steps and seconds that are left, which are taken from this one, too."""
        half = self.part(self.steps // 2)
        half._end_s = None if self._end_s is None else (self._end_s + self._clock()) / 2
        return half

    def part(self, steps: int) -> "SearchBudget":
        """A budget of some steps, which are taken from this one, too."""
        part = SearchBudget(steps, None, self._clock)
        part._whole = self
        return part

    def spend(self) -> None:
        """Take a step. Raises BudgetSpent if there is none, or no time, left."""
        if self.steps <= 0:
            raise BudgetSpent
        self.steps -= 1
        if self._end_s is not None and self.steps % _STEPS_A_LOOK == 0 and self._clock() > self._end_s:
            raise BudgetSpent
        if self._whole:
            self._whole.spend()
