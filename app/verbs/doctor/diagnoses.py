"""Evaluates what `texelflow doctor` has queried: diagnoses, each with a state and what to do."""

import importlib.metadata
import importlib.util
import itertools
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from texelflow.gpu_delegate.base.wording import counted
from texelflow.gpu_delegate.targets.llvm.machine import usable_cores

State = Literal["ok", "warn", "missing"]

_PYTHONS = ((3, 10), (3, 13))
_PACKAGES = {  # by what they are imported as: OpenCV comes under several names
    "av": "av", "cv2": "opencv-python", "flatbuffers": "flatbuffers", "glcontext": "glcontext", "glfw": "glfw",
    "moderngl": "moderngl", "numpy": "numpy", "platformdirs": "platformdirs", "rich": "rich", "tflite": "tflite",
    "typer": "typer",
}  # fmt: skip
_DECODERS = ("h264", "hevc", "vp8", "vp9", "av1", "mpeg4", "mjpeg", "prores")
_TOOLS = {  # and their packages
    "glslangValidator": "glslang-tools", "Xvfb": "xvfb", "xdotool": "xdotool", "cwm": "cwm", "apitrace": "apitrace",
}  # fmt: skip
_SETTINGS = ("GLCONTEXT_DEVICE_INDEX", "LIBGL_ALWAYS_SOFTWARE", "GALLIUM_DRIVER",
             "MESA_GL_VERSION_OVERRIDE", "EGL_PLATFORM", "__EGL_VENDOR_LIBRARY_FILENAMES",
             "__EGL_VENDOR_LIBRARY_DIRS")  # fmt: skip
_MOST_FILES = 10_000
PI_CAMERA = "tcp://127.0.0.1:8888"
_INSTALL_GL = (
    "install the GPU's driver" if sys.platform in ("win32", "darwin")
    else "apt-get install libegl1 libgl1 libgl1-mesa-dri, or the GPU's driver"
)  # fmt: skip


@dataclass(frozen=True)
class Diagnosis:
    """One line. One that `stops` and is missing keeps recordings from being segmented."""

    topic: str
    name: str
    state: State
    found: str
    advice: str = ""
    stops: bool = False


def python() -> list[Diagnosis]:
    """The interpreter, the packages that are always needed, and those that are not."""
    low, high = (".".join(map(str, version)) for version in _PYTHONS)
    supported = _PYTHONS[0] <= sys.version_info[:2] <= _PYTHONS[1]
    lacking = [package for module, package in _PACKAGES.items() if importlib.util.find_spec(module) is None]
    versions = [(package, _version_of(package)) for package in ("texelflow", *_PACKAGES.values())]
    here = ", ".join(f"{package} {version}" for package, version in versions if version)
    imgui = _version_of("imgui-bundle")
    return [
        _judged(supported, "Python", "Python", sys.version.split()[0], f"use Python {low} to {high}"),
        Diagnosis("Python", "packages", "missing", f"no {', '.join(lacking)}", "install texelflow anew", stops=True)
        if lacking else Diagnosis("Python", "packages", "ok", here),
        _judged(bool(imgui), "Python", "imgui-bundle", imgui or "not installed", "pip install imgui-bundle: overlays"),
    ]  # fmt: skip


def opengl(found: Mapping[str, Any]) -> list[Diagnosis]:
    """Who renders, whether it suffices, its limits and what helps."""
    if "gl_version" not in found:
        why, _, advice = str(found.get("error") or "none").removeprefix("no OpenGL: ").partition("; ")
        advice = advice.partition(", or use ")[0] or _INSTALL_GL
        advice = "EGL's devices are below" if "texelflow doctor" in advice else advice
        return [Diagnosis("OpenGL", "OpenGL", "missing", why, f"{advice}; masks and logs need none", stops=True)]
    who = Diagnosis("OpenGL", "renderer", "ok", f"{found['renderer']}, {found['vendor']}")
    if found["software"]:
        advice = "install the GPU's driver; until then networks run on the CPU unless --backend gl"
        who = Diagnosis("OpenGL", "renderer", "warn", f"{found['renderer']}: software renderer, no GPU", advice)
    version = found["gl_version"] if found["can_compute"] else f"{found['gl_version']}: it can draw but not compute"
    advice = "update the driver: networks need OpenGL 4.3 or ES 3.1, and run on the CPU here"
    lines = [who, _judged(found["can_compute"], "OpenGL", "version", version, advice)]
    if found["can_compute"]:
        lines += _limits(found["limits"], found["api"])
    return lines + _health(found)


