"""Finds a class by its number or its name."""

import difflib
from collections.abc import Sequence

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.reading.reader import printable_name

_MOST_NAMED = 8  # labels in a line of text
_MOST_LETTERS = 24  # of one of them
_MOST_DIGITS = 9


def find_class(wanted: int | str, labels: Sequence[str], classes: int) -> int:
    """Which of so many classes is wanted; upper and lower case are the same.

    Raises UsageError, which names a label that is near, or what there is.
    """
    if isinstance(wanted, int) or wanted.strip().isdecimal():
        if len(str(wanted)) > _MOST_DIGITS or not 0 <= int(wanted) < classes:
            shown = str(wanted)[: _MOST_DIGITS + 1]
            raise UsageError(f"--channel {shown}: the model's output has the classes 0 to {classes - 1}")
        return int(wanted)
    names = [label.casefold() for label in labels]
    name = wanted.strip().casefold()
    if name and name in names:
        return names.index(name)
    shown = printable_name(wanted[:80])
    if not any(names):
        raise UsageError(f"--channel {shown}: the model names no classes; a number from 0 to {classes - 1} is needed")
    near = difflib.get_close_matches(name[:80], names, 1)
    if near:
        raise UsageError(f"--channel {shown}: no such class; did you mean {labels[names.index(near[0])]}?")
    listed = ", ".join(label[:_MOST_LETTERS] for label in labels[:_MOST_NAMED] if label)
    more = ", …" if len(labels) > _MOST_NAMED else ""
    raise UsageError(f"--channel {shown}: no such class; there are {listed}{more}")
