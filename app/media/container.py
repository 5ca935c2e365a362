"""A recording's outermost boxes go in; whether the file is whole, cut off or has lost its index comes out.

FFmpeg plays what it can of a cut-off file and says little about the rest. The container itself says it all: each box
of an mp4 and each element of a Matroska file states its length, so one that reaches past the end was cut off.
"""

import os
import struct
from dataclasses import dataclass
from typing import BinaryIO

_MP4_FIRST_BOXES = frozenset({b"ftyp", b"styp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot"})
_EBML_ID, _SEGMENT_ID = 0x1A45DFA3, 0x18538067
_MAX_BOXES = 1_000_000


@dataclass(frozen=True)
class Layout:
    """What the outermost boxes tell: kind is 'mp4', 'matroska' or 'other'; cut_off says where a file ends early."""

    kind: str
    has_index: bool = True
    cut_off: str | None = None


def examine(path: str) -> Layout:
    """Read the layout of the file at path: headers only, a few bytes each. Raises OSError where it cannot be read."""
    with open(path, "rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(0)
        head = file.read(8)
        file.seek(0)
        if head[4:8] in _MP4_FIRST_BOXES:
            return _examine_mp4(file, end)
        if head[:4] == _EBML_ID.to_bytes(4, "big"):
            return _examine_matroska(file, end)
    return Layout("other")


def _examine_mp4(file: BinaryIO, end: int) -> Layout:
    offset, has_index = 0, False
    for _ in range(_MAX_BOXES):
        file.seek(offset)
        header = file.read(16)
        if len(header) < 8:
            return Layout("mp4", has_index, _cut(end, offset + 8) if header else None)
        size, name = struct.unpack(">I4s", header[:8])
        if size == 1 and len(header) == 16:
            size = struct.unpack(">Q", header[8:])[0]
        if 0 < size < 8:
            break
        size = size or end - offset
        if offset + size > end:
            return Layout("mp4", has_index, _cut(end, offset + size))
        has_index |= name == b"moov"
        offset += size
    return Layout("mp4", has_index)


def _examine_matroska(file: BinaryIO, end: int) -> Layout:
    offset = 0
    for _ in range(_MAX_BOXES):
        file.seek(offset)
        if offset >= end:
            break
        try:
            name, _unused = _read_vint(file, keep_marker=True)
            size, unknown = _read_vint(file, keep_marker=False)
        except EOFError:
            return Layout("matroska", True, _cut(end, end + 1))
        except ValueError:
            break
        data = file.tell()
        if not unknown and data + size > end:
            return Layout("matroska", True, _cut(end, data + size))
        # A live recording's segments and clusters have no known length: their children are walked instead.
        offset = data if unknown or name == _SEGMENT_ID else data + size
    return Layout("matroska")


def _read_vint(file: BinaryIO, keep_marker: bool) -> tuple[int, bool]:
    """One EBML number of 1 to 8 bytes, and whether all its bits are set: 'unknown' for a length."""
    first = file.read(1)
    if not first:
        raise EOFError
    length = 9 - first[0].bit_length()
    if length > 8:
        raise ValueError("no EBML number")
    rest = file.read(length - 1)
    if len(rest) < length - 1:
        raise EOFError
    value = int.from_bytes(first + rest, "big")
    mask = (1 << (7 * length)) - 1
    return (value if keep_marker else value & mask), value & mask == mask


def _cut(have_bytes: int, size_bytes: int) -> str:
    return f"after {have_bytes} of at least {size_bytes} bytes"
