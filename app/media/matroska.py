"""Writes encoded packets to a Matroska or WebM file, each packet a cluster of its own.

While it is written the file has no stated end, as when it is streamed. At the end come the cues; then duration, size,
and where the cues are, for which the beginning keeps places.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import ClassVar

from .finished import in_matroska
from .growing_file import GrowingFile
from .muxer import Muxer, Packet
from .output_stream import OutputStream
from .video_encoder import ALPHA_DATA

_EBML, _SEGMENT, _SEEK_HEAD, _VOID, _INFO, _TRACKS = 0x1A45DFA3, 0x18538067, 0x114D9B74, 0xEC, 0x1549A966, 0x1654AE6B
_SEEK, _SEEK_ID, _SEEK_POSITION, _DURATION = 0x4DBB, 0x53AB, 0x53AC, 0x4489
_CLUSTER, _TIME, _BLOCK, _GROUP, _GROUP_BLOCK = 0x1F43B675, 0xE7, 0xA3, 0xA0, 0xA1
_ADDITIONS, _MORE, _ADDITIONAL, _ADDITION_ID, _REFERENCE = 0x75A1, 0xA6, 0xA5, 0xEE, 0xFB
_CUES, _CUE, _CUE_TIME, _CUE_TRACK, _CUE_NUMBER, _CUE_CLUSTER = 0x1C53BB6B, 0xBB, 0xB3, 0xB7, 0xF7, 0xF1
_UNKNOWN_SIZE = b"\x01" + 7 * b"\xff"
_SEEK_HEAD_BYTES = 96  # of the place for it
_DURATION_BYTES = 11
_LONGEST_MS = 0x7FFFFFFF
_CUE_BYTES = 32  # at most
_KEY = 0x80


class MatroskaMuxer(Muxer):
    """Times are milliseconds."""

    # bitexact leaves out random numbers; checksums would be wrong as soon as the duration is filled in.
    options: ClassVar = {"fflags": "bitexact", "write_crc32": "0"}

    def __init__(self, target: str | OutputStream, format: str, held: bytes | None = None) -> None:
        super().__init__(target, format, held)
        self._shift_ms: dict[int, int] = {}  # by stream: what begins before the file, and the delay of its codec
        self._cues: list[tuple[int, int]] = []  # ms; where the cluster begins
        self._segment = self._info = self._duration = self._tracks = 0  # where they begin
        self._end_ms = self._before_ms = 0  # before_ms: of the picture before

    def _opening(self, packets: Sequence[Packet]) -> bytes:
        begun = dict(_elements(self._begun(packets)))
        parts = list(_elements(begun[_SEGMENT]))
        first = _first_times(body for kind, body in parts if kind == _CLUSTER)
        for packet in reversed(packets):
            self._shift_ms[packet.stream_index] = first[packet.stream_index + 1] - (packet.pts or 0)
        places = dict(parts)
        opening = _element(_EBML, begun[_EBML]) + _id(_SEGMENT) + _UNKNOWN_SIZE
        self._segment = len(opening)
        opening += _void(_SEEK_HEAD_BYTES)
        self._info = len(opening)
        opening += _element(_INFO, *(_element(*e) for e in _elements(places[_INFO]) if e[0] != _DURATION), _void(11))
        self._duration, self._tracks = len(opening) - _DURATION_BYTES, len(opening)
        return opening + _element(_TRACKS, places[_TRACKS])

    def _part(self, packets: Sequence[Packet], offset: int) -> bytes:
        part = b""
        for packet in packets:
            time_ms = (packet.pts or 0) + self._shift_ms.setdefault(packet.stream_index, 0)
            if packet.stream_index == 0 and packet.is_keyframe:
                self._cues.append((time_ms, offset + len(part)))
            self._end_ms = max(self._end_ms, time_ms + (packet.duration or 0))
            part += _element(_CLUSTER, _number(_TIME, time_ms), self._block(packet, time_ms))
        return part

    def _block(self, packet: Packet, time_ms: int) -> bytes:
        """A packet in a cluster of that time; one with alpha is a group, which alone can hold that."""
        if not packet.has_sidedata(ALPHA_DATA):
            return _element(_BLOCK, _block_head(packet, _KEY if packet.is_keyframe else 0), bytes(packet))
        side = bytes(packet.get_sidedata(ALPHA_DATA))
        more = _number(_ADDITION_ID, int.from_bytes(side[:8], "big")), _element(_ADDITIONAL, side[8:])
        parts = [_element(_GROUP_BLOCK, _block_head(packet, 0), bytes(packet))]
        parts.append(_element(_ADDITIONS, _element(_MORE, *more)))
        if not packet.is_keyframe:  # only the reference tells
            parts.append(_element(_REFERENCE, struct.pack(">i", max(self._before_ms - time_ms, -_LONGEST_MS))))
        self._before_ms = time_ms
        return _element(_GROUP, *parts)

    def _seal(self, file: GrowingFile, offset: int) -> None:
        """Nothing is needed: half a cluster at the end of a file is passed over."""

    def _tag(self, file: GrowingFile, held: bytes) -> None:
        file.append(in_matroska(held))
        self._set_size(file)

    def _ending_bytes(self) -> int:
        return _CUE_BYTES * (len(self._cues) + 2)

    def _end(self, file: GrowingFile, kept: bytes) -> None:
        cues = file.size_bytes
        file.append(_element(_CUES, *(self._cue(*cue) for cue in self._cues)))
        places = {_INFO: self._info, _TRACKS: self._tracks, _CUES: cues}
        seeks = [
            _element(_SEEK, _element(_SEEK_ID, _id(kind)), _number(_SEEK_POSITION, place - self._segment))
            for kind, place in places.items()
        ]
        head = _element(_SEEK_HEAD, *seeks)
        file.overwrite(self._duration, _element(_DURATION, struct.pack(">d", self._end_ms)))
        file.overwrite(self._segment, head + _void(_SEEK_HEAD_BYTES - len(head)))
        self._set_size(file)

    def _set_size(self, file: GrowingFile) -> None:
        file.overwrite(self._segment - 8, _size(file.size_bytes - self._segment, 8))

    def _cue(self, time_ms: int, cluster: int) -> bytes:
        place = _element(_CUE_TRACK, _number(_CUE_NUMBER, 1), _number(_CUE_CLUSTER, cluster - self._segment))
        return _element(_CUE, _number(_CUE_TIME, time_ms), place)


def _block_head(packet: Packet, flags: int) -> bytes:
    """What begins a block at the time of its cluster."""
    return struct.pack(">BhB", 0x80 | packet.stream_index + 1, 0, flags)


def _first_times(clusters: Iterator[bytes]) -> dict[int, int]:
    """Milliseconds of the first block of each track, by its number."""
    first: dict[int, int] = {}
    for cluster in clusters:
        base = 0
        for kind, body in _elements(cluster):
            if kind == _TIME:
                base = int.from_bytes(body, "big")
            elif kind in (_BLOCK, _GROUP):
                block = body if kind == _BLOCK else dict(_elements(body))[_GROUP_BLOCK]
                number, time = struct.unpack_from(">Bh", block)
                first.setdefault(number & 0x7F, base + time)
    return first


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Identities and contents of elements that follow each other."""
    start = 0
    while start < len(data):
        length = 9 - data[start].bit_length()
        kind = int.from_bytes(data[start : start + length], "big")
        start += length
        length = 9 - data[start].bit_length()
        size = int.from_bytes(data[start : start + length], "big") & ((1 << 7 * length) - 1)
        start += length
        yield kind, data[start : start + size]
        start += size


def _element(kind: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return _id(kind) + _size(len(body), 8 if len(body) >= 1 << 28 else 4 if len(body) >= 127 else 1) + body


def _void(size_bytes: int) -> bytes:
    """An element of so many bytes that says nothing."""
    return _element(_VOID, bytes(size_bytes - 2))


def _number(kind: int, value: int) -> bytes:
    return _element(kind, value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big"))


def _id(kind: int) -> bytes:
    return kind.to_bytes((kind.bit_length() + 7) // 8, "big")


def _size(value: int, length: int) -> bytes:
    return (value | 1 << 7 * length).to_bytes(length, "big")
