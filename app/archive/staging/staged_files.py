"""Checks that all in the staging folder was made by this program, and clears it of just that.

Nothing else in it is ever touched, and no link is followed: the folder may be the user's, or anybody's.
"""

import contextlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from .work_folder import PIECES, WORK

LOCK_NAME = "driver.lock"
SEEN = "seen-"  # with which a file's name begins by which workers know the folder
_COPIES = re.compile(r"[0-9a-f]{64}|tmp[a-z0-9_]{8}")  # by sha256, and what tempfile calls one under way
_FOLDERS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "models": _COPIES,
        "backgrounds": _COPIES,
        WORK: re.compile(r"(whole|piece|join)-[0-9a-f]{24}(-[0-9]+)?"),
        PIECES: re.compile(r"([0-9a-f]{24}-){3}([0-9]+-){3}.+"),
    }
)
_SEEN_FILE = re.compile(rf"{SEEN}[0-9a-f]{{16}}")


def link_among(staging: Path) -> Path | None:
    """The folder, or what is made in it by a name of its own, where a link is in its place. Raises OSError."""
    made = (staging, *(staging / name for name in (*_FOLDERS, LOCK_NAME)))
    return next((path for path in made if path.is_symlink()), None)


def foreign_in(staging: Path) -> Path | None:
    """Something visible in it that this program does not make. Raises OSError."""
    if not os.path.isdir(staging):
        return None
    found = (path for path, is_ours in _looked_at(staging) if not is_ours and not path.name.startswith("."))
    return min(found, default=None)


def clear_staging(staging: Path, keeps_pieces: bool) -> None:
    """Remove what only a run that goes on would need, but for the lock, which is held. Raises OSError.

    `keeps_pieces`: of inputs that failed, for --retry-failed.
    """
    if link_among(staging) is not None:
        return
    for path, is_ours in list(_looked_at(staging)):
        if not is_ours or path.name == LOCK_NAME or (keeps_pieces and path.parent.name == PIECES):
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                path.unlink()
    for name in _FOLDERS:
        with contextlib.suppress(OSError):  # it has some
            (staging / name).rmdir()


def _looked_at(staging: Path) -> Iterator[tuple[Path, bool]]:
    """All files in the folder, and what is in its own folders; whether each is ours, by its name."""
    with os.scandir(staging) as entries:
        for entry in entries:
            own = _FOLDERS.get(entry.name)
            if own is None or not entry.is_dir(follow_symlinks=False):
                is_ours = entry.name == LOCK_NAME or _SEEN_FILE.fullmatch(entry.name) is not None
                yield Path(entry.path), is_ours and entry.is_file(follow_symlinks=False)
                continue
            with contextlib.suppress(FileNotFoundError), os.scandir(entry.path) as inner:
                for each in inner:
                    yield Path(each.path), own.fullmatch(each.name) is not None and not each.is_symlink()
