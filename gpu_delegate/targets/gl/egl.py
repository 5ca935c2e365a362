"""Opens OpenGL contexts without a window through EGL, on Linux.

Names and numbers are those of EGL's specification and of its extensions (registry.khronos.org/EGL).
"""
# ruff: noqa: N815

import ctypes
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_type_hints

from ...base.errors import DeviceError
from .library import load_library
from .opengl import Int, Pointer, Text, Uint, entry_point

Api = Literal["gl", "gles"]
LEAST_ES = (3, 1)  # of OpenGL ES: it has compute shaders

_DEVICE_PLATFORM, _SURFACELESS_PLATFORM = 0x313F, 0x31DD
_EXTENSIONS, _NONE = 0x3055, 0x3038
_DEVICE_TEXTS = (  # what a device may tell: the extension that it takes, and the name to ask for
    ("EGL_EXT_device_query_name", 0x335F),  # its renderer
    ("EGL_EXT_device_drm_render_node", 0x3377),
    ("EGL_EXT_device_drm", 0x3233),
)
_CUDA_DEVICE = 0x323A
_APIS: dict[Api, tuple[int, int]] = {"gl": (0x30A2, 0x8), "gles": (0x30A0, 0x40)}  # for eglBindAPI, in a configuration
_SURFACE_TYPE, _PBUFFER_BIT, _RENDERABLE_TYPE, _WIDTH, _HEIGHT = 0x3033, 0x1, 0x3040, 0x3057, 0x3056
_MAJOR_VERSION, _MINOR_VERSION, _PROFILE_MASK, _CORE_PROFILE_BIT = 0x3098, 0x30FB, 0x30FD, 0x1
_RESET_NOTIFICATION, _RESET_NOTIFICATION_EXT, _LOSE_CONTEXT_ON_RESET = 0x31BD, 0x3138, 0x31BF
_RESET_ON_MEMORY_PURGE_NV = 0x334C
_DRAW, _READ = 0x3059, 0x305A
_MOST_DEVICES = 32
_ERRORS = (
    "EGL_SUCCESS", "EGL_NOT_INITIALIZED", "EGL_BAD_ACCESS", "EGL_BAD_ALLOC", "EGL_BAD_ATTRIBUTE", "EGL_BAD_CONFIG",
    "EGL_BAD_CONTEXT", "EGL_BAD_CURRENT_SURFACE", "EGL_BAD_DISPLAY", "EGL_BAD_MATCH", "EGL_BAD_NATIVE_PIXMAP",
    "EGL_BAD_NATIVE_WINDOW", "EGL_BAD_PARAMETER", "EGL_BAD_SURFACE", "EGL_CONTEXT_LOST",
)  # fmt: skip  # from 0x3000 on


@dataclass(frozen=True)
class EglDevice:
    """One of EGL's devices, by its place in EGL's list; handle 0 is the default display, where EGL lists none."""

    index: int
    handle: int = 0
    names: tuple[str, ...] = ()  # what it tells of itself: a renderer, /dev/dri/renderD128
    is_software: bool = False  # says so itself; others may turn out to be
    cuda: int | None = None  # its number among CUDA's devices

    @property
    def text(self) -> str:
        """What it is, in words, from the little that EGL tells."""
        return ", ".join(self.names) or ("software renderer" if self.is_software else "GPU")


@dataclass(frozen=True)
class EglDisplay:
    """A device's connection to its driver, initialized."""

    device: EglDevice
    handle: int
    extensions: frozenset[str]


