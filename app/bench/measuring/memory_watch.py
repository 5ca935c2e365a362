"""Watches the memory of a process in a thread, and keeps the most that was resident."""

from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType

from ...process_usage import process_usage


class MemoryWatch:
    """Looks every so many milliseconds while it is open, when it opens and when it closes."""

    def __init__(self, interval_ms: float, process_id: Callable[[], int | None] = lambda: None) -> None:
        """`process_id` says, at each look, which process it is; None: this one."""
        self.most_bytes: int | None = None  # None where the system does not tell
        self.looks = 0
        self._interval_s, self._process_id = interval_ms / 1e3, process_id
        self._ended = Event()
        self._thread = Thread(target=self._watch, name="memory watch", daemon=True)

    def __enter__(self) -> "MemoryWatch":
        self._look()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._ended.wait(self._interval_s):
            self._look()

    def _look(self) -> None:
        found = process_usage(self._process_id()).resident_bytes
        self.looks += 1
        if found is not None:
            self.most_bytes = max(found, self.most_bytes or 0)
