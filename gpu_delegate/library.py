"""The name of a library of the system goes in; the library comes out, or where OpenGL's functions are in it."""

import ctypes
import sys
from collections.abc import Callable
from typing import Any

from .errors import DeviceError

__all__ = ["current_loader", "load_library"]

# Where OpenGL is, by platform: the library, what tells the context that is current, and what finds functions, if not
# the library alone. Linux has two, since windows may use either.
_SYSTEMS = {
    "win32": (("opengl32.dll", "wglGetCurrentContext", "wglGetProcAddress"),),
    "darwin": (("/System/Library/Frameworks/OpenGL.framework/OpenGL", "CGLGetCurrentContext", ""),),
}
_LINUX = (
    ("libEGL.so.1", "eglGetCurrentContext", "eglGetProcAddress"),
    ("libGL.so.1", "glXGetCurrentContext", "glXGetProcAddressARB"),
)
_MOST_INVALID = 3  # wglGetProcAddress says "none" with any number up to this, or with -1


def load_library(name: str) -> ctypes.CDLL:
    """A library by its name on Linux: libEGL.so.1. Raises OSError if there is none.

    Windows and macOS have no libraries with such names, and macOS would search the current folder for them.
    """
    if sys.platform in ("win32", "darwin"):
        raise OSError(f"{name}: this system has no libraries of such names")
    return ctypes.CDLL(name)


def current_loader() -> Callable[[str], int]:
    """What gives the addresses of the functions of the OpenGL context that is current in this thread, 0 for none.

    Raises DeviceError where no context is current.
    """
    for name, current, find in _SYSTEMS.get(sys.platform, _LINUX):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        if _function(library, current, ctypes.c_void_p)():
            return _loader(library, find)
    raise DeviceError("no OpenGL context is current in this thread; make yours current first")


def _loader(library: ctypes.CDLL, find: str) -> Callable[[str], int]:
    found = _function(library, find, ctypes.c_void_p, ctypes.c_char_p) if find else lambda name: None
    none = ctypes.c_void_p(-1).value

    def load(name: str) -> int:
        address: int = found(name.encode()) or 0
        if address > _MOST_INVALID and address != none:
            return address
        exported: Any = getattr(library, name, None)
        return ctypes.cast(exported, ctypes.c_void_p).value or 0

    return load


def _function(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.CFUNCTYPE(result, *arguments)((name, library))
