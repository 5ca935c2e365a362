"""A way to open a camera, a stream or a clip goes in; its newest picture, and how it fares, come out at any time.

Threads read the source and watch over it; nobody who asks here ever waits for a driver, but in `first`. What is stuck
in a driver is given up, and the source opened again.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from time import perf_counter_ns
from types import TracebackType

import numpy as np

from app.capture import supervise
from app.capture.likeness import like, pixel_format_name
from app.capture.mailbox import Mailbox
from app.capture.reader import Reader
from app.capture.source import Opener, Shot, Source, SourceError
from app.capture.stamps import Rate, Timeline, sane_stamp
from app.capture.supervise import CaptureState
from app.frame.picture import Picture, PictureFormat
from app.media.video_frame import VideoFrame

TIME_BASE = Fraction(1, 1_000_000)  # of the frames' pts
_TICK_S = 0.25
_CLOSE_S = 1.0  # how long closing waits for a device to be given back
_MOST_STUCK = 4  # threads that drivers do not let go of; beyond that no more are begun until one comes back
_ROWS = 16  # every 16th row is compared first


@dataclass(frozen=True)
class Counts:
    """Of pictures: captured = used + dropped + the one that may be waiting. repeated ones equal the one before.

    lost: how often the source had to be opened again.
    """

    captured: int = 0
    used: int = 0
    dropped: int = 0
    repeated: int = 0
    lost: int = 0

    def since(self, before: "Counts") -> "Counts":
        """What was counted after `before`."""
        return Counts(*(now - then for now, then in zip(vars(self).values(), vars(before).values(), strict=True)))


class Capture:
    """Reads a source from now on. All its methods but close may be called on any thread, and never wait but in `first`.

    All frames are of the format of the first one; pts count microseconds (TIME_BASE) since it, numbers count what was
    captured, dropped pictures included.
    """

    def __init__(self, open_source: Opener, arrived: Callable[[], None] = lambda: None) -> None:
        """`arrived` is called for each picture and each change of state, on one of the capture's threads."""
        self._open_source, self._arrived = open_source, arrived
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._mailbox: Mailbox[VideoFrame] = Mailbox()
        self._counts = self._counts_taken = Counts()
        self._timeline, self._rate = Timeline(), Rate()
        self._stamps = self._description = ""
        self._first_error: str | None = None
        self._format: PictureFormat | None = None
        self._last: Picture | None = None
        self._watch = supervise.Watch(perf_counter_ns())
        self._told = CaptureState("opening")
        self._stuck: list[Reader] = []
        with self._changed:  # it may fail before it is known here
            self._reader = Reader(open_source, self)
        self._supervisor = threading.Thread(target=self._supervise, name="capture watch", daemon=True)
        self._supervisor.start()

    def __enter__(self) -> "Capture":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def first(self, timeout_s: float) -> VideoFrame:
        """Take the first picture, waited for. Raises SourceError: it cannot be opened, or nothing comes in time."""
        with self._changed:
            self._changed.wait_for(lambda: self._format or self._first_error is not None, timeout_s)
            if self._first_error is not None:
                raise SourceError(self._first_error)
        if (frame := self.take()) is None:
            name = f"from {self._watch.name}" if self._description else "while opening the source"
            raise SourceError(f"no picture came {name} within {timeout_s:g} s; is the camera taken or covered?")
        return frame

    def take(self) -> VideoFrame | None:
        """The newest picture that was not taken yet; None if there is no new one."""
        with self._changed:
            frame = self._mailbox.take()
            if frame is not None:
                self._counts = replace(self._counts, used=self._counts.used + 1)
            return frame

    @property
    def counts(self) -> Counts:
        """Since the beginning."""
        return self._counts

    def take_counts(self) -> Counts:
        """Since this was last asked for."""
        with self._changed:
            fresh, self._counts_taken = self._counts.since(self._counts_taken), self._counts
            return fresh

    @property
    def state(self) -> CaptureState:
        """At this moment."""
        return supervise.judge(self._watch, perf_counter_ns())

    @property
    def fps(self) -> float:
        """Pictures that arrived in the last second; 0 while none do."""
        with self._changed:
            return self._rate.fps(perf_counter_ns())

    @property
    def description(self) -> str:
        """The source's own, for a person; empty before it is open."""
        return self._description

    @property
    def stamps(self) -> str:
        """Where captured_ns of the last picture came from: the source's word, or "arrival" where that made no sense."""
        return self._stamps

    @property
    def format(self) -> PictureFormat:
        """Of all frames. Raises SourceError before the first has come."""
        if self._format is None:
            raise SourceError("the source has not delivered a picture yet; wait for the first one")
        return self._format

    def close(self) -> None:
        """End all threads that can be ended, in about a second at most; harmless when repeated."""
        self._closed.set()
        self._reader.give_up()
        self._supervisor.join(_CLOSE_S)
        self._reader.give_up()
        self._reader.join(_CLOSE_S)

    def opened(self, reader: Reader, source: Source, now_ns: int) -> None:
        """For readers."""
        with self._changed:
            if reader is not self._reader:
                return
            self._description = source.description
            self._watch = supervise.opened(self._watch, now_ns, source.description, source.fps, source.may_stand_still)
        self._tell()

    def pictured(self, reader: Reader, shot: Shot, stamps: str, now_ns: int) -> None:
        """For readers."""
        picture, before = shot.picture, self._last
        changed = before is None or self._watch.may_stand_still or not same(picture, before)
        if self._format not in (None, picture.format):
            shot = like(shot, self.format)
        with self._changed:
            if reader is not self._reader or self._closed.is_set():
                return
            self._last, self._format = picture, self._format or picture.format
            self._watch = supervise.pictured(self._watch, now_ns, changed)
            if before is not None and picture.format != before.format:
                self._watch = supervise.noted(self._watch, now_ns, self._note(picture.format))
            self._store(shot, stamps, now_ns, changed)
            self._changed.notify_all()
        self._arrived()

    def failed(self, reader: Reader, reason: str, now_ns: int) -> None:
        """For readers."""
        with self._changed:
            if reader is not self._reader:
                return
            if self._format is None:
                self._first_error = reason
            elif self._watch.step == "open":
                self._counts = replace(self._counts, lost=self._counts.lost + 1)
            self._watch = supervise.failed(self._watch, now_ns, reason)
            self._changed.notify_all()
        self._tell()

    def ended(self, reader: Reader, now_ns: int) -> None:
        """For readers."""
        with self._changed:
            if reader is not self._reader:
                return
            if self._format is None:
                self._first_error = f"{self._watch.name} ended before its first picture"
            self._watch = supervise.ended(self._watch, now_ns)
            self._changed.notify_all()
        self._tell()

    def _store(self, shot: Shot, stamps: str, now_ns: int, changed: bool) -> None:
        captured_ns, sane = sane_stamp(shot.captured_ns, now_ns)
        self._stamps = stamps if sane else "arrival"
        index, pts = self._timeline.place(captured_ns, shot.skipped)
        self._rate.add(now_ns, shot.skipped + 1)
        dropped = self._mailbox.put(
            VideoFrame(
                index,
                pts,
                pts / 1000,
                shot.picture,
                shot.decode_start_ns,
                shot.decode_ms,
                shot.convert,
                captured_ns,
            )
        )
        counts = self._counts
        self._counts = replace(
            counts,
            captured=counts.captured + shot.skipped + 1,
            dropped=counts.dropped + shot.skipped + dropped,
            repeated=counts.repeated + (not changed),
        )

    def _note(self, found: PictureFormat) -> str:
        wanted, name = self.format, self._watch.name
        if found == wanted:
            return f"{name} sends {_size(found)} again"
        if found.size != wanted.size:
            return f"{name} now sends {_size(found)}, fitted into {_size(wanted)}"
        return f"{name} now sends {pixel_format_name(found)}, converted to {pixel_format_name(wanted)}"

    def _supervise(self) -> None:
        while not self._closed.wait(_TICK_S):
            with self._changed:
                self._reopen_if_due(perf_counter_ns())
            self._tell()

    def _reopen_if_due(self, now_ns: int) -> None:
        due_ns = supervise.due_ns(self._watch)
        if due_ns is None or now_ns < due_ns:
            return
        self._stuck = [reader for reader in self._stuck if reader.alive]
        if len(self._stuck) >= _MOST_STUCK:
            return
        self._counts = replace(self._counts, lost=self._counts.lost + (self._watch.step == "open"))
        self._watch = supervise.opening(self._watch, now_ns)
        given_up = self._reader
        given_up.give_up()
        self._stuck.append(given_up)
        self._reader = Reader(self._open_source, self, given_up)

    def _tell(self) -> None:
        if (state := self.state) != self._told:
            self._told = state
            if not self._closed.is_set():
                self._arrived()


def same(one: Picture, other: Picture) -> bool:
    """Whether two pictures are equal to the last bit; a camera's noise never is, so that a few rows tell most apart."""
    if one.format != other.format:
        return False
    pairs = list(zip(one.planes, other.planes, strict=True))
    return all(np.array_equal(a[::step], b[::step]) for step in (_ROWS, 1) for a, b in pairs)


def _size(format: PictureFormat) -> str:
    return "{}x{}".format(*format.upright_size)
