"""Figures over the last frames: percentiles against NumPy's, rates, totals, pauses, how often they change."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texelflow.app.frame.stages.frame_figures import CameraFigures, Figures, ages, frames_in_flight
from texelflow.app.frame.stages.frame_pipeline import FrameRecord, StageRecord
from texelflow.app.frame.stages.stats import TimeSummary
from texelflow.app.overlay import draw

SECOND_NS = 1_000_000_000
TIMES_MS = st.floats(0, 1e5, allow_nan=False)


def record(start_ns: int, cpu_ms: float = 1.0, gpu_ms: float | None = None, **more: Any) -> FrameRecord:
    """A frame of one stage."""
    stages = (StageRecord("network", start_ns, cpu_ms, gpu_ms, readback_bytes=more.pop("readback_bytes", 0)),)
    return FrameRecord(0, 0, 0.0, start_ns, stages, more.pop("uploaded_bytes", 0), **more)


def percentiles(times_ms: list[float]) -> list[float]:
    return [*np.percentile(times_ms, (50, 95, 99)), max(times_ms)]


def listed(times: TimeSummary | None) -> list[float]:
    assert times
    return [times.median_ms, times.p95_ms, times.p99_ms, times.max_ms]


@given(st.lists(st.tuples(TIMES_MS, st.none() | TIMES_MS), min_size=1, max_size=30), st.integers(1, 12))
def test_times_are_numpys_over_the_last_frames(times_ms: list[tuple[float, float | None]], window: int) -> None:
    figures = Figures(window)
    for place, (cpu_ms, gpu_ms) in enumerate(times_ms):
        figures.add(record(place * SECOND_NS, cpu_ms, gpu_ms))
    (stage,) = figures.summary.stages
    seen = times_ms[-window:]
    assert listed(stage.cpu) == pytest.approx(percentiles([cpu_ms for cpu_ms, _ in seen]))
    known = [gpu_ms for _, gpu_ms in seen if gpu_ms is not None]
    if known:
        assert listed(stage.gpu) == pytest.approx(percentiles(known))
    else:
        assert stage.gpu is None


@given(st.lists(st.integers(0, 1_000_000_000), min_size=2, max_size=30), st.integers(1, 12))
def test_the_frame_time_is_the_mean_interval_of_the_last_frames(gaps_ns: list[int], window: int) -> None:
    figures, now_ns = Figures(window), 0
    for gap_ns in gaps_ns:
        now_ns += gap_ns
        figures.add(record(now_ns))
    assert list(figures.intervals_ms) == pytest.approx([gap_ns / 1e6 for gap_ns in gaps_ns[1:]][-window:])
    figures.add(record(now_ns + SECOND_NS))
    mean_ms = sum(figures.intervals_ms) / len(figures.intervals_ms)
    assert figures.summary.frame_ms == pytest.approx(mean_ms)
    assert figures.summary.frames_per_s == pytest.approx(1000 / mean_ms)


def test_totals_bytes_and_the_process_are_told() -> None:
    used_s = iter((5.0, 5.5))
    figures = Figures(cpu_s=lambda: next(used_s))
    figures.add(record(0, dropped=2, repeated=1))
    assert (figures.summary.dropped, figures.summary.process_percent) == (2, 0)
    figures.add(record(SECOND_NS, dropped=3, uploaded_bytes=7, readback_bytes=9))
    summary = figures.summary
    assert (summary.dropped, summary.repeated, summary.uploaded_bytes, summary.readback_bytes) == (5, 1, 7, 9)
    assert summary.process_percent == pytest.approx(50)
    assert summary.overlay_ms is None


def test_numbers_stay_long_enough_to_be_read() -> None:
    figures, seen = Figures(), set()
    for frame in range(100):
        figures.add(record(frame * SECOND_NS // 100))
        seen.add(figures.summary)
    assert 2 <= len(seen) <= 5


def test_a_pause_is_no_frame_time_but_slow_work_is() -> None:
    figures = Figures()
    figures.add(record(0, cpu_ms=10))
    figures.add(record(60 * SECOND_NS, cpu_ms=5000))
    assert not figures.intervals_ms
    figures.add(record(66 * SECOND_NS))
    assert list(figures.intervals_ms) == [6000]


def test_other_stages_start_afresh_and_totals_stay() -> None:
    figures = Figures()
    figures.add(record(0, dropped=1))
    other = FrameRecord(0, 0, 0.0, 1, (StageRecord("overlay", 1, 4.0), StageRecord("swap", 1, 2.0)), 0)
    figures.add(other)
    assert [stage.name for stage in figures.summary.stages] == ["overlay", "swap"]
    assert (figures.summary.dropped, figures.summary.overlay_ms) == (1, 4.0)


@given(st.lists(st.floats(0, 1e5), max_size=20), st.floats(0.5, 1000))
def test_the_budgets_label_stays_in_the_graph_and_off_its_line(intervals_ms: list[float], budget_ms: float) -> None:
    high, letter = 40.0, 13.0
    level = round(high * (1 - budget_ms / draw.scale_top_ms(intervals_ms, budget_ms)))
    top = draw.label_top(level, high, letter)
    assert 0 <= top <= high - letter
    assert top >= level + 1 or top + letter <= level


def captured(captured_ms: int, shown_ms: int) -> FrameRecord:
    """A frame of a camera."""
    stages = (StageRecord("swap", (shown_ms - 1) * 1_000_000, 1.0),)
    return FrameRecord(0, 0, 0.0, captured_ms * 1_000_000, stages, 0, captured_ns=captured_ms * 1_000_000)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 100), st.integers(1, 300)), min_size=1, max_size=30))
def test_ages_go_from_the_capture_to_the_swap(frames: list[tuple[int, int]]) -> None:
    taken_ms = np.cumsum([gap_ms for gap_ms, _ in frames]).tolist()
    shown_ms = [taken + age for taken, (_, age) in zip(taken_ms, frames, strict=True)]
    records = [captured(*times) for times in zip(taken_ms, shown_ms, strict=True)]
    assert listed(ages(records)) == pytest.approx(percentiles([age for _, age in frames]))
    under_way = [sum(taken <= end for taken in taken_ms) - place for place, end in enumerate(shown_ms)]
    assert frames_in_flight(records) == pytest.approx(np.mean(under_way))
    figures = Figures()
    for one in records:
        figures.add(one)
    assert figures.summary.age
    assert figures.summary.in_flight >= 1


def test_recordings_have_no_age_and_frames_from_before_a_camera_do_not_count() -> None:
    assert ages([record(0)]) is None
    assert frames_in_flight([record(0)]) == 0
    assert ages([]) is None
    assert listed(ages([record(0), captured(10, 50)])) == [40] * 4


def test_the_camera_is_asked_when_numbers_change_and_no_more_often() -> None:
    asked = []

    def camera() -> CameraFigures:
        asked.append(1)
        return CameraFigures("a camera", "driver", 30.0, len(asked), 0, 0)

    figures = Figures(camera=camera)
    for frame in range(100):
        figures.add(record(frame * SECOND_NS // 100))
        assert figures.summary.camera
        assert figures.summary.camera.used == len(asked)
    assert 2 <= len(asked) <= 5


@settings(deadline=None)
@given(st.lists(st.lists(st.none() | TIMES_MS, min_size=3, max_size=3), min_size=1, max_size=12))
def test_times_that_are_known_of_some_stages_and_frames_alone_count(times_ms: list[list[float | None]]) -> None:
    figures = Figures()
    for place, row in enumerate(times_ms):
        stages = tuple(StageRecord(f"stage {number}", 0, 1.0, gpu_ms) for number, gpu_ms in enumerate(row))
        figures.add(FrameRecord(0, 0, 0.0, place * SECOND_NS, stages, 0))
    for number, stage in enumerate(figures.summary.stages):
        known = [gpu_ms for row in times_ms if (gpu_ms := row[number]) is not None]
        assert (stage.gpu is None) == (not known)
        if known:
            assert listed(stage.gpu) == pytest.approx(percentiles(known))
