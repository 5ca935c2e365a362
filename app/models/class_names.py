"""Finds classes by their numbers or names, and those of people by what they are called."""

import difflib
import re
from collections.abc import Sequence

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.reading.reader import printable_name

_MOST_NAMED = 8  # labels in a line of text
_MOST_LETTERS = 24  # of one of them
_MOST_DIGITS = 9
PERSON = "person"

_PEOPLE = (PERSON, "people", "persons", "human", "humans")
_BEHIND = "background"
_PARTS = frozenset(
    (
        "arm", "arms", "body", "cloth", "clothes", "clothing", "face", "foot", "feet", "hair", "hand", "hands", "head",
        "leg", "legs", "skin", "torso", "trousers",
    )
)  # fmt: skip
_BESIDE = frozenset(  # words of labels of what belongs to a person, too
    (
        "accessories", "accessory", "bag", "belt", "boots", "brow", "brows", "dress", "ear", "ears", "eye", "eyebrow",
        "eyebrows", "eyes", "glasses", "hat", "l", "left", "lip", "lips", "lower", "mouth", "neck", "nose", "other",
        "others", "pants", "r", "right", "scarf", "shoe", "shoes", "skirt", "socks", "sunglasses", "upper",
    )
)  # fmt: skip


def find_classes(wanted: int | str, labels: Sequence[str], classes: int) -> tuple[int, ...]:
    """Which of so many classes are wanted, of several with commas: each once, in the order that they are named in.

        find_classes("hair, clothes", ["background", "hair", "skin", "clothes"], 4)  # (1, 3)
        find_classes("person", ["background", "hair", "skin", "clothes"], 4)  # (1, 2, 3): all parts of one

    Raises UsageError as find_class.
    """
    text = str(wanted).casefold().strip()
    whole = text in (label.casefold() for label in labels)
    if text == PERSON and not whole and (found := classes_of_people(labels)):
        return found
    parts = [wanted] if whole or isinstance(wanted, int) else wanted.split(",")
    return tuple(dict.fromkeys(find_class(part, labels, classes) for part in parts))


def classes_of_people(labels: Sequence[str]) -> tuple[int, ...]:
    """Those that a person is: the one that is called so or, of labels of a background and parts, all parts."""
    names = [label.casefold().strip() for label in labels]
    for name in _PEOPLE:
        if name in names:
            return (names.index(name),)
    parts = [number for number, name in enumerate(names) if name != _BEHIND]
    words = [frozenset(re.findall("[a-z]+", names[number])) for number in parts]
    if len(parts) + 1 != len(names) or not all(each and each <= _PARTS | _BESIDE for each in words):
        return ()
    return tuple(parts) if sum(bool(each & _PARTS) for each in words) > 1 else ()


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
