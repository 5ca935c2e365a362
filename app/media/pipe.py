"""Reads a recording from a pipe, as a rule standard input, as far as it has arrived.

What can only be played by going back and forth, as mp4 with its index at the end, is refused. Pictures one after the
other (FFmpeg's image2pipe with PNG or JPEG) are a recording, too.
"""

import os
import stat
import sys
import threading
from collections import deque
from collections.abc import Iterator
from fractions import Fraction
from functools import partial

import av

from texelflow.gpu_delegate.base.errors import MediaError

from .container import ContainerLayout, PassingBytes, index_is_last, is_mp4
from .image_file import MOST_BYTES, decode_image
from .image_header import PNG_MAGIC
from .image_sequence import RATE, Decode, ImageRecording
from .recording import Position, Recording
from .sources import MAX_PIXELS, FileSource, allowed_formats

PIPE = "-"
_PORTION_BYTES = 1 << 18
_AHEAD_BYTES = 1 << 22
_HEAD_BYTES = 1 << 12


class PipeReader:
    """The bytes of a pipe, read on a thread of its own and at most 4 MB ahead, so that nobody is held up for ever."""

    def __init__(self, descriptor: int) -> None:
        """Of an open file. Stays open: a thread that reads cannot be made to leave it."""
        self._descriptor = descriptor
        self._portions: deque[bytes] = deque()
        self._held_bytes = 0
        self._ended = self.interrupted = False
        self.error: OSError | None = None
        self._changed = threading.Condition()
        threading.Thread(target=self._run, daemon=True).start()

    def read(self, size: int) -> bytes:
        """At most that many bytes, waited for; none at the end, and after `interrupt`."""
        with self._changed:
            self._changed.wait_for(lambda: self._portions or self._ended or self.interrupted)
            if self.interrupted or not self._portions:
                return b""
            portion = self._portions.popleft()
            if len(portion) > size:
                self._portions.appendleft(portion[size:])
            self._held_bytes -= min(size, len(portion))
            self._changed.notify_all()
            return portion[:size]

    def take(self, size: int) -> bytes:
        """That many bytes; fewer at the end alone."""
        parts, left = list[bytes](), size
        while left and (part := self.read(left)):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def peek(self, size: int) -> bytes:
        """The same, which are read once more afterwards."""
        if not (data := self.take(size)):
            return b""
        with self._changed:
            self._portions.appendleft(data)
            self._held_bytes += len(data)
        return data

    def interrupt(self) -> None:
        """Whoever waits, now or later, gets the end."""
        with self._changed:
            self.interrupted = True
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            while data := os.read(self._descriptor, _PORTION_BYTES):
                with self._changed:
                    self._changed.wait_for(lambda: self._held_bytes < _AHEAD_BYTES or self.interrupted)
                    if self.interrupted:
                        return
                    self._portions.append(data)
                    self._held_bytes += len(data)
                    self._changed.notify_all()
        except OSError as error:
            self.error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()


class PipeSource(FileSource):
    """What comes through a pipe, as a Recording. Its sound cannot be had: it is gone once the pictures were read."""

    def __init__(
        self, reader: PipeReader, first: Position = 0, last: Position | None = None, rate: Fraction = RATE
    ) -> None:
        """`rate` is for pictures that state none. Raises MediaError, UsageError."""
        self._reader, self._rate, self._passing = reader, rate, PassingBytes()
        try:
            super().__init__(PIPE, first, last)
        except BaseException:
            reader.interrupt()
            raise

    def interrupt(self) -> None:
        """End it here, whatever is still to come."""
        self._reader.interrupt()

    def close(self) -> None:
        """Read no more; harmless when repeated."""
        self._reader.interrupt()
        super().close()

    def _open(self) -> tuple[av.container.InputContainer, ContainerLayout]:
        head = self._reader.peek(_HEAD_BYTES)
        if index_is_last(head):
            raise MediaError(
                "'-' brings mp4 with its index at the end, which no pipe can go back from; name the file, or write it "
                "fragmented (-movflags frag_keyframe+empty_moov) or as .mkv"
            )
        options = {**allowed_formats("jpeg_pipe"), "protocol_whitelist": "none", "framerate": str(self._rate)}
        try:
            container = av.open(
                self,
                "r",
                options={"max_pixels": str(MAX_PIXELS)},
                container_options=options,
                buffer_size=_PORTION_BYTES,
            )
        except (av.FFmpegError, ValueError, UnicodeError) as error:
            raise MediaError(_refusal(head)) from error
        return container, ContainerLayout("pipe")

    def read(self, size: int) -> bytes:
        """For FFmpeg: what comes next."""
        data = self._reader.read(size)
        self._passing.feed(data)
        return data

    def _note_missing_end(self, frames: int) -> None:
        if self._reader.error is not None:
            self.truncated = f"reading failed after {frames} frames ({self._reader.error.strerror})"
            return
        while self.read(_PORTION_BYTES):  # what is behind the last frame tells whether all is there
            pass
        if not self._reader.interrupted:
            self._layout = self._passing.ended()
            super()._note_missing_end(frames)