def _limits(limits: Mapping[str, Any], api: str) -> list[Diagnosis]:
    from texelflow.gpu_delegate.device.limits import needed_limits

    return [
        _judged(
            limits[name] >= needed, "OpenGL", name.replace("_", " "), f"{limits[name]:,}, needed {needed:,}",
            "use --backend cpu",
        )
        for name, needed in needed_limits(api == "gles").items()
        if needed
    ]  # fmt: skip


def _health(found: Mapping[str, Any]) -> list[Diagnosis]:
    fence_ms, timer = found["fence_ms"], found["timer"]
    fence = "never signaled" if fence_ms is None else f"signaled after {fence_ms:.2f} ms"
    binding = _judged(
        found["multi_bind"], "OpenGL", "ARB_multi_bind", _yes(found["multi_bind"]), "more calls a dispatch"
    )
    return [
        *([binding] if found["api"] == "gl" else _of_es(found)),
        _judged(found["khr_debug"], "OpenGL", "KHR_debug", _yes(found["khr_debug"]), "drivers keep their warnings"),
        _judged(
            timer is None,
            "OpenGL",
            "timer",
            timer or "tells how long the GPU works",
            "nothing to do: wall time is shown instead",
        ),
        _judged(fence_ms is not None, "OpenGL", "fence", fence, "update the driver: replay waits on fences"),
    ]


def _of_es(found: Mapping[str, Any]) -> list[Diagnosis]:
    """What of OpenGL ES 3.1 is optional, and what is done without it."""
    texels = found["limits"]["texture_buffer_texels"]
    shown = f"up to {texels:,} texels" if texels else "none: tensors are read from storage buffers"
    return [Diagnosis("OpenGL", "buffer textures", "ok", shown)]


def egl(found: Mapping[str, Any], environment: Mapping[str, str]) -> list[Diagnosis]:
    """The devices without a window, and which of them is taken; Windows and macOS have no EGL of their own."""
    if sys.platform in ("win32", "darwin"):
        return []
    lines = []
    devices = found.get("devices")
    if devices is None:
        why = found.get("error") or "they cannot be listed"
        lines.append(Diagnosis("EGL", "devices", "warn", why, _INSTALL_GL))
    elif not devices:
        lines.append(Diagnosis("EGL", "devices", "missing", "none", _INSTALL_GL))
    lines += [_egl_device(number, device) for number, device in enumerate(devices or ())]
    if chosen := environment.get("TEXELFLOW_GPU"):  # which --gpu sets, too
        lines.append(Diagnosis("EGL", "choice", "ok", f"{chosen}, by --gpu or TEXELFLOW_GPU"))
    settings = [f"{name}={environment[name]}" for name in _SETTINGS if environment.get(name)]
    if settings:
        lines.append(Diagnosis("EGL", "environment", "warn", ", ".join(settings), "unset what you did not mean"))
    return lines


def _egl_device(number: int, device: Mapping[str, Any]) -> Diagnosis:
    """One of EGL's devices: what renders there, or why nothing does."""
    name, text = f"device {number}", device["text"]
    if device["why"]:
        why = f"{text}: {device['why']}" + (f" ({device['said']})" if device["said"] else "")
        return Diagnosis("EGL", name, "warn", why, device["advice"] or _INSTALL_GL)
    what = text if device["renderer"] in text else f"{device['renderer']}, {text}"
    if device["taken"]:
        return Diagnosis("EGL", name, "ok", f"{what} (taken)")
    return Diagnosis("EGL", name, "ok", what, f"--gpu {number} takes this one")


def display(found: Mapping[str, Any], environment: Mapping[str, str]) -> list[Diagnosis]:
    """Where windows would be shown, and whether one opens."""
    places = [f"{name}={environment[name]}" for name in ("WAYLAND_DISPLAY", "DISPLAY") if environment.get(name)]
    if sys.platform in ("win32", "darwin"):
        places = ["the desktop's"]
    if not places:
        return [Diagnosis("Display", "display", "warn", "none", "set DISPLAY for windows; recordings need none")]
    lines = [Diagnosis("Display", "display", "ok", ", ".join(places))]
    if found.get("error"):
        return [*lines, Diagnosis("Display", "window", "missing", found["error"], "replay without --window")]
    return [*lines, Diagnosis("Display", "window", "ok", f"opens: {found['gl_version']} on {found['renderer']}")]


