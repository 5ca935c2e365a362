"""Collects the files that are dropped onto a window."""

import ctypes
import os
from pathlib import Path
from typing import Any

_MOST = 100  # files of one drop


class Drops:
    """Gathers what is dropped onto one window of glfw."""

    def __init__(self, glfw: Any, handle: Any) -> None:
        self._paths: list[Path] = []
        # Not glfw.set_drop_callback, which fails, with a traceback, over names that are not UTF-8.
        self._callback = glfw._GLFWdropfun(self._on_drop)  # kept: the library has no more than its address
        glfw._glfw.glfwSetDropCallback(handle, self._callback)

    def take(self) -> list[Path]:
        """The files of the last drop since the last call."""
        paths, self._paths = self._paths, []
        return paths

    def _on_drop(self, _: object, count: int, names: "ctypes._Pointer[ctypes.c_char_p]") -> None:
        found = (names[place] for place in range(min(count, _MOST)))
        self._paths = [Path(os.fsdecode(name)) for name in found if name]
