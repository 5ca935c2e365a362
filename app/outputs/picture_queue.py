"""Hands pictures to another thread of this program: either each of them, which is waited for, or the newest."""

import threading
from collections import deque
from collections.abc import Sequence

from ..frame.textures.readback import ReadBytes
from .picture_readers import FrameStamp, StampedBytes

_MOST = 2  # pictures that wait for their taker
_LOOK_S = 0.1


class PictureQueue:
    """A sink of RGBA, top row first, with a taker at its other end."""

    name = "pictures"
    warnings: Sequence[str] = ()

    def __init__(self, newest_wins: bool = False) -> None:
        """`newest_wins`: whoever makes pictures never waits, and those that nobody took in time are lost."""
        self.newest_wins = newest_wins
        self._pictures: deque[StampedBytes] = deque(maxlen=1 if newest_wins else None)
        self._changed = threading.Condition()
        self._left = self._over = False

    def write(self, stamp: FrameStamp, data: ReadBytes) -> None:
        """One picture; waits for a place, unless the newest wins."""
        with self._changed:
            self._changed.wait_for(lambda: self.newest_wins or self._left or len(self._pictures) < _MOST)
            if not self._left:
                self._pictures.append((stamp, data))
                self._changed.notify_all()

    def close(self, complete: bool) -> str:
        """No more are written. Who takes them goes on until end() says that all is over."""
        return ""

    def take(self) -> StampedBytes | None:
        """The next picture, waited for; None if there are no more."""
        with self._changed:
            while not self._changed.wait_for(lambda: self._pictures or self._left or self._over, _LOOK_S):
                pass  # some systems tell of Ctrl-C only between two waits
            if self._left or not self._pictures:
                return None
            taken = self._pictures.popleft()
            self._changed.notify_all()
            return taken

    def end(self) -> None:
        """No more come, from any thread; those that wait can still be taken."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def leave(self) -> None:
        """Nobody takes any more: what waits is lost, and whoever makes pictures waits no longer."""
        with self._changed:
            self._left = True
            self._pictures.clear()
            self._changed.notify_all()
