"""Collects the driver's messages (KHR_debug): errors, warnings, each text once.

Messages on performance (NVIDIA's driver sends one for every shader that it recompiles) are shown only if DEBUG is set.
Messages arrive from C, in the middle of the call that they are about or later, on the caller's thread or on one of the
driver's: nothing is raised there, they are kept. Only if DEBUG is set drivers are asked to report at once, on the
caller's thread, which Mesa's and NVIDIA's give up threads of their own for. Whoever asks for errors (glGetError) waits
for that thread, so that what is about earlier calls has arrived then.
"""

import contextlib
import ctypes
import warnings
from collections import deque
from collections.abc import Iterable
from typing import Any

from ...base import debug
from ...base.errors import OpenGLWarning
from . import opengl
from .opengl import GL

MOST_WAITING = 64  # so that a driver with a message in each frame does not fill the memory
MOST_WARNINGS = 32  # of one context: texts may differ in a number each time
MOST_TEXT = 300

_ERROR, _PERFORMANCE = 0x824C, 0x8250
_KINDS = {
    _ERROR: "error",
    0x824D: "deprecated",
    0x824E: "undefined behavior",
    0x824F: "not portable",
    _PERFORMANCE: "performance",
}
_SHADER_COMPILER = 0x8248  # the same text is in the shader's log, which is read anyway
_SEVERITY_LOW, _SEVERITY_NOTIFICATION = 0x9148, 0x826B
_CALLBACK = ctypes.CFUNCTYPE(
    None, ctypes.c_uint, ctypes.c_uint, ctypes.c_uint, ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p
)


def errors_of(taken: Iterable[tuple[int, str]]) -> list[str]:
    """The texts of the errors."""
    return [text for kind, text in taken if kind == _ERROR]


class Messages:
    """Collects from the current context on, until detach(); nothing where drivers know no such messages.

    Nor where somebody else listens already: whoever made the context has the first say.
    """

    def __init__(self, gl: GL) -> None:
        self.waiting: deque[tuple[int, str]] = deque(maxlen=MOST_WAITING)  # (type, text)
        self._gl = gl
        self._told: set[str] = set()
        self._callback: Any = _CALLBACK(self._keep)  # must live as long as OpenGL may call it
        self._address = ctypes.cast(self._callback, ctypes.c_void_p)
        if gl.khr_debug and not self._listener():
            anything, wanted = opengl.DONT_CARE, debug.level() >= debug.RUN
            gl.glEnable(opengl.DEBUG_OUTPUT)
            (gl.glEnable if wanted else gl.glDisable)(opengl.DEBUG_OUTPUT_SYNCHRONOUS)
            gl.glDebugMessageControl(anything, anything, _SEVERITY_LOW, 0, None, wanted)
            gl.glDebugMessageControl(anything, _PERFORMANCE, anything, 0, None, wanted)
            gl.glDebugMessageControl(anything, anything, _SEVERITY_NOTIFICATION, 0, None, 0)
            gl.glDebugMessageCallback(self._address, None)

    def take(self) -> list[tuple[int, str]]:
        """Take all that was collected, (type, text) each; what comes meanwhile may wait for the next time."""
        taken = list[tuple[int, str]]()
        with contextlib.suppress(IndexError):
            while len(taken) < MOST_WAITING:
                taken.append(self.waiting.popleft())
        return taken

    def warn(self, where: str, taken: Iterable[tuple[int, str]]) -> None:
        """Emit what was taken as warnings, each text once."""
        for text in (f"{_KINDS[kind]}: {text}" for kind, text in taken):
            if text not in self._told and len(self._told) < MOST_WARNINGS:
                self._told.add(text)
                warnings.warn(f"OpenGL, while {where}: {text}", OpenGLWarning, stacklevel=3)

    def detach(self) -> None:
        """Be called no more. A context that is current outlives its release; one that is not cannot call."""
        if self._gl.khr_debug and self._listener() == self._address.value:
            self._gl.glDebugMessageCallback(None, None)
            self._gl.glFinish()  # a thread of the driver's may be in the middle of a call

    def _listener(self) -> int | None:
        """The function that OpenGL calls now."""
        function = ctypes.c_void_p()
        self._gl.glGetPointerv(opengl.DEBUG_CALLBACK_FUNCTION, ctypes.byref(function))
        return function.value

    def _keep(self, source: int, kind: int, _name: int, _severity: int, length: int, text: int, _user: int) -> None:
        if kind in _KINDS and not (source == _SHADER_COMPILER and kind == _ERROR) and text:
            found = ctypes.string_at(text, min(length, MOST_TEXT) if length >= 0 else -1)
            self.waiting.append((kind, " ".join(found.decode(errors="replace").split())[:MOST_TEXT]))