def open_pipe(descriptor: int, first: Position = 0, last: Position | None = None, rate: Fraction = RATE) -> Recording:
    """The recording that comes through an open pipe. Raises MediaError, UsageError."""
    reader = _check(descriptor)
    if reader.peek(len(PNG_MAGIC)) != PNG_MAGIC:
        return PipeSource(reader, first, last, rate)
    stream = _PngStream(reader)
    return _PipedImages(reader, stream, first, last, rate)


class _PngStream:
    """PNG files one behind the other, taken apart at their ends; `missing` says whether the last was cut off."""

    def __init__(self, reader: PipeReader) -> None:
        self._reader = reader
        self._cut_off = False

    def missing(self) -> str | None:
        return "the last picture is cut off" if self._cut_off else None

    def __iter__(self) -> Iterator[Decode]:
        while head := self._reader.take(len(PNG_MAGIC)):
            data = self._rest(head)
            if data is None:
                return
            yield partial(decode_image, PIPE, data)

    def _rest(self, head: bytes) -> bytes | None:
        """A file to its end; None where there is none."""
        parts, size_bytes, kind = [head], len(head), b""
        self._cut_off = True
        while head == PNG_MAGIC and kind != b"IEND":
            start = self._reader.take(8)
            length, kind = int.from_bytes(start[:4], "big") + 4, start[4:]  # with its checksum
            size_bytes += len(start) + length
            if len(start) < 8 or size_bytes > MOST_BYTES:
                return None
            content = self._reader.take(length)
            if len(content) < length:
                return None
            parts += [start, content]
        self._cut_off = head != PNG_MAGIC
        return None if self._cut_off else b"".join(parts)


class _PipedImages(ImageRecording):
    """Pictures of a pipe."""

    def __init__(
        self, reader: PipeReader, stream: _PngStream, first: Position, last: Position | None, rate: Fraction
    ) -> None:
        self._reader = reader
        super().__init__(
            PIPE, stream, first, last, rate, missing=lambda: None if reader.interrupted else stream.missing()
        )

    def interrupt(self) -> None:
        self._reader.interrupt()

    def close(self) -> None:
        self._reader.interrupt()


def _check(descriptor: int) -> PipeReader:
    """Raises MediaError for a terminal, a folder, and where nothing is open."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError as error:
        raise MediaError("'-' is standard input, which is closed; pipe a recording into it") from error
    if os.isatty(descriptor) or stat.S_ISDIR(mode):
        raise MediaError("'-' is standard input, where no recording comes from; pipe one into it, or name a file")
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(descriptor, os.O_BINARY)
    return PipeReader(descriptor)


def _refusal(head: bytes) -> str:
    if not head:
        return "'-' is standard input, and nothing came through it; see what the program before it says"
    what = "a damaged mp4" if is_mp4(head) else "no video in a known format"
    return f"'-' brings {what}; from a pipe mkv, webm, ts, y4m, fragmented mp4 and PNG files can be read"
