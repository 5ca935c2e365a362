"""A stream's bytes go in as they arrive; whole JPEG pictures come out, whatever lies between them.

A picture is found by its own markers (ITU-T T.81, annex B), not by what a multipart header claims: wrong boundaries,
wrong lengths and garbage cost no more than the picture that they hit. Thumbnails inside of a picture are passed over.
"""

import re

MOST_BYTES = 32 << 20  # of one picture
_START = b"\xff\xd8\xff"
_END, _SCAN = 0xD9, 0xDA
_ALONE = frozenset({0x01, *range(0xD0, 0xD8)})  # markers without a length
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
        while self._find_start(now_ns) and (end := self._find_end()) is not None:
            if end > 0:
                found.append((bytes(self._data[:end]), self._began_ns))
            self._drop(max(end, 2))
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

    def _find_end(self) -> int | None:
        """Where the picture ends; 0 if it is none; None if not all of it is there yet."""
        while True:
            if self._at > MOST_BYTES:
                return 0
            if self._in_scan:
                marker = _NEXT_MARKER.search(self._data, self._at)
                if marker is None:
                    self._at = max(self._at, len(self._data) - 1)
                    return None
                self._at, self._in_scan = marker.start(), False
            if len(self._data) < self._at + 4 and self._data[self._at + 1 : self._at + 2] != bytes([_END]):
                return None
            if self._data[self._at] != 0xFF:
                return 0
            code = self._data[self._at + 1]
            if code == _END:
                return self._at + 2
            if code == 0xFF or code in _ALONE:  # any number of FF may come before a marker
                self._at += 1 if code == 0xFF else 2
                continue
            length = int.from_bytes(self._data[self._at + 2 : self._at + 4], "big")
            if code < 0xC0 or code == 0xD8 or length < 2:
                return 0
            self._at += 2 + length
            self._in_scan = code == _SCAN

    def _drop(self, count: int) -> None:
        del self._data[:count]
        self._at, self._in_scan = 0, False
