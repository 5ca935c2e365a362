"""The size, the time and the digest of a result on disk. Links are not followed, devices not opened.

A result is a regular file, or a folder of numbered PNG files. The digest of such a folder is that of a list of its
files in the order of their names, as `sha256sum *.png | sha256sum` in it makes it.
"""

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ...media.finished import is_numbered
from ..jobs.jobs import InputDone
from .result_names import folders_of

_CHUNK_BYTES = 1 << 20
_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@dataclass(frozen=True)
class ResultStamp:
    """What can be seen of a result without reading it: of a folder the sum, and the latest time."""

    size_bytes: int
    modified_ns: int


def link_above(out: Path, file: str) -> Path | None:
    """The first folder between the output folder and a file in it that is a link: results leave it there.

    Raises OSError; nothing where there is no such folder.
    """
    for folder in folders_of(file):
        with suppress(FileNotFoundError):
            if stat.S_ISLNK(os.lstat(out / folder).st_mode):
                return out / folder
    return None


def look_at_result(path: Path) -> ResultStamp | None:
    """None where there is none: nothing, a link, a device, a folder with anything but numbered pictures."""
    with suppress(OSError, ValueError):
        found = path.lstat()
        if stat.S_ISREG(found.st_mode):
            return ResultStamp(found.st_size, found.st_mtime_ns)
        if stat.S_ISDIR(found.st_mode) and (pictures := _pictures_in(path)):
            seen = pictures.values()
            return ResultStamp(sum(each.st_size for each in seen), max(each.st_mtime_ns for each in seen))
    return None


def result_digest(path: Path) -> str | None:
    """The sha256, in hexadecimal digits; None where there is no result, or it cannot be read."""
    with suppress(OSError, ValueError):
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode):
            return _file_digest(path)
        pictures = _pictures_in(path) if stat.S_ISDIR(mode) else {}
        listed = hashlib.sha256()
        for name in sorted(pictures):
            listed.update(f"{_file_digest(path / name)}  {name}\n".encode("ascii"))
        return listed.hexdigest() if pictures else None
    return None


def holds_what_was_made(out: Path, done: InputDone) -> bool:
    """Whether all results of an input are in the output folder as they were made.

    By size and time; where the time is another one, as after copying, by digests. Lines of earlier versions have none.
    """
    for kind, file in done.files.items():
        found = _look_inside(out, file)
        if found is None or found.size_bytes != done.file_bytes.get(kind):
            return False
        digest, modified_ns = done.file_sha256.get(kind), done.file_modified_ns.get(kind)
        if digest and modified_ns != found.modified_ns and result_digest(out / file) != digest:
            return False
    return True


def _look_inside(out: Path, file: str) -> ResultStamp | None:
    with suppress(OSError, ValueError):
        return look_at_result(out / file) if link_above(out, file) is None else None
    return None


def _pictures_in(folder: Path) -> Mapping[str, os.stat_result]:
    """Nothing where there is anything else. Raises OSError."""
    with os.scandir(folder) as entries:
        found = {entry.name: entry.stat(follow_symlinks=False) for entry in entries}
    mine = all(is_numbered(name) and stat.S_ISREG(status.st_mode) for name, status in found.items())
    return found if mine else {}


def _file_digest(path: Path) -> str:
    """Raises OSError, also for what is no regular file."""
    digest = hashlib.sha256()
    with _regular(path) as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


@contextmanager
def _regular(path: Path) -> Iterator[BinaryIO]:
    handle = os.open(path, _FLAGS)
    with os.fdopen(handle, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"'{path}' is not a regular file")
        yield file
