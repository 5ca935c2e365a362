"""The name of a probe goes in; what it finds of this machine's OpenGL comes out on stdout, as one JSON object.

`texelflow doctor` runs probes as processes of their own: a broken driver may end the process that asks it, or hang it.
"""

import ctypes
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from time import perf_counter
from types import MappingProxyType
from typing import Any

from texelflow.gpu_delegate import opengl
from texelflow.gpu_delegate.context import DRAWING, Context, open_context
from texelflow.gpu_delegate.errors import DeviceError
from texelflow.gpu_delegate.library import load_library

from ..frame.gpu_timer import timer_health

Found = dict[str, Any]

_EXTENSIONS, _DRM_DEVICE_FILE, _RENDERER, _DRM_RENDER_NODE = 0x3055, 0x3233, 0x335F, 0x3377
_MOST_DEVICES = 32
_FENCE_WAIT_NS = 2_000_000_000


def probe_opengl() -> Found:
    """The context that the program would get: who renders, limits, what of newer OpenGL is there, timer and fence."""
    try:
        context, error = open_context(), ""
    except DeviceError as reason:
        context, error = open_context(DRAWING), str(reason)
    with context:
        return {**describe_context(context), "error": error}


def describe_context(context: Context) -> Found:
    """An open context in plain values."""
    return {
        "vendor": context.vendor,
        "renderer": context.renderer,
        "version": context.version,
        "software": context.is_software,
        "can_compute": context.can_compute,
        "limits": asdict(context.limits),
        "extensions": sorted(context.gl.extensions),
        "multi_bind": context.gl.multi_bind,
        "khr_debug": context.gl.khr_debug,
        "fence_ms": _fence_ms(context),
        "timer": timer_health(context),
    }


def probe_egl() -> Found:
    """The devices that EGL offers, in the order of GLCONTEXT_DEVICE_INDEX."""
    egl = load_library("libEGL.so.1")
    egl.eglGetProcAddress.restype, egl.eglGetProcAddress.argtypes = ctypes.c_void_p, (ctypes.c_char_p,)
    query = egl.eglGetProcAddress(b"eglQueryDevicesEXT")
    query_string = egl.eglGetProcAddress(b"eglQueryDeviceStringEXT")
    if not query or not query_string:
        return {"devices": None}
    count, devices = ctypes.c_int(), (ctypes.c_void_p * _MOST_DEVICES)()
    ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(query)(
        _MOST_DEVICES, devices, ctypes.byref(count)
    )
    ask = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int)(query_string)
    return {"devices": [_egl_device(ask, device) for device in devices[: count.value] if device]}


def _egl_device(ask: Callable[[int, int], bytes | None], device: int) -> str:
    """What the device is, from the little that EGL tells; a name is asked for only where there is one."""
    extensions = (ask(device, _EXTENSIONS) or b"").decode(errors="replace").split()
    if "EGL_MESA_device_software" in extensions:
        return "software renderer"
    asked = (
        ("EGL_EXT_device_query_name", _RENDERER),
        ("EGL_EXT_device_drm_render_node", _DRM_RENDER_NODE),
        ("EGL_EXT_device_drm", _DRM_DEVICE_FILE),
    )
    names = (ask(device, name) for extension, name in asked if extension in extensions)
    known = ", ".join(name.decode(errors="replace") for name in names if name)
    return known or ("NVIDIA GPU" if "EGL_NV_device_cuda" in extensions else "GPU")


def probe_window() -> Found:
    """Whether a window opens, and which OpenGL it gets; the window is never shown."""
    from ..glfw_library import load_glfw

    glfw = load_glfw()
    reporting: Any = glfw
    reporting.ERROR_REPORTING = False

    if not glfw.init():
        return {"error": _glfw_error(glfw)}
    try:
        glfw.window_hint(glfw.VISIBLE, False)
        for version in ((4, 3), DRAWING):
            glfw.window_hint(glfw.CONTEXT_VERSION_MAJOR, version[0])
            glfw.window_hint(glfw.CONTEXT_VERSION_MINOR, version[1])
            glfw.window_hint(glfw.OPENGL_PROFILE, glfw.OPENGL_CORE_PROFILE)
            if window := glfw.create_window(64, 64, "texelflow doctor", None, None):
                glfw.make_context_current(window)
                return {"error": "", **_window_gl(glfw)}
        return {"error": _glfw_error(glfw)}
    finally:
        glfw.terminate()


def probe_cpu() -> Found:
    """The TensorFlow Lite that loads, if one does."""
    from texelflow.gpu_delegate.cpu.reference import load_interpreter_module

    return {"module": load_interpreter_module().__name__, "error": ""}


def _window_gl(glfw: Any) -> Found:
    gl = opengl.GL(lambda name: ctypes.cast(glfw.get_proc_address(name), ctypes.c_void_p).value or 0)
    return {"renderer": gl.string(opengl.RENDERER), "version": gl.string(opengl.VERSION)}


def _glfw_error(glfw: Any) -> str:
    text = glfw.get_error()[1]
    return text.decode(errors="replace") if isinstance(text, bytes) else str(text or "no window opens")


def _fence_ms(context: Context) -> float | None:
    """How long a fence takes with nothing before it; None for one that is not signalled in two seconds."""
    gl, start = context.gl, perf_counter()
    fence = gl.glFenceSync(opengl.SYNC_GPU_COMMANDS_COMPLETE, 0)
    state = gl.glClientWaitSync(fence, opengl.SYNC_FLUSH_COMMANDS_BIT, _FENCE_WAIT_NS)
    gl.glDeleteSync(fence)
    return (perf_counter() - start) * 1e3 if state in (opengl.ALREADY_SIGNALED, opengl.CONDITION_SATISFIED) else None


PROBES: Mapping[str, Callable[[], Found]] = MappingProxyType(
    {"opengl": probe_opengl, "egl": probe_egl, "window": probe_window, "cpu": probe_cpu}
)


def main(name: str) -> None:
    """Run one probe; whatever goes wrong is what it has found."""
    try:
        found = PROBES[name]()
    except Exception as error:
        found = {"error": " ".join(str(error).split()) or type(error).__name__}
    print(json.dumps(found))
