"""Shows frames to other programs as a camera, by pyvirtualcam, on a thread of its own.

On Linux that is a device of the kernel module v4l2loopback, elsewhere the virtual camera of OBS.
"""

import importlib
import sys
from collections.abc import Sequence
from typing import Any

from texelflow.gpu_delegate.base.errors import DeviceError, UsageError

from ..console import counted, one_line
from ..frame.textures.readback import ReadBytes
from ..frame.textures.yuv import i420, nv12
from ..picture.picture import ImageSize, PictureFormat
from .loopback import INSTALL, LOAD, kept_size, loopback_devices
from .picture_readers import FrameStamp

_OBS = "install OBS (obsproject.com), and start and stop its virtual camera once"
_USUAL_RATE = 30.0


class CameraSink:
    """An open virtual camera. What it gets is BT.601 in limited range, which is how programs read what cameras send."""

    newest_wins = True
    warnings: Sequence[str] = ()

    def __init__(self, size: ImageSize, fps: float) -> None:
        """`fps` is nominal, 0 if unknown. Raises UsageError for odd sizes, DeviceError if there is no such camera."""
        if size[0] % 2 or size[1] % 2:
            raise UsageError(
                f"no virtual camera of {size[0]}x{size[1]} pixels: both sides must be even; try another size"
            )
        try:
            pyvirtualcam: Any = importlib.import_module("pyvirtualcam")
        except ImportError:
            raise DeviceError(f"no virtual camera: pyvirtualcam is not installed; {INSTALL}") from None
        self.format, self._camera = _open(pyvirtualcam, size, fps if fps > 0 else _USUAL_RATE)
        self._frames = 0
        self.device: str = self._camera.device
        self.name = one_line(f"virtual camera {self._camera.device}")
        kept = kept_size(self._camera.device)
        if kept not in (None, size):
            self._camera.close()
            raise DeviceError(
                f"{self.name} keeps to {kept[0]}x{kept[1]} while programs watch it; close them, or choose that size"
            )

    def write(self, stamp: FrameStamp, data: ReadBytes) -> None:
        """Show a frame now. Raises DeviceError."""
        try:
            self._camera.send(data)
        except (RuntimeError, OSError) as error:
            raise DeviceError(one_line(f"{self._camera.device} takes no more pictures: {error}")) from error
        self._frames += 1

    def close(self, complete: bool) -> str:
        """Let go of the device."""
        self._camera.close()
        return f"{self.name} is off after {counted(self._frames, 'frame')}"


def _open(pyvirtualcam: Any, size: ImageSize, fps: float) -> tuple[PictureFormat, Any]:
    """The camera, in the first format that it takes as it is: drivers may be held to one. Raises DeviceError."""
    kinds = pyvirtualcam.PixelFormat
    formats = [(kinds.I420, i420(size, "bt601")), (kinds.NV12, nv12(size, "bt601"))]
    errors = []
    for kind, format in formats if sys.platform == "linux" else reversed(formats):
        try:
            return format, pyvirtualcam.Camera(*size, fps, fmt=kind)
        except RuntimeError as error:
            errors.append(str(error))
    raise DeviceError(_why_none(errors[0]))


def _why_none(error: str) -> str:
    """One line for what pyvirtualcam says when no camera opens."""
    if sys.platform != "linux":
        return f"no virtual camera: {one_line(error)}; {_OBS}"
    if not loopback_devices():
        return f"no virtual camera: v4l2loopback is not loaded; {LOAD} (Debian's package: v4l2loopback-dkms)"
    return f"no virtual camera: {one_line(error)}; close what else writes to it"
