"""A folder goes in; a new folder in it comes out to work in, which is gone afterwards, or at least before the next one.

A process that is killed cannot clean up. So each work folder is locked for as long as its process lives, and those
without a lock were left behind: whoever makes the next one removes them.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # no such locks here: what a killed process left stays
    fcntl = None  # type: ignore[assignment]

_PREFIX = ".fetch-"


@contextlib.contextmanager
def workplace(parent: Path) -> Iterator[Path]:
    """A new folder in `parent`, which is made if need be. Raises OSError."""
    parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        with _locked(parent, patient=True):  # else a folder could be taken for left behind before it is locked
            for old in parent.glob(f"{_PREFIX}*"):
                _remove_if_left(old)
            work = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
            stack.enter_context(_locked(work))
            stack.callback(shutil.rmtree, work, ignore_errors=True)
        yield work


def _remove_if_left(work: Path) -> None:
    """Unless its process still lives, or it is somebody else's, or no folder at all."""
    with contextlib.suppress(OSError), _locked(work) as is_locked:
        if is_locked:
            shutil.rmtree(work, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path, patient: bool = False) -> Iterator[bool]:
    """Whether it could be locked, until the end. Raises OSError if another process has it, but where `patient`."""
    if fcntl is None:
        yield False
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield _lock(handle, patient)
    finally:
        os.close(handle)


def _lock(handle: int, patient: bool) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if patient else fcntl.LOCK_NB))
    except BlockingIOError:
        raise
    except OSError:  # a file system without locks
        return False
    return True
