"""Lists the devices of v4l2loopback from files under /sys, with advice for the user."""

import re
from dataclasses import dataclass
from pathlib import Path

from ..console import one_line

INSTALL = "pip install pyvirtualcam"
LOAD = "sudo modprobe v4l2loopback exclusive_caps=1 card_label=texelflow"


@dataclass(frozen=True)
class Loopback:
    """A device of v4l2loopback: /dev/videoN, and the name by which programs list it."""

    device: str
    label: str


def loopback_devices(system: Path = Path("/sys")) -> list[Loopback]:
    """Those of this machine, in the order in which they are tried; `system` is where Linux tells about itself."""
    folders = (system / "devices/virtual/video4linux").glob("video*")
    numbered = sorted((int(folder.name[5:]), folder) for folder in folders if folder.name[5:].isdecimal())
    return [
        Loopback(f"/dev/{folder.name}", one_line(_text(folder / "name")))
        for _, folder in numbered
        if (folder / "format").exists()  # which no other driver has
    ]


def is_exclusive(system: Path = Path("/sys")) -> bool | None:
    """Whether v4l2loopback was loaded with exclusive_caps=1, without which Chrome sees no camera; None: not known."""
    stated = _text(system / "module/v4l2loopback/parameters/exclusive_caps")
    return "Y" in stated if stated else None


def loopback_advice(system: Path = Path("/sys")) -> list[str]:
    """Lines for the user about a virtual camera that works."""
    if is_exclusive(system) is False:
        reload = f"sudo modprobe -r v4l2loopback && {LOAD}"
        return [f"Chrome, Zoom and others see no virtual camera without exclusive_caps=1: {reload}"]
    return []


def kept_size(device: str, system: Path = Path("/sys")) -> tuple[int, int] | None:
    """(width, height) that a loopback device is held to, whatever was asked of it; None if it does not say."""
    stated = _text(system / "devices/virtual/video4linux" / Path(device).name / "format")
    found = re.search(r"(\d+)x(\d+)", stated)
    return (int(found[1]), int(found[2])) if found else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
