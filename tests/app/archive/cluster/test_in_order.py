"""Outcomes in any order are told in the order of submission, each once and as soon as it can be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from texelflow.app.archive.cluster.in_order import InOrder


@given(st.permutations(range(6)), st.integers(1, 6))
def test_order_of_submission(arrival: list[int], held: int) -> None:
    jobs, told = InOrder[str](), list[tuple[int, str]]()
    numbers = list(range(held))
    for number in numbers:
        jobs.submitted(number)
    come = set[int]()
    for number in (each for each in arrival if each < held):
        come.add(number)
        told += jobs.finished(number, f"outcome {number}")
        first_missing = next((each for each in numbers if each not in come), held)
        assert told == [(each, f"outcome {each}") for each in range(first_missing)]


def test_what_was_not_submitted_or_has_come_is_refused() -> None:
    jobs = InOrder[str]()
    for number in (0, 1):
        jobs.submitted(number)
    assert list(jobs.finished(1, "second")) == []
    for number in (1, 2):
        with pytest.raises(KeyError):
            list(jobs.finished(number, "again"))
    assert list(jobs.finished(0, "first")) == [(0, "first"), (1, "second")]
