"""Loads the system's OpenGL libraries, and asks which context is current in this thread."""

import contextlib
import ctypes
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...base.errors import DeviceError

__all__ = ["CurrentContext", "load_library", "release_thread"]

_DRAW, _READ = 0x3059, 0x305A  # EGL_DRAW, EGL_READ


@dataclass(frozen=True)
class _System:
    """One way to OpenGL: the library, and functions of it by their names."""

    library: str
    find: str  # what finds OpenGL's functions, if not the library alone
    set_current: str
    arguments: tuple[tuple[str, int], ...]  # of that: what tells the ones of this thread; the last is the context


# By platform. Linux has two, since windows may use either.
_SYSTEMS = {
    "win32": (
        _System("opengl32.dll", "wglGetProcAddress", "wglMakeCurrent",
                (("wglGetCurrentDC", 0), ("wglGetCurrentContext", 0))),
    ),
    "darwin": (
        _System("/System/Library/Frameworks/OpenGL.framework/OpenGL", "", "CGLSetCurrentContext",
                (("CGLGetCurrentContext", 0),)),
    ),
}  # fmt: skip
_LINUX = (
    _System("libEGL.so.1", "eglGetProcAddress", "eglMakeCurrent",
            (("eglGetCurrentDisplay", 0), ("eglGetCurrentSurface", _DRAW), ("eglGetCurrentSurface", _READ),
             ("eglGetCurrentContext", 0))),
    _System("libGL.so.1", "glXGetProcAddressARB", "glXMakeContextCurrent",
            (("glXGetCurrentDisplay", 0), ("glXGetCurrentDrawable", 0), ("glXGetCurrentReadDrawable", 0),
             ("glXGetCurrentContext", 0))),
)  # fmt: skip
_MOST_INVALID = 3  # wglGetProcAddress says "none" with any number up to this, or with -1


class CurrentContext:
    """What is current in the thread that makes this: the context, and what it draws to."""

    def __init__(self) -> None:
        """Raises DeviceError where no context is current."""
        for system in _SYSTEMS.get(sys.platform, _LINUX):
            with contextlib.suppress(OSError):
                self._library, self._system = ctypes.CDLL(system.library), system
                self._query = self._function(system.arguments[-1][0], ctypes.c_void_p)
                self.handle = self._query()
                if self.handle:
                    break
        else:
            raise DeviceError("no OpenGL context is current in this thread; make yours current first")
        get = partial(self._function, result=ctypes.c_void_p)
        self._state = [get(name, arguments=[ctypes.c_int])(argument) for name, argument in system.arguments]

    def is_current(self) -> bool:
        """Whether the context is current in the thread that asks."""
        return bool(self._query() == self.handle)

    def restore(self) -> None:
        """Make it current in the thread that asks; it has to be there."""
        arguments = [ctypes.c_void_p] * len(self._state)
        self._function(self._system.set_current, ctypes.c_int, arguments)(*self._state)

    def load(self, name: str) -> int:
        """The address of a function of OpenGL, 0 for none."""
        find = self._system.find
        address: int = (self._function(find, ctypes.c_void_p, [ctypes.c_char_p])(name.encode()) or 0) if find else 0
        if address > _MOST_INVALID and address != ctypes.c_void_p(-1).value:
            return address
        exported: Any = getattr(self._library, name, None)
        return ctypes.cast(exported, ctypes.c_void_p).value or 0

    def _function(self, name: str, result: Any, arguments: Sequence[Any] = ()) -> Any:
        return ctypes.CFUNCTYPE(result, *arguments)((name, self._library))


def release_thread() -> None:
    """Have this thread let go of its context, which is not freed before, even if it has been released.

    EGL alone is known to need it: each thread would leave 2 MiB behind with Mesa's software renderer.
    """
    with contextlib.suppress(OSError):
        load_library("libEGL.so.1").eglReleaseThread()


def load_library(name: str) -> ctypes.CDLL:
    """A library by its name on Linux: libEGL.so.1. Raises OSError if there is none.

    Windows and macOS have no libraries with such names, and macOS would search the current folder for them.
    """
    if sys.platform in ("win32", "darwin"):
        raise OSError(f"{name}: this system has no libraries of such names")
    return ctypes.CDLL(name)
