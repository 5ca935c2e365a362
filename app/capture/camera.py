"""Opens a camera by its number or path, with pictures unconverted where its driver allows it.

OpenCV opens it, through a named interface, never the first that works. With V4L2 buffers come unconverted and MJPG
is decoded by us, on the thread that reads; other backends hand out BGR. On Windows OpenCV's start-up is quick only with
OPENCV_VIDEOIO_MSMF_ENABLE_HW_TRANSFORMS=0 in the environment before cv2 is first imported: see app/__main__.py.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import cv2

from ..media.sources import MAX_PIXELS, MAX_SIDE
from . import v4l2
from .capture_device import OpenCvCamera
from .modes import Mode, ModeChoice, choose, guess, requested_pixels
from .raw import ALIASES, PIXELS, RawFormat, row_bytes
from .source import CaptureRequest, SourceError

_BUFFERS = 2  # one is filled while the other is copied; with one alone some drivers lose every second picture
_ELSEWHERE = {"YUYV": "YUY2", "YU12": "I420"}  # names of formats on systems without V4L2
_SHOWN = 80  # characters of a path
_MOST_DIGITS = 4  # of a camera's number
_READ_S = 1  # OpenCV's own wait for a picture from V4L2 is 10 s


@dataclass(frozen=True)
class CameraApi:
    """An interface of OpenCV to cameras: its name, its number, and whether it gives unconverted buffers."""

    name: str
    number: int
    raw: bool = False


CAMERA_APIS = {
    "v4l2": CameraApi("V4L2", cv2.CAP_V4L2, raw=True),
    "dshow": CameraApi("DirectShow", cv2.CAP_DSHOW),
    "msmf": CameraApi("Media Foundation", cv2.CAP_MSMF),
    "avfoundation": CameraApi("AVFoundation", cv2.CAP_AVFOUNDATION),
}
_OF_PLATFORM = {"linux": ("v4l2",), "win32": ("dshow", "msmf"), "darwin": ("avfoundation",)}


def camera_apis(api: str, platform: str = sys.platform) -> tuple[CameraApi, ...]:
    """Those to try, the best first. Raises SourceError for a name that this system does not have."""
    here = _OF_PLATFORM.get(platform, ())
    names = here if api == "auto" else (api,)
    if not names or not set(names) <= set(here):
        raise SourceError(f"cameras cannot be opened through '{api}' here; --api is {', '.join(('auto', *here))}")
    return tuple(CAMERA_APIS[name] for name in names)


def open_camera(camera: str, requested: CaptureRequest) -> OpenCvCamera:
    """Open a camera by its number or, on Linux, its path, and wait for its first picture.

    Raises SourceError: it is missing, busy, forbidden, has nothing that can be read, or gives no picture.
    """
    if requested_pixels(requested.pixels) not in ("", *PIXELS):
        known = ", ".join(pixels.lower() for pixels in PIXELS)
        raise SourceError(f"pixels '{requested.pixels}' are not known; --pixels is auto, {known}")
    failures = []
    for backend in camera_apis(requested.api):
        try:
            if backend.number == cv2.CAP_V4L2 and sys.platform == "linux":
                return _open_node(node_path(camera), requested, backend)
            return _open_index(camera, requested, backend)
        except SourceError as error:
            failures.append(error)
    raise failures[-1]


def node_path(camera: str) -> str:
    """'0' is /dev/video0; a path is itself."""
    return f"/dev/video{camera}" if camera.isdecimal() else camera


def _open_index(camera: str, requested: CaptureRequest, backend: CameraApi) -> OpenCvCamera:
    if not camera.isdecimal() or len(camera) > _MOST_DIGITS:
        raise SourceError(f"there is no camera '{camera}'; here cameras have numbers, from 0")
    choice = guess(requested.size, requested.fps, requested.pixels)
    return OpenCvCamera(open_capture(int(camera), backend, choice), f"{backend.name} camera {camera}", requested)


def _open_node(path: str, requested: CaptureRequest, backend: CameraApi) -> OpenCvCamera:
    with _readable_node(path) as (ask, device):
        modes = v4l2.modes_of(ask, device.buffer_type)
        if v4l2.is_busy(ask, device.buffer_type):
            raise SourceError(why_not(path, OSError(errno.EBUSY, "")))
    failures = []
    for choice in _choices(path, modes, requested):
        try:
            capture = open_capture(path, backend, choice)
            return OpenCvCamera(capture, f"{backend.name} {path}", requested, raw_format(capture, path), path)
        except SourceError as error:
            failures.append(error)
    raise failures[0]


def _choices(path: str, modes: Sequence[Mode], requested: CaptureRequest) -> list[ModeChoice]:
    """What to ask for, and JPEG after raw pixels: where two cameras share a bus, those may not get through.

    Raises SourceError where the camera has no such pixels.
    """
    if not modes:
        return [guess(requested.size, requested.fps, requested.pixels)]
    choice = choose(modes, requested.size, requested.fps, requested.pixels)
    if choice is None:
        offered = ", ".join(dict.fromkeys(mode.pixels for mode in modes))
        asked = requested_pixels(requested.pixels) or ", ".join(PIXELS)
        raise SourceError(f"{path} has pictures of {offered}, none of {asked}; choose --pixels among those that it has")
    second = None if requested_pixels(requested.pixels) else choose(modes, requested.size, requested.fps, "mjpg")
    return [choice] if second in (None, choice) else [choice, second]


@contextlib.contextmanager
def _readable_node(path: str) -> Iterator[tuple[v4l2.Ask, v4l2.VideoDevice]]:
    """A camera's node, opened for queries. Raises SourceError that says what is wrong."""
    try:
        with v4l2.open_node(path) as ask:
            device = v4l2.device_at(ask, path)
            if not device.captures:
                raise SourceError(
                    f"{path} ({device.name}) gives no pictures; 'texelflow live --list' shows those that do"
                )
            yield ask, device
    except ValueError as error:  # of a path that no system can have
        raise SourceError(f"there is no camera {path!r}") from error
    except OSError as error:
        raise SourceError(why_not(path, error)) from error


