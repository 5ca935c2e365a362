"""Scales a picture, its aspect kept, to a given size and format.

For cameras and streams that change their format: readers of the pictures are built for the first one's format.
"""

from dataclasses import replace

import av
import numpy as np

from texelflow.gpu_delegate.base.errors import MediaError

from ..picture.convert import Rgba
from ..picture.picture import ImageSize, Matrix, Orientation, Picture, PictureFormat, rgba_picture
from ..picture.video_frame import views
from .source import CapturedFrame

_AREA, _BILINEAR = 0x20, 0x2  # libswscale's flags: to make smaller, to keep or make larger
_CAREFUL = 0x2000 | 0x4000 | 0x40000  # full chroma interpolation, full chroma input, accurate rounding
_MATRICES: dict[Matrix, int] = {"bt709": 1, "fcc": 4, "bt601": 6, "smpte240m": 7, "bt2020": 9}  # AVColorSpace
_LIMITED, _FULL = 1, 2  # AVColorRange


def convert_like(captured: CapturedFrame, format: PictureFormat) -> CapturedFrame:
    """The frame, scaled with black bars into a picture of the format. Raises MediaError."""
    try:
        rgba = _fitted(captured.picture, format.upright_size)
        picture = in_format(rgba, format)
    except (av.FFmpegError, ValueError) as error:
        names = (pixel_format_name(kind) for kind in (captured.picture.format, format))
        raise MediaError("pictures cannot be converted from {} to {}; start again".format(*names)) from error
    return replace(captured, picture=picture, convert=lambda: rgba)


def _fitted(picture: Picture, size: ImageSize) -> Rgba:
    """The picture upright in the middle of black (H, W, 4) of another size (W, H), as large as fits."""
    source, orientation = picture.format.upright_size, picture.format.orientation
    scale = min(size[0] / source[0], size[1] / source[1])
    width, height = (max(1, min(most, round(side * scale))) for side, most in zip(source, size, strict=True))
    stored = (height, width) if orientation.transpose else (width, height)
    scaled = _frame_of(picture).reformat(
        *stored,
        "rgba",
        interpolation=_CAREFUL | (_AREA if scale < 1 else _BILINEAR),
        dst_color_range=_FULL,
        threads=1,
    )
    canvas = np.zeros((size[1], size[0], 4), np.uint8)
    left, top = (size[0] - width) // 2, (size[1] - height) // 2
    canvas[top : top + height, left : left + width] = orientation.apply(np.asarray(scaled.to_ndarray(), np.uint8))
    canvas[..., 3] = 255
    return canvas


def _frame_of(picture: Picture) -> av.VideoFrame:
    """A copy of the picture as FFmpeg has them."""
    form = picture.format
    frame = av.VideoFrame(*form.size, pixel_format_name(form))
    for plane, samples in zip(frame.planes, picture.planes, strict=True):
        rows = np.ascontiguousarray(samples).view(np.uint8).reshape(len(samples), -1)
        np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)[: len(rows), : rows.shape[1]] = rows
    if form.layout != "rgba":
        frame.colorspace, frame.color_range = _MATRICES[form.matrix], _FULL if form.full_range else _LIMITED
    return frame


def in_format(rgba: Rgba, format: PictureFormat) -> Picture:
    """Upright RGBA of the format's upright size as a picture of that format. Raises FFmpegError and ValueError."""
    if format.layout == "rgba":
        return rgba_picture(rgba)
    planes = views(av_frame_of(_stored(rgba, format.orientation), format), format)
    if planes is None:
        raise ValueError("rows are too short")
    return Picture(format, planes)


def av_frame_of(rgba: Rgba, format: PictureFormat) -> av.VideoFrame:
    """RGBA as FFmpeg has pictures of the format, of any size and as upright as it is. Raises FFmpegError."""
    frame = av.VideoFrame.from_ndarray(rgba, "rgba").reformat(
        format=pixel_format_name(format),
        interpolation=_BILINEAR | _CAREFUL,
        src_color_range=_FULL,
        dst_color_range=_FULL if format.full_range else _LIMITED,
        dst_colorspace=_MATRICES[format.matrix],
        threads=1,
    )
    if format.layout != "rgba":
        frame.colorspace, frame.color_range = _MATRICES[format.matrix], _FULL if format.full_range else _LIMITED
    return frame


def pixel_format_name(format: PictureFormat) -> str:
    """FFmpeg's name for how samples are stored."""
    if format.layout == "yuv":
        family = "yuv" + {(1, 1): "420", (1, 0): "422", (0, 0): "444"}[format.chroma_shift] + "p"
    else:
        family = {"gray": "gray", "nv12": "nv12", "yuyv": "yuyv422", "uyvy": "uyvy422", "rgba": "rgba"}[format.layout]
    return family if format.bits == 8 else f"{family}{format.bits}le"


def _stored(upright: Rgba, orientation: Orientation) -> Rgba:
    """What `orientation` turns into the upright pixels."""
    if orientation.flip_y:
        upright = upright[::-1]
    if orientation.flip_x:
        upright = upright[:, ::-1]
    if orientation.transpose:
        upright = upright.transpose(1, 0, 2)
    return np.ascontiguousarray(upright)
