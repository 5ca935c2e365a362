"""Writes encoded packets to an mp4 or QuickTime file: in fragments, which become a plain file when it is closed.

Each part is a fragment (moof, mdat) behind a moov without samples, which plays however suddenly the file ends. At the
end comes a moov with all samples, and the box that kept the place for it becomes an mdat around all that is between.
"""

import errno
import struct
from array import array
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import ClassVar

import av

from .finished import in_mp4
from .growing_file import GrowingFile
from .muxer import Muxer, Packet
from .output_stream import OutputStream

_PARENTS = (b"moov", b"trak", b"mdia", b"minf", b"stbl")
_BASE_IS_MOOF = 0x20000
_RUN_FLAGS = 0x1 | 0x100 | 0x200 | 0x400  # offset of the data; of each sample duration, size and flags
_LONGEST = 0xFFFFFFFF
_KEY, _NOT_KEY = 0x2000000, 0x1010000
_FRAGMENT_BYTES, _RUN_BYTES, _RUN_SAMPLE_BYTES = 24, 64, 12  # of a moof; of each track in it; of each sample
_SAMPLE_BYTES = 4 + 8 + 8 + 4  # of each sample in the index, at most: size, offset, duration, whether it is a key frame
_SPARE_BYTES = 1024  # what else the index has more than the moov that begins the file
_PLACE = struct.Struct(">I4sQ")  # of a box with a size of 64 bits


class Mp4Muxer(Muxer):
    """Of mp4 and mov."""

    # delay_moov lets libavformat write edit lists: without them sound that starts first shifts against the pictures.
    options: ClassVar = {"movflags": "frag_custom+delay_moov+default_base_moof"}

    def __init__(self, target: str | OutputStream, format: str, held: bytes | None = None) -> None:
        super().__init__(target, format, held)
        self._tracks: list[_Track] = []
        self._place = self._opening_bytes = self._fragments = 0

    def _opening(self, packets: Sequence[Packet]) -> bytes:
        begun = dict(_boxes(self._begun(packets)))
        first = {packet.stream_index: packet.dts or 0 for packet in reversed(packets)}
        self._tracks = [_Track(first.get(stream.index, 0)) for stream in self.container.streams]
        file_type = _box(b"ftyp", begun[b"ftyp"])
        self._place = len(file_type)
        opening = file_type + _PLACE.pack(_PLACE.size, b"free", 0) + _box(b"moov", begun[b"moov"])
        self._opening_bytes = len(opening)
        return opening

    def _part(self, packets: Sequence[Packet], offset: int) -> bytes:
        self._fragments += 1
        runs = [[packet for packet in packets if packet.stream_index == index] for index in range(len(self._tracks))]
        moof_bytes = _FRAGMENT_BYTES + sum(_RUN_BYTES + _RUN_SAMPLE_BYTES * len(run) for run in runs if run)
        moof = self._moof(runs, moof_bytes + 8)
        data_start = offset + moof_bytes + 8
        for track, run in zip(self._tracks, runs, strict=True):
            for packet in run:
                track.offsets.append(data_start)
                track.sizes.append(packet.size)
                data_start += packet.size
        return moof + _box(b"mdat", *(bytes(packet) for run in runs for packet in run))

    def _moof(self, runs: Sequence[Sequence[Packet]], data_start: int) -> bytes:
        """`data_start` is counted from here."""
        parts = [_box(b"mfhd", struct.pack(">II", 0, self._fragments))]
        for number, (track, run) in enumerate(zip(self._tracks, runs, strict=True), 1):
            if run:
                parts.append(_track_fragment(number, (run[0].dts or 0) - track.first, run, data_start))
                data_start += sum(packet.size for packet in run)
        return _box(b"free", *parts)  # until it is sealed: half a moof at its end makes a file unreadable

    def _seal(self, file: GrowingFile, offset: int) -> None:
        file.overwrite(offset + 4, b"moof")

    def _ending_bytes(self) -> int:
        return self._opening_bytes + _SPARE_BYTES + _SAMPLE_BYTES * sum(len(track.sizes) for track in self._tracks)

    def _tag(self, file: GrowingFile, held: bytes) -> None:
        file.append(in_mp4(held))

    def _end(self, file: GrowingFile, kept: bytes) -> None:
        written = (track for track in self._tracks if track.sizes)  # libavformat tells of no others
        try:
            moov = _with_chunks(_last_moov(kept), written)
        except _OtherSamplesError:
            return  # the fragments stay, which play as well
        size_bytes = file.size_bytes - self._place
        file.append(moov)
        file.overwrite(self._place, _PLACE.pack(1, b"mdat", size_bytes))


