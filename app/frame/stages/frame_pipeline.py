"""Runs frames through an ordered list of stages, and records what each took.

The pipeline does not know what a stage does. Where the device's timer is good, only the frame before the last is waited
for: CPU times are those of submitting the work, and GPU times come some frames later. Elsewhere (software OpenGL does
most of its work in the call) the pipeline waits for the device after each stage, and the CPU times are wall clock of
finished work.

Stages that call nothing but OpenGL are gathered: what several in a row call is made together, by one call of native
code (gpu_delegate/targets/gl/calls.py), and they are timed by clocks that are read in between.
"""

import dataclasses
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any, Literal, NamedTuple

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gpu_timer import GpuClock, GpuTimer, TimeStamps, timer_health

from ...media.sources import VideoFrame
from ...models.decoders.found import Finding
from ...picture.picture import ImageSize
from .stage_marks import StageMarks

DECODE = "decode"  # the first stage of each record, which happened before the frame came here

_WAIT_NS = 100_000_000
_MOST_WAITS = 100  # 10 s: a device that takes longer for one frame hangs


def _never() -> bool:
    return False


def gathers_always() -> bool:
    """Of a stage that calls nothing but OpenGL."""
    return True


@dataclass(frozen=True)
class Stage:
    """One step of a frame's path. `gathers`: whether it does nothing now but call OpenGL, by entry points of GL."""

    name: str
    run: Callable[[VideoFrame], None]
    gathers: Callable[[], bool] = _never


class StageRecord(NamedTuple):
    """One stage of one frame. Times are on the clock of perf_counter_ns; those of the GPU are None if unknown."""

    name: str
    start_ns: int
    cpu_ms: float
    gpu_ms: float | None = None
    gpu_start_ns: int | None = None
    readback_bytes: int = 0


@dataclass(frozen=True)
class FrameRecord:
    """What one frame cost; bytes are those that moved since the record before it.

    `dropped` frames before it did not come here; the one before it was shown `repeated` times more. captured_ns is when
    a camera took it, on the clock of start_ns; None for recordings.
    """

    index: int
    pts: int
    time_ms: float
    start_ns: int
    stages: tuple[StageRecord, ...]
    uploaded_bytes: int
    dropped: int = 0
    repeated: int = 0
    captured_ns: int | None = None
    findings: tuple[Finding, ...] = ()  # what was found in it
    size: ImageSize = (0, 0)  # (width, height) of it, upright

    @property
    def end_ns(self) -> int:
        """When the last stage was done: by the device's clock where it told, else by the CPU's."""
        last = self.stages[-1]
        if last.gpu_ms is None or last.gpu_start_ns is None:
            return last.start_ns + int(last.cpu_ms * 1e6)
        return last.gpu_start_ns + int(last.gpu_ms * 1e6)

    @property
    def age_ms(self) -> float | None:
        """From the capture to the end of the last stage, a window's swap; None for recordings."""
        return None if self.captured_ns is None else (self.end_ns - self.captured_ns) / 1e6

    @property
    def readback_bytes(self) -> int:
        """Of all stages together."""
        return sum(stage.readback_bytes for stage in self.stages)


