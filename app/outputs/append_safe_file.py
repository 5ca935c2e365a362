"""A text file that is complete after each piece written to it, even if the process is killed then.

A piece that does not fit on the disk is removed again.
"""

import contextlib
import io
from pathlib import Path

from texelflow.gpu_delegate.base.errors import MediaError


class AppendSafeFile:
    """A text file written piece by piece. The first piece opens it: what it replaces stays until then."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: io.FileIO | None = None
        self._place, self._end = 0, b""  # where the next piece goes, and what is there until then

    @property
    def opened(self) -> bool:
        """Whether there was a first piece."""
        return self._file is not None

    @property
    def closed(self) -> bool:
        """Whether it is closed: no piece may follow."""
        return self._file is not None and self._file.closed

    def put(self, text: str, end: str = "") -> None:
        """Write text and an end that the next text overwrites. Raises MediaError, with the file as it was before."""
        try:
            if self._file is None:
                self._file = self._path.open("wb", buffering=0)
            body, tail = text.encode(), end.encode()
            try:
                _write(self._file, self._place, body + tail)
            except OSError:
                self._take_back(self._file)
                raise
            self._place, self._end = self._place + len(body), tail
        except OSError as error:
            kept = "; what was written before is whole" if self._place else ""
            raise MediaError(
                f"'{self._path}' cannot be written: {error.strerror}{kept}; choose another place"
            ) from error

    def _take_back(self, file: io.FileIO) -> None:
        """Remove a piece that did not fit; if it was the first one, the file as well."""
        with contextlib.suppress(OSError):
            if self._place:
                _write(file, self._place, self._end)
                file.truncate()
            else:
                self._path.unlink()

    def close(self) -> None:
        """Close it; harmless when repeated."""
        if self._file:
            with contextlib.suppress(OSError):
                self._file.close()


def _write(file: io.FileIO, place: int, data: bytes) -> None:
    """All of it in as few writes as the system allows, mostly one."""
    file.seek(place)
    while data:
        data = data[file.write(data) or 0 :]
