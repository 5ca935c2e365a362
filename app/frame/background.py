"""An image file goes in, RGBA bytes of the frame's size come out: the background that is put behind the person."""

import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.errors import MediaError

from ..picture.preprocess import ImageSize

Image = npt.NDArray[np.uint8]

_MOST_PIXELS = 1 << 26  # 8192 x 8192
_MOST_BYTES = 1 << 28
_PNG = b"\x89PNG\r\n\x1a\n"
_ANIMATION = (b"acTL", b"fcTL", b"fdAT")
_JPEG = b"\xff\xd8\xff"
_JPEG_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # markers of segments that hold the size


def is_image(path: Path) -> bool:
    """Whether a file begins as a PNG or JPEG file does. Raises MediaError if it is missing or cannot be read."""
    try:
        if path.exists() and not path.is_file():  # a pipe or a device may never end
            raise MediaError(f"cannot read background {path}: not a regular file; use an image or a recording")
        with path.open("rb") as file:
            return file.read(len(_PNG)).startswith((_PNG, _JPEG))
    except OSError as error:
        raise MediaError(f"cannot read background {path}: {error.strerror}") from None


def read_image(path: Path) -> Image:
    """A PNG or JPEG file as RGBA (H, W, 4), A = 255.

    Raises MediaError if it is missing, neither of the two, damaged or too large.
    """
    try:
        size_bytes = path.stat().st_size
        if not path.is_file():  # a pipe or a device may never end
            raise MediaError(f"cannot read image {path}: not a regular file; use a PNG or JPEG file")
        if size_bytes > _MOST_BYTES:
            raise MediaError(f"image {path} is too large: {size_bytes >> 20} MB, at most {_MOST_BYTES >> 20}")
        data = path.read_bytes()
    except OSError as error:
        raise MediaError(f"cannot read image {path}: {error.strerror}") from None
    size = _size(data)
    if size is None:
        raise MediaError(f"{path} is not an image that can be read: use a PNG or JPEG file")
    if size[0] * size[1] > _MOST_PIXELS:
        raise MediaError(f"image {path} is too large: {size[0]}x{size[1]} pixels, at most {_MOST_PIXELS >> 20} million")
    if data.startswith(_PNG):
        data = _plain_png(data)
    try:
        decoded = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR) if data else None
    except cv2.error:
        decoded = None
    if decoded is None:
        raise MediaError(f"image {path} is damaged: save it again as PNG or JPEG")
    return np.asarray(cv2.cvtColor(decoded, cv2.COLOR_BGR2RGBA), np.uint8)


def cover(rgba: Image, size: ImageSize) -> Image:
    """The middle of a picture (H, W, 4) with the aspect of `size`, scaled to it."""
    (height, width), (to_width, to_height) = rgba.shape[:2], size
    kept_width = max(1, min(width, round(height * to_width / to_height)))
    kept_height = max(1, min(height, round(width * to_height / to_width)))
    left, top = (width - kept_width) // 2, (height - kept_height) // 2
    part = np.ascontiguousarray(rgba[top : top + kept_height, left : left + kept_width])
    shrinks = kept_width > to_width
    return np.asarray(cv2.resize(part, size, interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR), np.uint8)


def _plain_png(data: bytes) -> bytes:
    """The PNG file of its valid chunks, without animation; empty if a required one is damaged.

    OpenCV allocates the memory that a chunk claims before it reads the bytes.
    """
    kept, at = [_PNG], len(_PNG)
    while at < len(data):
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")  # behind length, kind, content and checksum
        kind, content = data[at + 4 : at + 8], data[at + 4 : end - 4]
        sound = end <= len(data) and zlib.crc32(content) == int.from_bytes(data[end - 4 : end], "big")
        if not sound and (end > len(data) or kind[:1].isupper()):  # lower case: an optional chunk
            return b""
        if sound and kind not in _ANIMATION:
            kept.append(data[at:end])
        at = end if kind != b"IEND" else len(data)
    return b"".join(kept)


def _size(data: bytes) -> ImageSize | None:
    """Width and height as the header says, before any memory is taken for them; None for other formats."""
    if data.startswith(_PNG) and len(data) >= 24:
        width, height = struct.unpack_from(">II", data, 16)
        return width, height
    at = 2 if data.startswith(_JPEG) else len(data)
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        bare = marker == 0xFF or marker == 0x01 or 0xD0 <= marker <= 0xD7  # fill bytes and markers without a segment
        at += (1 if marker == 0xFF else 2) if bare else 2 + struct.unpack_from(">H", data, at + 2)[0]
    return None
