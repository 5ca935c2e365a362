"""The clock that paces frames, on clocks that the tests make up: steady ones, slow machines, stalls and leaps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from texelflow.app.session.pacing import MOST_DROPPED, SPEEDS, Pacer, next_speed

MS = 1_000_000  # nanoseconds
EXACT_MS = 0.01

gaps = st.lists(st.floats(5, 100), min_size=2, max_size=60)
speeds = st.sampled_from(SPEEDS)
readings = st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=50)


@dataclass
class Run:
    """What became of each frame, and when (in ms)."""

    shown: list[int] = field(default_factory=list)
    at_ms: list[float] = field(default_factory=list)
    dropped: int = 0
    repeated: int = 0
    most_in_a_row: int = 0


def play(times_ms: Sequence[float], pacer: Pacer, cost_ms: Callable[[int], float], start_ms: float = 0) -> Run:
    """Play all frames; each is decoded in time, and takes cost_ms(its number) to be shown."""
    run, now_ns, row = Run(), int(start_ms * MS), 0
    for index, time_ms in enumerate(times_ms):
        now_ns += pacer.wait_ns(time_ms, now_ns)
        following = times_ms[index + 1] if index + 1 < len(times_ms) else None
        shown = pacer.take(time_ms, following, now_ns)
        row = 0 if shown else row + 1
        run.most_in_a_row = max(run.most_in_a_row, row)
        if shown:
            run.shown.append(index)
            run.at_ms.append(now_ns / MS)
            run.dropped += shown.dropped
            run.repeated += shown.repeated
            now_ns += int(cost_ms(index) * MS)
    return run


@given(gaps, speeds, st.floats(0, 1e9))
def test_a_fast_machine_shows_every_frame_when_its_time_has_come(
    gaps_ms: list[float], speed: float, start_ms: float
) -> None:
    times_ms = list(accumulate(gaps_ms))
    run = play(times_ms, Pacer(speed), lambda index: 0, start_ms)
    assert run.shown == list(range(len(times_ms)))
    assert run.dropped == run.repeated == 0
    for time_ms, at_ms in zip(times_ms, run.at_ms, strict=True):
        assert at_ms - run.at_ms[0] == pytest.approx((time_ms - times_ms[0]) / speed, abs=EXACT_MS)


@given(st.integers(2, 80), st.floats(10, 50), st.floats(0, 400), speeds)
def test_every_frame_is_shown_or_counted_as_dropped(count: int, gap_ms: float, cost_ms: float, speed: float) -> None:
    run = play([gap_ms * index for index in range(count)], Pacer(speed), lambda index: cost_ms)
    assert len(run.shown) + run.dropped == count
    assert run.shown[-1] == count - 1
    assert run.most_in_a_row <= MOST_DROPPED


@given(st.floats(20, 40), st.floats(1.2, 6))
def test_a_slow_machine_keeps_time_by_dropping(gap_ms: float, slowness: float) -> None:
    times_ms = [gap_ms * index for index in range(60)]
    run = play(times_ms, Pacer(), lambda index: gap_ms * slowness)
    assert run.dropped > 0
    for index, at_ms in zip(run.shown, run.at_ms, strict=True):
        assert times_ms[index] - EXACT_MS <= at_ms <= times_ms[index] + gap_ms * (slowness + 1)


@given(st.floats(600, 1e9), st.integers(1, 20))
def test_a_stall_is_followed_by_no_burst(stall_ms: float, where: int) -> None:
    times_ms = [33.0 * index for index in range(40)]
    run = play(times_ms, Pacer(), lambda index: stall_ms if index == where else 0)
    assert run.dropped == 0
    between = [later - earlier for earlier, later in pairwise(run.at_ms)]
    assert between.pop(where) == pytest.approx(stall_ms, rel=1e-6)
    assert between == pytest.approx([33.0] * 38, abs=1e-3 + stall_ms * 1e-6)


def test_a_late_frame_is_counted_by_how_long_the_one_before_it_stayed() -> None:
    pacer = Pacer()
    pacer.take(0, None, 0)
    shown = pacer.take(40, None, 165 * MS)
    assert shown
    assert (shown.dropped, shown.repeated) == (0, 3)


@given(gaps, st.floats(0, 2000), speeds)
def test_where_every_frame_counts_the_clock_waits(gaps_ms: list[float], cost_ms: float, speed: float) -> None:
    times_ms = list(accumulate(gaps_ms))
    run = play(times_ms, Pacer(speed, keeps_all=True), lambda index: cost_ms)
    assert run.shown == list(range(len(times_ms)))
    assert run.dropped == 0
    for (earlier, later), gap_ms in zip(pairwise(run.at_ms), gaps_ms[1:], strict=True):
        assert later - earlier >= gap_ms / speed - EXACT_MS


def test_after_a_pause_the_next_frame_comes_a_frame_time_later() -> None:
    pacer = Pacer(speed=0.5)
    pacer.take(0, 40, 0)
    pacer.restart(10**15)
    assert pacer.wait_ns(40, 10**15) == 80 * MS


def test_what_was_asked_for_is_shown_at_once_and_the_next_in_its_time() -> None:
    pacer = Pacer()
    pacer.take(0, 40, 0)
    shown = pacer.show_now(9000, 5 * MS)
    assert (shown.dropped, shown.repeated) == (0, 0)
    assert pacer.wait_ns(9025, 5 * MS) == 25 * MS


def test_a_loop_begins_again_one_frame_time_after_its_end() -> None:
    run = play([0, 40, 80, 0, 40, 80, 0, 40], Pacer(), lambda index: 0)
    assert run.at_ms == [0, 40, 80, 120, 160, 200, 240, 280]


def test_a_leap_in_the_time_stamps_is_no_pause() -> None:
    assert play([0, 40, 1e9, 1e9 + 40], Pacer(), lambda index: 0).at_ms == [0, 40, 80, 120]


@given(readings)
def test_a_clock_that_leaps_or_stands_still_makes_no_trouble(now_ns: list[int]) -> None:
    pacer, time_ms = Pacer(), 0.0
    for reading in now_ns:
        wait_ns = pacer.wait_ns(time_ms, reading)
        assert 0 <= wait_ns <= 40 * MS
        assert pacer.wait_ns(time_ms, reading - 10**9) == wait_ns
        if wait_ns == 0:
            assert pacer.take(time_ms, None, reading)
            time_ms += 40


def test_speeds_step_through_the_list_and_stay_at_its_ends() -> None:
    up = [0.25]
    while (faster := next_speed(up[-1], 1)) != up[-1]:
        up.append(faster)
    assert tuple(up) == SPEEDS
    assert next_speed(0.25, -1) == 0.25
    assert next_speed(3.0, -1) == 2.0
    assert next_speed(3.0, 1) == 4.0
    assert next_speed(100.0, -1) == 4.0
    assert next_speed(0.01, 1) == 0.25
    assert next_speed(3.7, 0) == 1.0
