"""Temporary files and folders go in; those whose process was killed before it could clean up are removed.

A lock tells them apart: whoever works on one holds it, and the system lets go of it when that process ends.
Kept instead of filelock 4, because that leaves a file of its own beside each thing it locks, cannot lock a folder, and
takes 0.1 s to import. Its `lock_descriptor` is the same flock(2) on Unix; on Windows it would keep the writer itself
from the first byte of its file.
"""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.platform != "win32":
    import fcntl


@contextlib.contextmanager
def locked(path: str | os.PathLike[str], patient: bool = False) -> Iterator[bool]:
    """Holds the lock of a file or folder, which must be there; yields False where there are no locks.

    There are none on Windows: what a killed process left stays.
    Raises OSError: BlockingIOError if another process has it, but where `patient`, which waits.
    """
    if sys.platform == "win32":
        yield False
        return
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield _lock(handle, patient)
    finally:
        os.close(handle)


def remove_if_stale(path: Path) -> None:
    """Remove it, unless a process uses it or it belongs to another user."""
    with contextlib.suppress(OSError), locked(path) as is_locked:
        if is_locked and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif is_locked:
            path.unlink()


def _lock(handle: int, patient: bool) -> bool:
    try:
        if sys.platform != "win32":
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if patient else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except OSError:  # a file system without locks
        return False
    return True
