"""A file to append to, in which all bytes are at once, with room reserved for those that end it.

What write(2) has taken outlives the process, however that is killed, so nothing here waits for the disk itself: only
the machine's own end, as a power cut, may cost what the system had not yet written.
"""

import contextlib
import ctypes
import errno
import io
import os
import sys
from collections.abc import Callable

if sys.platform != "win32":
    import resource

DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_AHEAD_BYTES = 1 << 20  # reserved at once, so that few frames ask
_KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE: room beyond the end of the file, which stays where it is

_Reserve = Callable[[int, int, int], int]  # file, offset and length in bytes: an error number, or 0


class GrowingFile:
    """A file that only grows, until it is closed. Where the system cannot reserve, only writing finds a disk full."""

    def __init__(self, path: str) -> None:
        """Replaces a file of that name. Raises OSError."""
        self._file = io.FileIO(path, "w")
        self._reserve = _reserving()
        self._reserved_bytes = 0
        self.size_bytes = self.largest_bytes = 0  # of the file; of what was appended at once

    def append(self, data: bytes) -> None:
        """Add all of `data`, or nothing. Raises OSError."""
        try:
            self._write(self.size_bytes, data)
        except OSError:
            with contextlib.suppress(OSError):
                self._file.truncate(self.size_bytes)
            raise
        self.size_bytes += len(data)
        self.largest_bytes = max(self.largest_bytes, len(data))

    def have_room(self, more_bytes: int) -> None:
        """Reserve so many bytes beyond the end of the file, and more if there are more. Raises OSError."""
        end = self.size_bytes + more_bytes
        if end <= self._reserved_bytes:
            return
        most = _most_bytes()
        if end > most:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        for wanted in (min(end + _AHEAD_BYTES, most), end):
            error = self._reserve(self._file.fileno(), self._reserved_bytes, wanted - self._reserved_bytes)
            if error not in DISK_FULL_ERRORS:
                self._reserved_bytes = sys.maxsize if error else wanted
                return
        raise OSError(error, os.strerror(error))

    def overwrite(self, offset: int, data: bytes) -> None:
        """Replace some bytes that were appended. Raises OSError."""
        self._write(offset, data)

    def close(self) -> None:
        """Give back what was reserved. Harmless when repeated. Raises OSError."""
        if self._file.closed:
            return
        with self._file:
            self._file.truncate(self.size_bytes)

    def _write(self, offset: int, data: bytes) -> None:
        self._file.seek(offset)
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]


def _reserving() -> _Reserve:
    """Linux's fallocate; elsewhere what says that it is not supported."""
    if sys.platform != "linux":
        return lambda *_: errno.EOPNOTSUPP
    library = ctypes.CDLL(None, use_errno=True)
    fallocate = getattr(library, "fallocate64", None) or library.fallocate
    fallocate.argtypes = ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64

    def reserve(file: int, offset: int, length: int) -> int:
        while fallocate(file, _KEEP_SIZE, offset, length):
            if (error := ctypes.get_errno()) != errno.EINTR:
                return error
        return 0

    return reserve


def _most_bytes() -> int:
    """How large the process may make a file."""
    if sys.platform != "win32" and (limit := resource.getrlimit(resource.RLIMIT_FSIZE)[0]) != resource.RLIM_INFINITY:
        return limit
    return sys.maxsize
