"""Probes this machine's OpenGL for `texelflow doctor`, and prints what it finds as one JSON object.

`texelflow doctor` runs probes as processes of their own: a broken driver may end the process that asks it, or hang it.
Each loads what it needs when it runs.
"""

import ctypes
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from texelflow.gpu_delegate.base.errors import DeviceError, TexelflowError, UsageError
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.egl import Egl

if TYPE_CHECKING:
    from texelflow.gpu_delegate.targets.gl.context import Context
    from texelflow.gpu_delegate.targets.gl.native_context import TriedDevice

Found = dict[str, Any]

AUTO_MODEL = "selfie"  # that auto is shown by
_FENCE_WAIT_NS = 2_000_000_000


def probe_opengl() -> Found:
    """The context that the program would get: who renders, limits, what of newer OpenGL is there, timer and fence."""
    from texelflow.gpu_delegate.targets.gl.context import DRAWING, open_context

    try:
        context, error = open_context(), ""
    except DeviceError as reason:
        context, error = open_context(DRAWING), str(reason)
    with context:
        tried, taken = [_told_of(each) for each in context.tried], context.device
        return {
            **describe_context(context), "tried": tried, "taken": taken.device.index if taken else None, "error": error,
        }  # fmt: skip


def describe_context(context: "Context") -> Found:
    """An open context in plain values."""
    from texelflow.gpu_delegate.targets.gl.gpu_timer import timer_health

    return {
        "vendor": context.vendor,
        "renderer": context.renderer,
        "gl_version": context.gl_version,
        "api": context.api,
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
    """The devices that EGL offers, in its order, which are the numbers of --gpu."""
    return {"devices": [device.text for device in Egl().devices()]}


def probe_device(number: str) -> Found:
    """One of them: what renders there, or why nothing does."""
    from texelflow.gpu_delegate.targets.gl.context import REQUIRED
    from texelflow.gpu_delegate.targets.gl.native_context import try_device, wanted_apis

    egl = Egl()
    found, context = try_device(egl, egl.devices()[int(number)], REQUIRED, wanted_apis())
    if context:
        context.release()
    return {"tried": [_told_of(found)]}


def _told_of(tried: "TriedDevice") -> Found:
    failure = tried.failure
    why, advice = (failure.why, failure.advice) if failure else ("", "")
    return {"number": tried.device.index, "renderer": tried.renderer, "why": why, "advice": advice}


def probe_window() -> Found:
    """Whether a window opens, and which OpenGL it gets; the window is never shown."""
    from ...glfw_library import load_glfw
    from ...window.glfw_window import context_hints
    from ...window.window_opening import contexts_to_try

    glfw = load_glfw()
    reporting: Any = glfw
    reporting.ERROR_REPORTING = False

    if not glfw.init():
        return {"error": _glfw_error(glfw)}
    try:
        for version, api in contexts_to_try("auto"):
            glfw.default_window_hints()
            glfw.window_hint(glfw.VISIBLE, False)
            for hint, value in context_hints(glfw, version, api).items():
                glfw.window_hint(hint, value)
            if window := glfw.create_window(64, 64, "texelflow doctor", None, None):
                glfw.make_context_current(window)
                return {"error": "", **_window_gl(glfw)}
        return {"error": _glfw_error(glfw)}
    finally:
        glfw.terminate()


def probe_cpu() -> Found:
    """The TensorFlow Lite that loads, if one does, and what code can be made for this CPU."""
    from texelflow.gpu_delegate.cpu.interpreter_module import load_interpreter_module

    found: Found = {"module": "", "error": "", "native": _native_code()}
    try:
        found["module"] = load_interpreter_module().__name__
    except DeviceError as reason:
        found["error"] = str(reason)
    return found


def _native_code() -> Found:
    from texelflow.gpu_delegate.targets.llvm.compiler import llvm_version, native_target
    from texelflow.gpu_delegate.targets.llvm.pool import default_threads

    try:
        target = native_target()
    except TexelflowError as error:
        return {"why": str(error), "is_refused": isinstance(error, UsageError)}
    return {
        "why": "", "target": target.name, "lanes": target.lanes, "cpu": target.cpu, "threads": default_threads(),
        "llvm": llvm_version(),
    }  # fmt: skip


def probe_auto() -> Found:
    """What --backend auto takes, and by which times, which are measured where none are kept."""
    from texelflow.gpu_delegate.targets.gl.context import open_context

    from ...frame.backend_choice.auto_choice import auto_backend, chosen_by_hand
    from ...models.catalogue import list_models

    by_hand = chosen_by_hand()
    here = {status.entry.name for status in list_models() if status.present}
    with open_context() as context:
        times = None
        if AUTO_MODEL in here and not by_hand:
            from ...frame.backend_choice.backend_times import backend_times
            from ...frame.inference.backends import ComputeChoice
            from ...models.model_loading import load_frame_model

            times = backend_times(context, load_frame_model(AUTO_MODEL), ComputeChoice(), draws=True)
        line = times.line("picture") if times and times.cpu_ms is not None else ""
        return {
            "taken": auto_backend(context.is_software, times, by_hand), "by_hand": by_hand,
            "software": context.is_software, "line": line,
            "present": AUTO_MODEL in here,
        }  # fmt: skip


def _window_gl(glfw: Any) -> Found:
    gl = opengl.GL(lambda name: ctypes.cast(glfw.get_proc_address(name), ctypes.c_void_p).value or 0)
    version = gl.string(opengl.VERSION)
    return {"renderer": gl.string(opengl.RENDERER), "gl_version": version if gl.is_es else f"OpenGL {version}"}


def _glfw_error(glfw: Any) -> str:
    text = glfw.get_error()[1]
    return text.decode(errors="replace") if isinstance(text, bytes) else str(text or "no window opens")


def _fence_ms(context: "Context") -> float | None:
    """How long a fence takes with nothing before it; None for one that is not signaled in two seconds."""
    gl, start = context.gl, perf_counter()
    fence = gl.glFenceSync(opengl.SYNC_GPU_COMMANDS_COMPLETE, 0)
    state = gl.glClientWaitSync(fence, opengl.SYNC_FLUSH_COMMANDS_BIT, _FENCE_WAIT_NS)
    gl.glDeleteSync(fence)
    return (perf_counter() - start) * 1e3 if state in (opengl.ALREADY_SIGNALED, opengl.CONDITION_SATISFIED) else None


PROBES: Mapping[str, Callable[[], Found]] = MappingProxyType(
    {"opengl": probe_opengl, "egl": probe_egl, "window": probe_window, "cpu": probe_cpu, "auto": probe_auto}
)


def main(name: str) -> None:
    """Run one probe, or that of the device of a number; whatever goes wrong is what it has found."""
    try:
        found = probe_device(name) if name.isdecimal() else PROBES[name]()
    except Exception as error:
        found = {"error": " ".join(str(error).split()) or type(error).__name__}
    print(json.dumps(found))
