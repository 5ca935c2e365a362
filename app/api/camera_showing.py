"""The public class VirtualCamera: shows pictures of a Python program to other programs, as a camera."""

import threading
from types import TracebackType
from typing import Any

import numpy as np

from .app.outputs.picture_readers import FrameStamp
from .app.outputs.virtual_camera import CameraSink
from .app.picture.convert import FromRgba
from .app.picture.preprocess import ImageSize
from .gpu_delegate.base.errors import UsageError
from .picture_arrays import check_sides, over_black, pixels_of, rgba_of_pixels

__all__ = ["VirtualCamera"]

_HIGHEST_RATE = 1000


class VirtualCamera:
    """A camera that other programs see: on Linux a device of the kernel module v4l2loopback, elsewhere OBS' own.

        with texelflow.VirtualCamera((640, 480), rate=30) as camera:
            for picture in texelflow.video(0, effect="blur"):
                camera.send(picture)
            print(camera.size, camera.device)

        camera = texelflow.VirtualCamera((640, 480))
        camera.close()

    It needs the package pyvirtualcam. `texelflow doctor` tells whether there is such a device. It may be used from any
    thread, by one at a time; close(), or the end of a `with` block, gives the device back.
    """

    def __init__(self, size: ImageSize, rate: float = 30.0) -> None:
        """Open it. size: (width, height) of all pictures, in pixels, even. rate: pictures a second, as others are told.

        Raises UsageError for odd sizes, DeviceError with what to install or to load where there is none.
        """
        if not (isinstance(size, tuple | list) and len(size) == 2 and all(isinstance(side, int) for side in size)):
            raise UsageError(f"size={size!r}: (width, height) in pixels is needed")
        check_sides(*size)
        if not (isinstance(rate, int | float) and 0 < rate <= _HIGHEST_RATE):
            raise UsageError(f"rate={rate!r}: pictures a second are needed, to {_HIGHEST_RATE}")
        self._lock, self._count = threading.Lock(), 0
        self._size: ImageSize = (size[0], size[1])
        self._sink: CameraSink | None = CameraSink(self._size, float(rate))
        self._device = self._sink.device
        layouts = {"nv12": "nv12", "yuv": "yuv420p"}
        self._convert = FromRgba(layouts[self._sink.format.layout], self._sink.format.matrix)

    @property
    def size(self) -> ImageSize:
        """(width, height) of the pictures."""
        return self._size

    @property
    def device(self) -> str:
        """What other programs find it by: "/dev/video2"."""
        return self._device

    def send(self, picture: Any) -> None:
        """Show a picture now: uint8 (H, W, 3) RGB, (H, W, 4) RGBA, which is laid over black, or (H, W) gray.

        NumPy arrays of any layout, what speaks DLPack, Pillow's images. Raises UsageError for anything else, for
        another size, and after close(); DeviceError if the device takes no more.
        """
        pixels = pixels_of(picture)
        if (pixels.shape[1], pixels.shape[0]) != self._size:
            width, height = self._size
            raise UsageError(f"this camera shows {width}x{height}, not {pixels.shape[1]}x{pixels.shape[0]}")
        rgba = over_black(pixels) if pixels.ndim == 3 and pixels.shape[2] == 4 else rgba_of_pixels(pixels)
        with self._lock:
            if self._sink is None:
                raise UsageError("this VirtualCamera is closed; make another one")
            data = np.asarray(self._convert(rgba).to_ndarray(), np.uint8).reshape(-1)
            self._sink.write(FrameStamp(self._count, self._count), data)
            self._count += 1

    def close(self) -> None:
        """Give the device back; harmless when repeated."""
        with self._lock:
            sink, self._sink = self._sink, None
            if sink:
                sink.close(complete=True)

    def __reduce__(self) -> str:
        """There are no copies. Raises UsageError."""
        raise UsageError("a VirtualCamera cannot be copied or pickled")

    def __enter__(self) -> "VirtualCamera":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        width, height = self._size
        return f"<texelflow.VirtualCamera {self._device}: {'closed' if self._sink is None else f'{width}x{height}'}>"
