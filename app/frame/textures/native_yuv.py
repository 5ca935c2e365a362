"""Converts pictures that the CPU draws to planes of luma and chroma: the definition is in yuv.py."""

import numpy as np

from texelflow.gpu_delegate.targets.llvm.shader_images import ImageForm

from ...picture.picture import PictureFormat
from .native_pictures import NativeDrawing, NativePictures, NativeTarget
from .readback import ReadBytes
from .yuv import size_bytes, yuv_defines

_LUMA, _CHROMA = 0, 3  # to_yuv.frag's parts


class NativeYuv:
    """Codes of one format, one byte each: those of i420, nv12 and gray."""

    def __init__(self, device: NativePictures, format: PictureFormat) -> None:
        """Raises DeviceError for pictures that are too large."""
        self.format, self._device, self._calls = format, device, device.calls()
        width, height = format.size
        self._parts = [self._part(_LUMA, (width, height), ImageForm("u8", 1))]
        if format.layout != "gray":
            pairs = ImageForm("u8", 2, in_planes=format.layout == "yuv")
            self._parts.append(self._part(_CHROMA, (width // 2, height // 2), pairs))

    def _part(self, number: int, size: tuple[int, int], form: ImageForm) -> tuple[NativeTarget, NativeDrawing]:
        target = NativeTarget(self._device, size, self._device.room(size[::-1], form))
        defines = yuv_defines(self.format, number)
        return target, self._device.drawing("to_yuv.frag", defines, {"picture": 0}, f"to {self.format.layout}")

    def converted(self, picture: NativeTarget) -> ReadBytes:
        """The codes of a picture, which is at most one pixel smaller than the format each way, tightly packed."""
        self._calls.run(picture.texture, lambda: self._draw(picture))
        self._device.finish()
        found, start = np.empty(size_bytes(self.format), np.uint8), 0
        for target, _ in self._parts:
            pixels = target.pixels
            found[start : start + pixels.size].reshape(pixels.shape)[...] = pixels
            start += pixels.size
        return found

    def _draw(self, picture: NativeTarget) -> None:
        self._device.bind(0, picture.texture)
        for target, drawing in self._parts:
            drawing.draw(target, target.size)

    def release(self) -> None:
        """Forget the planes."""
        for target, _ in self._parts:
            target.release()
