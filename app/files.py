"""Checks, before a run, the files that it reads and writes: what must not be written, and why, in one line.

Nothing is opened and nothing is touched: links are followed, and only the status of each name is read.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from texelflow.gpu_delegate.base import debug
from texelflow.gpu_delegate.base.errors import MediaError, UsageError

from .console import one_line
from .names import FileStatus, FileType, as_written, free_name, local_name, look, scheme_of, standing

FileKind = Literal[
    "video", "log", "table", "facts", "bytes", "trace", "picture", "still", "drawing", "array", "pictures", "demo",
    "debug", "shaders", "report", "lines",
]  # fmt: skip
Existing = Literal["kept", "numbered", "renewed"]

ENDINGS: Mapping[FileKind, tuple[str, ...]] = MappingProxyType(
    {
        "video": (".mp4", ".m4v", ".mov", ".mkv", ".webm"),
        "log": (".json", ".csv"),
        "lines": (".jsonl", ".ndjson"),
        "table": (".csv",),
        "facts": (".json",),
        "bytes": (),  # any
        "trace": (".json",),
        "picture": (".png",),
        "still": (".png", ".mp4", ".m4v", ".mov", ".mkv", ".webm"),  # of a picture; nothing else is of this kind
        "drawing": (".svg", ".png"),
        "array": (".npy",),
    }
)
_HELD: Mapping[FileKind, re.Pattern[str]] = MappingProxyType(  # what is written in folders
    {
        "pictures": re.compile(r"[0-9]{6,}\.png"),
        "report": re.compile(r"report\.(json|html|zip)"),
        "demo": re.compile(r"demo\.(mp4|png|json)"),
        "debug": re.compile(r".+\.(comp|vert|frag|npy)"),
        "shaders": re.compile(r"(p[0-9]+-)?[0-9]{3,}-.+\.comp"),
    }
)
_OF_FILES = {ending for endings in ENDINGS.values() for ending in endings} | {
    ".avi",
    ".jpg",
    ".task",
    ".tflite",
    ".toml",
}


@dataclass(frozen=True)
class Read:
    """A file or folder that a run reads; `what` says what it is: 'the input itself'."""

    what: str
    path: Path


@dataclass(frozen=True)
class Write:
    """A file or folder that a run writes, and the option that names it.

    `existing` says what becomes of what is there: a name that the user chose keeps it unless they allow otherwise,
    live takes the next free number, and files with a name that the program chose are replaced.
    """

    option: str
    path: Path
    kind: FileKind
    existing: Existing = "kept"

    def numbered(self) -> "Write":
        """The same under the next free name, where there is something already."""
        return replace(self, existing="numbered")

    def line(self, why: str) -> str:
        """A message about it."""
        shown = as_written(self.path)
        return f"{self.option} {shown}: {why}" if self.option else f"'{shown}': {why}"


@dataclass(frozen=True)
class Files:
    """All that one run is told of."""

    reads: tuple[Read, ...] = ()
    writes: tuple[Write, ...] = ()


@dataclass(frozen=True)
class Objection:
    """Why something is not written; with a question there is someone who may allow it."""

    line: str
    question: str = ""


def settle(files: Files, force: bool = False) -> bool:
    """Ask whether what is there may be written over, where `force` does not say so: whether it may.

    Raises UsageError for an output that is an input, another output, cannot be written, or is there and is to be kept.
    """
    if debug.level() >= debug.GLSL:
        debugged = Write("DEBUG", Path(debug.FOLDER), "debug", "renewed")
        files = Files(files.reads, (*files.writes, debugged))
    found = list(objections(files, look_at(files)))
    for objection in sorted(
        found, key=lambda each: bool(each.question)
    ):  # asked last, since another objection may come first
        if not objection.question or not (force or _allowed(objection)):
            raise UsageError(objection.line)
    return force or bool(found)


def _allowed(objection: Objection) -> bool:
    """The answer of the user at the terminal; no if there is none."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty()):
        return False
    print(f"{one_line(objection.question)} [y/N] ", end="", file=sys.stderr, flush=True)
    answer = b""
    try:
        answer = sys.stdin.buffer.readline()
    finally:
        if not answer.endswith(b"\n"):  # the next line begins after the question
            print(file=sys.stderr, flush=True)
    return answer.strip().lower() in (b"y", b"yes")


def objections(files: Files, seen: Mapping[Read | Write, FileStatus]) -> Iterator[Objection]:
    """One at most for each file that is written, in their order."""
    for number, write in enumerate(files.writes):
        why = (
            _misnamed(write, seen[write])
            or _taken(write, files.reads, files.writes[:number], seen)
            or ("" if write.kind in ("debug", "demo") else _trouble(write, seen[write]))
        )
        if why:
            yield Objection(write.line(why))
        elif write.existing == "kept":
            yield from _kept(write, seen[write])


