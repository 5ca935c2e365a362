"""Records from a microphone into a history of sound, and tells in a line whatever happens to it.

A thread opens and reads it. Where it fails, or is unplugged, it is tried again and again, and nothing else ends.
"""

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from time import perf_counter_ns
from typing import TypeAlias

from texelflow.gpu_delegate.base.errors import TexelflowError

from ..media.sound_blocks import SoundBlock, SoundHistory
from .source import SourceError

Blocks: TypeAlias = Generator[SoundBlock, None, None]
Hear: TypeAlias = Callable[[], Blocks]
"""Opens a microphone; its blocks as they come. Raises SourceError at once, SourceLostError when it is gone."""

_OPEN_S, _AGAIN_S, _CLOSE_S = 5.0, 1.0, 0.5
_SILENT_NS = 2_000_000_000  # without a block: it hangs


class Microphone:
    """Hears from now on. Its methods may be called on any thread, and wait only in the constructor and in close."""

    def __init__(self, name: str, hear: Hear) -> None:
        """Waits until it is open, some seconds at most. Raises SourceError."""
        self.name = name
        self.history = SoundHistory(expected=True)
        self._hear = hear
        self._lines: deque[str] = deque(maxlen=16)
        self._closed, self._tried = threading.Event(), threading.Event()
        self._error: SourceError | None = None
        self._heard_ns, self._fails = perf_counter_ns(), False
        self._thread = threading.Thread(target=self._run, name="microphone", daemon=True)
        self._thread.start()
        if not self._tried.wait(_OPEN_S):
            self._error = SourceError(
                f"microphone {name} does not open within {_OPEN_S:g} s; is another program at it?"
            )
        if self._error:
            self._closed.set()
            raise self._error

    def lines(self) -> list[str]:
        """What a person should know since the last call."""
        if not self._fails and perf_counter_ns() - self._heard_ns > _SILENT_NS:
            self._fail("it sends nothing")
        return [self._lines.popleft() for _ in range(len(self._lines))]

    def close(self) -> None:
        """End the thread, unless a driver holds it: then it ends when that lets go. Harmless when repeated."""
        self._closed.set()
        self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                with contextlib.closing(self._hear()) as blocks:
                    self._read(blocks)
                self._fail("it has ended")
            except Exception as error:  # of a driver anything may come
                reason = str(error) if isinstance(error, TexelflowError) else f"{type(error).__name__} {error}".strip()
                if not self._tried.is_set():
                    self._error = error if isinstance(error, SourceError) else SourceError(reason)
                    self._tried.set()
                    return
                self._fail(reason)
            self._closed.wait(_AGAIN_S)

    def _read(self, blocks: Iterator[SoundBlock]) -> None:
        self._heard_ns = perf_counter_ns()
        self._tried.set()
        for block in blocks:
            if self._closed.is_set():
                return
            self.history.put([block])
            self._heard_ns = perf_counter_ns()
            if self._fails:
                self._fails = False
                self._lines.append(f"microphone {self.name} is back")

    def _fail(self, reason: str) -> None:
        """Told once, until it is heard again."""
        if not self._fails and not self._closed.is_set():
            self._lines.append(f"microphone {self.name}: {reason}; recordings go on with silence")
        self._fails = True
