"""Makes plausible, increasing times of the arrival times and the time stamps of pictures."""

from collections import deque

SANE_AGE_NS = 5_000_000_000
_WINDOW_NS = 1_000_000_000


def sane_stamp(captured_ns: int | None, arrival_ns: int) -> tuple[int, bool]:
    """When a picture was taken, and whether its own stamp says so: not if it is missing, in the future or very old."""
    if captured_ns is not None and 0 <= arrival_ns - captured_ns <= SANE_AGE_NS:
        return captured_ns, True
    return arrival_ns, False


class Timeline:
    """Numbers pictures, and gives them times in microseconds since the first, which always grow."""

    def __init__(self) -> None:
        self.start_ns: int | None = None
        self._last_us = -1
        self.count = 0

    def place(self, captured_ns: int, skipped: int = 0) -> tuple[int, int]:
        """The number and the time in microseconds of the next picture, before which some were skipped."""
        if self.start_ns is None:
            self.start_ns = captured_ns
        self._last_us = max((captured_ns - self.start_ns) // 1000, self._last_us + 1)
        index = self.count + skipped
        self.count = index + 1
        return index, self._last_us


class Rate:
    """Measures how many pictures a second arrive, over the last second."""

    def __init__(self) -> None:
        self._arrivals_ns: deque[int] = deque(maxlen=600)

    def add(self, arrival_ns: int, pictures: int = 1) -> None:
        """So many pictures arrived at once."""
        self._arrivals_ns.extend([arrival_ns] * pictures)
        while self._arrivals_ns and arrival_ns - self._arrivals_ns[0] > 4 * _WINDOW_NS:
            self._arrivals_ns.popleft()

    def fps(self, now_ns: int) -> float:
        """0 while none come; slow sources are measured over their last two pictures, of the last four seconds."""
        recent = [arrival for arrival in self._arrivals_ns if now_ns - arrival <= _WINDOW_NS]
        if len(recent) < 2:
            recent = [arrival for arrival in self._arrivals_ns if now_ns - arrival <= 4 * _WINDOW_NS][-2:]
        if len(recent) < 2 or recent[-1] == recent[0] or recent[-1] - recent[-2] > 2 * _WINDOW_NS:
            return 0.0
        return (len(recent) - 1) / (recent[-1] - recent[0]) * 1e9
