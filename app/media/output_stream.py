"""Writes to a stream that cannot seek, such as a pipe; append returns when all bytes are taken."""

import sys
from typing import BinaryIO

from texelflow.gpu_delegate.base.errors import UsageError

from ..streams import named_failures


class OutputStream:
    """A file of a muxer that only grows, and in which nothing that was written changes any more."""

    def __init__(self, stream: BinaryIO) -> None:
        """The stream stays open at the end: it is the caller's."""
        self._stream = stream
        self.size_bytes = self.largest_bytes = 0

    def append(self, data: bytes) -> None:
        """Add all of `data`. Raises BrokenPipeError if the reader has left, OutputError for other failures."""
        rest = memoryview(data)
        with named_failures():
            while rest:
                rest = rest[self._stream.write(rest) or 0 :]
            self._stream.flush()
        self.size_bytes += len(data)
        self.largest_bytes = max(self.largest_bytes, len(data))

    def have_room(self, more_bytes: int) -> None:
        """Nobody knows before."""

    def close(self) -> None:
        """Nothing is under way."""


def standard_output() -> OutputStream:
    """What `-` means as an output. Raises UsageError where a person would see the bytes, or nobody."""
    if sys.stdout is None or not hasattr(sys.stdout, "buffer"):
        raise UsageError("--out -: standard output is closed; lead it into a program or a file")
    if sys.stdout.isatty():
        raise UsageError("--out -: standard output is a terminal; lead it into a program or a file")
    sys.stdout.flush()
    return OutputStream(sys.stdout.buffer)
