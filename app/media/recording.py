"""Decoded frames with their times go in; those of a range come out, as every kind of recording gives them.

A file, numbered pictures and a pipe differ in where their frames come from; whoever reads frames need not know which.
"""

import abc
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from time import perf_counter_ns
from types import TracebackType
from typing import TypeAlias, TypeVar

import av

from texelflow.gpu_delegate.errors import MediaError, UsageError

from ..picture.picture import PictureFormat
from ..picture.video_frame import FrameMaker, VideoFrame

Position: TypeAlias = int | Fraction
"""A frame's number in the file, from 0; or, as a Fraction, seconds since the first frame."""

Opened = TypeVar("Opened", bound="Recording")


@dataclass(frozen=True)
class VideoInfo:
    """What a recording is, as displayed: sizes and sample_aspect_ratio after a turn by `rotation` degrees clockwise.

    colour_matrix and colour_range are those used for conversion to RGB; frame_count and duration_s the file's claims.
    """

    path: str
    width: int
    height: int
    rotation: int
    sample_aspect_ratio: Fraction
    average_rate: Fraction
    time_base: Fraction
    frame_count: int | None
    duration_s: float | None
    codec: str
    pixel_format: str
    colour_matrix: str
    colour_range: str
    has_audio: bool


class Recording(abc.ABC):
    """An iterable of frames from `first` to `last`, both included. Iterate once, as a context manager.

    After iteration `truncated` tells what was missing at the end (None: nothing), and `damaged_frames` counts what did
    not decode soundly. `lead` may be set before: so many frames before the range are given, too, and marked so. A
    subclass sets `info` and `maker` and says where its frames come from.
    """

    info: VideoInfo
    maker: FrameMaker

    def __init__(self, path: str, first: Position, last: Position | None) -> None:
        """Raises UsageError where the range is turned around."""
        if type(first) is type(last) and last is not None and last < first:
            raise UsageError(f"the range ends ({last}) before it begins ({first}); swap its two ends")
        self._path, self._first, self._last = path, first, last
        self.truncated: str | None = None
        self.damaged_frames = self.lead = 0

    @property
    def format(self) -> PictureFormat:
        """Of every frame's picture."""
        return self.maker.format

    @property
    def rescaled_frames(self) -> int:
        """How many frames changed size in mid-stream, and were scaled to the first one's size."""
        return self.maker.rescaled_frames

    def __enter__(self: Opened) -> Opened:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of what is read; harmless when repeated."""

    def interrupt(self) -> None:  # noqa: B027 - most kinds have nothing to do here
        """Let nobody wait for frames that may never come: they end here. From any thread; files need it not."""

    def __iter__(self) -> Iterator[VideoFrame]:
        """Yield the frames of the range. Raises MediaError if there is none, or a frame cannot be converted to RGB."""
        count = yielded = 0
        ended = False
        before: deque[tuple[int, int, Fraction, av.VideoFrame]] = deque(maxlen=self.lead)
        start_ns = perf_counter_ns()
        for count, (pts, time_s, frame) in enumerate(self._timed(), start=1):
            index = count - 1
            if self._last is not None and (index if isinstance(self._last, int) else time_s) > self._last:
                break
            if (index if isinstance(self._first, int) else time_s) < self._first:
                before.append((index, pts, time_s, frame))
                start_ns = perf_counter_ns()
                continue
            while before:
                number, stamp, at_s, led = before.popleft()
                yield replace(self.maker.make(number, stamp, float(at_s * 1000), led, start_ns), lead=True)
                start_ns = perf_counter_ns()
            yielded += 1
            yield self.maker.make(index, pts, float(time_s * 1000), frame, start_ns)
            start_ns = perf_counter_ns()
        else:
            ended = True
            self._note_missing_end(count)
        if not yielded:
            what = f"'{self._path}' has no frame in the range asked for"
            raise MediaError(f"{what}; its frames are 0 to {count - 1}" if ended else f"{what}; give a later end")

    @abc.abstractmethod
    def _timed(self) -> Iterator[tuple[int, Fraction, av.VideoFrame]]:
        """Each frame with its pts and its seconds since the first."""

    @abc.abstractmethod
    def _note_missing_end(self, frames: int) -> None:
        """Called where the recording ended by itself: set `truncated` if there should have been more."""