class _OtherSamplesError(Exception):
    """libavformat's index does not tell of what was written."""


class _Track:
    """Where the samples of a stream lie in the file; `first` is the time of the first one."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.offsets, self.sizes = array("Q"), array("I")


def _track_fragment(number: int, time: int, packets: Sequence[Packet], data_start: int) -> bytes:
    times = [packet.dts or 0 for packet in packets]
    durations = [after - before for before, after in pairwise(times)] + [packets[-1].duration or 0]
    samples = (
        struct.pack(">III", min(duration, _LONGEST), packet.size, _KEY if packet.is_keyframe else _NOT_KEY)
        for duration, packet in zip(durations, packets, strict=True)
    )
    return _box(
        b"traf",
        _box(b"tfhd", struct.pack(">II", _BASE_IS_MOOF, number)),
        _box(b"tfdt", struct.pack(">IQ", 1 << 24, time)),
        _box(b"trun", struct.pack(">III", _RUN_FLAGS, len(packets), data_start), *samples),
    )


def _last_moov(data: bytes) -> bytes:
    """The box with which the data ends."""
    start = len(data)
    while (start := data.rfind(b"moov", 0, start)) >= 4:
        if int.from_bytes(data[start - 4 : start], "big") == len(data) - start + 4:
            return data[start - 4 :]
    raise _OtherSamplesError


def _with_chunks(boxes: bytes, tracks: Iterator[_Track]) -> bytes:
    """The same boxes, with the sample tables of the tracks."""
    parts = []
    for kind, body in _boxes(boxes):
        if kind == b"stbl":
            body = b"".join(_sample_table(body, next(tracks)))
        elif kind in _PARENTS:
            body = _with_chunks(body, tracks)
        parts.append(_box(kind, body))
    return b"".join(parts)


def _sample_table(boxes: bytes, track: _Track) -> Iterator[bytes]:
    """The same boxes, but each packet is a chunk where it lies."""
    _, size_bytes, count = struct.unpack_from(">III", dict(_boxes(boxes))[b"stsz"])
    # Samples of one size are given by that alone, and those of PCM are smaller than packets.
    samples = [packet_bytes // size_bytes if size_bytes else 1 for packet_bytes in track.sizes]
    if sum(samples) != count:
        raise _OtherSamplesError
    for kind, body in _boxes(boxes):
        if kind == b"stsc":
            yield _chunk_lengths(samples)
        elif kind in (b"stco", b"co64"):
            yield _chunk_offsets(track.offsets)
        else:
            yield _box(kind, body)


def _chunk_lengths(samples: Sequence[int]) -> bytes:
    """stsc: from which chunk on each has so many samples."""
    first, runs = 1, []
    for count, chunks in groupby(samples):
        runs.append(struct.pack(">III", first, count, 1))
        first += sum(1 for _ in chunks)
    return _box(b"stsc", struct.pack(">II", 0, len(runs)), *runs)


def _chunk_offsets(offsets: Sequence[int]) -> bytes:
    """stco, or co64 for files that are larger."""
    large = offsets[-1] > 0xFFFFFFFF
    data = struct.pack(f">{len(offsets)}{'Q' if large else 'I'}", *offsets)
    return _box(b"co64" if large else b"stco", struct.pack(">II", 0, len(offsets)), data)


def _boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Kinds and contents of boxes that follow each other."""
    start = 0
    while start < len(data):
        size_bytes, kind = struct.unpack_from(">I4s", data, start)
        if size_bytes < 8:
            raise av.FFmpegError(errno.EINVAL, "libavformat knows no such file")  # it broke off there
        yield kind, data[start + 8 : start + size_bytes]
        start += size_bytes


def _box(kind: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack(">I4s", 8 + len(body), kind) + body
