"""Checks that a refusal is one readable line."""

from texelflow.gpu_delegate.base.errors import TexelflowError


def check_line(error: TexelflowError) -> None:
    """Raises AssertionError for several lines, control characters, or nothing at all."""
    line = str(error)
    if not line or not line.isprintable():
        raise AssertionError(f"a refusal of several lines, or of none: {line!r}") from error
