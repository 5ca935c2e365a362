"""Successive halving finds the winners with few measurements; the default stays where nothing is clearly faster."""

from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from texelflow.gpu_delegate.tuning.halving import LEAST_GAIN, Budget, Winner, winners

TIMES = st.lists(st.none() | st.floats(0.001, 1000), min_size=0, max_size=20)


def winner_of(default_ms: float | None, others: Sequence[float | None], budget: Budget) -> Winner[int] | None:
    times = [default_ms, *others]
    *before, last = [*winners(0, range(1, len(times)), times.__getitem__, budget)] or [None]
    assert not any(before)
    return last


def endless() -> Budget:
    return Budget(1.0, lambda: 0.0)


@given(st.floats(0.001, 1000), TIMES)
def test_the_fastest_wins_by_enough(default_ms: float, others: list[float | None]) -> None:
    winner = winner_of(default_ms, others, endless())
    assert winner
    usable = {number: ms for number, ms in enumerate(others, 1) if ms is not None}
    best = min(usable, key=usable.__getitem__, default=0)
    if best and usable[best] < default_ms * (1 - LEAST_GAIN):
        assert winner.ms == usable[best]
        assert winner.candidate
    else:
        assert (winner.candidate, winner.ms) == (0, default_ms)
    assert winner.default_ms == default_ms


@given(TIMES)
def test_a_default_that_cannot_be_measured_has_no_rival(others: list[float | None]) -> None:
    assert winner_of(None, others, endless()) is None


@given(st.integers(0, 60))
def test_no_measurement_begins_after_the_budget(most: int) -> None:
    counts = Counter[int]()

    def measure(number: int) -> float:
        counts[number] += 1
        return 1.0 + number

    results = [*winners(0, range(1, 9), measure, Budget(most, lambda: float(counts.total())))]
    assert counts.total() <= most
    assert bool(results and results[-1]) == (counts.total() < most or most == counts.total() == len(results) - 1)


def test_most_measurements_are_of_the_best() -> None:
    counts = Counter[int]()

    def measure(number: int) -> float:
        counts[number] += 1
        return 10.0 - number

    *_, winner = winners(0, range(1, 9), measure, endless())
    assert winner
    assert winner.candidate == 8
    assert counts[8] > 3 * counts[1]
