"""Writes a JSON or CSV log with a row for each frame; the file is complete after each row."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import perf_counter_ns, process_time_ns
from types import TracebackType
from typing import Any

from ..frame.stages.frame_pipeline import DECODE, FrameRecord
from ..models.decoders.found import FOUND, Finding
from .append_safe_file import AppendSafeFile

_JSON_START = '{"frames": [\n'
_FOUND = (*(f"found_{kind}" for kind in FOUND), "best_score")
_COUNTS = ("dropped", "repeated", "uploaded_bytes", "readback_bytes", "dispatches", "process_cpu_percent")


class FrameLog:
    """One row per frame: index, pts, time_ms, milliseconds by stage on CPU and GPU, frames lost, bytes, CPU load.

    Of networks that find things, also how many there were of each kind, and the best score. Cells are empty (null)
    where something is not known, as GPU times without a timer. All clocks are monotonic.
    """

    def __init__(self, path: Path, stages: Sequence[str], dispatches: int, finds: bool = False) -> None:
        """`stages` begin with decode; `finds`: there is a network that finds things. The first row opens the file; the
        one that it replaces stays until then.
        """
        self._file = AppendSafeFile(path)
        self._stages, self._dispatches, self._finds = tuple(stages), dispatches, finds
        self._json = path.suffix.lower() == ".json"
        on_cpu = (f"{name}_ms" for name in stages)
        on_gpu = (f"{name}_gpu_ms" for name in stages if name != DECODE)
        self._names = ("index", "pts", "time_ms", "interval_ms", *on_cpu, *on_gpu, *_COUNTS, *(_FOUND if finds else ()))
        self._start_ns: int | None = None
        self._load = _Load()
        self._rows = 0

    def add(self, record: FrameRecord) -> None:
        """One more row. Raises MediaError."""
        cells = self._cells(record)
        if self._json:
            row = json.dumps(dict(zip(self._names, cells, strict=True)))
            self._file.put((",\n" if self._rows else _JSON_START) + row, "\n]}\n")
        else:
            self._file.put(("" if self._rows else _csv_line(self._names)) + _csv_line(cells))
        self._rows += 1

    def _cells(self, record: FrameRecord) -> tuple[float | None, ...]:
        """In the order of the columns."""
        before, self._start_ns = self._start_ns, record.start_ns
        interval_ms = None if before is None else (record.start_ns - before) / 1e6
        of_stage = {stage.name: (stage.cpu_ms, stage.gpu_ms) for stage in record.stages}  # another model has others
        all_ms = [of_stage.get(name, (None, None)) for name in self._stages]
        on_cpu = [cpu_ms for cpu_ms, _ in all_ms]
        on_gpu = [gpu_ms for name, (_, gpu_ms) in zip(self._stages, all_ms, strict=True) if name != DECODE]
        times = [None if time is None else round(time, 4) for time in (interval_ms, *on_cpu, *on_gpu)]
        counts = (record.dropped, record.repeated, record.uploaded_bytes, record.readback_bytes, self._dispatches)
        found = _counted(record.findings) if self._finds else ()
        return (record.index, record.pts, round(record.time_ms, 3), *times, *counts, self._load.percent(), *found)

    def close(self, summary: Mapping[str, Any] | None = None) -> None:
        """Close the file; JSON gets the summary, too. Raises MediaError."""
        if summary is not None and not self._file.closed:
            if self._json:
                start = "" if self._rows else _JSON_START
                self._file.put(f'{start}\n],\n"summary": {json.dumps(summary)}', "}\n")
            elif not self._rows:
                self._file.put(_csv_line(self._names))
        self._file.close()

    def __enter__(self) -> "FrameLog":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _counted(findings: Sequence[Finding]) -> tuple[float | None, ...]:
    """How many there are of each kind, and the best score."""
    best = max((finding.score for finding in findings), default=None)
    counts = (sum(finding.kind == kind for finding in findings) for kind in FOUND)
    return (*counts, None if best is None else round(best, 4))


class _Load:
    """How busy this process keeps the CPU between two questions."""

    def __init__(self) -> None:
        self._wall_ns, self._cpu_ns = perf_counter_ns(), process_time_ns()

    def percent(self) -> float | None:
        """100 is one core; None if no time has passed."""
        wall_ns, cpu_ns = self._wall_ns, self._cpu_ns
        self._wall_ns, self._cpu_ns = perf_counter_ns(), process_time_ns()
        passed_ns = self._wall_ns - wall_ns
        return round(100 * (self._cpu_ns - cpu_ns) / passed_ns, 1) if passed_ns > 0 else None


def _csv_line(cells: Sequence[object]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()
