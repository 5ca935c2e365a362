"""The name of a file goes in; its status, with links followed, or the next free name comes out.

Nothing is opened and nothing is touched, so that no pipe blocks.
"""

import os
import re
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Literal

FileType = Literal["nothing", "file", "folder", "other"]
Above = Literal["folder", "missing", "file"]
FileIdentity = tuple[int | str, ...]
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")  # a Path keeps one slash; of two letters at least: not C:/
_MOST_LINKS = 40  # what Linux follows


@dataclass(frozen=True)
class FileStatus:
    """The status of a name, links followed.

    All names of one thing have the same place, also of one that is not there yet; `folder` is the place of the folder
    that it is in under `name`, and `links` are folders and names of the links that lead there. Where nothing is,
    `above` tells what the folder would be made in, and `writable` whether it can be. `held` is one of the files in a
    folder that would be written over, '' for none.
    """

    form: FileType
    place: FileIdentity
    folder: FileIdentity
    name: str
    above: Above = "folder"
    writable: bool = True
    held: str = ""
    links: tuple[tuple[FileIdentity, str], ...] = ()


def scheme_of(path: str | os.PathLike[str]) -> str:
    """rtmp of rtmp://host/x, which is no file's name, also once it has been a Path; '' of the name of a file."""
    found = _ADDRESS.match(Path(path).as_posix())
    return found[1] if found else ""


def as_written(path: str | os.PathLike[str]) -> str:
    """A name as it was given: an address has two slashes."""
    scheme, name = scheme_of(path), Path(path).as_posix()
    root = "/" * (scheme == "file")  # of this machine
    return f"{scheme}://{root}{name[len(scheme) + 1 :].lstrip('/')}" if scheme else os.fspath(path)


def look(path: Path, written: re.Pattern[str] | None = None) -> FileStatus:
    """What is there under a name; `written` are the files that would be written in it.

    Names that no file system accepts count as missing.
    """
    real = _real(path)
    above, name = os.path.split(real)
    form, ground, writable = standing(real)
    return FileStatus(
        form,
        _place(real)[0],
        _place(above)[0],
        os.path.normcase(name),
        ground,
        writable,
        _held(real, written) if written and form == "folder" else "",
        tuple(_links(str(path))),
    )


def _links(path: str) -> Iterator[tuple[FileIdentity, str]]:
    """Where each link is, from the name itself on."""
    for _ in range(_MOST_LINKS):
        try:
            target = os.readlink(path)
        except (OSError, ValueError):  # no link
            return
        above, name = os.path.split(path)
        yield _place(_real(Path(above)))[0], os.path.normcase(name)
        path = os.path.join(above, target)


def _real(path: Path) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # circular links, NUL
        return os.path.abspath(str(path).replace("\0", ""))


def standing(path: str) -> tuple[FileType, Above, bool]:
    """Form, what is above, and whether it can be written; of what is not there, whether it can be made."""
    if (form := _form(path)) != "nothing":
        return form, "folder", os.access(path, os.W_OK)
    above = os.path.dirname(path) or os.curdir
    if _form(above) == "folder":
        return form, "folder", os.access(above, os.W_OK)
    _, closest = _place(os.path.abspath(path))
    return form, "missing" if _form(closest) == "folder" else "file", os.access(closest, os.W_OK)


def _form(path: str) -> FileType:
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return "nothing"
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "other"


def _place(real: str) -> tuple[FileIdentity, str]:
    """Device and number of what is there, or else of the closest folder above and the names missing in it; and that."""
    missing: tuple[str, ...] = ()
    while True:
        above, name = os.path.split(real)
        try:
            found = os.stat(real)
        except (OSError, ValueError):
            if above == real:
                return (real, *missing), real
            real, missing = above, (os.path.normcase(name), *missing)
        else:
            return (found.st_dev, found.st_ino, *missing), real


def _held(folder: str, pattern: re.Pattern[str]) -> str:
    try:
        with os.scandir(folder) as entries:
            return min((entry.name for entry in entries if pattern.fullmatch(entry.name)), default="")
    except OSError:
        return ""


def next_name(folder: Path, stem: str, suffix: str, given: Collection[Path] = ()) -> Path:
    """The first of stem-1, stem-2 and so on that is neither there nor given; a suffix begins with its dot."""
    paths = (folder / f"{stem}-{number}{suffix}" for number in count(1))
    return next(path for path in paths if not (path in given or _is_there(path)))


def free_name(path: Path, given: Collection[Path] = ()) -> Path:
    """The path itself, or with the first number after it that is free if it is given, or something is there."""
    return next_name(path.parent, path.stem, path.suffix, given) if path in given or _is_there(path) else path


def _is_there(path: Path) -> bool:
    """Whether something is there that must not be written over: all but an empty folder."""
    try:
        return os.path.lexists(path) and not (os.path.isdir(path) and not os.listdir(path))
    except OSError:  # a folder that cannot be looked into
        return True
