"""Opens and reads a source on a thread of its own, and reports its pictures, failures and end as events."""

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TypeAlias

from texelflow.gpu_delegate.base.errors import TexelflowError

from .source import CapturedFrame, Opener, Source

_GRACE_S = 1.0  # how long a reader waits for the one before to give the device back


@dataclass(frozen=True)
class SourceOpened:
    """The source is open; what it says of itself. at_ns is a reading of the clock, here and below."""

    at_ns: int
    description: str
    fps: float
    may_stand_still: bool


@dataclass(frozen=True)
class FrameArrived:
    """A picture came; stamps says where its captured_ns is from."""

    at_ns: int
    captured: CapturedFrame
    stamps: str


@dataclass(frozen=True)
class SourceFailed:
    """The source could not be opened, or is lost; the reason is one line."""

    at_ns: int
    reason: str


@dataclass(frozen=True)
class SourceEnded:
    """The source came to its end."""

    at_ns: int


SourceEvent: TypeAlias = SourceOpened | FrameArrived | SourceFailed | SourceEnded
TimeSource: TypeAlias = Callable[[], int]  # its readings are nanoseconds, and never go back


class SourceReader:
    """Opens a source, reads it and closes it, all on one thread, for which no caller needs to wait.

    A thread that hangs in a driver is abandoned: when it returns, it closes its source and sends no more events.
    """

    def __init__(
        self,
        open_source: Opener,
        tell: "Callable[[SourceReader, SourceEvent], None]",
        before: "SourceReader | None" = None,
        clock: TimeSource = perf_counter_ns,
    ) -> None:
        """It begins at once, but for `before`, which was given up and may still hold the device for a moment.

        `tell` is called on the reader's thread.
        """
        self._open_source, self._tell, self._before, self._clock = open_source, tell, before, clock
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="capture", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether its thread still runs."""
        return self._thread.is_alive()

    def give_up(self) -> None:
        """Send no more events, and end as soon as the source returns."""
        self._given_up.set()

    def join(self, timeout_s: float) -> None:
        """Wait for its thread, for so long at most."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        if self._before is not None:
            self._before.join(_GRACE_S)
            self._before = None
        if self._given_up.is_set():
            return
        try:
            source = self._open_source()
            try:
                self._read(source)
            finally:
                with contextlib.suppress(Exception):  # a device that is gone may refuse to be closed
                    source.close()
        except Exception as error:  # of a driver anything may come; nothing of it may end the thread without a word
            self._say(SourceFailed(self._clock(), _reason(error)))

    def _read(self, source: Source) -> None:
        self._say(SourceOpened(self._clock(), source.description, source.fps, source.may_stand_still))
        while not self._given_up.is_set():
            captured = source.read()
            if captured is None:
                self._say(SourceEnded(self._clock()))
                return
            self._say(FrameArrived(self._clock(), captured, source.stamps))

    def _say(self, event: SourceEvent) -> None:
        if not self._given_up.is_set():
            self._tell(self, event)


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())[:300]
    known = isinstance(error, TexelflowError) and text
    return text if known else f"reading the source failed: {type(error).__name__} {text}".rstrip()
