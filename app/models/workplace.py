"""A folder goes in; a new folder in it comes out to work in, which goes at the end, or at least before the next one."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..leftovers import locked, remove_if_left

_PREFIX = ".fetch-"


@contextlib.contextmanager
def workplace(parent: Path) -> Iterator[Path]:
    """A new folder in `parent`, which is made if need be. Raises OSError."""
    parent.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        with locked(parent, patient=True):  # else a new folder could be removed before it is locked
            _remove_all_left(parent)
            work = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
            stack.callback(shutil.rmtree, work, ignore_errors=True)
            stack.enter_context(locked(work))
        yield work


def clean(parent: Path) -> None:
    """Remove what was left behind in a folder, unless somebody else is at it; harmless where there is no folder."""
    with contextlib.suppress(OSError), locked(parent):
        _remove_all_left(parent)


def _remove_all_left(parent: Path) -> None:
    for old in parent.glob(f"{_PREFIX}*"):
        remove_if_left(old)
