"""Returns memory that this process has freed to the system, so that long runs of jobs do not grow."""

import contextlib
import ctypes
import gc
import sys


class JobMemory:
    """For a process that does jobs of one kind and nothing else, one after the other."""

    def __init__(self) -> None:
        """Frees nothing."""
        self._spared = False

    def free(self, opened: bool) -> None:
        """After a job: what refers to itself, such as a session with its decoder and its threads, goes now, not later.

        `opened`: the job has opened what later ones use. That is never looked at again, so that this takes about two
        milliseconds, not sixty.
        """
        gc.collect()
        if opened and not self._spared:
            gc.freeze()
            self._spared = True
        give_back_freed_memory()


def give_back_freed_memory() -> None:
    """On Linux with glibc, whose allocator keeps some for each of the threads that come and go; elsewhere nothing."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