def cpu(found: Mapping[str, Any], can_compute: bool) -> list[Diagnosis]:
    """What runs networks on the CPU: code made for it, and TensorFlow Lite, which checks others, too."""
    lines = [Diagnosis("CPU", "cores", "ok", f"{usable_cores()} usable")]
    if native := found.get("native"):
        lines.append(_native_code(native))
    installed = [f"{name} {v}" for name in ("tflite-runtime", "ai-edge-litert") if (v := _version_of(name))]
    if found.get("error"):
        stops, advice = not can_compute, "pip install ai-edge-litert"
        return [*lines, Diagnosis("CPU", "TensorFlow Lite", "missing", found["error"], advice, stops)]
    return [*lines, Diagnosis("CPU", "TensorFlow Lite", "ok", ", ".join(installed) or found["module"])]


def _native_code(found: Mapping[str, Any]) -> Diagnosis:
    """Whether code can be made for this CPU, and of which kind."""
    if found["why"]:
        advice = "unset it, or name one of these" if found["is_refused"] else "until then TensorFlow Lite runs networks"
        return Diagnosis("CPU", "native code", "warn", found["why"], advice)
    what = f"{found['target']}: {found['lanes']} floats a vector, {counted(found['threads'], 'thread')}"
    return Diagnosis("CPU", "native code", "ok", f"{what}; LLVM {found['llvm']} for {found['cpu']}")


def backend(found: Mapping[str, Any]) -> list[Diagnosis]:
    """Which backend auto takes where OpenGL computes, and why."""
    if "taken" not in found:
        why = found.get("error") or "unknown"
        return [Diagnosis("Backend", "auto", "warn", why, "--backend cpu decides by hand")]
    if found["by_hand"]:
        why = f"TEXELFLOW_AUTO={found['by_hand']}"
    elif found["line"]:
        why = f"measured with selfie: OpenGL {found['line']}"
    else:
        why = "OpenGL is a software renderer" if found["software"] else "OpenGL is a GPU's"
        why += "" if found["present"] else "; measured at the first start"
    taken = "OpenGL" if found["taken"] == "gl" else "the CPU"
    return [Diagnosis("Backend", "auto", "ok", f"takes {taken} ({why})", "--backend or TEXELFLOW_AUTO decides by hand")]


def video_codecs() -> list[Diagnosis]:
    """The encoder of recordings and the decoders of the usual ones."""
    import av

    def has(name: str, mode: Literal["r", "w"]) -> bool:
        try:
            av.Codec(name, mode)
        except (ValueError, av.FFmpegError):
            return False
        return True

    missing = [name for name in _DECODERS if not has(name, "r")]
    usual = ", ".join(name for name in _DECODERS if name not in missing)
    advice = "pip install --force-reinstall av: its own wheels have it"
    encodes, decodes = has("libx264", "w"), "h264" not in missing
    return [
        Diagnosis("Video", "libx264 encoder", "ok" if encodes else "missing", _yes(encodes), _unless(encodes, advice),
                stops=True),
        Diagnosis("Video", "decoders", "ok" if decodes else "missing", usual or "none", _unless(decodes, advice),
                stops=True),
        *(Diagnosis("Video", name, "warn", "no decoder", "convert such files to H.264 first") for name in missing
          if decodes),
    ]  # fmt: skip


def cameras(device_tree: Path = Path("/proc/device-tree")) -> list[Diagnosis]:
    """What is plugged in, where that can be told without opening it."""
    if sys.platform != "linux":
        return [Diagnosis("Cameras", "cameras", "ok", "not looked for: texelflow live --list opens each")]
    from ...capture.listing import list_cameras

    advice = "live shows streams, recordings and --camera pattern without one"
    found = [
        Diagnosis(
            "Cameras", camera.camera, "warn" if camera.trouble else "ok", camera.name or "no name", camera.trouble
        )
        for camera in list_cameras()
    ]
    found = found or [Diagnosis("Cameras", "cameras", "warn", "none is plugged in", advice)]
    return found + _ribbon_camera(device_tree / "model")


