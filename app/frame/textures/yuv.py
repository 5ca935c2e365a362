"""Converts pictures on the device to planes of luma and chroma, ready to be read back.

The definition, of which to_yuv.frag is within one code: red, green and blue from 0 to 1, times alpha, through the
inverse of PictureFormat.to_rgb; chroma is the mean over 2x2 pixels and lies in their middle; codes are rounded to the
nearest, halves up. Pictures of odd sizes repeat their last row and column.
"""

import numpy as np

from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.shader import ParameterValue

from ...picture.picture import Layout, Matrix, Picture, PictureFormat
from ...picture.preprocess import ImageSize
from .fullscreen_drawing import Drawing
from .offscreen_target import OffscreenTarget
from .picture_device import Target
from .readback import ReadBytes

_CHROMA: dict[Layout, int] = {"yuv": 1, "nv12": 2}  # to_yuv.frag's numbers; 0 is luma


def i420(size: ImageSize, matrix: Matrix = "bt709") -> PictureFormat:
    """Of (width, height), made even: luma, Cb, Cr, in limited range."""
    return PictureFormat(_even(size), "yuv", 8, (1, 1), matrix, False, "center")


def nv12(size: ImageSize, matrix: Matrix = "bt709") -> PictureFormat:
    """Of (width, height), made even: luma, then Cb and Cr in turn, in limited range."""
    return PictureFormat(_even(size), "nv12", 8, (1, 1), matrix, False, "center")


def gray(size: ImageSize) -> PictureFormat:
    """Of (width, height): the red of a picture, which is as good as its green and blue if that is gray."""
    return PictureFormat(size, "gray")


def size_bytes(format: PictureFormat) -> int:
    """Of all planes, tightly packed."""
    return sum(int(np.prod(shape)) for shape in format.plane_shapes)


def split(data: ReadBytes, format: PictureFormat) -> Picture:
    """The planes in tightly packed bytes, as views."""
    ends = np.cumsum([int(np.prod(shape)) for shape in format.plane_shapes])
    parts = np.split(data, ends[:-1])
    return Picture(format, tuple(part.reshape(shape) for part, shape in zip(parts, format.plane_shapes, strict=True)))


def yuv_defines(format: PictureFormat, part: int) -> dict[str, ParameterValue]:
    """The parameters of to_yuv.frag."""
    to_rgb, offset = format.to_rgb()
    to_yuv = np.linalg.inv(to_rgb)
    return {
        **dict(zip(("WIDTH", "HEIGHT"), format.size, strict=True)),
        "PART": part,
        "TO_YUV": f"mat3({', '.join(map(repr, to_yuv.T.ravel().tolist()))})",
        "OFFSET": f"vec3({', '.join(map(repr, (-to_yuv @ offset).tolist()))})",
    }


class YuvPicture:
    """Codes of one format, one byte each, in a target as wide as the picture; its row 0 comes first in memory."""

    def __init__(self, context: Context, format: PictureFormat) -> None:
        """For formats of i420, nv12 and gray. Raises DeviceError if the device does not draw pictures of that size."""
        width = format.size[0]
        self.format = format
        self.size: ImageSize = (width, size_bytes(format) // width)
        self._gl = context.gl
        self._target = OffscreenTarget(context, self.size, "codes")
        self._parts = tuple(
            Drawing(
                context, "to_yuv.frag", yuv_defines(format, part), {"picture": 0}, f"to {format.layout}, part {part}"
            )
            for part in (0, *([_CHROMA[format.layout]] if format.layout in _CHROMA else []))
        )

    @property
    def framebuffer(self) -> int:
        """What the codes are read from, as one-byte pixels of `size`."""
        return self._target.framebuffer

    def draw(self, picture: Target) -> None:
        """Convert a picture, which is at most one pixel smaller than the format each way."""
        self._gl.bind_texture(0, opengl.TEXTURE_2D, picture.texture)
        (width, height), rows = self.format.size, self.size[1]
        for part, first, last in zip(self._parts, (0, height), (height, rows), strict=False):
            part.use()
            part.draw(self._target, (width, last - first), first)

    def release(self) -> None:
        """Delete the shader and the target; the pictures are their makers'."""
        for part in self._parts:
            part.release()
        self._target.release()


def _even(size: ImageSize) -> ImageSize:
    return size[0] + size[0] % 2, size[1] + size[1] % 2
