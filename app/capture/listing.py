"""Lists this machine's cameras with their modes, and its microphones, as tables or as JSON."""

import contextlib
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import cv2

from ..console import Console
from ..picture.picture import ImageSize
from . import v4l2
from .camera import CAMERA_APIS, camera_apis, silence, why_not
from .modes import Mode
from .sound_device import list_microphones

_INDICES = range(10)  # where no list of cameras is to be had


@dataclass(frozen=True)
class CameraInfo:
    """A camera: what --camera takes, its name, and its modes, none where they are not told; trouble is a line."""

    camera: str
    name: str
    api: str
    modes: tuple[Mode, ...] = ()
    trouble: str = ""


def list_cameras() -> tuple[CameraInfo, ...]:
    """All that is plugged in. No stream is started on Linux; elsewhere each number is opened for a moment."""
    return listed_nodes(v4l2.nodes()) if sys.platform == "linux" else _tried_indices()


def listed_nodes(paths: Sequence[str]) -> tuple[CameraInfo, ...]:
    """Those of the nodes that give pictures, or that cannot be asked."""
    found = []
    for path in paths:
        try:
            with v4l2.open_node(path) as ask:
                device = v4l2.device_at(ask, path)
                if device.captures:
                    modes = v4l2.modes_of(ask, device.buffer_type)
                    found.append(CameraInfo(path, device.name, CAMERA_APIS["v4l2"].name, modes))
        except OSError as error:
            found.append(CameraInfo(path, "", CAMERA_APIS["v4l2"].name, trouble=why_not(path, error, tuple(paths))))
    return tuple(found)


def _tried_indices() -> tuple[CameraInfo, ...]:
    """The numbers that open, each in the size that it opens with."""
    backend = camera_apis("auto")[0]
    silence()
    found = []
    for index in _INDICES:
        with contextlib.suppress(cv2.error):
            capture = cv2.VideoCapture(index, backend.number)
            if capture.isOpened():
                sides = (int(capture.get(side)) for side in (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT))
                width, height = sides
                modes = (Mode("BGR3", (width, height), (float(capture.get(cv2.CAP_PROP_FPS)),)),)
                found.append(CameraInfo(str(index), f"camera {index}", backend.name, modes))
            capture.release()
    return tuple(found)


def show_cameras(console: Console, json: bool) -> int:
    """What `live --list` prints; with no camera, one line that says what to do. The exit code is 0."""
    cameras, microphones = list_cameras(), list_microphones()
    if json:
        console.json({"cameras": list(map(asdict, cameras)), "microphones": list(map(asdict, microphones))})
        return 0
    if rows := [row for camera in cameras for row in rows_of(camera)]:
        console.table("Cameras", ("--camera", "name", "pixels", "frames/s", "sizes"), rows)
    for camera in cameras:
        if camera.trouble:
            console.say(camera.trouble)
    if not cameras:
        console.say("no camera is plugged in; without one, try --camera pattern, a file or an address of a stream")
    if microphones:
        console.table("Microphones", ("--microphone", "name"), [(each.microphone, each.name) for each in microphones])
    return 0


def rows_of(camera: CameraInfo) -> list[tuple[str, str, str, str, str]]:
    """A row for each kind of pictures and all sizes that it has at the same rates."""
    sizes: dict[tuple[str, tuple[float, ...]], list[ImageSize]] = defaultdict(list)
    for mode in camera.modes:
        sizes[mode.pixels, mode.rates].append(mode.size)
    rows = []
    for number, ((pixels, rates), of_rates) in enumerate(sizes.items()):
        named = (camera.camera, camera.name) if number == 0 else ("", "")
        rate_text = ", ".join(f"{rate:.4g}" for rate in rates) or "not told"
        rows.append((*named, pixels, rate_text, ", ".join(f"{width}x{height}" for width, height in of_rates)))
    if not rows and not camera.trouble:
        rows.append((camera.camera, camera.name, "not told", "", ""))
    return rows