class Egl:
    """EGL's functions. Those of extensions are loaded where the extension is there."""

    eglGetError: Callable[[], Uint]
    eglQueryString: Callable[[Pointer, Int], Text | None]
    eglGetProcAddress: Callable[[Text], Pointer]
    eglGetDisplay: Callable[[Pointer], Pointer]
    eglInitialize: Callable[[Pointer, Pointer, Pointer], Uint]
    eglBindAPI: Callable[[Uint], Uint]
    eglChooseConfig: Callable[[Pointer, Pointer, Pointer, Int, Pointer], Uint]
    eglCreateContext: Callable[[Pointer, Pointer, Pointer, Pointer], Pointer]
    eglCreatePbufferSurface: Callable[[Pointer, Pointer, Pointer], Pointer]
    eglMakeCurrent: Callable[[Pointer, Pointer, Pointer, Pointer], Uint]
    eglGetCurrentDisplay: Callable[[], Pointer]
    eglGetCurrentSurface: Callable[[Int], Pointer]
    eglGetCurrentContext: Callable[[], Pointer]
    eglDestroyContext: Callable[[Pointer, Pointer], Uint]
    eglDestroySurface: Callable[[Pointer, Pointer], Uint]
    eglQueryDevicesEXT: Callable[[Int, Pointer, Pointer], Uint]
    eglQueryDeviceStringEXT: Callable[[Pointer, Int], Text | None]
    eglQueryDeviceAttribEXT: Callable[[Pointer, Int, Pointer], Uint]
    eglGetPlatformDisplayEXT: Callable[[Uint, Pointer, Pointer], Pointer]

    def __init__(self) -> None:
        """Raises DeviceError where there is no EGL. GLCONTEXT_LINUX_LIBEGL names another library, as for moderngl."""
        name = os.environ.get("GLCONTEXT_LINUX_LIBEGL") or "libEGL.so.1"
        try:
            library = load_library(name)
        except OSError:
            raise DeviceError(f"{name} cannot be loaded") from None
        for function, hint in get_type_hints(Egl, include_extras=True).items():
            exported: Any = getattr(library, function, None)  # extensions are not exported
            address = ctypes.cast(exported, ctypes.c_void_p).value or self.eglGetProcAddress(function.encode())
            setattr(self, function, entry_point(address or 0, hint))
        self.extensions = _words(self.eglQueryString(None, _EXTENSIONS))  # of EGL itself, without any display

    def devices(self) -> tuple[EglDevice, ...]:
        """All devices in EGL's order; without EGL_EXT_device_enumeration the default display alone."""
        if not self.extensions & {"EGL_EXT_device_enumeration", "EGL_EXT_device_base"}:
            return (EglDevice(0),)
        count, handles = ctypes.c_int(), (ctypes.c_void_p * _MOST_DEVICES)()
        self.eglQueryDevicesEXT(_MOST_DEVICES, handles, ctypes.byref(count))
        return tuple(self._device(index, handle or 0) for index, handle in enumerate(handles[: count.value]))

    def _device(self, index: int, handle: int) -> EglDevice:
        ask = self.eglQueryDeviceStringEXT
        extensions = _words(ask(handle, _EXTENSIONS))
        texts = (ask(handle, name) for extension, name in _DEVICE_TEXTS if extension in extensions)
        names = tuple(dict.fromkeys(text.decode(errors="replace") for text in texts if text))
        if not names and "EGL_NV_device_cuda" in extensions:
            names = ("NVIDIA GPU",)
        cuda = self._cuda_number(handle) if "EGL_NV_device_cuda" in extensions else None
        return EglDevice(index, handle, names, "EGL_MESA_device_software" in extensions, cuda)

    def _cuda_number(self, handle: int) -> int | None:
        found = ctypes.c_ssize_t()  # EGLAttrib
        return found.value if self.eglQueryDeviceAttribEXT(handle, _CUDA_DEVICE, ctypes.byref(found)) else None

    def display(self, device: EglDevice) -> EglDisplay:
        """Start a device's driver, if that is still to be done. Raises DeviceError."""
        display = self._platform_display(device)
        major, minor = ctypes.c_int(), ctypes.c_int()
        if not display or not self.eglInitialize(display, ctypes.byref(major), ctypes.byref(minor)):
            raise self.error("eglInitialize")
        extensions = _words(self.eglQueryString(display, _EXTENSIONS))
        if (major.value, minor.value) >= (1, 5):  # has these as part of itself
            extensions |= {"EGL_KHR_create_context"}
        return EglDisplay(device, display, extensions)

    def _platform_display(self, device: EglDevice) -> int:
        if device.handle:
            found = self.eglGetPlatformDisplayEXT(_DEVICE_PLATFORM, device.handle, None)
        elif "EGL_MESA_platform_surfaceless" in self.extensions:
            found = self.eglGetPlatformDisplayEXT(_SURFACELESS_PLATFORM, None, None)
        else:
            found = self.eglGetDisplay(None)
        return found or 0

    def error(self, function: str) -> DeviceError:
        """What a function of EGL failed with, by its name, to be raised."""
        code = self.eglGetError() - 0x3000
        return DeviceError(f"{function}: {_ERRORS[code] if 0 < code < len(_ERRORS) else 'no reason given'}")


