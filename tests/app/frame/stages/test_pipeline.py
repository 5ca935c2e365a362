"""Frames run through stages with OpenGL; records come in order with their times, and measuring never waits."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter_ns

import numpy as np
import pytest

from texelflow.app.frame.stages.frame_pipeline import FramePipeline, FrameRecord, Stage
from texelflow.app.media.sources import VideoFrame
from texelflow.app.outputs.trace import TraceWriter
from texelflow.app.picture.picture import rgba_picture
from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gpu_timer import GpuClock, GpuTimer, timer_health

BYTES = 1 << 20
FRAME = VideoFrame(0, 0, 0.0, rgba_picture(np.zeros((1, 1, 4), np.uint8)), decode_start_ns=7, decode_ms=1.5)


@pytest.fixture
def stages(context: Context) -> Iterator[tuple[Stage, ...]]:
    """One that copies a MiB, and one that does nothing."""
    gl, pair = context.gl, (opengl.COPY_READ_BUFFER, opengl.COPY_WRITE_BUFFER)
    buffers = [gl.generate("Buffers") for _ in pair]

    def copy(frame: VideoFrame) -> None:
        for target, buffer in zip(pair, buffers, strict=True):
            gl.glBindBuffer(target, buffer)
            gl.glBufferData(target, BYTES, None, opengl.DYNAMIC_COPY)
        gl.glCopyBufferSubData(*pair, 0, 0, BYTES)

    yield Stage("copy", copy), Stage("rest", lambda frame: None)
    for buffer in buffers:
        gl.delete("Buffers", buffer)


def run(pipeline: FramePipeline, count: int) -> list[FrameRecord]:
    """All records of so many frames, taken as they come."""
    records = list[FrameRecord]()
    for index in range(count):
        pipeline.submit(replace(FRAME, index=index, pts=index * 512), dropped=index, repeated=1)
        records += pipeline.completed()
    records += pipeline.drain()
    pipeline.release()
    return records


@pytest.mark.parametrize("timing", ["gpu", "wall"])
def test_records_come_once_each_in_order(timing: str, context: Context, stages: tuple[Stage, ...]) -> None:
    before_ns = perf_counter_ns()
    records = run(FramePipeline(stages, context, timing="gpu" if timing == "gpu" else "wall"), 20)
    assert [record.index for record in records] == list(range(20))
    assert [(record.pts, record.dropped, record.repeated) for record in records[:3]] == [
        (0, 0, 1),
        (512, 1, 1),
        (1024, 2, 1),
    ]
    for record in records:
        decode, *others = record.stages
        assert (decode.name, decode.start_ns, decode.cpu_ms, decode.gpu_ms) == ("decode", 7, 1.5, None)
        assert [stage.name for stage in others] == ["copy", "rest"]
        times = [record.start_ns, *(stage.start_ns for stage in others), perf_counter_ns()]
        assert before_ns <= times[0]
        assert times == sorted(times)
        assert sum(stage.cpu_ms for stage in others) * 1e6 <= times[-1] - times[0]


def test_gpu_times_are_on_the_cpus_clock(context: Context, stages: tuple[Stage, ...]) -> None:
    before_ns = perf_counter_ns()
    records = run(FramePipeline(stages, context, timing="gpu"), 20)
    after_ns = perf_counter_ns()
    known = [record for record in records if record.stages[1].gpu_start_ns is not None]
    assert len(known) >= 10
    slack_ns = 20_000_000  # two clocks are read one after the other, on a busy machine
    for record in known:
        copy, rest = record.stages[1:]
        assert copy.gpu_start_ns is not None
        assert rest.gpu_start_ns is not None
        assert copy.gpu_ms is not None
        assert rest.gpu_ms is not None
        assert min(copy.gpu_ms, rest.gpu_ms) >= 0
        assert abs(copy.gpu_start_ns + copy.gpu_ms * 1e6 - rest.gpu_start_ns) < 2
        assert before_ns - slack_ns < copy.gpu_start_ns <= rest.gpu_start_ns < after_ns + slack_ns


def test_gpu_times_are_left_out_where_wall_time_is_measured(context: Context, stages: tuple[Stage, ...]) -> None:
    pipeline = FramePipeline(stages, context, timing="wall")
    pipeline.submit(FRAME)
    (record,) = pipeline.completed()  # at once
    assert {stage.gpu_ms for stage in record.stages} == {None}
    assert pipeline.timer_note is not None


def test_records_that_nobody_takes_are_kept(context: Context, stages: tuple[Stage, ...]) -> None:
    pipeline = FramePipeline(stages, context, timing="gpu")
    for index in range(9):
        pipeline.submit(replace(FRAME, index=index))
    records = list(pipeline.drain())
    assert [record.index for record in records] == list(range(9))
    lost = [record.stages[1].gpu_ms is None for record in records]
    assert lost == [True] * 5 + [False] * 4, "the ring holds four frames"
    pipeline.release()


def test_without_opengl_stages_are_timed(context: Context) -> None:
    seen: list[int] = []
    records = run(FramePipeline((Stage("see", lambda frame: seen.append(frame.index)),)), 3)
    assert seen == [record.index for record in records] == [0, 1, 2]


def test_a_real_run_makes_a_trace(context: Context, stages: tuple[Stage, ...], tmp_path: Path) -> None:
    records = run(FramePipeline(stages, context, timing="gpu"), 8)
    with TraceWriter(tmp_path / "x.json") as trace:
        for record in records:
            trace.add(record)
    events = json.loads((tmp_path / "x.json").read_text())["traceEvents"]
    (gpu,) = (event["tid"] for event in events if event["name"] == "thread_name" and event["args"]["name"] == "GPU")
    shown = [
        (event["name"], event["ts"], event["dur"]) for event in events if event["ph"] == "X" and event["tid"] == gpu
    ]
    timed = [stage for record in records for stage in record.stages if stage.gpu_ms is not None]
    assert [name for name, _, _ in shown] == [stage.name for stage in timed] != []
    assert [start for _, start, _ in shown] == sorted(start for _, start, _ in shown)
    assert [round(took * 1e3) for _, _, took in shown] == [round((stage.gpu_ms or 0) * 1e6) for stage in timed]


# What goes wrong


@pytest.mark.parametrize("timing", ["gpu", "wall"])
def test_an_opengl_error_names_stage_and_frame(timing: str, context: Context, stages: tuple[Stage, ...]) -> None:
    def fail(frame: VideoFrame) -> None:
        if frame.index == 2:
            context.gl.glEnable(0xBAD)

    pipeline = FramePipeline((*stages, Stage("broken", fail)), context, timing="gpu" if timing == "gpu" else "wall")
    with pytest.raises(DeviceError, match=r"running stage broken of frame 2.*INVALID_ENUM"):
        run(pipeline, 4)
    assert all(record.index < 2 for record in pipeline.drain())
    pipeline.release()


def test_a_frame_whose_stage_raises_leaves_no_record(context: Context, stages: tuple[Stage, ...]) -> None:
    def fail(frame: VideoFrame) -> None:
        raise ValueError("stop")

    pipeline = FramePipeline((*stages, Stage("broken", fail)), context, timing="gpu")
    with pytest.raises(ValueError, match="stop"):
        pipeline.submit(FRAME)
    assert list(pipeline.drain()) == []
    pipeline.release()


# The timer by itself


def test_what_has_not_come_when_the_ring_comes_round_is_given_up(context: Context) -> None:
    timer = GpuTimer(context, stamps=2, depth=2)
    for _ in range(5):
        timer.begin()
        timer.mark()
        timer.mark()
        timer.end()
    context.gl.glFinish()
    found = list(timer.collect())
    assert [borders is None for borders in found] == [True, True, True, False, False]
    assert list(timer.collect()) == []
    timer.release()


def test_results_that_are_not_there_are_not_asked_for(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    timer = GpuTimer(context, stamps=2, depth=1)
    timer.begin()
    timer.mark()
    timer.mark()
    timer.end()
    monkeypatch.setattr(timer, "_available", lambda query: False)
    monkeypatch.setattr(timer, "_result", lambda query: pytest.fail("that would wait"))
    assert list(timer.collect()) == []
    assert list(timer.drain()) == [None]
    timer.release()


def test_queries_are_released(context: Context) -> None:
    for _ in range(3):
        timer = GpuTimer(context, stamps=5)
        timer.begin()
        for _ in range(5):
            timer.mark()
        timer.end()
        names = timer._waiting[0]
        assert all(context.gl.glIsQuery(name) for name in names)
        timer.release()
        timer.release()
        assert not any(context.gl.glIsQuery(name) for name in names)


def test_the_devices_clock_is_turned_into_the_cpus(context: Context) -> None:
    clock = GpuClock(context)
    before_ns = perf_counter_ns()
    shown_ns = clock.cpu_ns(context.gl.integer64(opengl.TIMESTAMP))
    assert before_ns - 20_000_000 < shown_ns < perf_counter_ns() + 20_000_000


def test_a_counter_that_begins_again_does_not_move_frames(context: Context) -> None:
    clock = GpuClock(context)
    clock._offset_ns -= 1 << 36  # as it is when Intel's counter has begun again since
    clock._set_ns -= 1_000_000_000
    before_ns = perf_counter_ns()
    shown_ns = clock.cpu_ns(context.gl.integer64(opengl.TIMESTAMP))
    assert before_ns - 20_000_000 < shown_ns < perf_counter_ns() + 20_000_000


def test_software_has_no_gpu_to_time(context: Context) -> None:
    if context.is_software:
        assert "software" in (timer_health(context) or "")
    pipeline = FramePipeline((), context)
    assert (pipeline.timer_note is None) == (timer_health(context) is None)
    pipeline.release()
