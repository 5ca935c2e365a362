"""When repeated runs end, and what is kept of them."""

import gc
from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from texelflow.app.bench.measuring.run_rule import MOST_KEPT, RunRule, repeat_runs

SECONDS = st.floats(0, 100)


@given(st.integers(1, 50), SECONDS, SECONDS, st.integers(1, 60), SECONDS)
def test_runs_go_on_until_both_are_met_or_time_is_over(
    runs: int, min_s: float, max_s: float, done: int, elapsed_s: float
) -> None:
    enough = done >= runs and elapsed_s >= min_s
    assert RunRule(runs, min_s, max_s).goes_on(done, elapsed_s) is not (enough or elapsed_s >= max_s)


@pytest.mark.parametrize(
    ("rule", "first"), [(RunRule(1, 0, 0), True), (RunRule(0, 0, 9), False), (RunRule(0, 1, 9), True)]
)
def test_there_is_a_first_run_unless_none_is_wanted(rule: RunRule, first: bool) -> None:
    assert rule.goes_on(0, 0.0) is first


def test_memory_is_bounded() -> None:
    assert not RunRule(MOST_KEPT + 1, 1e9, 1e9).goes_on(MOST_KEPT, 1.0)


def test_runs_are_kept_in_their_order() -> None:
    numbers = count(1)
    runs = repeat_runs(lambda: float(next(numbers)), RunRule(5, 0.0, 60.0))
    assert list(runs.ms) == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert list(runs.at_s) == sorted(runs.at_s)
    assert runs.at_s[0] == 0
    assert gc.isenabled()


def test_a_signal_ends_them() -> None:
    done = list[float]()

    def run() -> float:
        done.append(1.0)
        return 1.0

    assert len(repeat_runs(run, RunRule(100, 0.0, 60.0), lambda: len(done) == 3)) == 3


def test_time_ends_them_whatever_the_number() -> None:
    runs = repeat_runs(lambda: 0.01, RunRule(10**9, 0.0, 0.02))
    assert 1 <= len(runs) < 10**6
    assert runs.at_s[-1] < 0.02


@pytest.mark.parametrize(
    ("rule", "count", "elapsed_s", "pause_s"),
    [
        (RunRule(5, 0, 9), 1, 0.1, 0.0),
        (RunRule(5, 0, 9, delay_s=0.5), 3, 7.0, 0.5),
        (RunRule(5, 0, 9, per_s=4.0), 1, 0.1, 0.15),
        (RunRule(5, 0, 9, per_s=4.0), 3, 0.9, 0.0),
        (RunRule(5, 0, 9, delay_s=3.0, per_s=4.0), 2, 0.5, 0.0),
    ],
)
def test_pauses_keep_a_frequency_or_have_one_length(
    rule: RunRule, count: int, elapsed_s: float, pause_s: float
) -> None:
    assert rule.pause_s(count, elapsed_s) == pytest.approx(pause_s)


def test_runs_begin_after_their_pause() -> None:
    runs = repeat_runs(lambda: 0.0, RunRule(3, 0.0, 60.0, delay_s=0.02))
    assert all(later - earlier >= 0.019 for earlier, later in pairwise(runs.at_s))


def test_a_pause_ends_with_the_time_and_something_is_done_behind_each_run() -> None:
    done = list[str]()
    runs = repeat_runs(lambda: 0.0, RunRule(9, 0.0, 0.05, delay_s=30.0), between=lambda: done.append("done"))
    assert len(runs) == len(done) == 1
