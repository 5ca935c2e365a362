"""Draws text over the picture: the list of keys, status, messages and progress. Called within Gui.draw."""

from collections.abc import Sequence

from .draw import BRIGHT, CPU, DIM, LARGE, LATE, OPAQUE, PADDING, PLAIN, Painter
from .overlay_placement import ScreenArea
from .overlay_text import plain, wrapped

STATUS_EM = 2.5  # how high the status line is, from the bottom of the picture, with the margin there
_MARGIN, _GAP = 0.6, 0.45  # em
_MESSAGE = 5.2  # em from the bottom to the top of messages
_LEAST_LETTERS, _LEAST_HIGH = 26, 12.0  # of a part of the picture that has room for messages; em


def key_list(rows: Sequence[tuple[str, str]]) -> None:
    """Keys and what they do, in the middle."""
    painter = Painter(in_front=True)
    keys, words = ([plain(row[side]) for row in rows] for side in (0, 1))
    wide = max(map(len, keys), default=0) + 2
    columns = wide + max(map(len, words), default=0)
    x, y = painter.centered(columns, len(rows))
    painter.text(x, y, CPU, "\n".join(keys))
    painter.text(x + wide * painter.letter, y, PLAIN, "\n".join(words))


def status(text: str, recording: str = "") -> None:
    """One line at the bottom left; what is being recorded comes first, marked red. One of the two may be empty."""
    painter, text, recording = Painter(), plain(text), plain(recording)
    mark = 2 if recording else 0  # letters
    start = mark + len(recording) + (3 if recording and text else 0)
    top = painter.height / painter.em - _MARGIN - 1 - 2 * _GAP
    x, y = painter.box(_MARGIN, top, (start + len(text)) * painter.letter / painter.em, 1, _GAP)
    if recording:
        painter.dot(x, y, LATE)
        painter.text(x + mark * painter.letter, y, BRIGHT, recording)
    if text:
        painter.text(x + start * painter.letter, y, PLAIN, text)


def signal(text: str) -> None:
    """A few large words in the middle, above messages: what the user must know about the camera."""
    painter, text = Painter(in_front=True), plain(text)
    letters = max(1, int((painter.width - 2 * (_MARGIN + PADDING) * painter.em) / painter.large_letter))
    lines = wrapped([text], letters)
    wide, high = max(map(len, lines)) * painter.large_letter / painter.em, len(lines) * LARGE
    left, top = (
        (painter.width / painter.em - wide) / 2 - PADDING,
        painter.height / painter.em - _MESSAGE - _GAP - high - 2 * PADDING,
    )
    x, y = painter.box(max(0.0, left), max(0.0, top), wide, high, color=OPAQUE)
    painter.text(x, y, BRIGHT, "\n".join(lines), LARGE)


def progress(title: str, done: int, total: int) -> None:
    """A bar in the middle that says how much is done; without an end in sight (total 0) it stays empty."""
    painter, title = Painter(), plain(title)
    share = min(1.0, max(0.0, done / total)) if total > 0 else 0.0
    count = f"{done}/{total}" if total > 0 else ""
    columns = max(len(title) + 2 + len(count), 36)
    x, y = painter.centered(columns, 2)
    painter.text(x, y, BRIGHT, title)
    painter.text(x + (columns - len(count)) * painter.letter, y, DIM, count)
    y += 1.4 * painter.em
    painter.bar(x, y, columns * painter.letter, 0.4 * painter.em, share)


def message(text: str, alpha: float = 1.0, free: ScreenArea | None = None, at_top: bool = False) -> None:
    """Lines of words at the top, or at the bottom above the status line; alpha: from 0, not to be seen, to 1.

    In the middle of what is free of the picture, or of all of it where that has no room for words.
    """
    painter = Painter(in_front=True, alpha=alpha)
    em, area = painter.em, ScreenArea(0, 0, painter.width, painter.height)
    if free and free.width >= _LEAST_LETTERS * painter.letter and free.height >= _LEAST_HIGH * em:
        area = free
    letters = max(1, int((area.width - 2 * (_MARGIN + PADDING) * em) / painter.letter))
    lines = [line for words in text.split("\n") for line in wrapped([plain(words)], letters)]
    wide, high = max(map(len, lines)) * painter.letter / em, len(lines)
    left = area.left / em + max(_MARGIN, (area.width / em - wide) / 2 - PADDING)
    top = area.top / em + _MARGIN if at_top else area.bottom / em - _MESSAGE + 1 - high
    x, y = painter.box(left, top, wide, high)
    painter.text(x, y, BRIGHT, "\n".join(lines))
