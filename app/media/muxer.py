"""Muxes encoded packets, in parts, to a video file that holds every part as soon as it was taken.

libavformat's own muxers keep a packet back until the next one comes, which a kill would lose: at one frame a second, a
second. So parts are written here; libavformat makes what begins the file and, in `container`, checks every packet.
"""

import contextlib
import io
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, TypeAlias

import av
from av.container import OutputContainer

from .growing_file import GrowingFile
from .output_stream import OutputStream

Packet: TypeAlias = "av.Packet[av.VideoStream] | av.Packet[av.AudioStream]"

_MIRROR_OPTIONS = {"max_interleave_delta": "1000000"}  # microseconds of packets that wait for another stream's
_PART_BYTES = 1 << 20  # of packets that wait, where many of sound come at once
_TAG_BYTES = 16  # at most, beside what the tag holds
_PACKET_BYTES = 192  # more than a packet takes beside its own bytes: of its part, and of the index


class Muxer(ABC):
    """One file. Add streams to `container` and start it; then packets, then flush, again and again; then finish."""

    options: ClassVar[dict[str, str]]  # of libavformat's muxer

    def __init__(self, target: str | OutputStream, format: str, held: bytes | None = None) -> None:
        """`format` is libavformat's name. The first part makes the file of that path, or replaces one of that name.

        A file that is finished whole gets a tag that holds `held`, if that is not None; see finished.payload.
        """
        self._target, self._format = target, format
        self._held = held
        self._mirror = _Mirror()
        self.container = av.open(self._mirror, "w", format=format, container_options=_MIRROR_OPTIONS)
        self._waiting: list[Packet] = []
        self._waiting_bytes = 0
        self._file: GrowingFile | OutputStream | None = None
        self._failed = False  # libavformat knows of packets that are not in the file

    def add(self, packet: Packet) -> None:
        """Take a packet for the next part; its times become those of the file.

        Raises av.FFmpegError, and OSError where the disk has no room for it: then the packet does not count.
        """
        if self._file:
            if self._waiting_bytes > _PART_BYTES:
                self.flush()
            more_bytes = self._waiting_bytes + packet.size + _PACKET_BYTES
            self._file.have_room(more_bytes + self._last_bytes())
        self.container.mux(packet)
        self._waiting.append(packet)
        self._waiting_bytes += packet.size + _PACKET_BYTES

    def flush(self) -> None:
        """Write the part; all of it, or nothing. Raises OSError, av.FFmpegError."""
        if not self._waiting:
            return
        packets, self._waiting, self._waiting_bytes = self._waiting, [], 0
        try:
            if self._file:
                part = self._part(packets, self._file.size_bytes)
                self._file.append(part)
            else:
                opening = self._opening(packets)
                part = self._part(packets, len(opening))
                self._file = _begin(self._target, opening + part)
            if isinstance(self._file, GrowingFile):
                self._seal(self._file, self._file.size_bytes - len(part))
        except BaseException:
            self._failed = True
            raise

    def expect_more(self) -> None:
        """Raises OSError if the disk has no room for a part larger than any so far."""
        if self._file:
            self._file.have_room(2 * self._file.largest_bytes + self._last_bytes())

    def finish(self, whole: bool) -> None:
        """Add the index and close the file; without parts there is none. Raises OSError, av.FFmpegError.

        `whole` says that the file holds all that it should: only then it is tagged. A stream gets neither of them.
        """
        with contextlib.closing(self._file) if self._file else contextlib.nullcontext():
            if self._file:
                self.flush()
            self._mirror.keep()
            self.container.close()
            if isinstance(self._file, GrowingFile) and not self._failed:
                self._end(self._file, self._mirror.kept)
                if whole and self._held is not None:
                    self._tag(self._file, self._held)

    def _last_bytes(self) -> int:
        """At most so many bytes end the file as it is now, with its tag."""
        return self._ending_bytes() + (0 if self._held is None else len(self._held) + _TAG_BYTES)

    def _begun(self, packets: Sequence[Packet]) -> bytes:
        """A whole file of libavformat's with the same streams and these packets."""
        file = io.BytesIO()
        with av.open(file, "w", format=self._format, container_options=self.options) as container:
            for stream in self.container.streams:
                add_same_stream(container, stream)
            for packet in packets:
                home, packet.stream = packet.stream, container.streams[packet.stream.index]
                container.mux(packet)
                packet.stream = home
        return file.getvalue()

    @abstractmethod
    def _opening(self, packets: Sequence[Packet]) -> bytes:
        """What begins the file of which these are the first packets."""

    @abstractmethod
    def _part(self, packets: Sequence[Packet], offset: int) -> bytes:
        """What holds these packets, at that place in the file."""

    @abstractmethod
    def _seal(self, file: GrowingFile, offset: int) -> None:
        """Make the part at that place count, now that all of it is there."""

    @abstractmethod
    def _ending_bytes(self) -> int:
        """At most so many bytes end the file as it is now."""

    @abstractmethod
    def _tag(self, file: GrowingFile, held: bytes) -> None:
        """Append the tag to the file that has ended."""

    @abstractmethod
    def _end(self, file: GrowingFile, kept: bytes) -> None:
        """Append what ends the file; libavformat ended its own with what was kept."""


def add_same_stream(container: OutputContainer, stream: av.stream.Stream) -> av.stream.Stream:
    """Add one for packets of the other's kind. PyAV itself drops the four letters that tell ProRes with alpha apart."""
    added = container.add_stream_from_template(stream)
    added.codec_context.codec_tag = stream.codec_context.codec_tag
    return added


def _begin(target: str | OutputStream, data: bytes) -> GrowingFile | OutputStream:
    """A file with these bytes, or none; or the stream, which has taken them. Raises OSError, OutputError."""
    if isinstance(target, OutputStream):
        target.append(data)
        return target
    file = GrowingFile(target)
    try:
        file.append(data)
    except BaseException:
        file.close()
        with contextlib.suppress(OSError):
            os.unlink(target)
        raise
    return file


class _Mirror:
    """The file that libavformat's muxer believes to write; only what it writes last is kept."""

    def __init__(self) -> None:
        self._position = 0
        self._start: int | None = None
        self._kept = bytearray()

    @property
    def kept(self) -> bytes:
        """What was written beyond the end of the file, since keep."""
        return bytes(self._kept)

    def keep(self) -> None:
        """From now on."""
        self._start = self._position

    def write(self, data: bytes) -> int:
        """As a file does."""
        if self._start is not None and self._position >= self._start:
            first = self._position - self._start
            self._kept[first : first + len(data)] = data
        self._position += len(data)
        return len(data)

    def seek(self, offset: int, whence: int) -> int:
        """As a file does; libavformat knows all positions by itself."""
        self._position = offset if whence == 0 else self._position + offset
        return self._position

    def tell(self) -> int:
        """As a file does."""
        return self._position
