"""Makes temporary folders in a folder; each is removed at the end, or else before the next one is made."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..stale_files import LOCK_PATIENCE_S, locked, remove_if_stale

_PREFIX = ".fetch-"


@contextlib.contextmanager
def temp_folder(parent: Path) -> Iterator[Path]:
    """A new folder in `parent`, which is made if need be. Raises OSError.

    Where another process keeps the lock of `parent` for five seconds, what others have left stays.
    """
    parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        with contextlib.ExitStack() as held:
            with contextlib.suppress(BlockingIOError):  # nobody who cleans needs so long
                held.enter_context(locked(parent, LOCK_PATIENCE_S))  # else a new folder could go before it is locked
                _remove_all_left(parent)
            work = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
            stack.callback(shutil.rmtree, work, ignore_errors=True)
            stack.enter_context(locked(work))
        yield work


def store_whole(place: Path, content: bytes, work: Path) -> None:
    """Write a file by way of the temporary folder: its name never refers to a part of it, even after a crash."""
    whole = work / place.name
    with whole.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(whole, place)


def clean(parent: Path) -> None:
    """Remove stale folders, unless another process is doing so; harmless if the folder does not exist."""
    with contextlib.suppress(OSError), locked(parent):
        _remove_all_left(parent)


def _remove_all_left(parent: Path) -> None:
    for old in parent.glob(f"{_PREFIX}*"):
        remove_if_stale(old)
