"""Records of frames go in, one by one; what they came to comes out, and a log and a trace if they were asked for."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from types import TracebackType
from typing import Any

from ..frame.pipeline import FrameRecord, Pipeline
from ..frame.stats import StageTimes
from ..verbs.frame_log import FrameLog
from ..verbs.trace import TraceWriter
from .replay_options import ReplayOptions
from .replay_outputs import Outputs


class Records:
    """Takes the record of each frame, from the first one to close(). Leaving its with-block closes the files."""

    def __init__(
        self,
        options: ReplayOptions,
        stages: Sequence[str],
        dispatches: int,
        outputs: Outputs,
        shown: Callable[[FrameRecord], None] | None = None,
    ) -> None:
        """`stages` are those of the pipeline, decode first; `shown` gets each record, too.

        No file is opened before there is a record.
        """
        self._outputs, self._shown = outputs, shown
        self.frames = self.dropped = self.repeated = self.uploaded_bytes = 0
        self.readback_bytes = dict.fromkeys(stages, 0)
        self.times = StageTimes(stages)
        self._stack = contextlib.ExitStack()
        self._log = self._stack.enter_context(FrameLog(options.log, stages, dispatches)) if options.log else None
        self._trace = self._stack.enter_context(TraceWriter(options.trace)) if options.trace else None
        if outputs.pictures and self._trace:
            span = self._trace.span
            outputs.pictures.observe = lambda start_ns, took_ms: span("encode", "write", start_ns, took_ms)
        self._start = perf_counter()
        self.seconds = 0.0

    def take(self, record: FrameRecord) -> None:
        """One more frame. Raises MediaError."""
        self.frames += 1
        self.dropped += record.dropped
        self.repeated += record.repeated
        self.uploaded_bytes += record.uploaded_bytes
        self.times.add(record)
        for stage in record.stages:
            self.readback_bytes[stage.name] += stage.readback_bytes
        if self._log:
            self._log.add(record)
        if self._trace:
            self._trace.add(record)
        self.seconds = perf_counter() - self._start
        if self._shown:
            self._shown(record)

    def finish(self, pipeline: Pipeline, complete: bool) -> None:
        """Write what is under way, and take what is left. `complete`: a video's sound goes on to its end.

        Raises MediaError.
        """
        for output in self._outputs.all:
            before = pipeline.readback_bytes
            output.finish()
            self.readback_bytes[output.stage.name] += pipeline.readback_bytes - before
        if self._outputs.recorder:
            self._outputs.recorder.close(complete)
        for record in pipeline.drain():
            self.take(record)

    def close(self, summary: Mapping[str, Any]) -> None:
        """No more frames will come; the log gets the summary. Raises MediaError."""
        if self._log:
            self._log.close(summary)
        if self._trace:
            self._trace.close()

    def __enter__(self) -> "Records":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
