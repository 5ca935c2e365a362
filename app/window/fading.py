"""Times something that is shown for some seconds and then fades: how much of it is still seen."""

from collections.abc import Callable
from time import perf_counter_ns

_FADES_S = 0.6
_STEP_S = 1 / 30  # between two pictures of what fades


class Fading:
    """Something that goes by itself: it stays for `shown_s` seconds after each show(), and fades then."""

    def __init__(self, shown_s: float, time_ns: Callable[[], int] = perf_counter_ns) -> None:
        """Not to be seen yet. `time_ns` tells the time, by any clock that does not go back."""
        self._shown_s, self._time_ns, self._ends_s = shown_s, time_ns, float("-inf")

    def show(self) -> None:
        """From now on, or for longer."""
        self._ends_s = self._now_s + self._shown_s

    def fade(self) -> None:
        """Begin to fade now, unless it has begun."""
        self._ends_s = min(self._ends_s, self._now_s)

    @property
    def alpha(self) -> float:
        """From 1 to 0: gone."""
        return max(0.0, min(1.0, 1 - (self._now_s - self._ends_s) / _FADES_S))

    def changes_s(self, seen_s: float) -> float | None:
        """When it looks different from how it looked at a time, in seconds of its clock; None: it does not change."""
        return None if seen_s >= self._ends_s + _FADES_S else max(self._ends_s, seen_s + _STEP_S)

    @property
    def _now_s(self) -> float:
        return self._time_ns() / 1e9