class FramePipeline:
    """The stages in their order. Belongs to the thread of the context, if there is one.

    `names` are those of the stages, in their order, without decode. `timer_note` says why there are no GPU times; None
    where there are.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        context: Context | None = None,
        uploaded: Callable[[], int] = lambda: 0,
        timing: Literal["auto", "gpu", "wall"] = "auto",
        found: Callable[[], tuple[Finding, ...]] = tuple,
    ) -> None:
        """`uploaded` tells the bytes uploaded so far, `found` what was found in the frame that ran last. Without a
        context no stage may use OpenGL.

        `timing` "auto" measures on the GPU if that works; it is forced for tests.
        """
        self._context, self._found = context, found
        self._uploaded, self._uploaded_before = uploaded, uploaded()
        self.timer_note = _note(context, timing)
        self._clock = GpuClock(context) if context and self.timer_note is None else None
        self._records: deque[FrameRecord] = deque()
        self._fence: Any = None
        self._timer: GpuTimer | None = None
        self._take(stages)

    def change(self, stages: Sequence[Stage]) -> list[FrameRecord]:
        """Run others from now on; the records that are left of those before. Raises DeviceError as drain() does."""
        left = list(self.drain())
        if self._timer:
            self._timer.release()
        self._take(stages)
        return left

    def _take(self, stages: Sequence[Stage]) -> None:
        self.stages = tuple(stages)
        self.names = tuple(stage.name for stage in self.stages)
        self._timer = GpuTimer(self._context, len(self.stages) + 1) if self._context and self._clock else None
        self._marks = self._all_marks()

    @property
    def readback_bytes(self) -> int:
        """What came back from the device since its context was opened, counted at OpenGL's entry points."""
        return self._context.readback.bytes if self._context else 0

    def submit(self, frame: VideoFrame, dropped: int = 0, repeated: int = 0) -> None:
        """Run one frame through all stages. At most the frame before is still being worked on when it begins.

        Raises DeviceError for an error of OpenGL, which names the stage where the driver or waiting tells it.
        """
        start_ns = perf_counter_ns()
        stages = [StageRecord(DECODE, frame.decode_start_ns, frame.decode_ms), *self._run_all(frame)]
        before, self._uploaded_before = self._uploaded_before, self._uploaded()
        uploaded_bytes = self._uploaded_before - before
        times = frame.index, frame.pts, frame.time_ms, start_ns
        counts = uploaded_bytes, dropped, repeated
        self._records.append(FrameRecord(*times, tuple(stages), *counts, frame.captured_ns, self._found(), frame.size))
        self._limit_frames_in_flight(frame.index)

    def completed(self) -> Iterator[FrameRecord]:
        """The records that are complete by now, in order."""
        if self._timer is None or self._clock is None:
            while self._records:
                yield self._records.popleft()
            return
        self._clock.renew()
        for stamps in self._timer.collect():
            yield _with_gpu_times(self._records.popleft(), stamps, self._clock)

    def drain(self) -> Iterator[FrameRecord]:
        """All records that are left, in order, at the end of a run: waits for the device. Raises DeviceError."""
        if self._context and self._timer and self._clock:
            self._context.gl.glFinish()
            self._context.check_errors("finishing the last frame")
            for stamps in self._timer.drain():
                yield _with_gpu_times(self._records.popleft(), stamps, self._clock)
        yield from self.completed()

    def abandon(self) -> Iterator[FrameRecord]:
        """All records that are left, without what a device that is lost has measured."""
        while self._records:
            yield self._records.popleft()

    def release(self) -> None:
        """Free what measures; records that were not taken are lost. Harmless when repeated."""
        if self._timer:
            self._timer.release()
        if self._context and self._fence is not None:
            self._context.gl.glDeleteSync(self._fence)
        self._timer = self._fence = None
        self._records.clear()

    def _all_marks(self) -> StageMarks | None:
        """What tells of stages whose calls are gathered; None where they cannot be."""
        context = self._context
        if context is None or context.calls.clock is None or not context.calls.gathers:
            return None
        return StageMarks(context, context.calls.clock, self.names, waits=self._timer is None)

    def _run_all(self, frame: VideoFrame) -> list[StageRecord]:
        """The records of the stages. Raises DeviceError."""
        context, timer, marks = self._context, self._timer, self._marks
        if context is None:
            return [_timed(stage, frame) for stage in self.stages]
        records: list[StageRecord | None] = []  # None for those that are gathered
        with context.calls.gathering():
            run = context.calls.run
            if timer:
                timer.begin()
                timer.mark()
            for place, stage in enumerate(self.stages):
                if marks is None or not stage.gathers():
                    records.append(self._run(context, stage, frame))
                    continue
                run(marks.begins[place])
                stage.run(frame)
                run(marks.ends[place])
                if timer:
                    timer.mark()
                records.append(None)
            if timer:
                timer.end()
        return self._with_gathered(context, records, frame)

    def _with_gathered(
        self, context: Context, records: Sequence[StageRecord | None], frame: VideoFrame
    ) -> list[StageRecord]:
        """All records, now that calls of stages were made. Raises DeviceError for errors of those."""
        if self._marks is None or None not in records:
            return [record for record in records if record]
        starts_ns, ends_ns, errors = self._marks.read()
        if any(errors):
            for name, record, code in zip(self.names, records, errors, strict=True):
                if code and record is None:
                    context.check_errors(f"running stage {name} of frame {frame.index}", code)
        if context.has_messages:
            context.check_errors(f"running frame {frame.index}", None if self._timer else 0)
        elif not self._timer:
            context.resets.check()
        return [
            record or StageRecord(name, start_ns, (end_ns - start_ns) / 1e6)
            for record, name, start_ns, end_ns in zip(records, self.names, starts_ns, ends_ns, strict=True)
        ]

    def _run(self, context: Context, stage: Stage, frame: VideoFrame) -> StageRecord:
        context.calls.flush()
        before, start_ns = context.readback.bytes, perf_counter_ns()
        with context.scope(stage.name):
            stage.run(frame)
            context.calls.flush()
        if self._timer:
            self._timer.mark()
            context.calls.flush()
        else:
            context.gl.glFinish()
        cpu_ms = (perf_counter_ns() - start_ns) / 1e6
        # glGetError makes threaded drivers wait: after glFinish they have nothing to wait for, else messages must do.
        check = context.check_messages if self._timer else context.check_errors
        check(f"running stage {stage.name} of frame {frame.index}")
        return StageRecord(stage.name, start_ns, cpu_ms, readback_bytes=context.readback.bytes - before)

    def _limit_frames_in_flight(self, index: int) -> None:
        """Wait for the frame before this one: without that, a fast source would queue frames without end."""
        if self._context is None or self._timer is None:
            return
        gl, before = self._context.gl, self._fence
        self._fence = gl.glFenceSync(opengl.SYNC_GPU_COMMANDS_COMPLETE, 0)
        if before is not None:
            states = (gl.glClientWaitSync(before, opengl.SYNC_FLUSH_COMMANDS_BIT, _WAIT_NS) for _ in range(_MOST_WAITS))
            done = any(state in (opengl.ALREADY_SIGNALED, opengl.CONDITION_SATISFIED) for state in states)
            gl.glDeleteSync(before)
            # Unlike after a stage: this wait has already emptied a threaded driver's queue.
            self._context.check_errors(f"working on frame {index}")
            if not done:
                raise DeviceError(f"{self._context.renderer} did not finish a frame in 10 s; try a smaller size")


def _timed(stage: Stage, frame: VideoFrame) -> StageRecord:
    """Run a stage that does not use OpenGL."""
    start_ns = perf_counter_ns()
    stage.run(frame)
    return StageRecord(stage.name, start_ns, (perf_counter_ns() - start_ns) / 1e6)


def _note(context: Context | None, timing: Literal["auto", "gpu", "wall"]) -> str | None:
    """Why there are no GPU times, if so."""
    if context is None:
        return "OpenGL is not used"
    if timing == "auto":
        return timer_health(context)
    return "wall clock was asked for" if timing == "wall" else None


def _with_gpu_times(record: FrameRecord, stamps: TimeStamps | None, clock: GpuClock) -> FrameRecord:
    """The record with what the device said about the stages after decode, if it did."""
    if stamps is None:
        return record
    decode, *stages = record.stages
    timed = [
        StageRecord(
            stage.name, stage.start_ns, stage.cpu_ms, (end - start) / 1e6, clock.cpu_ns(start), stage.readback_bytes
        )
        for stage, start, end in zip(stages, stamps[:-1], stamps[1:], strict=True)
    ]
    return dataclasses.replace(record, stages=(decode, *timed))
