"""Shaders go in as JSON on stdin; what this process's OpenGL driver says of each goes out, a line of JSON for each.

The first line is the driver's limits. Run by compilers.py in the environment of a fake device: python -m ... gl|es
"""

import ctypes
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from texelflow.gpu_delegate import opengl
from texelflow.gpu_delegate.limits import read_limits
from texelflow.gpu_delegate.opengl import GL

_DEVICE, _DRM, _EXTENSIONS = 0x313F, b"EGL_EXT_device_drm", 0x3055
MARK = "shader "
_BINDINGS = 8  # more than any kernel has of a kind
_CALLBACK = ctypes.CFUNCTYPE(
    None, ctypes.c_uint, ctypes.c_uint, ctypes.c_uint, ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p
)


def open_device(api: str) -> Callable[[str], int]:
    """Make a context on the first device with a kernel driver current; gives the loader of its functions.

    Raises RuntimeError.
    """
    egl, pointer = ctypes.CDLL("libEGL.so.1"), ctypes.c_void_p
    egl.eglGetProcAddress.restype = egl.eglCreateContext.restype = pointer

    def function(name: str, result: Any, *arguments: Any) -> Any:
        return ctypes.CFUNCTYPE(result, *arguments)(egl.eglGetProcAddress(name.encode()))

    devices, count = (pointer * 16)(), ctypes.c_int()
    function("eglQueryDevicesEXT", ctypes.c_uint, ctypes.c_int, pointer, pointer)(16, devices, ctypes.byref(count))
    extensions = function("eglQueryDeviceStringEXT", ctypes.c_char_p, pointer, ctypes.c_int)
    found = [device for device in devices[: count.value] if _DRM in (extensions(device, _EXTENSIONS) or b"")]
    if not found:
        raise RuntimeError("EGL finds no device with a kernel driver")
    open_display = function("eglGetPlatformDisplayEXT", pointer, ctypes.c_uint, pointer, pointer)
    display = pointer(open_display(_DEVICE, found[0], None))
    version = [0x3098, 4, 0x30FB, 3, 0x30FD, 1] if api == "gl" else [0x3098, 3, 0x30FB, 1]
    if not egl.eglInitialize(display, None, None):
        raise RuntimeError(f"eglInitialize failed: {egl.eglGetError():#x}")
    egl.eglBindAPI(0x30A2 if api == "gl" else 0x30A0)
    wanted = (ctypes.c_int * (len(version) + 1))(*version, 0x3038)
    context = pointer(egl.eglCreateContext(display, None, None, wanted))
    if not context.value or not egl.eglMakeCurrent(display, None, None, context):
        raise RuntimeError(f"no context for {api}: {egl.eglGetError():#x}")
    return lambda name: egl.eglGetProcAddress(name.encode()) or 0


class _Driver:
    """The open context, and what it has said since it was last asked."""

    def __init__(self, gl: GL) -> None:
        self._gl = gl
        self._said: list[str] = []
        self._callback = _CALLBACK(self._keep)  # must live as long as OpenGL may call it
        gl.glEnable(opengl.DEBUG_OUTPUT)
        gl.glEnable(opengl.DEBUG_OUTPUT_SYNCHRONOUS)
        gl.glDebugMessageControl(opengl.DONT_CARE, opengl.DONT_CARE, opengl.DONT_CARE, 0, None, 1)
        gl.glDebugMessageCallback(ctypes.cast(self._callback, ctypes.c_void_p), None)

    def compile(self, source: str) -> dict[str, Any]:
        """What the driver says of a compute shader: `said`, `log` if it does not compile, `seconds`."""
        gl = self._gl
        self._said.clear()
        start = time.perf_counter()
        shader, program = gl.glCreateShader(opengl.COMPUTE_SHADER), gl.glCreateProgram()
        text = ctypes.c_char_p(source.encode())
        gl.glShaderSource(shader, 1, ctypes.byref(text), None)
        gl.glCompileShader(shader)
        log = self._log(gl.glGetShaderiv, gl.glGetShaderInfoLog, shader, opengl.COMPILE_STATUS)
        if log is None:
            gl.glAttachShader(program, shader)
            gl.glLinkProgram(program)
            log = self._log(gl.glGetProgramiv, gl.glGetProgramInfoLog, program, opengl.LINK_STATUS)
        if log is None and not self._said:  # some drivers compile at the first dispatch
            self._dispatch(program)
        gl.glDeleteShader(shader)
        gl.glDeleteProgram(program)
        return {"said": self._said[:], "log": log, "seconds": round(time.perf_counter() - start, 3)}

    def _dispatch(self, program: int) -> None:
        """One work-group, with a buffer wherever a kernel may expect one."""
        gl, size_bytes = self._gl, 1 << 14
        buffer, texture = gl.generate("Buffers"), gl.generate("Textures")
        gl.glBindBuffer(opengl.SHADER_STORAGE_BUFFER, buffer)
        gl.glBufferData(opengl.SHADER_STORAGE_BUFFER, size_bytes, None, opengl.DYNAMIC_COPY)
        for number in range(_BINDINGS):
            gl.glBindBufferRange(opengl.SHADER_STORAGE_BUFFER, number, buffer, 0, size_bytes)
            gl.glBindBufferRange(opengl.UNIFORM_BUFFER, number, buffer, 0, size_bytes)
            gl.glActiveTexture(opengl.TEXTURE0 + number)
            gl.glBindTexture(opengl.TEXTURE_BUFFER, texture)
        gl.glTexBuffer(opengl.TEXTURE_BUFFER, opengl.RGBA32F, buffer)
        gl.glUseProgram(program)
        gl.glDispatchCompute(1, 1, 1)
        gl.glFinish()

    @staticmethod
    def _log(get: Any, get_log: Any, name: int, status: int) -> str | None:
        value, log = ctypes.c_int(), ctypes.create_string_buffer(4096)
        get(name, status, ctypes.byref(value))
        if value.value:
            return None
        get_log(name, len(log), None, log)
        return log.value.decode(errors="replace") or "it does not say why"

    def _keep(self, _s: int, _kind: int, _n: int, _severity: int, length: int, text: int, _user: int) -> None:
        self._said.append(ctypes.string_at(text, length).decode(errors="replace").strip())


def main() -> None:
    gl = GL(open_device(sys.argv[1]))
    tell({"renderer": gl.string(opengl.RENDERER), "version": gl.string(opengl.VERSION),
          "limits": asdict(read_limits(gl))})  # fmt: skip
    driver = _Driver(gl)
    for name, source in json.load(sys.stdin).items():
        print(f"{MARK}{name}", file=sys.stderr, flush=True)  # before what the driver prints of it
        tell({"name": name, **driver.compile(source)})
    sys.stdout.flush()
    os._exit(0)  # drivers may crash in their clean-up over a device that does not exist


def tell(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
