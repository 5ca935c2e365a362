"""Temporary files and folders go in; those whose process was killed before it could clean up are removed.

A lock tells them apart: the process that uses one holds it, and the system releases it when that process ends.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # no such locks here: stale files stay
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def locked(path: str | os.PathLike[str], patient: bool = False) -> Iterator[bool]:
    """Holds the lock of a file or folder, which must be there; yields False where there are no locks.

    Raises OSError: BlockingIOError if another process has it, unless `patient`, which waits.
    """
    if fcntl is None:
        yield False
        return
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        yield _lock(handle, patient)
    finally:
        os.close(handle)


def remove_if_left(path: Path) -> None:
    """Remove it, unless a process uses it or it belongs to another user."""
    with contextlib.suppress(OSError), locked(path) as is_locked:
        if is_locked and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif is_locked:
            path.unlink()


def _lock(handle: int, patient: bool) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if patient else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except OSError:  # a file system without locks
        return False
    return True
