"""Shows messages on the screen, each for some seconds."""

from time import perf_counter

_SHOWN_S = 2.0
_LETTERS_PER_S = 25.0  # that are read
_MOST_LINES = 3


class Toast:
    """What was said last, each line until its time is over."""

    def __init__(self) -> None:
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
        self._lines[words] = perf_counter() + max(seconds, len(words) / _LETTERS_PER_S)
        for old in [*self._lines][:-_MOST_LINES]:
            del self._lines[old]

    def expired(self) -> bool:
        """Whether words have just had their time: they are gone, and the screen has to be drawn again."""
        if not self._lines:
            return False
        now = perf_counter()
        over = [words for words, end in self._lines.items() if end <= now]
        for words in over:
            del self._lines[words]
        return bool(over)

    @property
    def left_s(self) -> float | None:
        """How long all of the words stay; None if there are none."""
        return max(0.0, min(self._lines.values()) - perf_counter()) if self._lines else None
