"""Reads the picture in a camera's buffer: as it lies in memory, or decoded from JPEG.

A device is not trusted: each buffer is measured before it is used. Names of formats are the four
characters of V4L2 (linux/videodev2.h): YUYV and UYVY are packed 4:2:2, NV12 and NV21 luma and one plane of both chromas
at half size, YU12 and YV12 three planes, GREY luma alone, BGR3 and RGB3 three bytes a pixel, MJPG one JPEG a picture.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import av
import cv2
import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.errors import MediaError

from ..media.sources import MAX_PIXELS, MAX_SIDE
from ..picture.convert import Rgba, ToRgba
from ..picture.picture import ImageSize, Layout, Matrix, Orientation, Picture, PictureFormat, Plane, rgba_picture
from ..picture.preprocess import Preprocessor
from ..picture.video_frame import picture_format, views

CameraBytes = npt.NDArray[np.uint8]

ALIASES = {"YUY2": "YUYV", "HDYC": "UYVY", "I420": "YU12", "IYUV": "YU12", "Y800": "GREY", "JPEG": "MJPG"}
PIXELS = ("YUYV", "UYVY", "NV12", "YU12", "YV12", "NV21", "MJPG", "BGR3", "RGB3", "GREY")  # in order of preference
_MOST_JPEG_PIXELS = 1 << 26  # a few bytes can claim any size; 8K is half of this
_PACKED: dict[str, Layout] = {"YUYV": "yuyv", "UYVY": "uyvy"}


def row_bytes(pixels: str, width: int) -> int:
    """Of the first plane, where nothing is padded; 0 for JPEG."""
    samples = {"YUYV": 2, "UYVY": 2, "BGR3": 3, "RGB3": 3, "MJPG": 0}
    return width * samples.get(pixels, 1)


class BadBufferError(MediaError):
    """A buffer that is not the picture that it should be. A single one is skipped."""


@dataclass(frozen=True)
class RawFormat:
    """What a camera says of its buffers; stride_bytes is from row to row of the first plane, 0 where rows touch."""

    pixels: str
    size: ImageSize
    stride_bytes: int = 0
    matrix: Matrix = "bt601"
    full_range: bool = False


def picture_of(data: CameraBytes, raw: RawFormat) -> Picture:
    """The picture in a buffer, of any shape, whose memory the picture keeps; MJPG is for JpegDecoder.

    Raises BadBufferError for buffers that are too short or far too long, and for sizes that cannot be.
    """
    width, height = raw.size
    if not (0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE and width * height <= MAX_PIXELS):
        raise BadBufferError(f"the camera claims pictures of {width}x{height} pixels, which is impossible")
    flat = np.ascontiguousarray(data).view(np.uint8).reshape(-1)
    if raw.pixels in ("BGR3", "RGB3"):
        (color,) = _cut(flat, raw, ((height, width, 3),))
        code = cv2.COLOR_BGR2RGBA if raw.pixels == "BGR3" else cv2.COLOR_RGB2RGBA
        return rgba_picture(np.asarray(cv2.cvtColor(color, code), np.uint8))
    form = format_of(raw)
    planes = _cut(flat, raw, form.plane_shapes)
    if raw.pixels == "YV12":
        planes = planes[0], planes[2], planes[1]
    if raw.pixels == "NV21":
        planes = planes[0], planes[1][..., ::-1]
    return Picture(form, planes)


def format_of(raw: RawFormat) -> PictureFormat:
    """Of the pictures in buffers of luma and chroma. Raises BadBufferError for an odd width of 4:2:2."""
    width, height = raw.size
    if layout := _PACKED.get(raw.pixels):
        if width % 2:
            raise BadBufferError(f"the camera gives {raw.pixels} of {width}x{height}: choose a --size of an even width")
        return PictureFormat(raw.size, layout, 8, (1, 0), raw.matrix, raw.full_range, "left")
    if raw.pixels in ("NV12", "NV21"):
        return PictureFormat(raw.size, "nv12", 8, (1, 1), raw.matrix, raw.full_range, "left")
    if raw.pixels in ("YU12", "YV12"):
        return PictureFormat(raw.size, "yuv", 8, (1, 1), raw.matrix, raw.full_range, "left")
    if raw.pixels == "GREY":
        return PictureFormat(raw.size, "gray")
    raise BadBufferError(f"pictures of the format {raw.pixels} cannot be read; choose another one with --pixels")


def _cut(flat: CameraBytes, raw: RawFormat, shapes: tuple[tuple[int, ...], ...]) -> tuple[Plane, ...]:
    """Views of the planes, one after the other; rows of three planes' chroma are half as far from each other."""
    planes: list[Plane] = []
    offset = end = 0
    for number, shape in enumerate(shapes):
        pixel_bytes = math.prod(shape[2:])
        least = shape[1] * pixel_bytes
        padded = raw.stride_bytes if number == 0 or len(shapes) == 2 else -(-raw.stride_bytes // 2)
        pitch = padded or least
        end = offset + pitch * (shape[0] - 1) + least
        if pitch < least or end > flat.size:
            break
        strides = (pitch, pixel_bytes, 1)[: len(shape)]
        planes.append(np.ndarray(shape, np.uint8, flat.data, offset, strides))
        offset += pitch * shape[0]
    if len(planes) < len(shapes) or flat.size > 2 * end + 4096:
        width, height = raw.size
        raise BadBufferError(f"the camera sent {flat.size} bytes, not a {raw.pixels} picture of {width}x{height}")
    return tuple(planes)


class JpegDecoder:
    """Decodes one camera's JPEGs to their own planes, without RGB on the way; to be called from one thread."""

    def __init__(self) -> None:
        self._codec: Any = av.CodecContext.create("mjpeg", "r")  # PyAV before 18 does not say that it is of video
        self._codec.thread_count = 1
        self._codec.options = {"err_detect": "explode", "max_pixels": str(_MOST_JPEG_PIXELS)}

    def __call__(self, data: CameraBytes) -> tuple[Picture, Callable[[], Rgba]]:
        """The picture, and what makes upright RGBA of it. Raises BadBufferError for damaged ones."""
        if not data.size:  # the decoder would take that for the end of the stream
            raise BadBufferError("the camera sent an empty picture")
        try:
            frames = self._codec.decode(av.Packet(data.tobytes()))
        except (av.FFmpegError, ValueError) as error:
            raise BadBufferError("the camera sent a damaged JPEG") from error
        frame = next((frame for frame in frames if isinstance(frame, av.VideoFrame)), None)
        if frame is None or frame.is_corrupt or max(frame.width, frame.height) > MAX_SIDE:
            raise BadBufferError("the camera sent a damaged JPEG")
        return _decoded(frame)


def _decoded(frame: av.VideoFrame) -> tuple[Picture, Callable[[], Rgba]]:
    form = picture_format(frame, Orientation())

    def to_rgba() -> Rgba:
        return ToRgba(frame.width, frame.height)(frame)

    planes = None if form.layout == "rgba" else views(frame, form)
    if planes is None:
        rgba = to_rgba()
        return rgba_picture(rgba), lambda: rgba
    return Picture(form, planes), to_rgba


def rgba_of(picture: Picture) -> Rgba:
    """Upright RGBA (H, W, 4) of any picture, by the definition of preprocess.py; meant for single pictures."""
    form = picture.format
    if form.layout == "rgba":
        return form.orientation.apply(picture.planes[0])
    rgb = Preprocessor(form, form.upright_size, value_range=(0, 255)).image_to_tensor(picture)[0]
    rgba = np.full((*rgb.shape[:2], 4), 255, np.uint8)
    rgba[..., :3] = np.rint(rgb)
    return rgba
