"""Plays a video file at its own pace as if it were a camera."""

import time
from collections.abc import Iterator
from dataclasses import replace
from time import perf_counter_ns

from texelflow.gpu_delegate.base.errors import MediaError

from ..media.sound_blocks import SoundBlock
from ..media.sources import FileSource
from ..picture.video_frame import VideoFrame
from .clip_sound import ClipSound
from .source import CapturedFrame, CaptureRequest, SourceError, SourceLostError

_MOST_WAIT_S = 0.5  # for a frame; after that the one before is delivered again
_MOST_LATE_NS = 500_000_000  # a file that cannot be decoded at its own pace is played more slowly


class ClipSource:
    """A recording, from its start to its end, or over and over. Implements Source."""

    stamps = "made"
    may_stand_still = True

    def __init__(self, path: str, loop: bool, sound: bool = False) -> None:
        """Raises MediaError."""
        self._path, self._loop, self._hears = path, loop, sound
        self._file = FileSource(path)
        info = self._file.info
        self._sound: ClipSound | None = None
        self._frames: Iterator[VideoFrame] = iter(self._file)
        self._frame_ns = round(1e9 / info.average_rate)
        self.format = self._file.format
        self.fps = float(info.average_rate)
        self.description = f"{path}, {info.codec} {info.width}x{info.height}, {self.fps:.3g} fps"
        self._start_ns = perf_counter_ns()  # when its first frame is due
        self._next: VideoFrame | None = None
        self._shown: CapturedFrame | None = None
        self._end_ns = 0  # when the last frame has been seen, from the start on

    def read(self) -> CapturedFrame | None:
        """The next frame, when it is due; in long gaps the one before again. Raises SourceLostError."""
        try:
            self._next = self._next or self._following()
        except MediaError as error:
            raise SourceLostError(str(error)) from error
        if self._next is None:
            return None
        due_ns = self._due_ns(self._next)
        wait_s = (due_ns - perf_counter_ns()) / 1e9
        time.sleep(min(max(0.0, wait_s), _MOST_WAIT_S))
        if wait_s > _MOST_WAIT_S and self._shown:
            return replace(self._shown, captured_ns=perf_counter_ns())
        frame, self._next = self._next, None
        self._shown = CapturedFrame(frame.picture, due_ns, frame.decode_start_ns, frame.decode_ms, frame.convert)
        return replace(self._shown, sound=self._heard(frame))

    def close(self) -> None:
        """Close the file; harmless when repeated."""
        self._file.close()
        self._close_sound()

    def _heard(self, frame: VideoFrame) -> tuple[SoundBlock, ...]:
        """The sound up to the end of this frame. Raises SourceLostError."""
        if not self._hears or not self._file.info.has_audio:
            return ()
        if self._sound is None:
            self._sound = ClipSound(self._path, float(frame.pts * self._file.info.time_base) - frame.time_ms / 1000)
        return self._sound.until(self._end_ns, self._start_ns)

    def _close_sound(self) -> None:
        if self._sound:
            self._sound.close()
        self._sound = None

    def _due_ns(self, frame: VideoFrame) -> int:
        """When to show a frame; all later ones are put off where it is far too late for that."""
        offset_ns = round(frame.time_ms * 1e6)
        late_ns = perf_counter_ns() - (self._start_ns + offset_ns)
        if late_ns > _MOST_LATE_NS:
            self._start_ns += late_ns
        self._end_ns = offset_ns + self._frame_ns
        return self._start_ns + offset_ns

    def _following(self) -> VideoFrame | None:
        frame = next(self._frames, None)
        if frame is None and self._loop:
            self.close()
            self._file = FileSource(self._path)
            self._frames = iter(self._file)
            self._start_ns += self._end_ns
            frame = next(self._frames, None)
        return frame


def open_clip(path: str, requested: CaptureRequest) -> ClipSource:
    """The file, in its own size and at its own rate; over and over if so wanted. Raises SourceError."""
    try:
        return ClipSource(path, requested.loop, requested.sound)
    except MediaError as error:
        raise SourceError(str(error)) from error
