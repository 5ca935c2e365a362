"""Finds out from a recording's outermost boxes whether the file is whole, cut off or without its index.

FFmpeg plays what it can of a cut-off file and says little about the rest. The container itself says it all: each box
of an mp4 and each element of a Matroska file states its length, so one that reaches past the end was cut off.
"""

import io
import os
import struct
from collections.abc import Generator
from dataclasses import dataclass
from typing import BinaryIO

_MP4_FIRST_BOXES = frozenset({b"ftyp", b"styp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot"})
_EBML_ID, _SEGMENT_ID = 0x1A45DFA3, 0x18538067
_MAX_BOXES = 1_000_000
_HEADER_BYTES = 16  # of an element, at most


@dataclass(frozen=True)
class ContainerLayout:
    """What the outermost boxes tell: kind is 'mp4', 'matroska' or 'other'; cut_off says where a file ends early."""

    kind: str
    has_index: bool = True
    cut_off: str | None = None


def examine_container(path: str) -> ContainerLayout:
    """Read the layout of the file at path: headers only, a few bytes each. Raises OSError where it cannot be read."""
    with open(path, "rb") as file:
        end = file.seek(0, os.SEEK_END)
        walk = _walk()
        offset = next(walk)
        while True:
            file.seek(offset)
            try:
                offset = walk.send(file.read(_HEADER_BYTES))
            except StopIteration as done:
                return _layout(done.value, end)


class PassingBytes:
    """The layout of a recording of which every byte goes by once."""

    def __init__(self) -> None:
        self._walk = _walk()
        self._wanted: int | None = next(self._walk)  # where the next header begins
        self._header = b""
        self._walked = _Walked("other")
        self._seen_bytes = 0

    def feed(self, data: bytes) -> None:
        """The bytes that follow those before."""
        end = self._seen_bytes + len(data)
        while self._wanted is not None and self._wanted + len(self._header) < end:
            start = self._wanted + len(self._header) - self._seen_bytes
            self._header += data[start : start + _HEADER_BYTES - len(self._header)]
            if len(self._header) < _HEADER_BYTES:
                break
            self._send()
        self._seen_bytes = end

    def ended(self) -> ContainerLayout:
        """After the last of them; harmless when repeated."""
        while self._wanted is not None:
            self._send()
        return _layout(self._walked, self._seen_bytes)

    def _send(self) -> None:
        assert self._wanted is not None
        header, start = self._header, self._wanted
        try:
            self._wanted = self._walk.send(header)
            self._header = header[self._wanted - start :]  # the next one may have begun among the bytes that went by
        except StopIteration as done:
            self._wanted, self._walked = None, done.value


def is_mp4(head: bytes) -> bool:
    """Whether a file that begins with these 8 bytes is mp4 or QuickTime."""
    return head[4:8] in _MP4_FIRST_BOXES


def index_is_last(head: bytes) -> bool:
    """Whether an mp4 file that begins so has its samples before what says where they are."""
    offset = 0
    while is_mp4(head) and offset + 8 <= len(head):
        size, name = struct.unpack_from(">I4s", head, offset)
        if name in (b"moov", b"mdat") or size < 8:
            return bool(name == b"mdat")
        offset += size
    return False


@dataclass(frozen=True)
class _Walked:
    """What headers tell: least_bytes is where the last element ends that states its length."""

    kind: str
    has_index: bool = True
    least_bytes: int = 0


_Walk = Generator[int, bytes, _Walked]
"""Asks, from the front to the back, for the _HEADER_BYTES at an offset, and gets fewer at the file's end alone."""


def _walk() -> _Walk:
    head = yield 0
    if is_mp4(head):
        return (yield from _walk_mp4(head))
    if head[:4] == _EBML_ID.to_bytes(4, "big"):
        return (yield from _walk_matroska(head))
    return _Walked("other")


def _walk_mp4(header: bytes) -> _Walk:
    offset, has_index = 0, False
    for _ in range(_MAX_BOXES):
        if len(header) < 8:
            return _Walked("mp4", has_index, offset + 8 if header else offset)
        size, name = struct.unpack(">I4s", header[:8])
        if size == 1 and len(header) == 16:
            size = struct.unpack(">Q", header[8:])[0]
        has_index |= name == b"moov"
        if size < 8:  # 0: to the end of the file
            break
        offset += size
        header = yield offset
    return _Walked("mp4", has_index, offset)


def _walk_matroska(header: bytes) -> _Walk:
    offset = least_bytes = 0
    for _ in range(_MAX_BOXES):
        least_bytes = max(least_bytes, offset)
        if not header:
            break
        file = io.BytesIO(header)
        try:
            name, _unused = _read_vint(file, keep_marker=True)
            size, unknown = _read_vint(file, keep_marker=False)
        except EOFError:
            return _Walked("matroska", True, max(least_bytes, offset + len(header) + 1))
        except ValueError:
            break
        data = offset + file.tell()
        # A live recording's segments and clusters have no known length: their children are walked instead.
        least_bytes = max(least_bytes, data if unknown else data + size)
        offset = data if unknown or name == _SEGMENT_ID else data + size
        header = yield offset
    return _Walked("matroska", True, least_bytes)


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


def _layout(walked: _Walked, end: int) -> ContainerLayout:
    cut_off = f"after {end} of at least {walked.least_bytes} bytes" if end < walked.least_bytes else None
    return ContainerLayout(walked.kind, walked.has_index, cut_off)
