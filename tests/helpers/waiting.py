"""Waits for a condition, long enough for any machine."""

import time
from collections.abc import Callable

PATIENCE_S = 120.0


def until(condition: Callable[[], object], meanwhile: Callable[[], None] = lambda: None) -> None:
    """Return as soon as it holds; fail if it never does. `meanwhile` is called before each look."""
    end = time.monotonic() + PATIENCE_S
    meanwhile()
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)
        meanwhile()
