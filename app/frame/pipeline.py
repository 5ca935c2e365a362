"""Frames in RAM go in, one after the other; each runs through an ordered list of stages, whose times come out.

What a stage is about (a network, a picture, a recording) is not known here: a window, an overlay or a camera is a stage
more or another source. Times are wall clock. Software OpenGL does its work while it is asked to, but for drawing, so
there the device is waited for after each stage and the times are what the work took; on hardware nothing is waited for
but the frame before the last, and the times are what handing over the work took.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from app.media.sources import VideoFrame
from gpu_delegate import opengl
from gpu_delegate.context import Context
from gpu_delegate.errors import DeviceError

_WAIT_NS = 100_000_000
_MOST_WAITS = 100  # 10 s: a device that takes longer for one frame has hung


@dataclass(frozen=True)
class Stage:
    """One step of the way of a frame."""

    name: str
    run: Callable[[VideoFrame], None]


@dataclass(frozen=True)
class FrameRecord:
    """What one frame cost; bytes are those that moved while it was on its way."""

    index: int
    pts: int
    time_ms: float
    stage_ms: tuple[float, ...]
    stage_readback_bytes: tuple[int, ...]
    uploaded_bytes: int

    @property
    def readback_bytes(self) -> int:
        """Of all stages together."""
        return sum(self.stage_readback_bytes)


class Pipeline:
    """The stages in their order. Belongs to the thread of the context, if there is one."""

    def __init__(
        self, stages: Sequence[Stage], context: Context | None = None, uploaded: Callable[[], int] = lambda: 0
    ) -> None:
        """`uploaded` tells the bytes uploaded so far. Without a context no stage may use OpenGL."""
        self.stages = tuple(stages)
        self._context = context
        self._uploaded = uploaded
        self._software = context is not None and context.is_software
        self._fence: Any = None

    @property
    def names(self) -> tuple[str, ...]:
        """Of the stages, in their order."""
        return tuple(stage.name for stage in self.stages)

    def submit(self, frame: VideoFrame) -> FrameRecord:
        """Run one frame through all stages. At most the frame before is still being worked on when it begins."""
        uploaded = self._uploaded()
        times_ms, read_back = [], []
        for stage in self.stages:
            before, start = self.readback_bytes, perf_counter()
            stage.run(frame)
            if self._software and self._context:
                self._context.gl.glFinish()
            times_ms.append((perf_counter() - start) * 1e3)
            read_back.append(self.readback_bytes - before)
        self._limit_frames_in_flight()
        return FrameRecord(
            frame.index, frame.pts, frame.time_ms, tuple(times_ms), tuple(read_back), self._uploaded() - uploaded
        )

    @property
    def readback_bytes(self) -> int:
        """What came back from the device since its context was opened, counted at OpenGL's entry points."""
        return self._context.readback.bytes if self._context else 0

    def _limit_frames_in_flight(self) -> None:
        """Wait for the frame before this one: without that, a fast source would queue frames without end."""
        if self._context is None or self._software:
            return
        gl, before = self._context.gl, self._fence
        self._fence = gl.glFenceSync(opengl.SYNC_GPU_COMMANDS_COMPLETE, 0)
        if before is not None:
            states = (gl.glClientWaitSync(before, opengl.SYNC_FLUSH_COMMANDS_BIT, _WAIT_NS) for _ in range(_MOST_WAITS))
            done = any(state in (opengl.ALREADY_SIGNALED, opengl.CONDITION_SATISFIED) for state in states)
            gl.glDeleteSync(before)
            if not done:
                raise DeviceError(f"{self._context.renderer} did not finish a frame in 10 s; try a smaller size")
