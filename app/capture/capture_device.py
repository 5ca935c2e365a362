"""Reads frames from a capture that OpenCV has opened, with the driver's time stamps where they are plausible.

Used by one thread. A call into a driver can hang: OpenCV waits a second for V4L2 (camera.py sets that), other backends
have no limit. So `read` may block, and its caller must be able to abandon the thread (capture_reader.py).
`close` waits for the driver as well, and is called by the same thread.
"""

import contextlib
import math
import os
from collections.abc import Callable
from functools import partial
from time import perf_counter_ns, sleep

import cv2
import numpy as np

from ..picture.convert import Rgba
from ..picture.picture import Picture
from .raw import BadBufferError, CameraBytes, JpegDecoder, RawFormat, picture_of, rgba_of
from .source import CapturedFrame, CaptureRequest, SourceError, SourceLostError

FIRST_PICTURE_NS = 6_000_000_000  # cameras that adjust themselves at the start take seconds
PATIENCE_NS = 900_000_000  # with damaged pictures, one after the other, and with none
STAMP_AGE_NS = 1_000_000_000
_PAUSE_S = 0.05
_MOST_FPS = 1000.0


class DriverClock:
    """Decides for each time stamp whether it is plausible: it must increase, and be of the last second.

    V4L2 stamps buffers by CLOCK_MONOTONIC, which is what perf_counter reads on Linux; other backends count from the
    stream's beginning, or not at all.
    """

    def __init__(self) -> None:
        self._last_ns = 0
        self.sane = False

    def stamp(self, position_ms: float, now_ns: int) -> int | None:
        """When the picture was taken, of perf_counter; None if unknown."""
        taken_ns = int(position_ms * 1e6) if math.isfinite(position_ms) else 0
        self.sane = self._last_ns < taken_ns and abs(now_ns - taken_ns) <= STAMP_AGE_NS
        self._last_ns = max(self._last_ns, taken_ns) if self.sane else taken_ns
        return min(taken_ns, now_ns) if self.sane else None


class OpenCvCamera:
    """A Source of an opened capture. `damaged` counts pictures that were skipped since they could not be read."""

    may_stand_still = False

    def __init__(
        self,
        capture: cv2.VideoCapture,
        name: str,
        requested: CaptureRequest,
        raw: RawFormat | None = None,
        node: str | None = None,
    ) -> None:
        """raw says how unconverted buffers are laid out, None that they are BGR; node is its path, where it has one.

        Waits for the first picture, a few seconds at most. Raises SourceError if none comes.
        """
        self._capture, self._name, self._raw, self._node = capture, name, raw, node
        self._clock = DriverClock()
        self._decode_jpeg = JpegDecoder()
        self.damaged = 0
        try:
            self._first: CapturedFrame | None = self._wait_for_first()
        except BaseException:
            self.close()
            raise
        self.format = self._first.picture.format
        self.fps = _rate(capture)
        self.description = self._describe(requested)

    @property
    def stamps(self) -> str:
        """Where the last picture's time stamp is from."""
        return "driver" if self._clock.sane else "arrival"

    def read(self) -> CapturedFrame:
        """The next picture that is whole. Raises SourceLostError when none comes for about a second."""
        if self._first is not None:
            first, self._first = self._first, None
            return first
        start_ns, reason = perf_counter_ns(), "gives no more pictures"
        while not self._is_gone() and perf_counter_ns() - start_ns < PATIENCE_NS:
            try:
                if captured := self._take():
                    return captured
                sleep(_PAUSE_S)
            except BadBufferError as error:
                reason = f"sends nothing that can be read: {error}"
        raise SourceLostError(f"{self._name} {'was unplugged' if self._is_gone() else reason}")

    def close(self) -> None:
        """Give the camera back; harmless when repeated. Waits for the driver."""
        with contextlib.suppress(cv2.error):
            self._capture.release()

    def _wait_for_first(self) -> CapturedFrame:
        start_ns, reason = perf_counter_ns(), "try another --size, --fps or --pixels, or plug it in again"
        while perf_counter_ns() - start_ns < FIRST_PICTURE_NS and not self._is_gone():
            try:
                if captured := self._take():
                    return captured
            except BadBufferError as error:
                reason = str(error)
            sleep(_PAUSE_S)
        raise SourceError(f"{self._name} opened, but gave no picture: {reason}")

    def _take(self) -> CapturedFrame | None:
        """What the driver has next, None for nothing. Raises BadBufferError."""
        try:
            arrived, data = self._capture.read()
            position_ms = self._capture.get(cv2.CAP_PROP_POS_MSEC)
        except cv2.error:
            return None
        if not arrived or data is None:
            return None
        start_ns = perf_counter_ns()
        captured_ns = self._clock.stamp(position_ms, start_ns)
        try:
            picture, convert = self._picture(np.asarray(data, np.uint8))
        except BadBufferError:
            self.damaged += 1
            raise
        return CapturedFrame(picture, captured_ns, start_ns, (perf_counter_ns() - start_ns) / 1e6, convert)

    def _picture(self, data: CameraBytes) -> tuple[Picture, Callable[[], Rgba]]:
        raw = self._raw
        if raw is None:
            raw = RawFormat("BGR3" if data.ndim == 3 else "GREY", (data.shape[1], data.shape[0]))
        if raw.pixels == "MJPG":
            return self._decode_jpeg(data)
        picture = picture_of(data, raw)
        return picture, partial(rgba_of, picture)

    def _is_gone(self) -> bool:
        return self._node is not None and not os.path.exists(self._node)

    def _describe(self, requested: CaptureRequest) -> str:
        pixels = self._raw.pixels if self._raw else "as BGR"
        width, height = self.format.size
        text = f"{self._name}, {pixels} {width}x{height}"
        if self.fps:
            text += f", {self.fps:.4g} fps"
        other_rate = self.fps and requested.fps and abs(self.fps - requested.fps) > 0.05 * requested.fps
        if (width, height) != requested.size or other_rate:
            text += f" (asked for {requested.size[0]}x{requested.size[1]}, {requested.fps:.4g} fps)"
        return text


def _rate(capture: cv2.VideoCapture) -> float:
    """The rate that the driver states, 0 where it is none."""
    with contextlib.suppress(cv2.error):
        fps = float(capture.get(cv2.CAP_PROP_FPS))
        if 0 < fps <= _MOST_FPS:
            return fps
    return 0.0
