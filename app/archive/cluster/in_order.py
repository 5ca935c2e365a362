"""Brings the outcomes of a worker's jobs into the order in which the jobs were submitted.

A worker does one job after the other, but Ray may tell of two that ended together in any order.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

OutcomeType = TypeVar("OutcomeType")


class InOrder(Generic[OutcomeType]):
    """The jobs of one worker, by number."""

    def __init__(self) -> None:
        self._outcomes: dict[int, tuple[OutcomeType] | None] = {}  # in the order of submission; None: not told yet

    def submitted(self, number: int) -> None:
        """One more, after those before."""
        self._outcomes[number] = None

    def finished(self, number: int, outcome: OutcomeType) -> Iterator[tuple[int, OutcomeType]]:
        """This one has come; those that can be told now come out. Raises KeyError where it was not submitted."""
        if self._outcomes[number] is not None:
            raise KeyError(number)
        self._outcomes[number] = (outcome,)
        for first, told in list(self._outcomes.items()):
            if told is None:
                return
            del self._outcomes[first]
            yield first, told[0]
