"""From the test pattern to the screen: the number in what is shown is the record's, and its age is known."""

from itertools import pairwise
from time import perf_counter_ns

import pytest

from tests.helpers.live_stage import Script, Stage, Theatre
from tests.helpers.markers import one_in
from tests.helpers.time_codes import read_time_code
from texelflow.app.capture.pattern import time_code_of
from texelflow.app.frame.stages.frame_figures import ages, frames_in_flight
from texelflow.app.frame.stages.run_stats import RunStats

FRAMES = 15


@one_in(
    3,
    "flags",
    [
        {"backend": "cpu", "effect": "none"},
        {"backend": "gl", "effect": "tint", "overlay": True},
        {"backend": "gl", "effect": "tint", "delay_video": True},
    ],
    ids=["cpu", "gl", "delayed"],
)
def test_the_number_in_the_final_picture_is_that_of_its_record(theatre: Theatre, flags: dict[str, object]) -> None:
    def script(stage: Stage) -> Script:
        for _ in range(FRAMES):
            yield from stage.frames(1)
            now_ns, record = perf_counter_ns(), stage.records[-1]
            assert stage.code() == time_code_of(record.index)
            assert record.captured_ns
            assert record.captured_ns <= record.start_ns <= record.end_ns <= now_ns

    records = theatre.run(script, **flags)
    assert all(one.index <= two.index for one, two in pairwise(records))
    age, mean = ages(records), frames_in_flight(records)
    assert age
    assert 0 < age.median_ms <= age.p95_ms <= age.max_ms
    assert mean >= 1
    stats = RunStats()
    for record in records:
        stats.add(record)
    summary = stats.summary()
    assert summary["frames_in_flight"] == pytest.approx(mean, abs=0.01)
    assert summary["age_at_swap"]["p95_ms"] == pytest.approx(age.p95_ms, abs=0.01)


def test_the_overlay_tells_what_became_of_every_number(theatre: Theatre) -> None:
    def script(stage: Stage) -> Script:
        yield from stage.frames(FRAMES)
        yield from stage.until(lambda: stage.parts.figures.summary.age is not None)
        camera = stage.parts.figures.summary.camera
        assert camera
        assert (camera.stamps, camera.repeated, camera.lost) == ("made", 0, 0)
        assert camera.description == "test pattern, I420 160x120, 60 fps"
        counts, last = stage.capture.counts, stage.records[-1].index
        assert counts.used >= len(stage.records)
        assert counts.used + counts.dropped >= last + 1, "every number that was not shown was counted"

    theatre.run(script, overlay=True)


def test_the_screen_shows_the_last_number(theatre: Theatre) -> None:
    def script(stage: Stage) -> Script:
        yield from stage.frames(3)
        stage.window.context.gl.glFinish()
        stage.display.xdotool("getdisplaygeometry")  # answered once the server has done what it was asked before
        assert read_time_code(stage.on_screen()) == time_code_of(stage.records[-1].index)

    theatre.run(script, effect="none")