def _ribbon_camera(model: Path) -> list[Diagnosis]:
    """The way of a Raspberry Pi's own camera, whose pictures libcamera's programs alone make."""
    try:
        name = model.read_text(encoding="utf-8", errors="replace").strip("\0\n")
    except OSError:
        return []
    if not name.startswith("Raspberry Pi"):
        return []
    sends = f"rpicam-vid -t 0 -n --inline --listen -o {PI_CAMERA} sends it to live --camera {PI_CAMERA}"
    return [Diagnosis("Cameras", "ribbon camera", "ok", f"libcamera's, of this {name}", sends)]


def virtual_camera(system: Path = Path("/sys")) -> list[Diagnosis]:
    """What showing pictures to other programs takes: a package, and on Linux a kernel module with a device."""
    from ...outputs.loopback import INSTALL, LOAD, loopback_advice, loopback_devices

    version = _version_of("pyvirtualcam")
    lines = [_judged(bool(version), "Virtual camera", "pyvirtualcam", version or "not installed", INSTALL)]
    if sys.platform == "linux":
        found = ", ".join(f"{device.device} ({device.label})" for device in loopback_devices(system))
        help = "; ".join(loopback_advice(system)) if found else LOAD
        lines.append(_judged(not help, "Virtual camera", "v4l2loopback", found or "not loaded", help))
    return lines


def models() -> list[Diagnosis]:
    """The catalogue's models, and the folder in which they are kept."""
    from texelflow.gpu_delegate.base.cache_folder import cache_folder

    from ...models.catalogue import list_models
    from ...models.entries import SEGMENTATION

    folder = cache_folder() / "models"
    why_not = _why_not_writable(folder)
    lines = []
    for status in list_models():
        name = status.entry.name
        if status.present:
            lines.append(Diagnosis("Models", name, "ok", f"{status.entry.bytes:,} bytes"))
        elif status.entry.task != SEGMENTATION and not os.path.lexists(status.path):
            continue  # nothing here needs it
        elif why_not:
            lines.append(Diagnosis("Models", name, "missing", f"not here, and cannot be stored: {why_not}",
                                 "TEXELFLOW_CACHE=DIR chooses another folder", stops=name == "selfie"))  # fmt: skip
        else:
            damaged = "damaged" if os.path.lexists(status.path) else "not fetched yet"
            lines.append(Diagnosis("Models", name, "warn", damaged, f"texelflow models fetch {name}"))
    state: State = "warn" if why_not else "ok"
    advice = "TEXELFLOW_CACHE=DIR chooses another one" if why_not else ""
    lines.append(Diagnosis("Models", "folder", state, f"{folder}: {why_not or f'writable{_room(folder)}'}", advice))
    return lines + _garbage(folder, {status.path.name for status in list_models()})


def _garbage(folder: Path, known: set[str]) -> list[Diagnosis]:
    try:
        with os.scandir(folder) as entries:
            unknown = [entry.name for entry in itertools.islice(entries, _MOST_FILES) if entry.name not in known]
    except OSError:
        return []
    if not unknown:
        return []
    named = ", ".join(sorted(unknown)[:3]) + (", ..." if len(unknown) > 3 else "")
    return [Diagnosis("Models", "garbage", "warn", f"{len(unknown)} files that are not models: {named}", "delete them")]


def tools() -> list[Diagnosis]:
    """What only the program's own tests use, which run on Linux."""
    lines: list[Diagnosis] = []
    if sys.platform != "linux":
        return lines
    for tool, package in _TOOLS.items():
        path = shutil.which(tool)
        advice = f"apt-get install {package}"
        lines.append(_judged(bool(path), "Tests", tool, path or "not installed", advice))
    return lines


def _why_not_writable(folder: Path) -> str:
    """Empty if files can be made in the folder, or where it would be made."""
    try:
        place = next(place for place in (folder, *folder.parents) if place.exists())
        with tempfile.TemporaryFile(dir=place):
            return ""
    except OSError as error:
        return error.strerror or str(error)
    except StopIteration:
        return "no such file system"


def _room(folder: Path) -> str:
    for place in (folder, *folder.parents):
        try:
            return f", {shutil.disk_usage(place).free >> 20:,} MiB free"
        except OSError:
            continue
    return ""


def _version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _judged(good: bool, topic: str, name: str, found: str, advice: str) -> Diagnosis:
    return Diagnosis(topic, name, "ok" if good else "warn", found, "" if good else advice)


def _unless(good: bool, advice: str) -> str:
    return "" if good else advice


def _yes(present: bool) -> str:
    return "yes" if present else "no"
