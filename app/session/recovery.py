"""Recovers from a lost context: all is built anew, and frames that were lost with it are drawn once more."""

from collections import deque
from collections.abc import Callable
from time import perf_counter

from texelflow.gpu_delegate.base.errors import ContextLostError

from .clock import Due

Rebuild = Callable[[ContextLostError], int | None]  # makes all that belongs to a context; the last frame delivered

MOST_AGAIN = 8  # frames: more than are on their way from the device at any time
RESET_WAITS_S = (0.2, 0.5, 1.0, 2.0)  # a driver takes some seconds to reset a GPU
_MOST, _WITHIN_S = 3, 60.0  # a GPU that is lost so often does not get well


class Recovery:
    """Keeps the last frames of a source of which every frame counts, and those to be drawn `again`, in order."""

    def __init__(self, rebuild: Rebuild) -> None:
        """`rebuild` tells the number of the last frame that all outputs have, None where they have none."""
        self.again: deque[Due] = deque()
        self._rebuild = rebuild
        self._kept: deque[Due] = deque(maxlen=MOST_AGAIN)
        self._lost_s: deque[float] = deque(maxlen=_MOST)

    def keep(self, due: Due) -> None:
        """A frame that is about to be drawn, or whose mask is."""
        self._kept.append(due)

    def forget(self) -> None:
        """No frame comes any more."""
        self._kept.clear()
        self.again.clear()

    def recover(self, lost: ContextLostError) -> None:
        """Rebuild. Raises DeviceError where that fails, which is `lost` where it has happened again and again."""
        self._lost_s.append(perf_counter())
        if len(self._lost_s) == _MOST and self._lost_s[-1] - self._lost_s[0] < _WITHIN_S:
            raise lost
        delivered = self._rebuild(lost)
        kept = [due for due in self._kept if delivered is None or due.frame.index > delivered]
        self._kept.clear()
        self.again.extendleft(reversed(kept))
