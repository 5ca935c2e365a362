"""Finds whole JPEG pictures in the bytes of a stream, whatever lies between them.

Kept instead of FFmpeg's mpjpeg demuxer, because that fails where a server's boundaries or lengths are wrong or there
are no headers between pictures, and says neither when a picture's first byte came nor how many wait behind it.
A picture is found by its own markers (ITU-T T.81, annex B), not by what a multipart header claims: wrong boundaries,
wrong lengths and garbage cost no more than the picture that they hit. Thumbnails inside of a picture are passed over.
"""

import re

MOST_BYTES = 32 << 20  # of one picture
_START = b"\xff\xd8\xff"
_END, _SCAN = b"\xd9", 0xDA
_FILL = re.compile(rb"\xff+")  # any number of them begins a marker
_NEXT_MARKER = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")  # in a scan: 0 is stuffing, D0 to D7 begin anew in its middle


class JpegSplitter:
    """Give it all that arrives, in any portions."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._at = 0  # how far the picture that begins the data has been read; 0: no picture begins there yet
        self._in_scan = False
        self._began_ns = 0

    def feed(self, data: bytes, now_ns: int) -> list[tuple[bytes, int]]:
        """Pictures that are complete now, each with when its first bytes came."""
        self._data += data
        found = []
        while self._find_start(now_ns) and (whole := self._walk()) is not None:
            if whole:
                found.append((bytes(self._data[: self._at]), self._began_ns))
            self._drop(self._at)
        return found

    def _find_start(self, now_ns: int) -> bool:
        """Whether a picture begins the data, after all before it was dropped."""
        if self._at:
            return True
        start = self._data.find(_START)
        if start < 0:
            self._drop(max(0, len(self._data) - 2))
            return False
        self._drop(start)
        self._at, self._began_ns = 2, now_ns
        return True

    def _walk(self) -> bool | None:
        """Go on to the picture's end; False where it turns out to be none, None where more is needed."""
        while self._at <= MOST_BYTES:
            if self._in_scan:
                marker = _NEXT_MARKER.search(self._data, self._at)
                if marker is None:
                    self._at = max(self._at, len(self._data) - 1)
                    return None
                self._at, self._in_scan = marker.start(), False
            if fill := _FILL.match(self._data, self._at):
                self._at = fill.end() - 1
            head = self._data[self._at : self._at + 4]
            if head[1:2] == _END and head[0] == 0xFF:
                self._at += 2
                return True
            if len(head) < 4:
                return None
            length = int.from_bytes(head[2:], "big")
            if head[0] != 0xFF or head[1] < 0xC0 or head[1:2] == _START[1:2] or length < 2:
                return False
            self._at += 2 + length
            self._in_scan = head[1] == _SCAN
        return False

    def _drop(self, count: int) -> None:
        del self._data[:count]
        self._at, self._in_scan = 0, False
