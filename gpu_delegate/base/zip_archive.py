"""Reads files in a zip archive, which may be appended to another file, in bounded memory.

Python's zip reader reads a whole directory, however long, before it checks anything. So its size is checked first, by
the same record at the end of the file that the reader uses.
"""

import io
import struct
import zipfile
import zlib
from dataclasses import dataclass
from typing import BinaryIO

__all__ = ["UNREADABLE_ARCHIVE", "ArchiveError", "Bounds", "first_bytes", "open_archive", "read_file", "read_start"]

UNREADABLE_ARCHIVE = (  # what zipfile raises for archives that are damaged or that it does not read
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError),
    *(KeyError, OSError, ValueError, RuntimeError, OverflowError),
)

_END = struct.Struct("<4s4xHHLLH")  # the end of the directory: entries here, entries, bytes, offset, comment
_END_SIGNATURE, _LOCATOR_SIGNATURE, _ENTRY_SIGNATURE = b"PK\5\6", b"PK\6\7", b"PK\1\2"
_ENTRY = struct.Struct("<4s24xHHH12x")  # of the directory: bytes of the name, of what else there is, of the comment
_LOCATOR_BYTES, _MOST_COMMENT_BYTES = 20, 0xFFFF
_MOST_TEXT_BYTES = 4096  # of one entry: name, comment, and what else there is
_MOST_PACKED = 16  # times the bytes that are read: more would take too long to unpack


class ArchiveError(Exception):
    """An archive beyond its bounds, or one that contradicts itself; the text says in which way."""


@dataclass(frozen=True)
class Bounds:
    """What an archive may have at most."""

    entries: int
    directory_bytes: int


def open_archive(stream: BinaryIO, most: Bounds) -> zipfile.ZipFile:
    """The archive at the end of a file. Raises ArchiveError, zipfile.BadZipFile if there is none or it is damaged."""
    _check(stream, most)
    return zipfile.ZipFile(stream)


def read_start(archive: zipfile.ZipFile, name: str, most_bytes: int) -> bytes:
    """The first bytes of a file in it. Raises ArchiveError, KeyError if it is not there, and what zipfile does."""
    entry = archive.getinfo(name)
    _check_method(entry)
    if entry.compress_size > _MOST_PACKED * most_bytes:
        raise ArchiveError(f"a file has {entry.compress_size:,} bytes packed, more than {_MOST_PACKED * most_bytes:,}")
    with archive.open(entry) as stream:
        return stream.read(most_bytes)


def first_bytes(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, count: int) -> bytes:
    """So many of a file in it, or all there are: what kind of file it is. Raises what zipfile does."""
    _check_method(entry)
    with archive.open(entry) as stream:
        return stream.read(count)


def read_file(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, most_bytes: int) -> bytes:
    """All of a file in it, verified. Raises ArchiveError if it has more bytes than that, and what zipfile does."""
    _check_method(entry)
    if entry.file_size > most_bytes:
        raise ArchiveError(f"{entry.file_size:,} bytes unpacked, more than {most_bytes:,}")
    with archive.open(entry) as stream:
        content = stream.read()
    if len(content) != entry.file_size:
        raise EOFError
    return content


def _check_method(entry: zipfile.ZipInfo) -> None:
    """Raise NotImplementedError for a method that may ask for gigabytes of working memory."""
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise NotImplementedError(f"method {entry.compress_type}")


def _check(stream: BinaryIO, most: Bounds) -> None:
    end = _find_end(stream)
    stream.seek(end)
    _, here, entries, directory_bytes, offset, _ = _END.unpack(stream.read(_END.size))
    stream.seek(max(0, end - _LOCATOR_BYTES))
    if stream.read(_LOCATOR_BYTES).startswith(_LOCATOR_SIGNATURE):
        raise ArchiveError("it is a ZIP64 archive, which only those over 4 GiB have to be")
    if entries > most.entries:
        raise ArchiveError(f"it lists {entries:,} files, more than {most.entries:,}")
    if directory_bytes > most.directory_bytes:
        raise ArchiveError(f"its list of files has {directory_bytes:,} bytes, more than {most.directory_bytes:,}")
    if offset + directory_bytes > end or here != entries:
        raise ArchiveError("its list of files is not where it says")
    stream.seek(end - directory_bytes)
    _check_directory(stream.read(directory_bytes), entries)


def _find_end(stream: BinaryIO) -> int:
    """Where the record at the end stands: behind everything, or before the comment. Raises zipfile.BadZipFile."""
    size = stream.seek(0, io.SEEK_END)
    start = stream.seek(max(0, size - _END.size - _MOST_COMMENT_BYTES))
    tail = stream.read()
    last = len(tail) - _END.size
    plain = last >= 0 and tail.startswith(_END_SIGNATURE, last) and tail.endswith(b"\0\0")
    found = last if plain else tail.rfind(_END_SIGNATURE)
    if not 0 <= found <= last:
        raise zipfile.BadZipFile("no archive")
    return start + found


def _check_directory(directory: bytes, entries: int) -> None:
    """The number of entries that fill the directory must be the one that is claimed."""
    found = at = 0
    while at < len(directory):
        if not directory.startswith(_ENTRY_SIGNATURE, at) or len(directory) - at < _ENTRY.size:
            raise ArchiveError("its list of files is damaged")
        text_bytes = sum(_ENTRY.unpack_from(directory, at)[1:])
        if text_bytes > _MOST_TEXT_BYTES:
            raise ArchiveError(f"a file has a name of {text_bytes:,} bytes with what belongs to it")
        at += _ENTRY.size + text_bytes
        found += 1
    if found != entries or at != len(directory):
        raise ArchiveError(f"it lists {found:,} files, and says {entries:,}")
