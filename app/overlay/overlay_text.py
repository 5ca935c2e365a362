"""Wraps and shortens text, and leaves out characters that no font shows."""

from collections.abc import Iterable

from ..console import one_line

_MOST_LETTERS = 160


def wrapped(phrases: Iterable[str], wide: int) -> list[str]:
    """Phrases on as few lines as they fit on; one longer than a line gets lines of its own, broken between words."""
    lines = [""]
    for phrase in phrases:
        is_long = len(phrase) > wide
        if is_long and lines[-1]:
            lines.append("")
        apart = "   " if lines[-1] else ""
        for word in phrase.split(" ") if is_long else [phrase]:
            if len(lines[-1]) + len(apart) + len(word) <= wide:
                lines[-1] += apart + word
            else:
                lines.append(word[:wide])
            apart = " "
    return lines


def plain(text: str) -> str:
    """Text on one line, shortened, without characters that no font shows."""
    return one_line(text)[:_MOST_LETTERS]
