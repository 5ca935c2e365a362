"""Lists inputs on a thread of its own, some hundred ahead, so that nobody waits for a slow list.

A deque needs no lock for each of them.
"""

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Generic, TypeVar

NOTHING_YET_S = 0.02  # for who has found nothing, before the next look: what is read meanwhile comes at once

_AHEAD = 1000  # items
_ENDING_S = 1.0  # for the item that is being read

_Item = TypeVar("_Item")


class ListingThread(Generic[_Item]):
    """Iterate over it on one thread: None says that nothing is there yet. What the reader raises is raised there."""

    def __init__(self, items: Iterable[_Item], stopping: threading.Event | None = None) -> None:
        """Begin to read. `stopping` is set at the end, for those who make the items, and may wait."""
        self._stopping = stopping or threading.Event()
        self._items = deque[_Item]()
        self._room = threading.Event()
        self._error: BaseException | None = None
        self._ended = False
        self._thread = threading.Thread(target=self._read, args=(items,), name="texelflow-listing", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it still reads, or waits for room."""
        return self._thread.is_alive()

    def __iter__(self) -> Iterator[_Item | None]:
        return self

    def __next__(self) -> _Item | None:
        ended = self._ended  # all items were there before that was said
        if self._items:
            item = self._items.popleft()
            if len(self._items) <= _AHEAD // 2 and not self._room.is_set():
                self._room.set()
            return item
        if not ended:
            return None
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        raise StopIteration

    def stop(self) -> None:
        """Read no further than the item at hand, for which nobody waits."""
        self._stopping.set()
        self._room.set()

    def close(self) -> None:
        """Stop, and wait for that a little. A read that does not end is left to itself, and ends with the program."""
        self.stop()
        self._thread.join(_ENDING_S)

    def __enter__(self) -> "ListingThread[_Item]":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self, items: Iterable[_Item]) -> None:
        try:
            for item in items:
                self._items.append(item)
                if len(self._items) >= _AHEAD:
                    self._wait_for_room()
                if self._stopping.is_set():
                    break
        except BaseException as error:
            self._error = error
        finally:
            self._ended = True

    def _wait_for_room(self) -> None:
        self._room.clear()
        if len(self._items) >= _AHEAD and not self._stopping.is_set():  # nobody has made room before it was cleared
            self._room.wait()
