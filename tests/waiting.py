"""A condition goes in, and it is waited for: with a patience that only a broken program exhausts."""

import time
from collections.abc import Callable

PATIENCE_S = 20.0


def until(condition: Callable[[], object]) -> None:
    """Return as soon as it holds; fail if it never does."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)
