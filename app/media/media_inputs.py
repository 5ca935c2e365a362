"""Expands names from the command line to the recordings and pictures that they mean, and opens those.

A name is a file, a folder of pictures, each of which is an input of its own, a pattern of numbered pictures
(shot_%04d.png), which are one recording, or "-", a recording on standard input. What a file holds decides what it is.
"""

import glob
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Literal

from texelflow.gpu_delegate.base.errors import MediaError

from ..names import as_written, scheme_of
from .image_file import IMAGE_ENDINGS, IMAGE_FORMATS, image_kind
from .image_sequence import RATE, names_in, numbered_names, open_image, open_numbered
from .late_source import LateSource
from .pipe import PIPE, open_pipe
from .recording import Position, Recording
from .sources import FileSource

InputKind = Literal["recording", "picture", "sequence", "stream"]

_STDIN = 0
_DIGITS = re.compile(r"([0-9]+)")
_SEPARATORS = " ._-"


@dataclass(frozen=True)
class MediaInput:
    """One thing to be read: `open_input` takes its path. What it makes may be named after `stem`.

    `left` are the names in a folder that are no pictures, with the first picture of it alone; with a folder that holds
    none, which cannot be opened, too.
    """

    path: str
    kind: InputKind
    stem: str
    left: tuple[str, ...] = ()


def expand_inputs(names: Iterable[str | os.PathLike[str]]) -> tuple[MediaInput, ...]:
    """What the names stand for, in their order, the pictures of a folder in natural order: frame2 before frame10.

    Looks at names and at the first bytes of files, and opens nothing else: whatever is wrong with an input is raised
    where it is opened, so that the others can be. A path that is given twice is taken once. Stems are those of files
    without endings, of a pattern what stands before its number, "stdin" of a pipe; each that an earlier input has
    already, in large or small letters, gets the first of -2, -3 and so on that is free.
    """
    found = dict[str, MediaInput]()
    for name in names:
        for each in _expand(os.fspath(name)):
            found.setdefault(each.path, each)
    return tuple(_with_own_stems(found.values()))


def open_input(
    path: str | os.PathLike[str], first: Position = 0, last: Position | None = None, rate: Fraction = RATE
) -> Recording:
    """The recording of an input's path; `rate` is of pictures, which state none. Raises MediaError, UsageError."""
    name = os.fspath(path)
    kind, numbered = input_kind(name), numbered_names(name)
    if scheme_of(name) and not os.path.lexists(name):
        raise MediaError(f"'{as_written(name)}' is an address; fetch the file, or have live --camera show it")
    if kind == "stream":
        return open_pipe(_STDIN, first, last, rate)
    if kind == "sequence" and numbered:
        return open_numbered(name, numbered, first, last, rate)
    if kind == "picture":
        return open_image(name, first, last, rate)
    if os.path.isdir(name):
        raise MediaError(_about_folder(name))
    return LateSource(name, first, last) if LateSource.is_for(first) else FileSource(name, first, last)


def files_in(each: MediaInput) -> list[str]:
    """The paths of the files that are read for an input; none of a pipe. Raises nothing: what is wrong shows later."""
    numbered = numbered_names(each.path)
    if each.kind != "sequence" or not numbered:
        return [] if each.kind == "stream" else [each.path]
    try:
        return [os.path.join(numbered.folder, numbered.name(number)) for number in numbered.numbers()]
    except MediaError:
        return []


def input_kind(path: str) -> InputKind:
    """What a path stands for. What cannot be read, or is something else, and has a picture's ending, is a picture,
    which will not open."""
    if path == PIPE:
        return "stream"
    ends_so = path.lower().endswith(IMAGE_ENDINGS)
    if not os.path.lexists(path) and numbered_names(path):
        return "sequence"
    try:
        kind = image_kind(path)
    except (OSError, ValueError):  # NUL
        return "picture" if ends_so and not os.path.isdir(path) else "recording"
    misnamed = kind is None and os.path.isfile(path) and ends_so
    return "picture" if kind == "picture" or misnamed else "recording"


def natural(name: str) -> tuple[list[str | int], str]:
    """By what names are put in order: the numbers in them as numbers, large letters as small ones."""
    parts = _DIGITS.split(name.casefold())
    return [int(part) if index % 2 else part for index, part in enumerate(parts)], name


def _expand(name: str) -> Iterator[MediaInput]:
    if name != PIPE and not os.path.lexists(name) and glob.has_magic(name) and (found := glob.glob(name)):
        for each in sorted(found, key=natural):  # as a shell does, where there is none
            yield from _expand(each)
    elif os.path.isdir(name):
        yield from _folder(name)
    else:
        yield MediaInput(name, input_kind(name), _stem(name))


def _folder(folder: str) -> Iterator[MediaInput]:
    """Its pictures; itself where there are none, or it cannot be listed."""
    try:
        names = sorted(names_in(folder), key=natural)
    except MediaError:
        names = []
    paths = {name: os.path.join(folder, name) for name in names}
    pictures = [name for name, path in paths.items() if os.access(path, os.R_OK) and input_kind(path) == "picture"]
    chosen = set(pictures)
    left = tuple(name for name in names if name not in chosen)
    if not pictures:
        yield MediaInput(folder, "recording", os.path.basename(os.path.abspath(folder)) or "input", left)
    for name in pictures:
        yield MediaInput(os.path.join(folder, name), "picture", _stem(name), left if name == pictures[0] else ())


def _stem(path: str) -> str:
    if path == PIPE:
        return "stdin"
    if not os.path.lexists(path) and (numbered := numbered_names(path)):
        return numbered.before.rstrip(_SEPARATORS) or os.path.basename(os.path.abspath(numbered.folder)) or "sequence"
    return Path(path).stem or "input"


def _with_own_stems(inputs: Iterable[MediaInput]) -> Iterator[MediaInput]:
    taken = set[str]()
    numbers = dict[str, int]()
    for each in inputs:
        stem, key = each.stem, each.stem.casefold()
        while stem.casefold() in taken:
            numbers[key] = numbers.get(key, 1) + 1
            stem = f"{each.stem}-{numbers[key]}"
        taken.add(stem.casefold())
        yield replace(each, stem=stem)


def _about_folder(folder: str) -> str:
    """Why a folder is no recording."""
    names: Sequence[str] = names_in(folder)
    if any(name.lower().endswith(IMAGE_ENDINGS) for name in names):
        return f"'{folder}' is a folder; its pictures are inputs of their own, or a recording as a pattern: %04d.png"
    return f"'{folder}' is a folder without pictures ({IMAGE_FORMATS}); name a video file in it"
