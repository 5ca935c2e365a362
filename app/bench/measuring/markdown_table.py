"""Lays out a table as lines of Markdown."""

from collections.abc import Sequence


def markdown_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """A table whose columns line up, but for the last, which may be long; the first row is its head."""
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(*escaped, strict=True)]
    widths[-1] = len(escaped[0][-1])
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in escaped]
    return [lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]
