"""Decisions about a source in trouble, on a made-up clock: when it is said, and when it is tried again."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texelflow.app.capture import supervise
from texelflow.app.capture.stamps import SANE_AGE_NS, Rate, Timeline, sane_stamp
from texelflow.app.capture.supervise import SECOND_NS, CapturePhase, CaptureState, SourceStatus, due_ns, state_of

NAMED = "V4L2 /dev/video0, MJPG 640x480, 30 fps"
TICK_NS = SECOND_NS // 4


def at(seconds: float) -> int:
    """A reading of the clock."""
    return 1000 * SECOND_NS + round(seconds * SECOND_NS)


def running(fps: float = 30.0, still: bool = False) -> SourceStatus:
    """A source that was opened at 0 s, and sent its first picture at 0 s."""
    watch = supervise.opened(SourceStatus(at(-1)), at(0), NAMED, fps, still)
    return supervise.pictured(watch, at(0), changed=True)


def test_a_source_that_opens() -> None:
    watch = SourceStatus(at(0))
    assert state_of(watch, at(5)) == CaptureState("opening", "opening the source")
    watch = supervise.opened(watch, at(5), NAMED, 30, False)
    assert state_of(watch, at(6)) == CaptureState("opening", "waiting for the first picture of V4L2 /dev/video0")
    assert due_ns(watch) is None
    assert state_of(supervise.pictured(watch, at(6), True), at(6.1)) == CaptureState("live")


def test_what_cannot_be_opened_the_first_time_is_not_opened_again() -> None:
    watch = supervise.failed(SourceStatus(at(0)), at(1), "camera 3 is busy; close the other program")
    assert state_of(watch, at(9)) == CaptureState("lost", "camera 3 is busy; close the other program")
    assert due_ns(watch) is None


@pytest.mark.parametrize(
    ("seconds", "phase", "message"),
    [
        (1.4, "live", ""),
        (1.6, "stalled", "no picture from V4L2 /dev/video0 for 2 s; trying again in 1 s"),
        (3.0, "stalled", "no picture from V4L2 /dev/video0 for 3 s; trying again in 1 s"),
    ],
)
def test_a_source_that_falls_silent(seconds: float, phase: CapturePhase, message: str) -> None:
    assert state_of(running(), at(seconds)) == CaptureState(phase, message)


def test_a_picture_that_never_changes() -> None:
    frozen = supervise.pictured(running(), at(2.9), changed=False)
    message = "the picture from V4L2 /dev/video0 has not changed for 3 s; trying again in 1 s"
    assert state_of(frozen, at(3)) == CaptureState("frozen", message)
    assert due_ns(frozen) == at(1.5 + 2)
    again = supervise.opened(supervise.opening(frozen, at(3.5)), at(4), NAMED, 30, False)
    again = supervise.pictured(again, at(8), changed=False)
    assert state_of(again, at(8)).phase == "frozen"
    assert due_ns(again) == at(4 + 1.5 + 4)
    still = supervise.pictured(running(still=True), at(2.9), changed=False)
    assert state_of(still, at(3)) == CaptureState("live")
    assert state_of(still, at(4.5)).phase == "stalled"


def test_a_loss_is_told_until_a_new_picture_comes() -> None:
    watch = supervise.failed(running(), at(1), "it was unplugged")
    assert state_of(watch, at(1)) == CaptureState("lost", "it was unplugged; trying again in 1 s")
    assert due_ns(watch) == at(1.5)
    watch = supervise.opening(watch, at(1.5))
    assert state_of(watch, at(2)) == CaptureState("lost", "it was unplugged; trying again")
    watch = supervise.opened(watch, at(3), NAMED, 30, False)
    assert state_of(watch, at(3.1)).phase == "lost"
    watch = supervise.pictured(watch, at(3.2), changed=True)
    assert state_of(watch, at(3.3)) == CaptureState("live")


def test_the_end_is_the_end() -> None:
    watch = supervise.ended(running(), at(1))
    assert state_of(watch, at(100)) == CaptureState("ended", "V4L2 /dev/video0 has come to its end")
    assert due_ns(watch) is None


def test_notes_are_told_for_a_while() -> None:
    watch = supervise.noted(running(still=True), at(0), "now 320x240")
    watch = supervise.pictured(watch, at(4.9), changed=True)
    assert state_of(watch, at(4.9)) == CaptureState("live", "now 320x240")
    assert state_of(watch, at(5.0)) == CaptureState("live")


@given(st.floats(0, 1000), st.booleans())
@settings(deadline=None)
def test_trouble_is_noticed_within_two_seconds(fps: float, frozen: bool) -> None:
    watch = running(fps)
    if frozen:
        watch = supervise.pictured(watch, at(1.9), changed=False)
    seen_ns = at(2) - TICK_NS  # the last look before the two seconds are over
    assert state_of(watch, seen_ns).phase == ("frozen" if frozen else "stalled")


@given(st.integers(0, 200))
@settings(deadline=None)
def test_the_wait_doubles_up_to_eight_seconds(attempts: int) -> None:
    wait_ns = supervise.back_off_ns(attempts)
    assert wait_ns == min(2**attempts * SECOND_NS // 2, 8 * SECOND_NS)


@given(st.lists(st.sampled_from(["opening", "opened", "new", "same", "failed"]), max_size=20), st.integers(1, 5000))
@settings(deadline=None)
def test_after_a_first_picture_it_is_always_tried_again(events: list[str], step_ms: int) -> None:
    watch, now_ns = running(), at(0)
    for event in events:
        now_ns += step_ms * 1_000_000
        if event == "opening":
            watch = supervise.opening(watch, now_ns)
        elif event == "opened" and watch.step == "opening":
            watch = supervise.opened(watch, now_ns, NAMED, 30, False)
        elif event == "failed":
            watch = supervise.failed(watch, now_ns, "gone")
        elif event in ("new", "same") and watch.step == "open":
            watch = supervise.pictured(watch, now_ns, event == "new")
    due = due_ns(watch)
    assert due is not None
    assert due <= now_ns + 30 * SECOND_NS
    state = state_of(watch, now_ns + 30 * SECOND_NS)
    assert state.phase in ("stalled", "frozen", "lost")
    assert "\n" not in state.message
    assert "trying again" in state.message


@given(st.lists(st.tuples(st.integers(-(10**9), 10**9), st.integers(0, 3)), min_size=1, max_size=30))
@settings(deadline=None)
def test_times_always_grow_and_numbers_count_all(steps: list[tuple[int, int]]) -> None:
    timeline, now_ns, placed = Timeline(), 10**12, []
    for step_ns, skipped in steps:
        now_ns += step_ns
        placed.append(timeline.place(now_ns, skipped))
    indices, times = zip(*placed, strict=True)
    assert times[0] == 0
    assert all(one < other for one, other in pairwise(times))
    assert indices[-1] + 1 == timeline.count == len(steps) + sum(skipped for _, skipped in steps)
    assert [b - a - 1 for a, b in zip((-1, *indices), indices, strict=False)] == [skipped for _, skipped in steps]


@given(st.integers(0, 2**62), st.one_of(st.none(), st.integers(-(2**62), 2**62)))
@settings(deadline=None)
def test_only_sane_stamps_are_believed(arrival_ns: int, captured_ns: int | None) -> None:
    stamp_ns, believed = sane_stamp(captured_ns, arrival_ns)
    assert arrival_ns - SANE_AGE_NS <= stamp_ns <= arrival_ns
    assert stamp_ns == (captured_ns if believed else arrival_ns)
    assert believed == (captured_ns is not None and arrival_ns - SANE_AGE_NS <= captured_ns <= arrival_ns)


@pytest.mark.parametrize("fps", [0.6, 1, 2, 15, 30, 60, 240])
def test_a_steady_rate_is_measured(fps: float) -> None:
    rate = Rate()
    assert rate.fps(at(0)) == 0
    for number in range(round(5 * fps) + 1):
        rate.add(at(number / fps))
    last = round(5 * fps) / fps
    assert rate.fps(at(last)) == pytest.approx(fps, rel=1e-6)
    assert rate.fps(at(last + 5)) == 0
    rate.add(at(last + 5))
    assert rate.fps(at(last + 5)) == 0, "the gap is no rate"
