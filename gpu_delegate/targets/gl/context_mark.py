"""Tells whether another OpenGL context shares the objects of this one."""

import ctypes
import secrets

from . import opengl
from .context import MOST_LABEL_BYTES, Context


class ContextMark:
    """A buffer with a name that nobody else gives: a handle alone may be that of a newer context."""

    def __init__(self, context: Context) -> None:
        self._gl, self._token = context.gl, f"texelflow {secrets.token_hex(16)}"
        self._buffer = self._gl.generate("Buffers")
        self._gl.glBindBuffer(opengl.COPY_READ_BUFFER, self._buffer)
        context.label(opengl.BUFFER, self._buffer, self._token)
        self._found = ctypes.create_string_buffer(MOST_LABEL_BYTES + 1)

    def is_in(self, context: Context) -> bool:
        """Whether the context, which is current, has it. Without KHR_debug only that it was made for is known to."""
        gl = context.gl
        if not gl.khr_debug:
            return gl is self._gl
        if not gl.glIsBuffer(self._buffer):
            return False
        self._found.value = b""
        gl.glGetObjectLabel(opengl.BUFFER, self._buffer, len(self._found), None, self._found)
        return self._found.value == self._token.encode()

    def delete(self, context: Context) -> None:
        """Remove it from a context that has it, and is current."""
        context.gl.delete("Buffers", self._buffer)
