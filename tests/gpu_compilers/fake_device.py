"""The process that compiles shaders on a driver's fake device: JSON on standard input and output.

The first line is the driver's limits. Run by compilers.py in the environment of a fake device: python -m ... gl|gles
"""

import ctypes
import json
import os
import sys
import time
from dataclasses import asdict
from typing import Any

from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.device.limits import Limits
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.egl import Api, Egl, EglContext
from texelflow.gpu_delegate.targets.gl.opengl import GL
from texelflow.gpu_delegate.targets.gl.read_limits import read_limits
from texelflow.gpu_delegate.targets.glsl.shader import for_es

MARK = "shader "
_CALLBACK = ctypes.CFUNCTYPE(
    None, ctypes.c_uint, ctypes.c_uint, ctypes.c_uint, ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p
)


def open_device(api: Api) -> EglContext:
    """A context on the first device that is no software renderer, current. Raises DeviceError."""
    egl = Egl()
    found = [device for device in egl.devices() if not device.is_software]
    if not found:
        raise DeviceError("EGL finds no device but a software renderer")
    return EglContext(egl, egl.display(found[0]), api, (4, 3) if api == "gl" else (3, 1))


class _Driver:
    """The open context, and what it has said since it was last asked."""

    def __init__(self, gl: GL, limits: Limits) -> None:
        self._gl = gl
        self._limits = limits
        self._said: list[str] = []
        self._callback = _CALLBACK(self._keep)  # must live as long as OpenGL may call it
        gl.glEnable(opengl.DEBUG_OUTPUT)
        gl.glEnable(opengl.DEBUG_OUTPUT_SYNCHRONOUS)
        gl.glDebugMessageControl(opengl.DONT_CARE, opengl.DONT_CARE, opengl.DONT_CARE, 0, None, 1)
        gl.glDebugMessageCallback(ctypes.cast(self._callback, ctypes.c_void_p), None)

    def compile(self, source: str) -> dict[str, Any]:
        """What the driver says of a compute shader: `said`, `log` if it does not compile, `seconds` of the CPU."""
        gl = self._gl
        self._said.clear()
        start = time.process_time()
        shader, program = gl.glCreateShader(opengl.COMPUTE_SHADER), gl.glCreateProgram()
        text = ctypes.c_char_p((for_es(source, gl.version, gl.extensions) if gl.is_es else source).encode())
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
        return {"said": self._said[:], "log": log, "seconds": round(time.process_time() - start, 3)}

    def _dispatch(self, program: int) -> None:
        """One work-group, with a buffer wherever a kernel may expect one."""
        gl, size_bytes = self._gl, 1 << 14
        buffer, texture = gl.generate("Buffers"), gl.generate("Textures")
        gl.glBindBuffer(opengl.SHADER_STORAGE_BUFFER, buffer)
        gl.glBufferData(opengl.SHADER_STORAGE_BUFFER, size_bytes, None, opengl.DYNAMIC_COPY)
        for number in range(self._limits.storage_bindings):
            gl.glBindBufferRange(opengl.SHADER_STORAGE_BUFFER, number, buffer, 0, size_bytes)
        for number in range(self._limits.uniform_blocks):
            gl.glBindBufferRange(opengl.UNIFORM_BUFFER, number, buffer, 0, size_bytes)
        for number in range(self._limits.compute_textures):
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
    context = open_device("gles" if sys.argv[1] == "gles" else "gl")
    gl = GL(context.load_opengl_function)
    limits = read_limits(gl)
    tell({"renderer": gl.string(opengl.RENDERER), "version": gl.string(opengl.VERSION),
          "limits": asdict(limits)})  # fmt: skip
    driver = _Driver(gl, limits)
    for name, source in json.load(sys.stdin).items():
        print(f"{MARK}{name}", file=sys.stderr, flush=True)  # before what the driver prints of it
        tell({"name": name, **driver.compile(source)})
    sys.stdout.flush()
    os._exit(0)  # drivers may crash in their clean-up over a device that does not exist


def tell(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
