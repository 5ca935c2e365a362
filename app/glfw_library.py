"""Loads the module glfw with the one of its libraries (X11 or Wayland) that fits the displays there are.

By default glfw starts Python in the current folder to ask each library for its version, and imgui-bundle may
take a library from there: where PYGLFW_LIBRARY is set, both take what it names.
"""

import contextlib
import ctypes.util
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["library_named", "load_glfw", "variant_for"]

_LIBRARY, _VARIANT = "PYGLFW_LIBRARY", "PYGLFW_LIBRARY_VARIANT"
_FILES = {"win32": "glfw3.dll", "darwin": "libglfw*.dylib"}.get(sys.platform, "libglfw*.so*")


def load_glfw() -> Any:
    """The module glfw, which loads a shared library. Raises ImportError if one of them is not there."""
    with library_named():
        import glfw
    return glfw


@contextlib.contextmanager
def library_named() -> Iterator[None]:
    """Within it the environment names the library that glfw is to load: the user's choice, or the one that fits."""
    named = os.environ.get(_LIBRARY)
    if not named:
        os.environ[_LIBRARY] = _library(os.environ)
    try:
        yield
    finally:
        if not named:
            os.environ.pop(_LIBRARY, None)


def variant_for(environment: Mapping[str, str]) -> str:
    """Which of glfw's two libraries fits the displays that there are; glfw itself believes in the session's type."""
    wayland, x11 = "WAYLAND_DISPLAY" in environment, "DISPLAY" in environment
    return "wayland" if wayland and (not x11 or environment.get("XDG_SESSION_TYPE") == "wayland") else "x11"


def _library(environment: Mapping[str, str]) -> str:
    """The path of the library that came with glfw, or of the system's; one that does not exist if there is neither."""
    found = importlib.util.find_spec("glfw")
    package = Path(*(found.submodule_search_locations or ())[:1]) if found else Path(sys.prefix)
    variant = environment.get(_VARIANT, "").lower() or variant_for(environment)
    for folder in (package / variant, package, Path(sys.prefix, "lib"), Path(sys.prefix, "Library", "bin")):
        if files := sorted(folder.glob(_FILES)):
            return str(files[-1])
    return ctypes.util.find_library("glfw") or str(package.absolute() / "no library")
