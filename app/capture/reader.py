"""A way to open a source goes in; events come out, from a thread of its own: its pictures, failures and end."""

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TypeAlias

from texelflow.gpu_delegate.errors import TexelflowError

from .source import Opener, Shot, Source

_GRACE_S = 1.0  # how long a reader waits for the one before to give the device back


@dataclass(frozen=True)
class Opened:
    """The source is open; what it says of itself. at_ns is a reading of perf_counter, here and below."""

    at_ns: int
    description: str
    fps: float
    may_stand_still: bool


@dataclass(frozen=True)
class Pictured:
    """A picture came; stamps says where its captured_ns is from."""

    at_ns: int
    shot: Shot
    stamps: str


@dataclass(frozen=True)
class Failed:
    """The source could not be opened, or is lost; the reason is one line."""

    at_ns: int
    reason: str


@dataclass(frozen=True)
class Ended:
    """The source came to its end."""

    at_ns: int


Event: TypeAlias = Opened | Pictured | Failed | Ended


class Reader:
    """Opens a source, reads it and closes it, all on one thread, for which no caller needs to wait.

    A thread that hangs in a driver is abandoned: when it returns, it closes its source and sends no more events.
    """

    def __init__(
        self, open_source: Opener, tell: "Callable[[Reader, Event], None]", before: "Reader | None" = None
    ) -> None:
        """It begins at once, but for `before`, which was given up and may still hold the device for a moment.

        `tell` is called on the reader's thread.
        """
        self._open_source, self._tell, self._before = open_source, tell, before
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
        except Exception as error:  # drivers may raise anything; no exception may end the thread without an event
            self._say(Failed(perf_counter_ns(), _reason(error)))

    def _read(self, source: Source) -> None:
        self._say(Opened(perf_counter_ns(), source.description, source.fps, source.may_stand_still))
        while not self._given_up.is_set():
            shot = source.read()
            if shot is None:
                self._say(Ended(perf_counter_ns()))
                return
            self._say(Pictured(perf_counter_ns(), shot, source.stamps))

    def _say(self, event: Event) -> None:
        if not self._given_up.is_set():
            self._tell(self, event)


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())[:300]
    known = isinstance(error, TexelflowError) and text
    return text if known else f"reading the source failed: {type(error).__name__} {text}".rstrip()
