"""The cache of fetched inputs on disk, in a folder that all workers of a machine share.

What was used least lately is removed for new copies; what somebody uses stays.

A copy lies in a folder of its own. Who fetches it holds that folder's lock alone, who reads it together with others. A
process that ends lets go of all its locks.
"""

import contextlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ...stale_files import locked

if sys.platform != "win32":
    import fcntl

_DONE, _EXPECTED, _DATA = "sha256", "expected", "data"
_POLL_S = 0.2
_LOCK_PATIENCE_S = 30.0  # with others who remove copies: a slow disk may take some time for it
_LOCK_POLL_S = 0.05
_PATIENCE_S = 600.0  # until others have finished with what fills the folder


class NoRoomError(Exception):
    """What is used at the moment leaves no room, or there is not as much in all."""


class EndedError(Exception):
    """Somebody has asked for an end."""


@dataclass(frozen=True)
class CachedFile:
    """A copy, and the sha256 of its bytes; None while it has to be fetched: then `finish` is to follow."""

    path: Path
    sha256: str | None
    share: Callable[[], None] = lambda: None

    def finish(self, sha256: str) -> None:
        """All bytes of the copy are there, for others, too. Raises OSError."""
        aside, folder = self.path.with_name(f"{_DONE}.part"), self.path.parent
        aside.write_text(f"{sha256} {self.path.stat().st_size}\n")
        os.replace(aside, folder / _DONE)
        (folder / _EXPECTED).unlink(missing_ok=True)
        self.share()


class FetchCache:
    """Copies in a folder, of most_bytes in all; more only while a single one is larger than was known."""

    def __init__(self, folder: Path, most_bytes: int, ending: threading.Event) -> None:
        """The folder may not exist yet. Who waits gives up when `ending` is set."""
        self.folder, self._most_bytes, self._ending = folder, most_bytes, ending

    @contextlib.contextmanager
    def hold(self, key: str, suffix: str, size_bytes: int) -> Iterator[CachedFile]:
        """The copy of what has this key, fetched or still to be, for as long as the with-block lasts.

        Raises NoRoomError, EndedError, OSError.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        own = self.folder / key
        path = own / f"{_DATA}{suffix}"
        until = time.monotonic() + _PATIENCE_S
        while True:
            own.mkdir(exist_ok=True)
            with _locked_folder(own, shared=True) as handle:
                if handle and (found := _sha256_of(own, path)):
                    os.utime(own)
                    yield CachedFile(path, found)
                    return
            with _locked_folder(own, shared=False) as handle:
                if handle and not _sha256_of(own, path):
                    self.make_room(size_bytes, own, until)
                    try:
                        yield CachedFile(path, None, partial(self._share, handle))
                    finally:
                        if _sha256_of(own, path) is None:
                            _empty(own)
                    return
            self._wait(until)

    def make_room(self, size_bytes: int, own: Path, until: float | None = None) -> None:
        """For so many bytes in a folder of one's own. Raises NoRoomError, EndedError, OSError."""
        if size_bytes > self._most_bytes:
            raise NoRoomError(f"{size_bytes} bytes are more than the {self._most_bytes} that copies may have")
        until = until or time.monotonic() + _PATIENCE_S
        while True:
            with self._alone():
                if self._frees(size_bytes, own):
                    (own / _EXPECTED).write_text(str(size_bytes))
                    return
            self._wait(until)

    def empty(self) -> None:
        """Remove all that nobody uses, unless somebody else does for too long. Raises OSError."""
        with contextlib.suppress(NoRoomError, EndedError), self._alone():
            for entry in self._entries():
                _remove_unused(entry)

    def _share(self, handle: int) -> None:
        """Others may read what was fetched. Who removes copies holds the lock of all meanwhile."""
        with contextlib.suppress(NoRoomError, EndedError), self._alone():  # else they wait for our end
            _lock(handle, shared=True)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else removes copies. Raises NoRoomError if somebody does for too long, EndedError, OSError."""
        until = time.monotonic() + _LOCK_PATIENCE_S
        with contextlib.ExitStack() as held:
            while True:
                try:
                    held.enter_context(locked(self.folder))
                    break
                except BlockingIOError:
                    if self._ending.wait(_LOCK_POLL_S):
                        raise EndedError from None
                    if time.monotonic() > until:
                        raise NoRoomError(f"another process has locked it for {_LOCK_PATIENCE_S:.0f} s") from None
            yield

    def _frees(self, size_bytes: int, own: Path) -> bool:
        """Remove copies, the one first that was used least lately, until the others leave room; whether they do."""
        others = {entry: _bytes_in(entry) for entry in self._entries() if entry != own}
        total = sum(others.values())
        for entry in sorted(others, key=_used_ns):
            if total + size_bytes <= self._most_bytes:
                break
            if _remove_unused(entry):
                total -= others[entry]
        return total + size_bytes <= self._most_bytes

    def _entries(self) -> list[Path]:
        return [Path(entry.path) for entry in os.scandir(self.folder) if entry.is_dir(follow_symlinks=False)]

    def _wait(self, until: float) -> None:
        if self._ending.wait(_POLL_S):
            raise EndedError
        if time.monotonic() > until:
            raise NoRoomError("others have used what fills it for too long")


@contextlib.contextmanager
def _locked_folder(folder: Path, shared: bool) -> Iterator[int]:
    """What holds its lock; 0 if that could not be had at once, or the name is another folder's by now.

    Without locks everybody has them.
    """
    if sys.platform == "win32":
        yield 1
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        yield 0
        return
    try:
        yield handle if _lock(handle, shared) and _is_same(handle, folder) else 0
    finally:
        os.close(handle)


def _lock(handle: int, shared: bool) -> bool:
    if sys.platform != "win32":
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks
            return True
    return True


def _is_same(handle: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(folder))
    except OSError:
        return False


def _remove_unused(folder: Path) -> bool:
    """Remove it unless somebody uses it; whether it is gone."""
    with _locked_folder(folder, shared=False) as handle:
        if handle:
            shutil.rmtree(folder, ignore_errors=True)
        return handle != 0


def _empty(folder: Path) -> None:
    for entry in os.scandir(folder):
        with contextlib.suppress(OSError):
            os.unlink(entry.path)


def _sha256_of(folder: Path, path: Path) -> str | None:
    """Of a copy that is whole."""
    try:
        sha256, size = (folder / _DONE).read_text().split()
        return sha256 if path.stat().st_size == int(size) else None
    except (OSError, ValueError):
        return None


def _bytes_in(folder: Path) -> int:
    """That it has, or will have."""
    size = 0
    with contextlib.suppress(OSError):
        size = sum(entry.stat().st_size for entry in os.scandir(folder))
    with contextlib.suppress(OSError, ValueError):
        size = max(size, int((folder / _EXPECTED).read_text()))
    return size


def _used_ns(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0