def why_not(path: str, error: OSError, here: tuple[str, ...] | None = None) -> str:
    """One line about a node that cannot be opened. `here` are the nodes that there are."""
    path = path if len(path) <= _SHOWN else f"{path[:_SHOWN]}..."
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{path} may not be opened: join the group video ('sudo usermod -aG video $USER'), then log in again"
    if error.errno == errno.EBUSY:
        return f"{path} is used by another program; close that ('fuser {path}' tells which it is)"
    if error.errno in (errno.ENOTTY, errno.EINVAL, errno.EISDIR):
        return f"{path} is not a camera; 'texelflow live --list' shows cameras"
    if error.errno in (errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.ENOTDIR):
        others = ", ".join(v4l2.nodes() if here is None else here)
        hint = f"there are {others}" if others else "none is plugged in; without one, try --camera pattern"
        return f"there is no camera {path}: {hint}"
    return f"{path} cannot be opened: {error.strerror or error}; plug it in again"


def silence() -> None:
    """Keep OpenCV's own messages off the terminal; its function for that differs between versions."""
    utils: Any = cv2.utils
    set_level = getattr(cv2, "setLogLevel", None) or utils.logging.setLogLevel
    set_level(0)


def open_capture(target: int | str, backend: CameraApi, choice: ModeChoice) -> cv2.VideoCapture:
    """OpenCV's capture of a device, set to a mode as far as it can be; the caller reads back what it is now.

    OpenCV keeps the rate as a whole number and forgets it when it opens the stream anew, as all other settings make it
    do: so that comes last. Raises SourceError, for sizes that cannot be before OpenCV takes memory for them.
    """
    refused = SourceError(
        f"{backend.name} cannot open camera {target}: is it plugged in, free, and are programs allowed to use it? "
        "'texelflow live --list' shows what is there"
    )
    os.environ.setdefault("OPENCV_VIDEOIO_V4L_SELECT_TIMEOUT", str(_READ_S))
    silence()
    try:
        capture = cv2.VideoCapture(target, backend.number)
        if not capture.isOpened():
            raise refused
        pixels = choice.pixels if backend.raw else _ELSEWHERE.get(choice.pixels, choice.pixels)
        _set(capture, cv2.CAP_PROP_FOURCC, cv2.VideoWriter.fourcc(*pixels))
        if _size(capture) != choice.size:
            capture.set(cv2.CAP_PROP_FRAME_WIDTH, choice.size[0])
            capture.set(cv2.CAP_PROP_FRAME_HEIGHT, choice.size[1])
        _set(capture, cv2.CAP_PROP_BUFFERSIZE, _BUFFERS)
        if choice.fps > 0:
            _set(capture, cv2.CAP_PROP_FPS, choice.fps)
        if backend.raw and _pixels(capture) in PIXELS:
            capture.set(cv2.CAP_PROP_CONVERT_RGB, 0)
    except cv2.error as error:
        raise refused from error
    width, height = _size(capture)
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        capture.release()
        raise SourceError(
            f"camera {target} claims pictures of {width}x{height} pixels, which is impossible; plug it in again"
        )
    return capture


def _set(capture: cv2.VideoCapture, setting: int, value: float) -> None:
    """Each setting takes seconds on some interfaces: those that are right already are not set."""
    if capture.get(setting) != value:
        capture.set(setting, value)


def _size(capture: cv2.VideoCapture) -> tuple[int, int]:
    return int(capture.get(cv2.CAP_PROP_FRAME_WIDTH)), int(capture.get(cv2.CAP_PROP_FRAME_HEIGHT))


def _pixels(capture: cv2.VideoCapture) -> str:
    """V4L2's name of what the camera sends, "" where OpenCV does not know."""
    code = int(capture.get(cv2.CAP_PROP_FOURCC))
    if code <= 0:
        return ""
    name = v4l2.fourcc_name(code & 0xFFFFFFFF)
    return ALIASES.get(name.upper(), name) if name.isprintable() else ""


def raw_format(capture: cv2.VideoCapture, path: str) -> RawFormat | None:
    """How a V4L2 device's buffers are laid out now; None where OpenCV converts them to BGR.

    Raises SourceError where rows are padded, since OpenCV copies buffers as if they were not.
    """
    pixels, size = _pixels(capture), _size(capture)
    if pixels not in PIXELS or capture.get(cv2.CAP_PROP_CONVERT_RGB):
        return None
    try:
        with v4l2.open_node(path) as ask:
            current = v4l2.current_format(ask)
    except OSError:
        return RawFormat(pixels, size)
    packed_bytes = row_bytes(pixels, size[0])
    if current.stride_bytes > packed_bytes > 0 and current.size_bytes >= current.stride_bytes * size[1]:
        capture.release()
        raise SourceError(
            f"{path} pads its rows of {pixels} to {current.stride_bytes} bytes, which OpenCV cannot read; "
            f"try --pixels mjpg, or a --size other than {size[0]}x{size[1]}"
        )
    return RawFormat(pixels, size, 0, current.matrix, current.full_range)
