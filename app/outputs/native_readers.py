"""Reads the pictures of frames for outputs where the CPU draws them: at once, from RAM."""

from collections.abc import Callable

import numpy as np

from ..frame.looks.effects import Effect
from ..frame.textures.native_pictures import NativePictures, NativeTarget
from ..frame.textures.native_yuv import NativeYuv
from ..frame.textures.picture_device import Target
from ..frame.textures.yuv import size_bytes
from ..picture.picture import PictureFormat
from ..picture.preprocess import ImageSize
from .picture_readers import FrameStamp, Pictures, ReadyReader


class NativeReaders:
    """Of pictures that the CPU draws."""

    def __init__(self, device: NativePictures, pictures: Pictures) -> None:
        self._device, self._pictures = device, pictures
        self._yuv: dict[PictureFormat, NativeYuv] = {}

    @property
    def size(self) -> ImageSize:
        """Of the picture as it is composited."""
        return self._pictures.target.size

    def takes(self, format: PictureFormat) -> bool:
        """Always: what converts colors is made for this CPU."""
        return True

    def open(self, effect: Effect | None, format: PictureFormat | None) -> "NativeReader":
        """Raises DeviceError for want of memory."""
        if format and format not in self._yuv:
            self._yuv[format] = NativeYuv(self._device, format)

        def picture() -> Target:
            return self._pictures.drawn(effect) if effect else self._pictures.target

        return NativeReader(self.size, picture, self._yuv[format] if format else None)

    def release(self) -> None:
        """Forget what converts pictures."""
        for yuv in self._yuv.values():
            yuv.release()
        self._yuv.clear()


class NativeReader(ReadyReader):
    """Copies pictures, which the next frame is drawn over."""

    def __init__(self, size: ImageSize, picture: Callable[[], Target], yuv: NativeYuv | None) -> None:
        """`picture` draws or finds what is read, in the format of `yuv`, which stays its maker's; None for RGBA."""
        super().__init__()
        self.size = size
        self.frame_bytes = size[0] * size[1] * 4 if yuv is None else size_bytes(yuv.format)
        self._picture, self._yuv = picture, yuv

    def request(self, stamp: FrameStamp) -> None:
        """Draw it, and copy it, its top row first."""
        picture = self._picture()
        assert isinstance(picture, NativeTarget), "the CPU draws it"
        if self._yuv is None:
            data = np.ascontiguousarray(picture.finished()[::-1]).reshape(-1)
        else:
            data = self._yuv.converted(picture)
        self.ready.append((stamp, data))
