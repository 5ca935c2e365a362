"""The C function behind perf_counter_ns, so that native code reads the same clock as Python."""

import ctypes
import sys
from dataclasses import dataclass
from typing import Any

CLOCK = "clock_gettime"  # its name among calls
CLOCK_FORM = ("i32", ("i32", "i64"))  # the types of its result and arguments, as LLVM names them
_MONOTONIC = 1  # CLOCK_MONOTONIC of Linux


@dataclass(frozen=True)
class NativeClock:
    """The function, as ctypes calls it and by its address; it gets `number`, and where to put the time.

    That is two words of 64 bits: seconds and nanoseconds, on the clock of perf_counter_ns.
    """

    function: Any
    address: int
    number: int = _MONOTONIC


def native_clock() -> NativeClock | None:
    """That of this system; None where it is not known."""
    if sys.platform != "linux":
        return None
    function = getattr(ctypes.CDLL(None), CLOCK)
    function.argtypes, function.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_int
    return NativeClock(function, ctypes.cast(function, ctypes.c_void_p).value or 0)
