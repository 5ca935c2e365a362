"""The names of files: their status with links followed, and the next name that is free.

No file is opened or changed, so that a pipe never blocks.
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
_ADDRESS = re.compile(r"\s*([^\s/\\:]{2,}):(/|\\\\)")  # a Path keeps one slash; of two letters at least: not C:/
_SHORT_ADDRESS = re.compile(  # with FFmpeg's schemes, and those of storage, it takes no slashes
    r"\s*((amqp|async|bluray|cache|concatf?|crypto|data|dtls|fd|ffrtmp(crypt|http)|file|ftps?|gophers?|gs|hls|https?|"
    r"httpproxy|icecast|ip[fn]s|lib(rtmp|srt|ssh)|md5|mms[ht]?|ndi|pipe|prompeg|rist|rtmp(e|s|t|te|ts)?|rtps?|rtsps?|s3|sap|"
    r"scp|sctp|sftp|smb|srtp?|ssh|subfile|tcp|tee|tls|udp(lite)?|unix|webdav|whep|whip|wss?|zmq)([+,][^:/]*)?):",
    re.IGNORECASE,
)
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
    """rtmp of rtmp://host/x and of rtmp:x, which are no files' names, also once it has been a Path; '' of a file's."""
    name = Path(path).as_posix()
    if found := _ADDRESS.match(name):
        return found[1]
    short = _SHORT_ADDRESS.match(name)
    return short[1] if short else ""


def local_name(name: str) -> str:
    """A name as it was given, but ./rtmp:x, which is a file and would be an address as a Path, from the root on."""
    return os.path.abspath(name) if name.startswith(("./", ".\\")) and scheme_of(name) else name


def as_written(path: str | os.PathLike[str]) -> str:
    """A name as it was given: an address has two slashes, if it has any."""
    scheme, name = scheme_of(path), Path(path).as_posix().lstrip()
    place = name[len(scheme) + 1 :]
    root = "/" * (scheme == "file")  # of this machine
    return f"{scheme}://{root}{place.lstrip('/')}" if scheme and place.startswith("/") else os.fspath(path)


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
