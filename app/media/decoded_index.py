"""Indexes a recording by decoding it from the start: the time stamp and the checksum of each frame.

This defines "frame 1234", whatever packets state and wherever decoding began: seeking verifies by it that the right
picture came. It is built on a thread of the lowest priority, and reaches any part of a file some time after opening.
"""

import contextlib
import os
import sys
import threading
import time
import zlib
from array import array
from collections.abc import Callable

import numpy as np

from texelflow.gpu_delegate.base.errors import MediaError

from .packet_index import MOST_FRAMES
from .sources import FileSource, VideoFrame

_POLL_S = 0.02
_IDLE = 19  # the least urgent of Unix's priorities


def checksum(frame: VideoFrame) -> int:
    """Of a frame's samples as decoded, 32 bits."""
    found = 0
    for plane in frame.picture.planes:
        found = zlib.crc32(np.ascontiguousarray(plane).data, found)
    return found


class DecodedIndex:
    """Decodes a whole file on a thread of its own, ahead of whoever plays it.

    `pts` and `checksums` grow while it runs; both hold what FileSource's frames have, by number.
    """

    def __init__(self, path: str) -> None:
        self.pts: array[int] = array("q")
        self.checksums: array[int] = array("I")
        self.complete = False  # whether that is the whole file
        self.truncated: str | None = None  # then, as of FileSource: what is missing at its end
        self.ended = False  # whether it has seen all that it will
        self._path, self._unwanted = path, False
        self._grown = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait_for(self, index: int, timeout_s: float, unwanted: Callable[[], bool] = lambda: False) -> None:
        """Until it has seen a frame, or the end, or the time is over, or `unwanted` says so."""
        deadline_s = time.monotonic() + timeout_s
        with self._grown:
            while index >= len(self.checksums) and not (self.ended or unwanted() or time.monotonic() > deadline_s):
                self._grown.wait(_POLL_S)

    def confirms(self, frame: VideoFrame) -> bool | None:
        """Whether frame `index` is this one; None where it has not come to it yet."""
        if frame.index >= len(self.checksums):
            return None
        return (self.pts[frame.index], self.checksums[frame.index]) == (frame.pts, checksum(frame))

    def close(self) -> None:
        """End the thread; harmless when repeated."""
        self._unwanted = True
        self._thread.join()

    def _run(self) -> None:
        _give_way()
        try:
            with contextlib.suppress(MediaError), FileSource(self._path) as source:
                self.complete = self._read(source)
        finally:
            with self._grown:
                self.ended = True
                self._grown.notify_all()

    def _read(self, source: FileSource) -> bool:
        for frame in source:
            if self._unwanted or frame.index == MOST_FRAMES:
                return False
            with self._grown:
                self.pts.append(frame.pts)
                self.checksums.append(checksum(frame))
                self._grown.notify_all()
        self.truncated = source.truncated
        return True


def _give_way() -> None:
    """Give the calling thread the lowest priority, on Linux, where threads have their own."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _IDLE)
