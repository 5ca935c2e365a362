"""Shows messages on the screen, each for some seconds."""

from collections.abc import Callable
from time import perf_counter_ns

_SHOWN_S = 2.0
_LETTERS_PER_S = 25.0  # that are read
_MOST_LINES = 3


class Toast:
    """What was said last, each line until its time is over."""

    def __init__(self, time_ns: Callable[[], int] = perf_counter_ns) -> None:
        """`time_ns` tells the time, by any clock that does not go back."""
        self._time_ns = time_ns
        self._lines: dict[str, float] = {}  # and when their time is over

    @property
    def words(self) -> str:
        """All that is to be seen now, on a line each."""
        return "\n".join(self._lines)

    def say(self, words: str, seconds: float = _SHOWN_S) -> None:
        """Show words instead of those before, for so long at least, and longer if there are many."""
        self._lines.clear()
        self.add(words, seconds)

    def add(self, words: str, seconds: float = _SHOWN_S) -> None:
        """Show words below those before, of which the last ones stay."""
        self._lines.pop(words, None)
        self._lines[words] = self._now_s + max(seconds, len(words) / _LETTERS_PER_S)
        for old in [*self._lines][:-_MOST_LINES]:
            del self._lines[old]

    def expired(self) -> bool:
        """Whether words have just had their time: they are gone, and the screen has to be drawn again."""
        if not self._lines:
            return False
        now_s = self._now_s
        over = [words for words, end in self._lines.items() if end <= now_s]
        for words in over:
            del self._lines[words]
        return bool(over)

    @property
    def left_s(self) -> float | None:
        """How long all of the words stay; None if there are none."""
        return max(0.0, min(self._lines.values()) - self._now_s) if self._lines else None

    @property
    def _now_s(self) -> float:
        return self._time_ns() / 1e9
