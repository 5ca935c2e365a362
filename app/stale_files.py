"""Removes temporary files and folders of processes that were killed before they could clean up.

A lock tells which are still in use: the process that works on one holds it, and the system releases it when that
process ends. Kept instead of filelock 4, because that leaves a file of its own beside each thing it locks, cannot lock
a folder, and takes 0.1 s to import. Its `lock_descriptor` is the same flock(2) on Unix; on Windows it would keep the
writer itself from the first byte of its file.
"""

import contextlib
import errno
import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

LOCK_PATIENCE_S = 5.0  # with another process, in all
_LOOK_S = 0.05
_ASIDE = re.compile(r"\.texelflow-[0-9a-f]{16}\.part")  # nobody else calls files so
_MOST_TRIES = 3


@contextlib.contextmanager
def locked(path: str | os.PathLike[str], patience_s: float = 0.0) -> Iterator[bool]:
    """Holds the lock of a file or folder, which must be there; yields False where there are no locks.

    There are none on Windows: what a killed process left stays.
    Raises OSError: BlockingIOError if another process has it, and keeps it for as long as `patience_s`.
    """
    if sys.platform == "win32":
        yield False
        return
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield _lock(handle, patience_s)
    finally:
        os.close(handle)


@contextlib.contextmanager
def written_aside(folder: str) -> Iterator[BinaryIO]:
    """A new file in a folder, locked, also when it is closed; remove_stale_asides takes its `name` for ours.

    It is removed at the end, unless it has another name by then. Raises OSError.
    """
    for _ in range(_MOST_TRIES):
        name = os.path.join(folder, f".texelflow-{secrets.token_hex(8)}.part")
        with contextlib.ExitStack() as held:
            file = held.enter_context(open(name, "xb"))  # follows no link
            held.callback(_remove_quietly, name)
            try:
                held.enter_context(locked(name))
            except (BlockingIOError, FileNotFoundError):
                continue  # another process has locked it first, to remove it
            if os.path.lexists(name):
                yield file
                return
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)


def remove_stale_asides(folder: Path) -> None:
    """Remove files that `written_aside` made for a process that was killed, and nothing else. Never raises."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if _ASIDE.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                remove_if_stale(Path(entry.path))


def remove_if_stale(path: Path) -> None:
    """Remove it, unless a process uses it or it belongs to another user. The name has to be one that is ours alone."""
    with contextlib.suppress(OSError), locked(path) as is_locked:
        if is_locked and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif is_locked:
            path.unlink()


def _remove_quietly(name: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name)


if sys.platform == "win32":

    def _lock(handle: int, patience_s: float) -> bool:
        return False

else:

    def _lock(handle: int, patience_s: float) -> bool:
        until = time.monotonic() + patience_s
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise
            except OSError:  # a file system without locks
                return False
            time.sleep(_LOOK_S)
