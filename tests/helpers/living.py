"""Counts the OpenGL objects that live in a context."""

import ctypes
import gc
from collections.abc import Sequence

from texelflow.gpu_delegate.targets.gl.context import Context

KINDS = ("Buffer", "Texture", "Program", "Shader", "Framebuffer", "Query", "VertexArray", "Sampler")
_LEAST = 2000  # numbers that are looked at
_BEYOND = 100  # numbers given out between two looks, and not yet seen


def living(context: Context, kinds: Sequence[str] = KINDS) -> dict[str, set[int]]:
    """By kind, whatever is no longer in use and waits to be deleted not counted."""
    gc.collect()
    context.gl.glUseProgram(0)  # one that is in use outlives its deletion
    return {kind: _living(context, kind) for kind in kinds}


def _living(context: Context, kind: str) -> set[int]:
    prototype = ctypes.CFUNCTYPE(ctypes.c_ubyte, ctypes.c_uint)
    exists = prototype(context._loader.load_opengl_function(f"glIs{kind}"))
    return {name for name in range(1, _newest(context, kind) + _BEYOND) if exists(name)}


def _newest(context: Context, kind: str) -> int:
    """The number that the next object would get: some drivers count on and on, others use numbers again."""
    if kind in ("Program", "Shader"):
        number = context.gl.glCreateProgram()  # both are numbered together
        context.gl.glDeleteProgram(number)
        return max(int(number), _LEAST)
    make, name = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p), ctypes.c_uint()
    for action in ("Gen", "Delete"):
        plural = "Queries" if kind == "Query" else f"{kind}s"
        make(context._loader.load_opengl_function(f"gl{action}{plural}"))(1, ctypes.addressof(name))
    return max(name.value, _LEAST)