def _misnamed(write: Write, seen: FileStatus) -> str:
    """No output has an address; a file of each kind has its endings, and a folder that is made has none of them."""
    if why := _no_name(write.path, seen.form):
        return why
    ending = write.path.suffix.lower()
    if write.kind in _HELD:
        made = seen.form == "nothing" and ending in _OF_FILES
        return f"a folder is needed, such as {write.path.with_suffix('')}" if made else ""
    endings = ENDINGS[write.kind]
    listed = (" or " if len(endings) == 2 else ", ").join(endings)
    folder = "; a folder gets PNG files" if write.kind in ("video", "still") and write.option else ""
    return "" if not endings or ending in endings else f"its name must end in {listed}{folder}"


def refuse_name(option: str, path: Path) -> None:
    """Raise UsageError for an address, and for an ending without a name; files are checked once they are all known."""
    if why := _no_name(path, standing(os.fspath(path))[0]):
        raise UsageError(f"{option} {as_written(path)}: {why}")


def _no_name(path: Path, form: FileType) -> str:
    """Why nothing can have that name; '' if something can, or is there already."""
    scheme = scheme_of(path)
    if not scheme:
        is_bare = form == "nothing" and path.name.lower() in _OF_FILES
        return f"that is an ending alone; put a name before it, such as result{path.name}" if is_bare else ""
    slashes = "//" if as_written(path).startswith(f"{scheme}://") else ""
    what = f"nothing is written to {scheme}:{slashes} addresses"
    return f"{what}; name a file or a folder of this machine, ./NAME for one of that name"


def _taken(
    write: Write, reads: Sequence[Read], earlier: Sequence[Write], seen: Mapping[Read | Write, FileStatus]
) -> str:
    """What else the file is, or what lies where the folder's files go."""
    for read in reads:
        if _same(seen[write], seen[read]):
            return f"that is {read.what}; choose another name"
        if write.existing != "numbered" and _touches(write, seen[write], seen[read]):
            return f"'{read.path}' would be written over, which is {read.what}; choose another place"
    for other in earlier:
        if _same(seen[write], seen[other]):
            return f"that is where {other.option} writes; choose another name"
        if _touches(write, seen[write], seen[other]) or _touches(other, seen[other], seen[write]):
            return f"{other.option} {other.path} would be written over; choose another place"
    return ""


def _same(one: FileStatus, other: FileStatus) -> bool:
    return one.place == other.place and "other" not in (one.form, other.form)


def _touches(write: Write, seen: FileStatus, other: FileStatus) -> bool:
    """Whether writing something touches another file in it, or a link that leads there."""
    if write.kind not in _HELD:
        return False
    names = [name for folder, name in ((other.folder, other.name), *other.links) if folder == seen.place]
    return any(map(_HELD[write.kind].fullmatch, names))


def _trouble(write: Write, seen: FileStatus) -> str:
    """Why nothing can be written there."""
    if seen.form == "other":
        return "that is not a regular file; give another name"
    if write.kind in _HELD:
        if seen.form == "file":
            return "that is a file; a folder is needed"
        if seen.above == "file":
            return "no folder can be made there, for something above it is a file; choose another place"
    elif seen.form == "folder":
        return "that is a folder; give the name of a file"
    elif seen.form == "nothing" and seen.above != "folder":
        return f"there is no folder '{write.path.parent}'; create it first"
    return "" if seen.writable else "that cannot be written; check the permissions of it and its folder"


def _kept(write: Write, seen: FileStatus) -> Iterator[Objection]:
    """What exists already and may be written over only if the user allows it."""
    if seen.held:
        what = f"holds {seen.held} of another run" if write.kind == "pictures" else f"holds {seen.held} already"
        line = write.line(f"{what}; choose another folder, or --force to write over such files")
        yield Objection(line, f"{write.path} {what}: overwrite such files?")
    elif seen.form == "file" and write.kind not in _HELD:
        line = write.line("exists already; choose another name, or --force to write over it")
        yield Objection(line, f"{write.path} exists: overwrite it?")


def look_at(files: Files) -> dict[Read | Write, FileStatus]:
    """All of them."""
    named: tuple[Read | Write, ...] = (*files.reads, *files.writes)
    return {each: look(each.path, _HELD.get(each.kind) if isinstance(each, Write) else None) for each in named}


def check_output(path: str | os.PathLike[str], *inputs: str | os.PathLike[str]) -> None:
    """Raise MediaError if `path` cannot be written as a video, or is one of the inputs. Touches nothing."""
    reads = tuple(Read("the input itself", Path(each)) for each in inputs)
    files = Files(reads, (Write("", Path(local_name(os.fspath(path))), "video", "renewed"),))
    for objection in objections(files, look_at(files)):
        raise MediaError(objection.line)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise MediaError if no file of this name can be written. Touches nothing."""
    write = Write("", Path(path), "picture", "renewed")
    form, above, writable = standing(os.fspath(path))
    if why := _trouble(write, FileStatus(form, (), (), "", above, writable)):
        raise MediaError(write.line(why))


def own_name(path: Path, reads: Sequence[Read]) -> Path:
    """A picture's name that the program chose: what is there is renewed, unless the run reads it."""
    write = Write("", path, "picture", "renewed")
    taken = _taken(write, reads, (), look_at(Files(tuple(reads), (write,))))
    return free_name(path, {path}) if taken else path
