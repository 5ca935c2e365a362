"""A picture of any size and format goes in, the same one in a given size and format comes out, its aspect kept.

For cameras and streams that change in the middle: what reads the pictures is built for those of the first's format.
"""

from dataclasses import replace

import av
import cv2
import numpy as np

from app.capture.source import Shot
from app.frame.picture import ImageSize, Matrix, Orientation, Picture, PictureFormat, rgba_picture
from app.media.convert import Rgba
from app.media.video_frame import views
from gpu_delegate.errors import MediaError

_SWS_FLAGS = 0x2 | 0x4000 | 0x40000  # bilinear, full chroma input, accurate rounding
_MATRICES: dict[Matrix, int] = {"bt709": 1, "fcc": 4, "bt601": 6, "smpte240m": 7, "bt2020": 9}  # AVColorSpace
_LIMITED, _FULL = 1, 2  # AVColorRange


def like(shot: Shot, format: PictureFormat) -> Shot:
    """The shot, scaled with black bars into a picture of the format. Raises MediaError."""
    rgba = shot.convert() if shot.convert else shot.picture.planes[0]
    fitted = fit_into(rgba, format.upright_size)
    return replace(shot, picture=picture_like(fitted, format), convert=lambda: fitted)


def fit_into(rgba: Rgba, size: ImageSize) -> Rgba:
    """A picture (h, w, 4) scaled into the middle of black (H, W, 4) of another size (W, H), as large as fits."""
    height, width = rgba.shape[:2]
    scale = min(size[0] / width, size[1] / height)
    inner = max(1, min(size[0], round(width * scale))), max(1, min(size[1], round(height * scale)))
    canvas = np.zeros((size[1], size[0], 4), np.uint8)
    canvas[..., 3] = 255
    left, top = (size[0] - inner[0]) // 2, (size[1] - inner[1]) // 2
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    canvas[top : top + inner[1], left : left + inner[0]] = cv2.resize(rgba, inner, interpolation=method)
    return canvas


def picture_like(rgba: Rgba, format: PictureFormat) -> Picture:
    """Upright RGBA of the format's upright size as a picture of that format. Raises MediaError."""
    if format.layout == "rgba":
        return rgba_picture(rgba)
    name = pixel_format_name(format)
    try:
        frame = av.VideoFrame.from_ndarray(_stored(rgba, format.orientation), "rgba").reformat(
            format=name,
            interpolation=_SWS_FLAGS,
            src_color_range=_FULL,
            dst_color_range=_FULL if format.full_range else _LIMITED,
            dst_colorspace=_MATRICES[format.matrix],
            threads=1,
        )
        planes = views(frame, format)
    except (av.FFmpegError, ValueError) as error:
        raise MediaError(f"pictures cannot be converted to {name}; start again with the new ones") from error
    if planes is None:
        raise MediaError(f"pictures cannot be converted to {name}; start again with the new ones")
    return Picture(format, planes)


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
