"""Finds what opens a source by the name that a user gives it: a camera, a stream, a clip or the test pattern."""

import os
import re
from functools import partial

from texelflow.gpu_delegate.base.errors import UsageError

from .camera import open_camera
from .clip import open_clip
from .network_source import SCHEMES, open_network
from .pattern import open_pattern
from .source import CaptureRequest, Opener

PATTERN = "pattern"
_CAMERA = re.compile(r"[0-9]{1,3}|/dev/.+")
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")  # two letters at least: C:/ is a drive


def is_camera(camera: str) -> bool:
    """Whether it names a camera of this machine, which can be opened once."""
    return _CAMERA.fullmatch(camera) is not None and not os.path.isfile(camera)


def opener(camera: str, requested: CaptureRequest) -> Opener:
    """ "0" and "/dev/video0" are cameras, "http://..." and the like streams, "pattern" the test pattern, else a file.

    Raises UsageError for anything else.
    """
    if not camera.strip():
        raise UsageError("no camera is named; give its number, an address, a video file or 'pattern'")
    if camera == PATTERN:
        return partial(open_pattern, requested)
    if is_camera(camera):
        return partial(open_camera, camera, requested)
    if (address := _ADDRESS.match(camera)) is None:
        return partial(open_clip, camera, requested)
    if address[1].lower() not in SCHEMES:
        raise UsageError(f"{address[0][:20]} is not an address that can be opened; known are {', '.join(SCHEMES)}")
    return partial(open_network, camera, requested)
