"""Times something that is shown for some seconds and then fades: how much of it is still seen."""

from time import perf_counter

_FADES_S = 0.6
_STEP_S = 1 / 30  # between two pictures of what fades


class Fading:
    """Something that goes by itself: it stays for `shown_s` seconds after each show(), and fades then."""

    def __init__(self, shown_s: float) -> None:
        """Not to be seen yet."""
        self._shown_s, self._ends_s = shown_s, float("-inf")

    def show(self) -> None:
        """From now on, or for longer."""
        self._ends_s = perf_counter() + self._shown_s

    def fade(self) -> None:
        """Begin to fade now, unless it has begun."""
        self._ends_s = min(self._ends_s, perf_counter())

    @property
    def alpha(self) -> float:
        """From 1 to 0: gone."""
        return max(0.0, min(1.0, 1 - (perf_counter() - self._ends_s) / _FADES_S))

    def changes_s(self, seen_s: float) -> float | None:
        """When it looks different from how it looked at a time, both of perf_counter(); None: it does not change."""
        return None if seen_s >= self._ends_s + _FADES_S else max(self._ends_s, seen_s + _STEP_S)
