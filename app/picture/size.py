"""Parses a size as it is written, such as 640x480."""

import re

_SIZE = re.compile(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})")


def parse_size(text: str) -> tuple[int, int] | None:
    """(width, height) in pixels, of at most five digits each; None for everything else."""
    found = _SIZE.fullmatch(text)
    return (int(found[1]), int(found[2])) if found else None
