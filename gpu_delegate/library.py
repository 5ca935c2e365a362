"""The name of a library of the system goes in; the library comes out, loaded from where the system keeps such."""

import ctypes
import sys

__all__ = ["load_library"]


def load_library(name: str) -> ctypes.CDLL:
    """A library by its name on Linux: libEGL.so.1. Raises OSError if there is none.

    Windows and macOS have no libraries of such names, and macOS would look for them in the current folder.
    """
    if sys.platform in ("win32", "darwin"):
        raise OSError(f"{name}: this system has no libraries of such names")
    return ctypes.CDLL(name)
