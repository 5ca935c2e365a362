"""Captures a camera, a stream or a clip: its newest picture and its state can be asked at any time.

Threads read and supervise the source; no caller waits for a driver, except in `first`. A call that hangs in a driver
is abandoned, and the source opened again.
"""

import threading
from collections.abc import Callable
from fractions import Fraction
from time import perf_counter_ns
from types import TracebackType

from ..media.sound_blocks import SoundHistory
from ..picture.picture import PictureFormat
from ..picture.video_frame import VideoFrame
from . import supervise
from .capture_reader import FrameArrived, SourceEnded, SourceEvent, SourceFailed, SourceOpened, SourceReader, TimeSource
from .ingest import Arrival, Ingest, IngestCounts
from .source import Opener, SourceError
from .supervise import CaptureState

TIME_BASE = Fraction(1, 1_000_000)  # of the frames' pts
_TICK_S = 0.25
_CLOSE_S = 1.0  # how long closing waits for a device to be given back
_MOST_STUCK = 4  # threads that hang in drivers; beyond that no more are started until one returns


class Capture:
    """Reads a source from now on. All its methods but close may be called on any thread, and never wait but in `first`.

    All frames are of the format of the first one; pts count microseconds (TIME_BASE) since it, numbers count what was
    captured, dropped pictures included.
    """

    def __init__(
        self,
        open_source: Opener,
        arrived: Callable[[], None] = lambda: None,
        clock: TimeSource = perf_counter_ns,
        format: PictureFormat | None = None,
    ) -> None:
        """`arrived` is called for each picture and each change of state, on one of the capture's threads.

        All that is said of time goes by the clock; that of perf_counter is the one that sources date pictures by.
        Frames are of the `format`, by default of that of the first picture.
        """
        self._open_source, self._arrived, self._clock = open_source, arrived, clock
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._ingest, self._counts_taken = Ingest(format), IngestCounts()
        self._description, self._first_error = "", ""
        self.nominal_fps = 0.0  # what the source promises; 0 if it does not
        self.sound = SoundHistory()  # of the source, as far as its opener was asked for it
        self._watch = supervise.SourceStatus(clock())
        self._told = CaptureState("opening")
        self._stuck: list[SourceReader] = []
        with self._changed:  # it may fail before it is known here
            self._reader = SourceReader(open_source, self._handle, clock=clock)
        self._supervisor = threading.Thread(target=self._supervise, name="capture watch", daemon=True)
        self._supervisor.start()

    def __enter__(self) -> "Capture":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def first(self, timeout_s: float) -> VideoFrame:
        """Take the first picture, waited for. Raises SourceError: it cannot be opened, or gives no picture in time."""
        with self._changed:
            self._changed.wait_for(lambda: self._ingest.format or self._first_error, timeout_s)
            if self._first_error:
                raise SourceError(self._first_error)
        if (frame := self.take()) is None:
            name = f"from {self._watch.name}" if self._description else "while opening the source"
            raise SourceError(
                f"no picture came {name} within {timeout_s:g} s; is it switched on, and used by no one else?"
            )
        return frame

    def take(self) -> VideoFrame | None:
        """The newest picture that was not taken yet; None if there is no new one."""
        with self._changed:
            return self._ingest.take()

    @property
    def has_new(self) -> bool:
        """Whether take() would give one."""
        return self._ingest.has_new

    @property
    def counts(self) -> IngestCounts:
        """Since the beginning."""
        return self._ingest.counts

    def take_counts(self) -> IngestCounts:
        """Since this was last asked for."""
        with self._changed:
            before, self._counts_taken = self._counts_taken, self._ingest.counts
            return self._counts_taken.since(before)

    @property
    def state(self) -> CaptureState:
        """At this moment."""
        return supervise.state_of(self._watch, self._clock())

    @property
    def fps(self) -> float:
        """Pictures that arrived in the last second; 0 while none do."""
        with self._changed:
            return self._ingest.fps(self._clock())

    @property
    def description(self) -> str:
        """The source's own, for a person; empty before it is open."""
        return self._description

    @property
    def stamps(self) -> str:
        """Where captured_ns of the last picture came from: the source's word, or "arrival" where that made no sense."""
        return self._ingest.stamps

    @property
    def format(self) -> PictureFormat:
        """Of all frames. Raises SourceError before the first has come."""
        if self._ingest.format is None:
            raise SourceError("the source has not delivered a picture yet; wait for the first one")
        return self._ingest.format

    @property
    def start_ns(self) -> int:
        """When the first picture was taken, of perf_counter: its frame's pts is 0. 0 before it has come."""
        return self._ingest.start_ns

    def close(self) -> None:
        """End all threads that can be ended, in about a second at most; harmless when repeated."""
        self._closed.set()
        self._reader.give_up()
        self._supervisor.join(_CLOSE_S)
        self._reader.give_up()
        self._reader.join(_CLOSE_S)

    def _handle(self, reader: SourceReader, event: SourceEvent) -> None:
        """Called on a reader's thread; events of an abandoned reader are ignored."""
        arrival = (
            self._ingest.prepare(event.captured, self._watch.may_stand_still)
            if isinstance(event, FrameArrived)
            else None
        )
        with self._changed:
            if reader is not self._reader or self._closed.is_set():
                return
            if isinstance(event, FrameArrived) and arrival:
                self._store(event, arrival)
            else:
                self._note(event)
            self._changed.notify_all()
        if arrival:
            self._arrived()
        else:
            self._tell()

    def _store(self, event: FrameArrived, arrival: Arrival) -> None:
        self.sound.put(event.captured.sound)
        self._watch = supervise.pictured(self._watch, event.at_ns, arrival.changed)
        if news := self._ingest.store(arrival, event.stamps, event.at_ns):
            self._watch = supervise.noted(self._watch, event.at_ns, f"{self._watch.name} {news}")

    def _note(self, event: SourceEvent) -> None:
        if isinstance(event, SourceOpened):
            self._description, self.nominal_fps = event.description, event.fps
            self._watch = supervise.opened(
                self._watch, event.at_ns, event.description, event.fps, event.may_stand_still
            )
        elif isinstance(event, SourceFailed):
            self._first_error = "" if self._ingest.format else event.reason
            self._count_loss()
            self._watch = supervise.failed(self._watch, event.at_ns, event.reason)
        elif isinstance(event, SourceEnded):
            self._first_error = "" if self._ingest.format else f"{self._watch.name} ended before its first picture"
            self._watch = supervise.ended(self._watch, event.at_ns)

    def _count_loss(self) -> None:
        was_open = self._watch.step == "open" and self._ingest.format is not None
        self._ingest.counts = self._ingest.counts.plus(IngestCounts(lost=was_open))

    def _supervise(self) -> None:
        while not self._closed.wait(_TICK_S):
            with self._changed:
                self._reopen_if_due(self._clock())
            self._tell()

    def _reopen_if_due(self, now_ns: int) -> None:
        due_ns = supervise.due_ns(self._watch)
        if due_ns is None or now_ns < due_ns:
            return
        self._stuck = [reader for reader in self._stuck if reader.alive]
        if len(self._stuck) >= _MOST_STUCK:
            return
        self._count_loss()
        self._watch = supervise.opening(self._watch, now_ns)
        given_up = self._reader
        given_up.give_up()
        self._stuck.append(given_up)
        self._reader = SourceReader(self._open_source, self._handle, given_up, self._clock)

    def _tell(self) -> None:
        if (state := self.state) != self._told:
            self._told = state
            if not self._closed.is_set():
                self._arrived()
