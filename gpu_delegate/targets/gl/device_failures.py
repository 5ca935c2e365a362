"""Explains, in a few words, why an EGL device gives no context, and what to do about it."""

import contextlib
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...base.errors import DeviceError
from . import opengl
from .egl import LEAST_ES, Api, Egl, EglContext, EglDevice, EglDisplay

_API_NAMES: dict[Api, str] = {"gl": "OpenGL", "gles": "OpenGL ES"}
_OLDER: tuple[tuple[Api, tuple[int, int]], ...] = (("gl", (3, 3)), ("gl", (2, 1)), ("gles", (3, 0)))
_NODES, _NVIDIA_MODULE = "/dev/dri/", Path("/proc/driver/nvidia/version")


@dataclass(frozen=True)
class DeviceFailure:
    """Why a device gives no context, and what to do."""

    why: str
    advice: str
    is_old: bool = False  # it works, with an older OpenGL


def version_failure(
    egl: Egl, display: EglDisplay, error: str, needed: tuple[int, int], apis: Sequence[Api]
) -> DeviceFailure:
    """Why a device whose driver starts gave no context of the version needed: what it has instead, else the error."""
    older, renderer = _older_versions(egl, display)
    if older:
        wanted = [version_text(api, needed if api == "gl" else LEAST_ES) for api in apis]
        return DeviceFailure(outdated(older, renderer, wanted), "update the driver", is_old=True)
    return without_driver(error)


def version_text(api: Api, version: tuple[int, int]) -> str:
    """As in messages: OpenGL ES 3.1."""
    return f"{_API_NAMES[api]} {version[0]}.{version[1]}"


def outdated(versions: Sequence[str], renderer: str, needed: Sequence[str]) -> str:
    """What is wrong with a device whose versions, as OpenGL 3.1, are below those of which one is needed."""
    are = "is" if len(versions) == 1 else "are"
    return f"{' and '.join(versions)} ({renderer}) {are} too old, {' or '.join(needed)} is needed"


def start_failure(device: EglDevice, error: str) -> DeviceFailure:
    """Why a device's driver did not start: rights lack, a module, or the error."""
    return failure_from(device, error, _barred_by(device), _NVIDIA_MODULE.exists())


def failure_from(device: EglDevice, error: str, barred_by: str | None, has_nvidia_module: bool) -> DeviceFailure:
    """The same from facts. `barred_by` is the group that may use it, if this user may not."""
    node = next((name for name in device.names if name.startswith(_NODES)), "")
    if barred_by is not None:
        return DeviceFailure(f"no rights on {node}", f"run `usermod -aG {barred_by} USER` as root and log in anew")
    if "NVIDIA" in device.text and not has_nvidia_module:
        return DeviceFailure(f"{error}, NVIDIA's kernel module is not loaded", "install the module, or restart")
    return without_driver(error if device.handle else "EGL has no device")


def without_driver(why: str) -> DeviceFailure:
    """A failure for want of a driver; packages are named as Debian calls them."""
    packages = "" if sys.platform in ("win32", "darwin") else "libegl1 libgl1 libgl1-mesa-dri or "
    return DeviceFailure(why, f"install {packages}the GPU's driver")


def no_device_works(failures: Sequence[tuple[str, DeviceFailure]]) -> str:
    """One line for devices, by their names, of which none works."""
    named = [f"{name}: {failure.why}" for name, failure in failures] if len(failures) > 1 else [failures[0][1].why]
    none = "" if all(failure.is_old for _, failure in failures) else "no OpenGL: "
    return f"{none}{', '.join(named)}; {failures[0][1].advice}, or use --backend cpu"


def _barred_by(device: EglDevice) -> str | None:
    """The group that may use a device's node in place of this user; None where that is no obstacle."""
    if sys.platform == "win32":
        return None
    for node in (name for name in device.names if name.startswith(_NODES)):
        with contextlib.suppress(OSError, KeyError):
            path = Path(node)
            if path.exists() and not os.access(path, os.R_OK | os.W_OK):
                return path.group()
    return None


def _older_versions(egl: Egl, display: EglDisplay) -> tuple[list[str], str]:
    """What a device has instead: its newest OpenGL and OpenGL ES, and its renderer."""
    found: dict[Api, str] = {}
    renderer = ""
    for api, version in _OLDER:
        if api in found:
            continue
        with contextlib.suppress(DeviceError):
            context = EglContext(egl, display, api, version)
            try:
                load = context.load_opengl_function
                version_text = re.search(r"\d+\.\d+", opengl.text_of(load, opengl.VERSION))
                found[api] = f"{_API_NAMES[api]} {version_text[0] if version_text else '?'}"
                renderer = opengl.text_of(load, opengl.RENDERER)
            finally:
                context.release()
    return [*found.values()], renderer
