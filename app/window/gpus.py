"""Finds the GPUs of a machine, and tells where a stronger one than the window's could be chosen.

Laptops have two: windows are on the weak one, which the screen is connected to, unless a program is started otherwise.
"""

import contextlib
import ctypes
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from texelflow.gpu_delegate.device.families import family_of
from texelflow.gpu_delegate.targets.gl.native_context import TriedDevice

WEAK, STRONG = 1, 2
_OWN_MEMORY_BYTES = 3 << 30  # GPUs in a processor have less of their own
_VENDORS: Mapping[int, str] = MappingProxyType({0x10DE: "NVIDIA", 0x1002: "AMD", 0x8086: "Intel"})
_DISCRETE = re.compile(r"\bRX\b|\bPro W|\bW\d{4}|\bR9\b|Vega (?:56|64)|FirePro|Instinct|\bArc.* [AB]\d{3}")
_OFFLOAD: Mapping[str, str] = MappingProxyType(
    {"__NV_PRIME_RENDER_OFFLOAD": "1", "__GLX_VENDOR_LIBRARY_NAME": "nvidia"}
)  # of NVIDIA's own driver
_CHOSEN_BY = ("DRI_PRIME", "LIBGL_ALWAYS_SOFTWARE", *_OFFLOAD)


@dataclass(frozen=True)
class SystemGpu:
    """A GPU as the system tells of it: its name or its vendor's, its kernel driver, and where it is on the bus."""

    name: str
    strength: int
    driver: str = ""
    slot: str = ""  # 0000:01:00.0


def strength_of(vendor: str, renderer: str) -> int | None:
    """0 for software, WEAK or STRONG by a driver's names; None if they do not tell."""
    family = family_of(vendor, renderer).name.partition("-")[0]
    if family in ("amd", "intel"):
        return STRONG if _DISCRETE.search(renderer) else WEAK
    return {"software": 0, "nvidia": STRONG}.get(family)


def news_of_gpu(
    vendor: str,
    renderer: str,
    chosen: TriedDevice | None,
    gpus: Sequence[SystemGpu],
    environment: Mapping[str, str],
    platform: str,
) -> str:
    """One line where the GPU that draws the window is not the one that was chosen, or a stronger one is there and none
    was chosen; else empty."""
    if chosen:
        return "" if renderer == chosen.renderer else f"the window is drawn by {renderer}, not by {chosen.renderer}"
    strength = strength_of(vendor, renderer)
    better = [gpu for gpu in gpus if gpu.strength == STRONG]
    if strength is None or strength >= STRONG or not better or any(environment.get(name) for name in _CHOSEN_BY):
        return ""
    if platform == "win32":
        how = "Windows' settings, System > Display > Graphics, choose it for python.exe"
    elif better[0].driver == "nvidia":
        how = f"--gpu nvidia chooses it, or {' '.join(f'{name}={value}' for name, value in _OFFLOAD.items())}"
    else:
        how = "--gpu with its number of texelflow doctor chooses it, or DRI_PRIME=1"
    return f"the window is drawn by {renderer}, though there is a stronger GPU ({better[0].name}): {how}"


def system_gpus(system: Path = Path("/sys")) -> tuple[SystemGpu, ...]:
    """Those of this machine, as far as it tells of them without waking them; none on macOS."""
    if sys.platform == "win32":
        return tuple(_windows_gpus())
    return tuple(gpu for node in sorted(system.glob("class/drm/renderD*")) if (gpu := _drm_gpu(node)))


@contextlib.contextmanager
def on_device(chosen: TriedDevice | None) -> Iterator[None]:
    """Within it windows are opened on a device of EGL's, if one was chosen, as far as drivers let programs do that."""
    variables = {} if chosen is None else offload_to(chosen.is_software, _gpu_of(chosen))
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def offload_to(is_software: bool, gpu: SystemGpu | None) -> Mapping[str, str]:
    """Variables of the environment by which Mesa or NVIDIA's driver draws windows on a GPU."""
    if is_software:
        return {"LIBGL_ALWAYS_SOFTWARE": "1"}
    if gpu is None or not gpu.slot:
        return {}
    return _OFFLOAD if gpu.driver == "nvidia" else {"DRI_PRIME": "pci-" + re.sub(r"[:.]", "_", gpu.slot)}


def _gpu_of(chosen: TriedDevice) -> SystemGpu | None:
    nodes = (Path(name) for name in chosen.device.names if name.startswith("/dev/dri/"))
    return next((gpu for node in nodes if (gpu := _drm_gpu(Path("/sys/class/drm") / node.name))), None)


def _drm_gpu(node: Path) -> SystemGpu | None:
    """One of Linux's, by its folder in /sys/class/drm; None if it is not on a PCI bus."""
    device = (node / "device").resolve()
    try:
        vendor = int((device / "vendor").read_text(), 16)
    except (OSError, ValueError):
        return None
    memory_bytes = 0
    with contextlib.suppress(OSError, ValueError):
        memory_bytes = int((device / "mem_info_vram_total").read_text())  # amdgpu has it
    discrete = {0x10DE: True, 0x1002: memory_bytes >= _OWN_MEMORY_BYTES, 0x8086: not device.name.startswith("0000:00:")}
    strength = STRONG if discrete.get(vendor) else WEAK
    driver = (device / "driver").resolve().name if (device / "driver").exists() else ""
    return SystemGpu(f"{_VENDORS.get(vendor, 'unknown')}, {device.name}", strength, driver, device.name)


def _windows_gpus() -> Iterator[SystemGpu]:
    """Display adapters by their names, which are the renderers' names as well."""
    if sys.platform != "win32":
        return

    class Adapter(ctypes.Structure):  # DISPLAY_DEVICEW
        _fields_ = [
            ("cb", ctypes.c_uint32), ("device_name", ctypes.c_wchar * 32), ("name", ctypes.c_wchar * 128),
            ("flags", ctypes.c_uint32), ("id", ctypes.c_wchar * 128), ("key", ctypes.c_wchar * 128),
        ]  # fmt: skip

    user32: Any = ctypes.windll.user32
    adapter = Adapter(cb=ctypes.sizeof(Adapter))
    for number in range(32):
        if not user32.EnumDisplayDevicesW(None, number, ctypes.byref(adapter), 0):
            return
        yield SystemGpu(adapter.name, strength_of("", adapter.name) or 0)
