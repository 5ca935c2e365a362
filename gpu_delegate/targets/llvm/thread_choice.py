"""Chooses by measured times whether runs of a table of work are shared among threads, or one does all.

A network of a fifth of a millisecond gains nothing from a second thread, and on a busy machine threads wait for each
other. Both ways compute the same bits. They are tried in turn at first; then the other one again from time to time.
"""

from collections import deque
from statistics import median

TRIED = 5  # runs of each way at first; as many of the way in use are remembered
TRIED_AGAIN = 3
RUNS, SECONDS = 200, 0.5  # with one way before the other one is tried again: both, so that trials are a fiftieth
LONG_S = 0.02  # a first run that takes so long is followed by others like it, without a trial
GAIN = 0.95  # of the time: what takes more than this does not take the place of the way in use


class ThreadChoice:
    """The way in use for one table; not for use from several threads at once."""

    def __init__(self) -> None:
        self._shares = True
        self._times = {way: deque[float](maxlen=TRIED) for way in (True, False)}
        self._trials = [False, True] * TRIED  # the last one first
        self._runs, self._seconds, self._is_first = 0, 0.0, True

    @property
    def shares(self) -> bool:
        """Whether the next run's work is shared."""
        return self._trials[-1] if self._trials else self._shares

    def note(self, seconds: float) -> None:
        """How long that run took."""
        self._times[self.shares].append(seconds)
        is_first, self._is_first = self._is_first, False
        self._runs, self._seconds = self._runs + 1, self._seconds + seconds
        if is_first and seconds >= LONG_S:
            self._trials.clear()
        elif self._trials:
            self._trials.pop()
            if not self._trials:
                self._decide()
        elif self._runs >= RUNS and self._seconds >= SECONDS:
            other = not self._shares
            self._times[other].clear()
            self._trials = [other] * TRIED_AGAIN

    def _decide(self) -> None:
        used, other = (median(self._times[way]) for way in (self._shares, not self._shares))
        if other < GAIN * used:
            self._shares = not self._shares
        self._runs, self._seconds = 0, 0.0
