"""Pictures of frames go in; one output has them written on a thread of its own, and drops what it cannot take in time.

Nothing is waited for: pictures are read back through a ring, and a frame for which there is no place is dropped before
it is read back. What goes wrong ends this output alone.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

from texelflow.gpu_delegate.context import Context
from texelflow.gpu_delegate.errors import DeviceError, TexelflowError

from ..frame.readback import Bytes, ReadbackRing
from ..frame.targets import OffscreenTarget
from ..frame.yuv import YuvPicture, size_bytes
from ..picture.preprocess import ImageSize
from ..picture.video_frame import VideoFrame
from ..threads import Worker

_MOST_FRAMES = 8  # that wait for a sink
_MOST_BYTES = 64 << 20  # of those, but two may always wait
_RING = 3


@dataclass(frozen=True)
class Stamp:
    """Which frame: the number that its source gave it, and when it was taken, in microseconds of its source's time."""

    index: int
    pts: int


class Sink(Protocol):
    """What takes an output's frames. It is made on the OpenGL thread; then only the output's own thread uses it."""

    name: str  # for a person
    newest_wins: bool  # whether a frame that waits gives way to the next one

    def write(self, stamp: Stamp, data: Bytes) -> None:
        """Take one frame. Raises TexelflowError."""

    def close(self) -> str:
        """No more come: one line on what there is now. Raises TexelflowError."""


@dataclass(frozen=True)
class Counts:
    """Frames of one output so far: those handed to its sink, and those dropped."""

    taken: int = 0
    dropped: int = 0


class Branch:
    """One output at work. In: take, in the stage of each frame, and end. Belongs to the context's thread."""

    def __init__(
        self,
        context: Context,
        size: ImageSize,
        picture: Callable[[], OffscreenTarget],
        yuv: YuvPicture | None,
        sink: Sink,
    ) -> None:
        """`picture` draws or finds what the sink gets, in the format of `yuv`, which is its maker's; None for RGBA.

        Raises DeviceError for want of memory.
        """
        frame_bytes = size[0] * size[1] * 4 if yuv is None else size_bytes(yuv.format)
        self.size, self.sink = size, sink
        self._begun_s = perf_counter()
        self._taken = self._dropped = 0
        self._picture, self._yuv = picture, yuv
        self._most = most_waiting(frame_bytes)
        self._ring: ReadbackRing[Stamp] = ReadbackRing(context, frame_bytes, _RING)
        self.last_words = ""  # what the sink said at the end; empty before, and after a failure
        self._worker: Worker[tuple[Stamp, Bytes]] = Worker(
            lambda item: sink.write(*item), depth=self._most + _RING, close=self._close
        )
        self._ending = False

    @property
    def counts(self) -> Counts:
        """So far."""
        return Counts(self._taken, self._dropped)

    @property
    def status(self) -> str:
        """What is written, for how long, and what was lost: 'texelflow-1.mp4 00:12, 3 dropped'."""
        minutes, seconds = divmod(int(perf_counter() - self._begun_s), 60)
        lost = f", {self._dropped} dropped" if self._dropped and not self.sink.newest_wins else ""
        return f"{self.sink.name} {minutes:02}:{seconds:02}{lost}"

    @property
    def ended(self) -> bool:
        """Whether all is written, or never will be."""
        return self._ending and self._worker.ended

    def take(self, frame: VideoFrame) -> None:
        """Have the picture of this frame written, or drop it. Raises DeviceError for an error of the device."""
        if not self.sink.newest_wins and self._worker.waiting >= self._most:
            self._dropped += 1
        else:
            self._request(Stamp(frame.index, frame.pts))
        for item in self._ring.collect():
            self._put(item)

    def end(self) -> None:
        """Take no more, and let the thread write what is under way. Waits for the device, but not for the thread.

        What a device that has failed does not hand out any more is lost; what came before is written all the same.
        """
        if self._ending:
            return
        self._ending = True
        try:
            with contextlib.suppress(DeviceError):
                for item in self._ring.drain():
                    self._put(item)
        finally:
            self._ring.release()
            self._worker.end()

    def wait(self, timeout_s: float) -> bool:
        """Wait until all is written, after end; whether that was so in time."""
        return self._worker.join(timeout_s)

    def failure(self) -> TexelflowError | None:
        """What went wrong on the thread, if anything did. Raises what is no TexelflowError."""
        try:
            self._worker.check()
        except TexelflowError as error:
            return error
        return None

    def _request(self, stamp: Stamp) -> None:
        picture = self._picture()
        if self._yuv is None:
            self._ring.request_picture(stamp, picture.framebuffer, picture.size)
        else:
            self._yuv.draw(picture)
            self._ring.request_codes(stamp, self._yuv.framebuffer, self._yuv.size)

    def _put(self, item: tuple[Stamp, Bytes]) -> None:
        if self.failure():
            return
        self._taken += 1
        if self.sink.newest_wins:
            replaced = self._worker.put_newest(item)
            self._taken, self._dropped = self._taken - replaced, self._dropped + replaced
        else:
            self._worker.put(item)

    def _close(self) -> None:
        self.last_words = self.sink.close()


def most_waiting(frame_bytes: int) -> int:
    """How many frames of that size may wait for a sink."""
    return max(2, min(_MOST_FRAMES, _MOST_BYTES // frame_bytes))
