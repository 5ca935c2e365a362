"""Reads a picture's file as a decoded frame: upright, 8 bits a sample.

Decoded by FFmpeg, since OpenCV's decoders print lines of their own on stderr where a file is damaged. Alpha is dropped:
what is transparent has the color that the file gives it. Deeper samples are reduced to 8 bits.
"""

import errno
import math
import os
import stat
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, cast

import av
import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.errors import MediaError

from ..picture.convert import ToRgba
from ..picture.picture import Orientation
from .image_header import HEAD_BYTES, ImageHeader, ImageKind, is_animated_png, kind_of_head, read_header
from .sources import MAX_PIXELS, check_picture_size

ClassNumbers = npt.NDArray[np.uint8]

IMAGE_ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp")
IMAGE_FORMATS = "PNG, JPEG, WebP, TIFF, BMP"
MOST_BYTES = 1 << 28  # of one file
_JPEG_STREAMS = (".mjpeg", ".mjpg")
_ANIMATION_BYTES = 1 << 12  # within which a PNG says that it is animated
_DECODERS = {"png": "png", "jpeg": "mjpeg", "webp": "webp", "tiff": "tiff", "bmp": "bmp"}
_CUT_OFF = {"err_detect": "explode"}  # a file cut off is no picture
_STRICT: Mapping[ImageKind, Mapping[str, str]] = MappingProxyType({"tiff": {}})  # is so anyway; tags would be faults
_PNG_DEPTH = 24  # where a PNG says its bits a sample, and what they are
_NUMBERED_PNGS = (b"\x08\x00", *(bytes([bits, 3]) for bits in (1, 2, 4, 8)))
_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


def image_kind(path: str | os.PathLike[str]) -> Literal["picture", "animation"] | None:
    """What a regular file is that begins as pictures do; None for anything else. Raises OSError.

    Animated PNG is an animation; streams of JPEG pictures are none of this, by their endings.
    """
    head = _read(path, _ANIMATION_BYTES) or b""
    if kind_of_head(head[:HEAD_BYTES]) is None or os.fspath(path).lower().endswith(_JPEG_STREAMS):
        return None
    return "animation" if is_animated_png(head) else "picture"


def read_image_file(path: str | os.PathLike[str], most_pixels: int = MAX_PIXELS) -> av.VideoFrame:
    """The picture of a file: YUV as decoded where that is upright and opaque, else RGBA with alpha 255.

    Raises MediaError if the file is missing, no such picture, animated, damaged or too large.
    """
    name = os.fspath(path)
    try:
        data = _read(path, MOST_BYTES + 1)
    except OSError as error:
        leads_nowhere = os.path.islink(name) and error.errno in (errno.ENOENT, errno.ELOOP)
        why = "it is a link that leads nowhere" if leads_nowhere else error.strerror
        raise MediaError(f"cannot read image '{name}': {why}") from None
    if data is None:
        raise MediaError(f"cannot read image '{name}': not a regular file; use {IMAGE_FORMATS}")
    if len(data) > MOST_BYTES:
        raise MediaError(f"image '{name}' is too large: more than {MOST_BYTES >> 20} MB")
    return decode_image(name, data, most_pixels)


def read_class_map(path: str | os.PathLike[str], most_pixels: int = MAX_PIXELS) -> ClassNumbers:
    """The numbers, not the colors, of a PNG of shades of gray (8 bits) or of a palette: (H, W), uint8.

    Raises MediaError as read_image_file, and for any other picture.
    """
    name = os.fspath(path)
    try:
        data = _read(path, MOST_BYTES) or b""
    except OSError as error:
        raise MediaError(f"cannot read image '{name}': {error.strerror}") from None
    header = read_header(data)
    if header is None or header.kind != "png" or data[_PNG_DEPTH : _PNG_DEPTH + 2] not in _NUMBERED_PNGS:
        raise MediaError(f"'{name}' is no PNG of class numbers: 8 bits of gray, or a palette")
    check_picture_size(name, *header.size)
    if math.prod(header.size) > most_pixels:
        raise MediaError(f"image '{name}' is larger than {most_pixels >> 20} Mpx")
    try:
        frame = _decode(header)
        plane = frame.planes[0]
        rows = np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)
    except (av.FFmpegError, ValueError, IndexError) as error:
        raise MediaError(f"image '{name}' is damaged; save it anew as PNG") from error
    return np.array(rows[: frame.height, : frame.width], np.uint8)


def decode_image(name: str, data: bytes, most_pixels: int = MAX_PIXELS) -> av.VideoFrame:
    """The picture of a file's bytes, as of read_image_file; `name` is for what is said. Raises MediaError."""
    header = read_header(data)
    if header is None and kind_of_head(data[:HEAD_BYTES]):
        raise MediaError(f"image '{name}' is damaged; save it anew as PNG or JPEG")
    if header is None:
        raise MediaError(f"'{name}' is not an image that can be read; use {IMAGE_FORMATS}")
    check_picture_size(name, *header.size)
    if math.prod(header.size) > most_pixels:
        raise MediaError(f"image '{name}' is larger than {most_pixels >> 20} Mpx")
    if header.animated and header.kind == "webp":
        raise MediaError(f"'{name}' is an animated WebP, which is not supported; convert it to .webm")
    try:
        return _upright(_decode(header), header.orientation)
    except (av.FFmpegError, ValueError, IndexError) as error:
        raise MediaError(f"image '{name}' is damaged; save it anew as PNG or JPEG") from error


def _read(path: str | os.PathLike[str], most_bytes: int) -> bytes | None:
    """The beginning of a regular file; None of a folder, a pipe or a device, which may never end. Raises OSError."""
    try:
        regular = stat.S_ISREG(os.stat(path).st_mode)
    except ValueError:  # NUL in a name
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None
    if not regular:
        return None
    with open(os.open(path, os.O_RDONLY | _NO_WAIT), "rb") as file:  # a pipe that took its place meanwhile is empty
        return file.read(most_bytes)


def _decode(header: ImageHeader) -> av.VideoFrame:
    """Raises av.FFmpegError, and IndexError where no picture comes."""
    decoder = cast(av.VideoCodecContext, av.CodecContext.create(_DECODERS[header.kind], "r"))
    decoder.thread_count = 1
    decoder.options = {"max_pixels": str(MAX_PIXELS), **_STRICT.get(header.kind, _CUT_OFF)}
    frames = decoder.decode(av.Packet(header.plain))
    return (frames or decoder.decode(None))[0]


def _upright(frame: av.VideoFrame, orientation: Orientation) -> av.VideoFrame:
    """Raises av.FFmpegError and ValueError."""
    if orientation == Orientation() and frame.format.name.startswith(("yuv4", "yuvj4")):
        return frame
    rgba = orientation.apply(ToRgba(frame.width, frame.height)(frame))
    return av.VideoFrame.from_ndarray(rgba, "rgba")
