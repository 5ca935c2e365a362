"""A way to open a source goes in; its pictures and what becomes of it are told, from a thread of its own."""

import contextlib
import threading
from time import perf_counter_ns
from typing import Protocol

from app.capture.source import Opener, Shot, Source
from gpu_delegate.errors import TexelflowError

_GRACE_S = 1.0  # how long a reader waits for the one before to give the device back


class Listener(Protocol):
    """Gets all that happens to a reader, on the reader's thread; times are readings of perf_counter in ns."""

    def opened(self, reader: "Reader", source: Source, now_ns: int) -> None: ...

    def pictured(self, reader: "Reader", shot: Shot, stamps: str, now_ns: int) -> None: ...

    def failed(self, reader: "Reader", reason: str, now_ns: int) -> None: ...

    def ended(self, reader: "Reader", now_ns: int) -> None: ...


class Reader:
    """Opens a source, reads it and closes it, all on one thread, which nobody ever needs to wait for.

    A thread that a driver does not let go of is given up: when it comes back it closes its source, and says nothing.
    """

    def __init__(self, open_source: Opener, listener: Listener, before: "Reader | None" = None) -> None:
        """It begins at once, but for `before`, which was given up and may still hold the device for a moment."""
        self._open_source, self._listener, self._before = open_source, listener, before
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="capture", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether its thread still runs."""
        return self._thread.is_alive()

    def give_up(self) -> None:
        """Tell nothing any more, and end as soon as the source lets it."""
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
            self._tell_failure(error)

    def _read(self, source: Source) -> None:
        if not self._given_up.is_set():
            self._listener.opened(self, source, perf_counter_ns())
        while not self._given_up.is_set():
            shot = source.read()
            if self._given_up.is_set():
                return
            if shot is None:
                self._listener.ended(self, perf_counter_ns())
                return
            self._listener.pictured(self, shot, source.stamps, perf_counter_ns())

    def _tell_failure(self, error: Exception) -> None:
        if self._given_up.is_set():
            return
        text = " ".join(str(error).split())[:300]
        reason = (
            text if isinstance(error, TexelflowError) else f"reading the source failed: {type(error).__name__} {text}"
        )
        self._listener.failed(self, reason, perf_counter_ns())
