"""The interface of recordings of every kind: an iterable of decoded frames, with their times and what a recording is.

A file, numbered pictures and a pipe differ in where their frames come from; whoever reads frames need not know which.
"""

import abc
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from time import perf_counter_ns
from types import TracebackType
from typing import TypeAlias, TypeVar

import av

from texelflow.gpu_delegate.base.errors import MediaError, UsageError

from ..picture.picture import PictureFormat
from ..picture.video_frame import FrameMaker, VideoFrame

_MOST_HELD_BYTES, _FEWEST_HELD = 256 << 20, 6

Position: TypeAlias = int | Fraction
"""A frame's number in the file, from 0; or, as a Fraction, seconds since the first frame."""

NumberedFrame: TypeAlias = tuple[int, int, Fraction, av.VideoFrame]
"""A decoded frame with its number in the file, its pts, and its seconds since the first frame."""

Opened = TypeVar("Opened", bound="Recording")


@dataclass(frozen=True)
class VideoInfo:
    """What a recording is, as displayed: sizes and sample_aspect_ratio after a turn by `rotation` degrees clockwise.

    color_matrix and color_range are those used for conversion to RGB; frame_count and duration_s the file's claims.
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
    color_matrix: str
    color_range: str
    has_audio: bool


class Recording(abc.ABC):
    """An iterable of frames from `first` to `last`, both included. Iterate once, as a context manager.

    After iteration `truncated` tells what was missing at the end (None: nothing), and `damaged_frames` counts what did
    not decode soundly. `lead` and `trail` may be set before: so many frames before the range and after it are given,
    too, and marked as of the lead. A subclass sets `info` and `maker` and says where its frames come from.
    """

    info: VideoInfo
    maker: FrameMaker

    def __init__(self, path: str, first: Position, last: Position | None) -> None:
        """Raises UsageError where the range is turned around."""
        if type(first) is type(last) and last is not None and last < first:
            raise UsageError(f"the range ends ({last}) before it begins ({first}); swap its two ends")
        self._path, self._first, self._last = path, first, last
        self.truncated: str | None = None
        self.damaged_frames = self.lead = self.trail = 0
        self._frames = 0  # of the whole recording, once it has ended by itself

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
        within = 0
        for (index, pts, time_s, frame), outside, start_ns in self._chosen():
            within += not outside
            made = self.maker.make(index, pts, float(time_s * 1000), frame, start_ns)
            yield replace(made, lead=True) if outside else made
        if not within:
            what, frames = f"'{self._path}' has no frame in the range asked for", self._frames
            raise MediaError(f"{what}; its frames are 0 to {frames - 1}" if frames else f"{what}; give a later end")

    def _chosen(self) -> Iterator[tuple[NumberedFrame, bool, int]]:
        """Those that are given: whether each is outside of the range, and when its decoding began."""
        begun, after, count = False, 0, 0
        led: deque[NumberedFrame] = deque(maxlen=min(self._given_before, self._most_held))
        start_ns = perf_counter_ns()
        for numbered in self._numbered():
            count = numbered[0] + 1
            place = self._place(numbered)
            if place > 0 and (not begun or after == self.trail):
                return
            begun, after = begun or place == 0, after + (place > 0)
            if place < 0 and isinstance(self._first, Fraction):  # nobody knows how many come before the range
                led.append(numbered)
            elif place >= 0 or count > self._first - self._given_before:
                while led:
                    yield led.popleft(), True, start_ns
                    start_ns = perf_counter_ns()
                yield numbered, place != 0, start_ns
            start_ns = perf_counter_ns()
            if self.trail and after == self.trail:
                return
        self._frames = count
        self._note_missing_end(count)

    def _place(self, numbered: NumberedFrame) -> int:
        """Where a frame is: -1 before the range, 0 in it, 1 after it."""
        index, _, time_s, _ = numbered
        if self._last is not None and (index if isinstance(self._last, int) else time_s) > self._last:
            return 1
        return -1 if (index if isinstance(self._first, int) else time_s) < self._first else 0

    @property
    def _most_held(self) -> int:
        """How many frames wait at most until it is known whether the range begins after them."""
        form = self.format
        return max(_FEWEST_HELD, _MOST_HELD_BYTES // (form.sample_bytes * sum(map(prod, form.plane_shapes))))

    @property
    def _given_before(self) -> int:
        """How many frames before the range are given."""
        return self.lead

    def _numbered(self) -> Iterator[NumberedFrame]:
        """All frames, at least from those on that are given."""
        return ((index, *timed) for index, timed in enumerate(self._timed()))

    @abc.abstractmethod
    def _timed(self) -> Iterator[tuple[int, Fraction, av.VideoFrame]]:
        """Each frame with its pts and its seconds since the first."""

    @abc.abstractmethod
    def _note_missing_end(self, frames: int) -> None:
        """Called where the recording ended by itself: set `truncated` if there should have been more."""
