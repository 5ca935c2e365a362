"""Nothing goes in; memory that this process has freed goes back to the system: it does not grow with its work."""

import contextlib
import ctypes
import sys


def give_back_freed_memory() -> None:
    """On Linux with glibc, whose allocator keeps some for each of the threads that come and go; elsewhere nothing."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