class EglContext:
    """A context without a window, current in the thread that makes it; has the methods that moderngl expects of one."""

    def __init__(
        self, egl: Egl, display: EglDisplay, api: Api, version: tuple[int, int], shared: "EglContext | None" = None
    ) -> None:
        """Of at least that version; one that tells of resets, where the driver has such. Raises DeviceError.

        Buffers, textures and programs are those of a context that it shares with, which may be current elsewhere.
        """
        self._egl, self._display, self.api = egl, display.handle, api
        self._made_of, self._shared = (display, version), shared._context if shared else None
        if not egl.eglBindAPI(_APIS[api][0]):
            raise egl.error("eglBindAPI")
        self._surface, self._before = 0, (0, 0, 0, 0)
        surfaceless = "EGL_KHR_surfaceless_context" in display.extensions
        configuration = self._configuration(api, surfaceless)
        self._context: int = self._created(configuration, context_attributes(api, version, display.extensions))
        try:
            if not surfaceless:
                size = _attributes((_WIDTH, 1), (_HEIGHT, 1))
                self._surface = egl.eglCreatePbufferSurface(self._display, configuration, size) or 0
            self.make_current()
        except BaseException:
            self.release()
            raise

    def _configuration(self, api: Api, surfaceless: bool) -> int | None:
        found, count = ctypes.c_void_p(), ctypes.c_int()
        wanted = _attributes((_SURFACE_TYPE, 0 if surfaceless else _PBUFFER_BIT), (_RENDERABLE_TYPE, _APIS[api][1]))
        chosen = self._egl.eglChooseConfig(self._display, wanted, ctypes.byref(found), 1, ctypes.byref(count))
        if not chosen or not count.value:
            raise self._egl.error("eglChooseConfig") if not chosen else DeviceError("no configuration of EGL fits")
        return found.value

    def _created(self, configuration: int | None, ways: Sequence[Sequence[tuple[int, int]]]) -> int:
        """The context by the first of some ways, each a list of attributes, that the driver knows."""
        for way in ways:
            made = self._egl.eglCreateContext(self._display, configuration, self._shared, _attributes(*way))
            context: int = made or 0
            if context:
                return context
        raise self._egl.error("eglCreateContext")

    def sibling(self) -> "EglContext":
        """Another one that shares its objects, current in the thread that asks. Raises DeviceError."""
        display, version = self._made_of
        return EglContext(self._egl, display, self.api, version, shared=self)

    def load_opengl_function(self, name: str) -> int:
        """The address of an entry point, 0 if there is none."""
        return self._egl.eglGetProcAddress(name.encode()) or _exported(name, self.api)

    def make_current(self) -> None:
        """Make it current in the thread that asks. Raises DeviceError."""
        if not self._egl.eglMakeCurrent(self._display, self._surface, self._surface, self._context):
            raise self._egl.error("eglMakeCurrent")

    def release(self) -> None:
        """Free it; a thread in which it is current lets go of it."""
        egl, context, self._context = self._egl, self._context, 0
        if context:
            if egl.eglGetCurrentContext() == context:
                egl.eglMakeCurrent(self._display, None, None, None)
            egl.eglDestroyContext(self._display, context)
            if self._surface:
                egl.eglDestroySurface(self._display, self._surface)

    def __enter__(self) -> None:
        egl = self._egl
        surfaces = (egl.eglGetCurrentSurface(_DRAW), egl.eglGetCurrentSurface(_READ))
        self._before = (egl.eglGetCurrentDisplay(), *surfaces, egl.eglGetCurrentContext())
        self.make_current()

    def __exit__(self, *_: object) -> None:
        display, *rest = self._before
        self._egl.eglMakeCurrent(display or self._display, *rest)


def context_attributes(
    api: Api, version: tuple[int, int], extensions: frozenset[str]
) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Lists of attributes for a context of that version, most wanted first: the last asks for nothing but the version.

    Resets are told by EGL_LOSE_CONTEXT_ON_RESET (EGL_KHR_create_context for OpenGL, EGL_EXT_create_context_robustness
    for ES); with EGL_NV_robustness_video_memory_purge also that a driver lost its memory, as over a suspend.
    """
    plain: tuple[tuple[int, int], ...] = ((_MAJOR_VERSION, version[0]),)
    has_minor = "EGL_KHR_create_context" in extensions
    if has_minor:
        plain += ((_MINOR_VERSION, version[1]),)
    if has_minor and api == "gl":
        plain += ((_PROFILE_MASK, _CORE_PROFILE_BIT),)
    resets: tuple[tuple[int, int], ...] = ()
    if api == "gl" and has_minor:
        resets = ((_RESET_NOTIFICATION, _LOSE_CONTEXT_ON_RESET),)
    elif api == "gles" and "EGL_EXT_create_context_robustness" in extensions:
        resets = ((_RESET_NOTIFICATION_EXT, _LOSE_CONTEXT_ON_RESET),)
    purge = "EGL_NV_robustness_video_memory_purge" in extensions
    ways = [(*plain, *resets, (_RESET_ON_MEMORY_PURGE_NV, 1))] if resets and purge else []
    return (*ways, *([(*plain, *resets)] if resets else []), plain)


def _attributes(*pairs: tuple[int, int]) -> "ctypes.Array[ctypes.c_int]":
    flat = [number for pair in pairs for number in pair] + [_NONE]
    return (ctypes.c_int * len(flat))(*flat)


def _words(text: bytes | None) -> frozenset[str]:
    return frozenset((text or b"").decode(errors="replace").split())


def _exported(name: str, api: Api) -> int:
    """An entry point that is OpenGL's own library's alone: before EGL 1.5, EGL gives those of extensions."""
    for library in ("libGL.so.1", "libOpenGL.so.0") if api == "gl" else ("libGLESv2.so.2",):
        try:
            found: Any = getattr(load_library(library), name, None)
        except OSError:
            continue
        if address := ctypes.cast(found, ctypes.c_void_p).value:
            return address
    return 0
