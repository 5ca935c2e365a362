"""Brings arriving pictures to one format, and numbers, dates and counts them."""

from dataclasses import dataclass

import numpy as np

from ..picture.picture import Picture, PictureFormat
from ..picture.video_frame import VideoFrame
from .conversion import convert_like, pixel_format_name
from .mailbox import Mailbox
from .source import CapturedFrame
from .stamps import Rate, Timeline, sane_stamp

_ROWS = 16  # every 16th row is compared first


@dataclass(frozen=True)
class IngestCounts:
    """Of pictures: captured = used + dropped + the one that may be waiting. repeated ones equal the one before.

    lost: how often the source had to be opened again.
    """

    captured: int = 0
    used: int = 0
    dropped: int = 0
    repeated: int = 0
    lost: int = 0

    def plus(self, more: "IngestCounts") -> "IngestCounts":
        """The sums."""
        return IngestCounts(
            self.captured + more.captured, self.used + more.used, self.dropped + more.dropped,
            self.repeated + more.repeated, self.lost + more.lost,
        )  # fmt: skip

    def since(self, before: "IngestCounts") -> "IngestCounts":
        """What was counted after `before`."""
        return IngestCounts(
            self.captured - before.captured, self.used - before.used, self.dropped - before.dropped,
            self.repeated - before.repeated, self.lost - before.lost,
        )  # fmt: skip


_USED = IngestCounts(used=1)


@dataclass(frozen=True)
class Arrival:
    """A picture, ready to be stored. changed: it differs from the one before, or need not. original: as it came."""

    captured: CapturedFrame
    original: Picture
    changed: bool


class Ingest:
    """For one capture. Not thread-safe, except for `prepare`."""

    def __init__(self, format: PictureFormat | None = None) -> None:
        self.format = format  # of all frames: that of the first picture, unless one was asked for
        self.counts = IngestCounts()
        self.stamps = ""  # where captured_ns of the last frame came from
        self._mailbox: Mailbox[VideoFrame] = Mailbox()
        self._timeline, self._rate = Timeline(), Rate()
        self._last: Picture | None = None

    def prepare(self, captured: CapturedFrame, may_stand_still: bool) -> Arrival:
        """Compare a picture with the last one, and convert it to the format of all. Raises MediaError.

        This takes some time, and changes no state.
        """
        last, found = self._last, captured.picture
        changed = last is None or may_stand_still or not same(found, last)
        if self.format is not None and found.format != self.format:
            captured = convert_like(captured, self.format)
        return Arrival(captured, found, changed)

    def store(self, arrival: Arrival, stamps: str, now_ns: int) -> str:
        """Store a picture; returns a message if its format differs from the one before: "now sends"."""
        captured, found, last = arrival.captured, arrival.original.format, self._last
        captured_ns, sane = sane_stamp(captured.captured_ns, now_ns)
        index, pts = self._timeline.place(captured_ns, captured.skipped)
        frame = VideoFrame(
            index,
            pts,
            pts / 1000,
            captured.picture,
            captured.decode_start_ns,
            captured.decode_ms,
            captured.convert,
            captured_ns,
        )
        dropped = self._mailbox.put(frame)
        self.counts = self.counts.plus(
            IngestCounts(captured.skipped + 1, 0, captured.skipped + dropped, not arrival.changed)
        )
        self.stamps = stamps if sane else "arrival"
        self._rate.add(now_ns, captured.skipped + 1)
        self._last, self.format = arrival.original, self.format or found
        return _news(found, self.format) if last is not None and found != last.format else ""

    @property
    def start_ns(self) -> int:
        """When the first picture was taken, of perf_counter; 0 before it has come."""
        return self._timeline.start_ns or 0

    @property
    def has_new(self) -> bool:
        """Whether there is a frame that was not taken yet."""
        return self._mailbox.is_full

    def take(self) -> VideoFrame | None:
        """The newest frame, if it was not taken yet."""
        frame = self._mailbox.take()
        if frame:
            self.counts = self.counts.plus(_USED)
        return frame

    def fps(self, now_ns: int) -> float:
        """Pictures that came in the last second."""
        return self._rate.fps(now_ns)


def same(one: Picture, other: Picture) -> bool:
    """Whether two pictures are equal to the last bit; a camera's noise never is, so that a few rows tell most apart."""
    if one.format != other.format:
        return False
    pairs = list(zip(one.planes, other.planes, strict=True))
    return all(np.array_equal(a[::step], b[::step]) for step in (_ROWS, 1) for a, b in pairs)


def _news(found: PictureFormat, requested: PictureFormat) -> str:
    if found == requested:
        return f"sends {_size(found)} again"
    if found.size != requested.size:
        return f"now sends {_size(found)}, fitted into {_size(requested)}"
    return f"now sends {pixel_format_name(found)}, converted to {pixel_format_name(requested)}"


def _size(format: PictureFormat) -> str:
    return "{}x{}".format(*format.upright_size)
