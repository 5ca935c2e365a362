"""Merges reasons that differ only in a number, with how often each was given."""

import re
from collections.abc import Mapping

_NUMBER = re.compile(r"(?<![\w.:/-])\d+(?![\w.])")  # not of a name


def alike(reasons: Mapping[str, int], named: bool = False) -> Mapping[str, int]:
    """Reasons that differ in their first number alone become one, with the smallest and the largest.

    `named` drops the name of a tensor and a colon, with which a reason begins. Most frequent first.
    """
    counts: dict[str, int] = {}
    numbers: dict[str, list[int]] = {}
    for reason, count in reasons.items():
        text = reason.partition(": ")[2] or reason if named else reason
        form = _NUMBER.sub("\0", text, count=1)
        counts[form] = counts.get(form, 0) + count
        numbers.setdefault(form, []).extend(map(int, _NUMBER.findall(text)[:1]))
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return {form.replace("\0", _span(numbers[form])): count for form, count in ordered}


def _span(numbers: list[int]) -> str:
    if not numbers:
        return ""
    low, high = min(numbers), max(numbers)
    return str(low) if low == high else f"{low} to {high}"
