"""The name of a system library goes in; the library comes out, loaded from the system's own folders."""

import ctypes
import sys

__all__ = ["load_library"]


def load_library(name: str) -> ctypes.CDLL:
    """A library by its name on Linux: libEGL.so.1. Raises OSError if there is none.

    Windows and macOS have no libraries with such names, and macOS would search the current folder for them.
    """
    if sys.platform in ("win32", "darwin"):
        raise OSError(f"{name}: this system has no libraries of such names")
    return ctypes.CDLL(name)
