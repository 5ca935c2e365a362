"""Converts pictures that the CPU draws to planes of luma and chroma: the definition is in yuv.py."""

import numpy as np

from ...picture.picture import PictureFormat
from .native_pictures import NativePictures, NativeTarget
from .readback import ReadBytes
from .yuv import size_bytes, yuv_defines

_LUMA, _CB, _CR = 0, 3, 4  # to_yuv.frag's parts


class NativeYuv:
    """Codes of one format, one byte each: those of i420, nv12 and gray."""

    def __init__(self, device: NativePictures, format: PictureFormat) -> None:
        """Raises DeviceError for pictures that are too large."""
        self.format, self._device, self._calls = format, device, device.calls()
        (width, height), half = format.size, (format.size[0] // 2, format.size[1] // 2)
        parts = [(_LUMA, (width, height))] + ([] if format.layout == "gray" else [(_CB, half), (_CR, half)])
        self._planes = tuple(
            (device.target(size, "codes"), device.drawing("to_yuv.frag", yuv_defines(format, part), {"picture": 0}, ""))
            for part, size in parts
        )

    def converted(self, picture: NativeTarget) -> ReadBytes:
        """The codes of a picture, which is at most one pixel smaller than the format each way, tightly packed."""
        self._calls.run(picture.texture, lambda: self._draw(picture))
        self._device.finish()
        found = np.empty(size_bytes(self.format), np.uint8)
        luma, *chromas = (target.pixels for target, _ in self._planes)
        found[: luma.size].reshape(luma.shape)[...] = luma
        if self.format.layout == "nv12":
            pairs = found[luma.size :].reshape(*chromas[0].shape, 2)
            for nth, plane in enumerate(chromas):
                pairs[..., nth] = plane
        else:
            start = luma.size
            for plane in chromas:
                found[start : start + plane.size].reshape(plane.shape)[...] = plane
                start += plane.size
        return found

    def _draw(self, picture: NativeTarget) -> None:
        self._device.bind(0, picture.texture)
        for target, drawing in self._planes:
            drawing.draw(target, target.size)

    def release(self) -> None:
        """Forget the planes."""
        for target, _ in self._planes:
            target.release()
