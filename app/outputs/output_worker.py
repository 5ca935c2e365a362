"""Runs one output: its sink writes what is read of each frame, on a thread of its own.

Where every frame counts the thread is waited for; else a frame that finds no place is dropped before it is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

from texelflow.gpu_delegate.base.errors import ContextLostError, DeviceError, TexelflowError

from ..frame.textures.readback import ReadBytes
from ..models.decoders.found import Finding
from ..picture.video_frame import VideoFrame
from ..threads import Observer, Worker
from .picture_readers import RING, FrameReader, FrameStamp, StampedBytes

MOST_KEPT_FRAMES = 4  # that wait for a sink where they are waited for: what a kill loses

_MOST_FRAMES = 8  # that wait for a sink
_MOST_BYTES = 64 << 20  # of those, but two may always wait


class Sink(Protocol):
    """What takes an output's frames. It is made on the OpenGL thread; then only the output's own thread uses it."""

    name: str  # to be read
    newest_wins: bool  # whether a frame that waits gives way to the next one

    @property
    def warnings(self) -> Sequence[str]:
        """One line each on what differs from what was asked for, complete once it is closed."""

    def write(self, stamp: FrameStamp, data: ReadBytes) -> None:
        """Take one frame. Raises TexelflowError."""

    def close(self, complete: bool) -> str:
        """No more come: one line on what there is now. `complete`: the source has ended. Raises TexelflowError."""


@dataclass(frozen=True)
class OutputCounts:
    """Frames of one output so far: those handed to its sink, and those dropped."""

    taken: int = 0
    dropped: int = 0


class OutputWorker:
    """One output at work. In: take, in the stage of each frame, and end. Belongs to the context's thread."""

    def __init__(
        self, reader: FrameReader, sink: Sink, keeps_all: bool = False, observe: Observer | None = None
    ) -> None:
        """Takes both over. `keeps_all`: wait instead of dropping. `observe` is called on the thread for each frame."""
        self.size, self.sink = reader.size, sink
        self._reader, self._keeps_all = reader, keeps_all
        self._begun_s = perf_counter()
        self._taken = self._dropped = 0
        self._last: int | None = None  # the number of the frame that was handed to the sink last
        self._repeats_to: int | None = None  # frames up to this number come once more, and were written before
        self._most = most_waiting(reader.frame_bytes)
        self._ending = self._complete = False
        self._device_error: DeviceError | None = None  # for which frames are missing at the end
        self.last_line = ""  # what the sink said at the end; empty before, and after a failure
        depth = min(self._most, MOST_KEPT_FRAMES) if keeps_all else self._most + RING
        self._worker: Worker[StampedBytes] = Worker(
            lambda item: sink.write(*item), depth, observe=observe, close=self._close
        )

    @property
    def counts(self) -> OutputCounts:
        """So far."""
        return OutputCounts(self._taken, self._dropped)

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

    def take(self, frame: VideoFrame, findings: tuple[Finding, ...] = ()) -> None:
        """Have the picture of this frame written, with what was found there, or drop it.

        Raises DeviceError for an error of the device.
        """
        if self._repeats_to is not None and frame.index <= self._repeats_to:
            return
        self._repeats_to = None
        if not self._keeps_all and not self.sink.newest_wins and self._worker.waiting >= self._most:
            self._dropped += 1
        else:
            self._reader.request(FrameStamp(frame.index, frame.pts, frame.time_ms, findings))
        for item in self._reader.collect():
            self._put(item)

    def deliver(self) -> None:
        """Hand all that was read to the thread, waiting for the device; what else goes wrong there is told at the end.

        Raises ContextLostError.
        """
        try:
            for item in self._reader.drain():
                self._put(item)
        except ContextLostError:
            raise
        except DeviceError as error:
            self._device_error = error

    def lose_reader(self) -> int | None:
        """Let go of what the device has not handed out; the number of the last frame that it has, if there is one."""
        self._reader.release()
        return self._last

    def renew_reader(self, reader: FrameReader) -> None:
        """Go on with another device's, and the frames that come again are those that were not handed out."""
        self._reader, self._repeats_to = reader, self._last

    def end(self, complete: bool = False) -> None:
        """Take no more, and let the thread write what is under way. Waits for the device, but not for the thread.

        What a device that has failed does not hand out any more is lost; what came before is written all the same.
        """
        if self._ending:
            return
        self._ending, self._complete = True, complete
        try:
            self.deliver()
        except ContextLostError as error:
            self._device_error = error
        finally:
            self._reader.release()
            self._worker.end()

    def give_up(self) -> None:
        """End after the frame at hand, whatever still waits, and wait until the sink is closed."""
        if not self._ending:
            self._ending = True
            self._reader.release()
        self._worker.drop()

    def wait(self, timeout_s: float | None) -> bool:
        """Wait until all is written, after end; whether that was so in time."""
        return self._worker.join(timeout_s)

    def failure(self) -> TexelflowError | None:
        """What went wrong, if anything did; a lost frame is a failure where all count. Raises any other error."""
        try:
            self._worker.check()
        except TexelflowError as error:
            return error
        return self._device_error if self._keeps_all else None

    def _put(self, item: StampedBytes) -> None:
        if self.failure():
            return
        self._taken += 1
        self._last = item[0].index
        if self.sink.newest_wins:
            replaced = self._worker.put_newest(item)
            self._taken, self._dropped = self._taken - replaced, self._dropped + replaced
        else:
            self._worker.put(item)

    def _close(self) -> None:
        self.last_line = self.sink.close(self._complete)


def most_waiting(frame_bytes: int) -> int:
    """How many frames of that size may wait for a sink."""
    return max(2, min(_MOST_FRAMES, _MOST_BYTES // frame_bytes))
