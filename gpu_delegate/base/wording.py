"""Words for messages: plurals, ranges of numbers, sizes in bytes, and names that were probably meant."""

import difflib
from collections.abc import Iterable

_MOST_RANGES = 8  # of operators' numbers in a line


def counted(number: int, what: str) -> str:
    """1 frame, 2 frames, 2 dispatches."""
    ending = "es" if what.endswith("ch") else "s"
    return f"{number} {what}{ending * (number != 1)}"


def number_ranges(numbers: Iterable[int]) -> str:
    """Ascending numbers as text: 1, 3-7, 9; of very many the first."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:_MOST_RANGES]]
    rest = sum(last - first + 1 for first, last in ranges[_MOST_RANGES:])
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def sized(size_bytes: int) -> str:
    """0.5 KiB, 1.5 MiB."""
    return f"{size_bytes / 2**20:.1f} MiB" if size_bytes >= 1 << 20 else f"{size_bytes / 2**10:.1f} KiB"


def meant(name: str, names: Iterable[str]) -> str:
    """'; did you mean effect?' for efect or EFFECT; nothing where nothing is near."""
    by_lower = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name[:80].lower(), by_lower, 1)
    return f"; did you mean {by_lower[near[0]]}?" if near else ""
