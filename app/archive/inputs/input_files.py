"""Opens an input as a file of this machine, with the sha256 of its bytes, and checks that it has not changed since.

Files are hashed on a thread of their own while they are rendered; what is fetched is hashed meanwhile.
"""

import contextlib
import errno
import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from texelflow.gpu_delegate.base.errors import MediaError

from ...console import one_line
from ...threads import ThreadCall
from ..jobs.failures import InputError, MachineError
from ..jobs.jobs import ArchiveInput

_CHUNK_BYTES = 1 << 20
_OF_MOUNTS = {  # what is told of a file system that is elsewhere, and out of reach
    getattr(errno, name)
    for name in ("EIO", "ESTALE", "ENOTCONN", "EHOSTDOWN", "EHOSTUNREACH", "ETIMEDOUT")
    if hasattr(errno, name)
}


class HeldInput:
    """An input that is open. Close it: the copy of what was fetched may be removed from then on."""

    def __init__(self, source: ArchiveInput, path: Path, sha256: str | None = None) -> None:
        """`sha256` is known of what was fetched. Raises MediaError for what is no file that can be read.

        MachineError for a folder that is not seen from here.
        """
        self.source, self.path, self._known = source, path, sha256
        self._is_copy = sha256 is not None
        self._ended = threading.Event()
        _check_seen(source, path)
        self._stat = _look(path)
        self._hashing: ThreadCall[str] | None = None

    @property
    def size_bytes(self) -> int:
        """Of the file, when it was opened."""
        return self._stat[0]

    @property
    def told(self) -> tuple[str, ...]:
        """Lines on it for what tags its results, as replay has them for a file."""
        size, time = self._stat
        if self._is_copy:
            return f"input={self.source.address}", f"sha256={self._known}"
        return f"input={os.path.abspath(self.path)}", f"{size} bytes of {time}"

    def begin(self) -> None:
        """Hash it meanwhile."""
        if self._known is None and self._hashing is None:
            self._hashing = ThreadCall(self._hashed)

    def hashed(self, wait_s: float) -> bool:
        """Hash it meanwhile, and wait so long at most: whether that has ended."""
        self.begin()
        if self._hashing:
            self._hashing.wait(wait_s)
        return self._hashing is None or self._hashing.ended

    def sha256(self) -> str:
        """Of all bytes. Raises InputError where they were changed meanwhile, MediaError."""
        if self._known is None:
            self.begin()
            assert self._hashing
            self._known = self._hashing.answer()
        self.check()
        return self._known

    def check(self) -> None:
        """Raise InputError if it is not the file any more that was opened."""
        if _look(self.path) != self._stat:
            raise InputError(f"'{self.source.address}' was changed while it was read")

    def expect(self, sha256: str, wholly: bool) -> None:
        """Raise InputError if it is not the file that an earlier job has read.

        Its bytes are compared if `wholly`, or where its size or time is another than that of the list of inputs.
        """
        listed = self.source.size_bytes, self.source.modified_ns
        if (wholly or listed != self._stat or self._is_copy) and self.sha256() != sha256:
            raise InputError(f"'{self.source.address}' was changed after it had been read the first time")

    def close(self) -> None:
        """Stop hashing."""
        self._ended.set()
        if self._hashing:
            with contextlib.suppress(MediaError):
                self._hashing.answer()

    def _hashed(self) -> str:
        digest = hashlib.sha256()
        try:
            with self.path.open("rb") as file:
                while not self._ended.is_set() and (chunk := file.read(_CHUNK_BYTES)):
                    digest.update(chunk)
        except OSError as error:
            raise MediaError(f"'{self.source.address}' cannot be read: {error.strerror}") from None
        return digest.hexdigest()


@contextlib.contextmanager
def held_file(source: ArchiveInput, path: Path, sha256: str | None = None) -> Iterator[HeldInput]:
    """A file of this machine, or a copy of it whose sha256 is known. Raises MediaError."""
    held = HeldInput(source, path, sha256)
    try:
        yield held
    finally:
        held.close()


def _check_seen(source: ArchiveInput, path: Path) -> None:
    """Raise MachineError where what was listed lies in a folder that this machine does not have, or does not reach."""
    try:
        os.stat(path)
    except (OSError, ValueError) as error:
        number = getattr(error, "errno", None)
        if number in _OF_MOUNTS or (source.size_bytes is not None and not _exists(path.parent)):
            raise MachineError(f"does not see '{path.parent}': all nodes have to share the inputs") from None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _look(path: Path) -> tuple[int, int]:
    """Size and time. Raises MediaError."""
    try:
        found = os.stat(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no file has such a name"
        raise MediaError(f"cannot open '{one_line(str(path))}': {why}") from None
    return found.st_size, found.st_mtime_ns
