"""Reads MJPEG streams over HTTP, the newest picture first.

Kept instead of FFmpeg's mpjpeg demuxer: jpegs.py and http_stream.py say why.
"""

import http.client
from time import perf_counter_ns

import numpy as np

from .http_stream import HttpStream, reason_of
from .jpegs import JpegSplitter
from .raw import BadBufferError, JpegDecoder
from .source import CapturedFrame, SourceError, SourceLostError

_OPEN_NS, _READ_NS = 4_000_000_000, 2_000_000_000


class MjpegSource:
    """MJPEG over HTTP, "multipart/x-mixed-replace". Implements Source. `damaged` counts pictures that do not decode.

    The time of a picture is when its first bytes arrived, so that its age includes its way through the network.
    """

    stamps = "arrival"
    fps = 0.0
    may_stand_still = False

    def __init__(self, stream: HttpStream, name: str) -> None:
        """Waits for the first picture. Raises SourceError; the stream is then closed."""
        self._stream, self._name = stream, name
        self._splitter, self._decode = JpegSplitter(), JpegDecoder()
        self.damaged = 0
        try:
            self._first: CapturedFrame | None = self._next(_OPEN_NS)
        except SourceLostError as error:
            self.close()
            raise SourceError(str(error)) from error
        self.format = self._first.picture.format
        width, height = self.format.size
        self.description = f"{name}, MJPEG {width}x{height}"

    def read(self) -> CapturedFrame:
        """The next picture; of several that are there already the newest. Raises SourceLostError."""
        first, self._first = self._first, None
        return first or self._next(_READ_NS)

    def close(self) -> None:
        """Hang up; harmless when repeated."""
        self._stream.close()

    def _next(self, patience_ns: int) -> CapturedFrame:
        deadline_ns = perf_counter_ns() + patience_ns
        received_bytes = 0
        while perf_counter_ns() < deadline_ns:
            try:
                data = self._stream.read(deadline_ns)
            except TimeoutError:
                break
            except (OSError, http.client.HTTPException, ValueError) as error:
                raise SourceLostError(f"{self._name} cut the connection: {reason_of(error)}") from error
            if not data:
                raise SourceLostError(f"{self._name} cut the connection")
            received_bytes += len(data)
            if captured := self._newest(data):
                return captured
        if received_bytes:
            raise SourceLostError(f"{self._name} sends nothing that is a whole JPEG picture")
        raise SourceLostError(f"no picture from {self._name} for {patience_ns // 1_000_000_000} s")

    def _newest(self, data: bytes) -> CapturedFrame | None:
        """Of the pictures that these bytes complete."""
        found = self._splitter.feed(data, perf_counter_ns())
        for skipped in range(len(found)):
            jpeg, arrived_ns = found[-1 - skipped]
            start_ns = perf_counter_ns()
            try:
                picture, convert = self._decode(np.frombuffer(jpeg, np.uint8))
            except BadBufferError:
                self.damaged += 1
                continue
            decode_ms = (perf_counter_ns() - start_ns) / 1e6
            return CapturedFrame(picture, arrived_ns, start_ns, decode_ms, convert, len(found) - 1 - skipped)
        return None
