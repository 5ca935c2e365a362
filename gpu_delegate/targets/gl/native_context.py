"""Opens a context without a window on the best device, or on the one that the environment asks for.

Windows and macOS give one device each, by glcontext; on Linux EGL's devices are tried, hardware ahead of software.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import glcontext

from ...base.errors import DeviceError
from ...device.families import family_of
from . import opengl
from .device_failures import DeviceFailure, no_device_works, start_failure, version_failure, without_driver
from .egl import LEAST_ES, Api, Egl, EglContext, EglDevice

_APIS: tuple[Api, ...] = ("gl", "gles")
_API_CHOICE = "TEXELFLOW_GL_API"  # in the environment: one of these, or nothing
_CHOICES = ("TEXELFLOW_GPU", "GLCONTEXT_DEVICE_INDEX")  # in the environment: a device's number, or part of its name
_LEAST_TO_DRAW = (3, 3)


class NativeContext(Protocol):
    """What moderngl expects of a context, as glcontext's have it."""

    def load_opengl_function(self, name: str) -> int: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, *exc: object) -> Any: ...
    def release(self) -> Any: ...


@dataclass(frozen=True)
class TriedDevice:
    """A device that was tried: its renderer and vendor, or why it does not work."""

    device: EglDevice
    renderer: str = ""
    vendor: str = ""
    failure: DeviceFailure | None = None

    @property
    def is_software(self) -> bool:
        """Whether the CPU does its work."""
        return self.device.is_software or family_of(self.vendor, self.renderer).name == "software"

    @property
    def name(self) -> str:
        """As in messages: device 0 (/dev/dri/renderD128)."""
        return f"device {self.device.index} ({self.device.text})"

    def matches(self, name: str) -> bool:
        """Whether this is a part of one of its names, in any case; nothing is part of all."""
        return any(name.casefold() in own.casefold() for own in (*self.device.names, self.renderer, self.vendor))


@dataclass(frozen=True)
class OpenedNative:
    """A context, current in this thread, its device of EGL, and all devices that were tried for it."""

    native: NativeContext
    device: TriedDevice | None = None
    tried: tuple[TriedDevice, ...] = ()


def wanted_device() -> str:
    """The number or the name of a device that the environment asks for; empty for the best."""
    return next((found for name in _CHOICES if (found := os.environ.get(name, "").strip())), "")


def wanted_apis() -> tuple[Api, ...]:
    """The API that the environment asks for; or OpenGL and, on devices that lack the version needed, OpenGL ES."""
    asked = os.environ.get(_API_CHOICE, "").strip()
    return tuple(api for api in _APIS if api == asked) or _APIS


def open_native(needed: tuple[int, int], api: Api | None = None, wanted: str | None = None) -> OpenedNative:
    """A context on the device of a number or a name, by default that of the environment, else on the best.

    `needed` is the version of OpenGL; of OpenGL ES it is LEAST_ES. Raises DeviceError that says why none works.
    """
    apis = (api,) if api else wanted_apis()
    if sys.platform in ("win32", "darwin"):
        if "gl" not in apis:
            raise DeviceError("no OpenGL ES: this system has OpenGL alone; leave --gl-api gles out")
        return OpenedNative(_of_the_system(needed))
    wanted = wanted_device() if wanted is None else wanted
    egl = _loaded()
    tried: list[TriedDevice] = []
    best: tuple[TriedDevice, EglContext] | None = None
    for device in in_order(egl.devices(), wanted):
        if best and device.is_software:
            break  # it is no better
        found, context = try_device(egl, device, needed, apis)
        tried.append(found)
        if context and (not found.matches("" if _is_number(wanted) else wanted) or (best and found.is_software)):
            context.release()
        elif context:
            if best:
                best[1].release()
            best = found, context
            if wanted or not found.is_software:
                break
    if not best:
        raise DeviceError(_none_of(tried, wanted))
    taken, context = best
    context.make_current()
    return OpenedNative(context, taken, tuple(tried))


def chosen_device() -> TriedDevice | None:
    """The device of EGL that the environment asks for, with its names; None where nobody has chosen.

    Raises DeviceError if it does not work.
    """
    if not wanted_device() or sys.platform in ("win32", "darwin"):
        return None
    opened = open_native(_LEAST_TO_DRAW)
    opened.native.release()
    return opened.device


def _loaded() -> Egl:
    try:
        return Egl()
    except DeviceError as error:
        raise DeviceError(_without(str(error))) from None


def in_order(devices: Sequence[EglDevice], wanted: str) -> Sequence[EglDevice]:
    """The devices to try for a number, a name or nothing: hardware first. Raises DeviceError for no such number."""
    if not devices:
        raise DeviceError(_without("EGL has no device"))
    if not _is_number(wanted):
        return sorted(devices, key=lambda device: device.is_software)
    if int(wanted) >= len(devices):
        known = "device 0 alone" if len(devices) == 1 else f"devices 0 to {len(devices) - 1}"
        raise DeviceError(
            f"no OpenGL: EGL has no device {wanted}, but {known}; see texelflow doctor or use --backend cpu"
        )
    return [devices[int(wanted)]]


def try_device(
    egl: Egl, device: EglDevice, needed: tuple[int, int], apis: Sequence[Api]
) -> tuple[TriedDevice, EglContext | None]:
    """A context on a device by the first API that works, current in this thread, or none and why."""
    try:
        display = egl.display(device)
    except DeviceError as error:
        return TriedDevice(device, failure=start_failure(device, str(error))), None
    errors: list[str] = []
    for api in apis:
        try:
            context = EglContext(egl, display, api, needed if api == "gl" else LEAST_ES)
            break
        except DeviceError as error:
            errors.append(str(error))
    else:
        return TriedDevice(device, failure=version_failure(egl, display, errors[0], needed, apis)), None
    renderer, vendor = (opengl.text_of(context.load_opengl_function, name) for name in (opengl.RENDERER, opengl.VENDOR))
    return TriedDevice(device, renderer, vendor), context


def _is_number(wanted: str) -> bool:
    return wanted.isdecimal() and len(wanted) < 6


def _none_of(tried: Sequence[TriedDevice], wanted: str) -> str:
    """Why no device works, or that none has the name."""
    failures = [(each.name, each.failure) for each in tried if each.failure]
    if len(failures) == len(tried):
        return no_device_works(failures)
    known = ", ".join(f"{each.device.index} {each.renderer}" for each in tried if not each.failure)
    return f"no GPU is called {wanted}: there is {known}; texelflow doctor lists all"


def _without(what: str) -> str:
    return no_device_works([("", without_driver(what))])


def _of_the_system(needed: tuple[int, int]) -> NativeContext:
    try:
        version = 100 * needed[0] + 10 * needed[1]
        found: NativeContext = glcontext.default_backend()(mode="standalone", glversion=version)
    except Exception as error:  # glcontext raises nothing more specific
        raise DeviceError(_without(str(error))) from None
    return found
