"""Reads the bytes of a model from a .tflite file, or from a bundle (.task) that holds several, in bounded memory.

A bundle is a zip archive, as MediaPipe's tasks come; a model in it has a path as in a folder:
`hand_landmarker.task/hand_detector.tflite`, and bundles may lie in bundles. Nothing is unpacked to the disk.
"""

import contextlib
import io
import os
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..base.errors import ModelError
from ..base.zip_archive import UNREADABLE_ARCHIVE, ArchiveError, Bounds, first_bytes, open_archive, read_file
from .foreign_files import MOST_START, foreign_archive, foreign_file, foreign_folder, is_archive
from .model_file import printable_name

__all__ = ["MAX_FILE_BYTES", "model_file_bytes", "model_in", "on_disk"]

MAX_FILE_BYTES = 1 << 31
_MOST_FILES = Bounds(entries=1024, directory_bytes=1 << 18)  # in a bundle
_MOST_UNPACKED = 32  # times the bytes of a bundle's file: those of all that is taken from it
_MOST_DEPTH = 4  # of bundles in bundles; MediaPipe's gestures have two
_MOST_PATH = 300  # letters of a path in a message
_MOST_NAMED = 12  # models in a message
_IDENTIFIER = b"TFL3"
_START_BYTES = 72  # of a file in a bundle, which tell a model and a bundle


def model_file_bytes(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a .tflite file, or of a model in a bundle, whose only one needs no name. Raises ModelError."""
    shown = printable_name(str(path), _MOST_PATH)
    try:
        file, member = on_disk(Path(path))
        if not file.exists():
            raise ModelError(f"{shown}: no such file")
        if not file.is_file():
            raise ModelError(f"{shown}: {foreign_folder(file) or 'not a file; give the path of a .tflite model'}")
        with file.open("rb") as stream:
            start = stream.read(MOST_START)
            _refuse_foreign(start, shown)
            if is_archive(start):
                return _of_bundle(stream, printable_name(str(file), _MOST_PATH), member)
            if member:
                raise ModelError(f"{shown}: {printable_name(file.name)} is no bundle of models")
            if file.stat().st_size > MAX_FILE_BYTES:
                raise ModelError(f"{shown}: larger than {MAX_FILE_BYTES >> 30} GiB, which no model here needs")
            stream.seek(0)
            return stream.read()
    except (OSError, ValueError) as error:
        raise ModelError(f"{shown}: cannot be read ({getattr(error, 'strerror', None) or error})") from error


def model_in(data: bytes, name: str = "model") -> bytes:
    """The model that bytes are, or that is the only one of the bundle that they are. Raises ModelError."""
    shown = printable_name(name)
    _refuse_foreign(data[:MOST_START], shown)
    if is_archive(data[:MOST_START]):
        return _of_bundle(io.BytesIO(data), shown, "")
    if data[4:8] != _IDENTIFIER:
        raise ModelError(f"{shown}: not a TensorFlow Lite model (its identifier is not TFL3)")
    return data


def on_disk(path: Path) -> tuple[Path, str]:
    """A path as what lies on the disk, and the name of the model in it; "" for a path that is a file of its own.

    >>> on_disk(Path("nothing/network.tflite"))[1]
    ''
    """
    with contextlib.suppress(OSError, ValueError):  # a name too long for any file system, or with a NUL in it
        if not os.path.lexists(path):
            for folder in path.parents:
                if folder.is_file():
                    return folder, "/".join(path.parts[len(folder.parts) :])
    return path, ""


@dataclass(frozen=True)
class _Member:
    """A model in a bundle: its name, with the bundles in the bundle that it lies in, and where it is read."""

    name: str
    archive: zipfile.ZipFile
    entry: zipfile.ZipInfo


class _Allowance:
    """How many bytes may still be unpacked."""

    def __init__(self, left_bytes: int) -> None:
        self._left_bytes = left_bytes

    def read(self, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
        """All of a file. Raises ArchiveError if that is too much."""
        try:
            content = read_file(archive, entry, self._left_bytes)
        except ArchiveError as error:
            raise ArchiveError(f"{printable_name(entry.filename)}: {error}") from error
        self._left_bytes -= len(content)
        return content


def _of_bundle(stream: BinaryIO, shown: str, wanted: str) -> bytes:
    allowance = _Allowance(min(MAX_FILE_BYTES, _MOST_UNPACKED * stream.seek(0, io.SEEK_END)))
    try:
        with open_archive(stream, _MOST_FILES) as archive:
            members = list(_members(archive, allowance, "", _MOST_DEPTH))
            if not members:
                other = foreign_archive(archive.namelist())
                raise ModelError(f"{shown}: {other or 'a zip archive without a TensorFlow Lite model in it'}")
            found = _chosen(members, shown, wanted)
            return allowance.read(found.archive, found.entry)
    except ArchiveError as error:
        raise ModelError(f"{shown}: not a bundle that is read here ({error})") from error
    except UNREADABLE_ARCHIVE as error:
        raise ModelError(f"{shown}: the bundle is damaged or cut off, get it again") from error


def _members(archive: zipfile.ZipFile, allowance: _Allowance, inside: str, depth: int) -> Iterator[_Member]:
    """The models in a bundle, and in bundles in it, by what their files begin with. Raises as zipfile, ArchiveError."""
    names = set[str]()
    for entry in archive.infolist():
        name = inside + entry.filename
        if entry.filename.endswith("/"):  # a folder; is_dir() fails for a name without a letter
            continue
        if entry.filename in names:
            raise ArchiveError(f"it has two files {printable_name(name)}")
        names.add(entry.filename)
        if entry.flag_bits & 1:
            raise ArchiveError(f"{printable_name(name)} is encrypted")
        start = first_bytes(archive, entry, _START_BYTES)
        if start[4:8] == _IDENTIFIER:
            yield _Member(name, archive, entry)
        elif is_archive(start):
            if not depth:
                raise ArchiveError(f"archives in archives, {_MOST_DEPTH} deep")
            inner = open_archive(io.BytesIO(allowance.read(archive, entry)), _MOST_FILES)
            yield from _members(inner, allowance, f"{name}/", depth - 1)


def _chosen(members: Sequence[_Member], shown: str, wanted: str) -> _Member:
    """The model with the name, with its ending or without; the only one if none is named. Raises ModelError."""
    if not wanted and len(members) == 1:
        return members[0]
    found = [member for member in members if wanted and wanted in (member.name, member.name.removesuffix(".tflite"))]
    if len(found) == 1:
        return found[0]
    bundle = shown.replace("\\", "/").rpartition("/")[2]
    paths = [f"{bundle}/{printable_name(member.name)}" for member in members[:_MOST_NAMED]]
    more = f" and {len(members) - _MOST_NAMED} more" if len(members) > _MOST_NAMED else ""
    listed = ", ".join(paths) + more
    if wanted:
        raise ModelError(f"{shown}: no one model in it is called {printable_name(wanted)}; there are: {listed}")
    raise ModelError(f"{shown}: a bundle of {len(members)} models; take one of them: {listed}")


def _refuse_foreign(start: bytes, shown: str) -> None:
    other = None if start[4:8] == _IDENTIFIER else foreign_file(start)
    if other:
        raise ModelError(f"{shown}: {other}")
