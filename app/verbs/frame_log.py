"""Records of frames go in, one by one; a JSON or CSV file comes out that is whole after each of them."""

import contextlib
import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from app.frame.pipeline import FrameRecord
from app.media.recorder import check_writable
from gpu_delegate.errors import MediaError, UsageError

_FORMATS = (".json", ".csv")


def check_log(path: Path) -> None:
    """Raise UsageError if the name says no format, MediaError if the file cannot be written. Touches nothing."""
    if path.suffix.lower() not in _FORMATS:
        raise UsageError(f"--log {path}: its name must end in .json or .csv")
    check_writable(str(path))


class FrameLog:
    """One row per frame: index, pts, time_ms, milliseconds by stage, bytes up and back, dispatches."""

    def __init__(self, path: Path, stages: Sequence[str], dispatches: int) -> None:
        """The first row opens the file, so that the one that it replaces stays until then."""
        self._path = path
        self._dispatches = dispatches
        self._json = path.suffix.lower() == ".json"
        self._stages = tuple(f"{name}_ms" for name in stages)
        self._rows = 0
        self._file: io.TextIOWrapper | None = None

    def _open(self) -> io.TextIOWrapper:
        try:
            self._file = file = self._path.open("w", encoding="utf-8", newline="")
        except OSError as error:
            raise self._failure(error) from error
        if self._json:
            self._put('{"frames": [', "]}\n")
        else:
            counts = ("uploaded_bytes", "readback_bytes", "dispatches")
            self._put(_csv_line(("index", "pts", "time_ms", *self._stages, *counts)))
        return file

    def add(self, record: FrameRecord, decode_ms: float) -> None:
        """One more row. Raises MediaError."""
        times = [round(time, 3) for time in (decode_ms, *record.stage_ms)]
        counts = (record.uploaded_bytes, record.readback_bytes, self._dispatches)
        cells = (record.index, record.pts, round(record.time_ms, 3), *times, *counts)
        if self._json:
            names = ("index", "pts", "time_ms", *self._stages, "uploaded_bytes", "readback_bytes", "dispatches")
            row = json.dumps(dict(zip(names, cells, strict=True)))
            self._put(("," if self._rows else "") + "\n" + row, "\n]}\n")
        else:
            self._put(_csv_line(cells))
        self._rows += 1

    def close(self, summary: Mapping[str, Any] | None = None) -> None:
        """Close the file; JSON gets the summary, too. Raises MediaError."""
        if self._json and summary is not None and not (self._file and self._file.closed):
            self._put(f'\n],\n"summary": {json.dumps(summary)}', "}\n")
        if self._file:
            with contextlib.suppress(OSError):
                self._file.close()

    def _put(self, text: str, end: str = "") -> None:
        """Write text and an end that the next text overwrites, so that the file is whole in between."""
        file = self._file or self._open()
        try:
            file.write(text)
            place = file.tell() if end else 0
            file.write(end)
            file.flush()
            if end:
                file.seek(place)
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> MediaError:
        return MediaError(f"'{self._path}' cannot be written: {error.strerror}; choose another place")

    def __enter__(self) -> "FrameLog":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _csv_line(cells: Sequence[object]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()
