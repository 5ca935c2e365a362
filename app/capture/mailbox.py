"""Passes the newest item between threads; one that was not taken in time is replaced."""

import threading
from typing import Generic, TypeVar

_Item = TypeVar("_Item")


class Mailbox(Generic[_Item]):
    """One slot, for any threads. A new item replaces one that was not taken."""

    def __init__(self) -> None:
        self._item: _Item | None = None
        self._lock = threading.Lock()

    def put(self, item: _Item) -> bool:
        """Store an item; says whether another one was dropped for it."""
        with self._lock:
            dropped = self._item is not None
            self._item = item
            return dropped

    @property
    def is_full(self) -> bool:
        """Whether there is an item."""
        return self._item is not None

    def take(self) -> _Item | None:
        """The item, which leaves the slot empty; None if it is."""
        with self._lock:
            item, self._item = self._item, None
            return item
