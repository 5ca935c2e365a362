"""A few words go in; they stand on the screen for a while, and then no more."""

from time import perf_counter

_SHOWN_S = 2.0


class Caption:
    """What was said last, until its time is over."""

    def __init__(self) -> None:
        self.words = ""
        self._end = 0.0

    def say(self, words: str, seconds: float = _SHOWN_S) -> None:
        """Show words instead of those before."""
        self.words, self._end = words, perf_counter() + seconds

    def expired(self) -> bool:
        """Whether words have just had their time: they are gone, and the screen has to be drawn again."""
        if not self.words or perf_counter() < self._end:
            return False
        self.words = ""
        return True

    @property
    def left_s(self) -> float | None:
        """How long the words stay; None if there are none."""
        return max(0.0, self._end - perf_counter()) if self.words else None
