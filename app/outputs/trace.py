"""Writes a trace of frames and threads for Perfetto or chrome://tracing.

The format is Chrome's trace event format; the file is complete after each write. All times are on the clock of
perf_counter_ns.
"""

import json
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from ..frame.stages.frame_pipeline import DECODE, FrameRecord
from .append_safe_file import AppendSafeFile

GL_TRACK, GPU_TRACK = "OpenGL thread", "GPU"
TraceEvent = dict[str, Any]

_PROCESS = 1


class TraceWriter:
    """Writes events as they come, from any thread. A context manager; nothing is kept in RAM but names of tracks."""

    def __init__(self, path: Path) -> None:
        """The first event opens the file, so that the one that it replaces stays until then."""
        self._file = AppendSafeFile(path)
        self._tracks: dict[str, int] = {}
        self._lock = threading.Lock()
        self._dropped = self._repeated = 0

    def add(self, record: FrameRecord) -> None:
        """One more frame: its stages on CPU and GPU, and what is counted. Raises MediaError."""
        frame, last = {"frame": record.index}, record.stages[-1]
        end_ns = last.start_ns + _ns(last.cpu_ms)
        with self._lock:
            events = [self._span(GL_TRACK, "frame", record.start_ns, end_ns - record.start_ns, frame)]
            for stage in record.stages:
                if stage.start_ns:  # 0 if not measured
                    track = DECODE if stage.name == DECODE else GL_TRACK
                    args = {**frame, "readback_bytes": stage.readback_bytes} if stage.readback_bytes else frame
                    events.append(self._span(track, stage.name, stage.start_ns, _ns(stage.cpu_ms), args))
                if stage.gpu_ms is not None and stage.gpu_start_ns is not None:
                    events.append(self._span(GPU_TRACK, stage.name, stage.gpu_start_ns, _ns(stage.gpu_ms), frame))
            self._put([*events, *self._counters(record)])

    def span(self, track: str, name: str, start_ns: int, duration_ms: float, **args: Any) -> None:
        """Work of a thread, on a track of that name; ignored after close(). Raises MediaError."""
        with self._lock:
            self._put([self._span(track, name, start_ns, _ns(duration_ms), args)])

    def close(self) -> None:
        """Close the file; harmless when repeated."""
        with self._lock:
            self._file.close()

    def _counters(self, record: FrameRecord) -> list[TraceEvent]:
        """Frames lost so far, and the bytes that moved for this one."""
        self._dropped += record.dropped
        self._repeated += record.repeated
        counters = {
            "frames lost": {"dropped": self._dropped, "repeated": self._repeated},
            "bytes": {"uploaded": record.uploaded_bytes, "read back": record.readback_bytes},
        }
        start_us = record.start_ns / 1e3
        return [{"ph": "C", "pid": _PROCESS, "name": n, "ts": start_us, "args": a} for n, a in counters.items()]

    def _span(self, track: str, name: str, start_ns: int, duration_ns: int, args: TraceEvent) -> TraceEvent:
        times = {"ts": start_ns / 1e3, "dur": duration_ns / 1e3}
        return {"ph": "X", "pid": _PROCESS, "tid": track, "name": name, **times, "args": args}

    def _put(self, events: list[TraceEvent]) -> None:
        """Events whose `tid` is still the name of a track; tracks that are new get their names told first."""
        if self._file.closed:
            return
        named: list[TraceEvent] = []
        for event in events:
            track = event.get("tid")
            if track is not None:
                if track not in self._tracks:
                    self._tracks[track] = len(self._tracks) + 1
                    named += _naming(track, self._tracks[track])
                event["tid"] = self._tracks[track]
        text = ",\n".join(json.dumps(event) for event in (*named, *events))
        start = ",\n" if self._file.opened else '{"displayTimeUnit": "ms", "traceEvents": [\n'
        self._file.put(start + text, "\n]}\n")

    def __enter__(self) -> "TraceWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _naming(track: str, number: int) -> list[TraceEvent]:
    """What gives a track its name, and its place from top to bottom."""
    common = {"ph": "M", "pid": _PROCESS, "tid": number}
    named = {**common, "name": "thread_name", "args": {"name": track}}
    return [named, {**common, "name": "thread_sort_index", "args": {"sort_index": number}}]


def _ns(time_ms: float) -> int:
    return round(time_ms * 1e6)
