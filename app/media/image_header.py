"""Parses the header of a picture's file: its size, its EXIF orientation and what decoding needs of it.

PNG, JPEG, WebP, TIFF and BMP. Kept instead of imagesize: that takes 0.1 s to import (it reads addresses of HTTP, and
SVG), and says nothing of PNG's and WebP's orientation, of animations, and of where a file is cut off. Metadata is
dropped before anything decodes it: a color profile of 1 MB may inflate to gigabytes, and PyAV fails over frames that
bring their EXIF along.
"""

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from ..picture.picture import ImageSize, Orientation

ImageKind = Literal["png", "jpeg", "webp", "tiff", "bmp"]

HEAD_BYTES = 12  # that tell the kind
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
_JPEG_MAGIC = b"\xff\xd8\xff"
_TIFF_MAGICS = b"II*\0", b"MM\0*"
_TIFF_WIDTH, _TIFF_HEIGHT, _TIFF_ORIENTATION = 0x100, 0x101, 0x112  # tags
_TIFF_NUMBERS = {3: "H", 4: "I"}  # types of values that stand in the entry itself
_BMP_HEADERS = (12, 40, 52, 56, 64, 108, 124)  # bytes of the second header, by which its form is known
_PNG_KEPT = (b"IHDR", b"PLTE", b"IDAT", b"IEND")
_JPEG_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # markers of segments that hold the size
_SCAN, _EXIF, _ADOBE, _LAST_APPLICATION, _COMMENT = 0xDA, 0xE1, 0xEE, 0xEF, 0xFE
_WEBP_ANIMATED = 0x02
_MOST_PARTS = 1 << 20  # chunks or segments of a file; more would take minutes to go through
_FILL = re.compile(rb"\xff+")  # any number of them begins a marker of JPEG
_UPRIGHT = Orientation()
_ORIENTATIONS = {  # of EXIF, by number
    2: Orientation(False, True, False),
    3: Orientation(False, True, True),
    4: Orientation(False, False, True),
    5: Orientation(True, False, False),
    6: Orientation(True, True, False),
    7: Orientation(True, True, True),
    8: Orientation(True, False, True),
}


@dataclass(frozen=True)
class ImageHeader:
    """What a file says of its picture. `plain` is the file without its metadata; empty where what matters is damaged.

    `size` is that of the stored picture, before `orientation` turns it upright.
    """

    kind: ImageKind
    size: ImageSize
    orientation: Orientation = _UPRIGHT
    animated: bool = False
    plain: bytes = b""


def kind_of_head(head: bytes) -> ImageKind | None:
    """What a file is that begins with these HEAD_BYTES; None: not a picture of these formats."""
    if head.startswith(PNG_MAGIC):
        return "png"
    if head.startswith(_JPEG_MAGIC):
        return "jpeg"
    if head[:4] in _TIFF_MAGICS:
        return "tiff"
    if head[:2] == b"BM" and head[6:10] == bytes(4):  # which are reserved
        return "bmp"
    return "webp" if head[:4] == b"RIFF" and head[8:12] == b"WEBP" else None


def is_animated_png(head: bytes) -> bool:
    """Whether a PNG file that begins so says before its picture that more of them follow."""
    at, kind = len(PNG_MAGIC), b""
    while head.startswith(PNG_MAGIC) and at + 8 <= len(head) and kind not in (b"IDAT", b"acTL"):
        length, kind = struct.unpack_from(">I4s", head, at)
        at += 12 + length
    return kind == b"acTL"


def read_header(data: bytes) -> ImageHeader | None:
    """Of a whole file; None for other formats, and where there is no size to be found. Takes no more than `data`."""
    try:
        match kind_of_head(data[:HEAD_BYTES]):
            case "png":
                return _png(data)
            case "jpeg":
                return _jpeg(data)
            case "webp":
                return _webp(data)
            case "tiff":
                return _tiff(data)
            case "bmp":
                return _bmp(data)
    except (struct.error, IndexError):  # cut off amid what is read here
        pass
    return None


def _png(data: bytes) -> ImageHeader:
    kept, exif, animated, whole = [PNG_MAGIC], b"", False, False
    for kind, chunk, sound in islice(_png_chunks(data), _MOST_PARTS):
        if not sound and kind[:1].isupper():  # small letters: a picture can do without it
            break
        if kind in _PNG_KEPT:
            kept.append(chunk)
        exif = chunk[8:-4] if sound and kind == b"eXIf" else exif
        animated |= kind == b"acTL"
        whole = kind == b"IEND"
    size = struct.unpack_from(">II", data, 16)
    return ImageHeader("png", size, _orientation(exif), animated, b"".join(kept) if whole else b"")


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes, bool]]:
    """Kind, the whole chunk, and whether its checksum is right, up to the end or the first that is not all there."""
    at, kind = len(PNG_MAGIC), b""
    while at + 12 <= len(data) and kind != b"IEND":
        end = at + 12 + int.from_bytes(data[at : at + 4], "big")  # behind length, kind, content and checksum
        if end > len(data):
            return
        kind = data[at + 4 : at + 8]
        yield kind, data[at:end], zlib.crc32(data[at + 4 : end - 4]) == int.from_bytes(data[end - 4 : end], "big")
        at = end


def _jpeg(data: bytes) -> ImageHeader | None:
    kept, exif, size, whole = [data[:2]], b"", None, False
    for marker, segment in islice(_jpeg_segments(data), _MOST_PARTS):
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", segment, 5)
            size = width, height
        if marker == _EXIF and segment[4:10] == b"Exif\0\0":
            exif = exif or segment[10:]
        if marker == _ADOBE or not (_EXIF <= marker <= _LAST_APPLICATION or marker == _COMMENT):
            kept.append(segment)
        whole = marker == _SCAN
    return ImageHeader("jpeg", size, _orientation(exif), plain=b"".join(kept) if whole else b"") if size else None


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Marker and all bytes of each; the first scan is the last of them, with all that is behind it."""
    at, marker = 2, 0
    while marker != _SCAN and (fill := _FILL.match(data, at)) and fill.end() + 3 <= len(data):
        at, marker = fill.end() - 1, data[fill.end()]
        bare = marker == 0x01 or 0xD0 <= marker <= 0xD7  # markers without a segment
        end = at + 2 + (0 if bare else struct.unpack_from(">H", data, at + 2)[0])
        if marker == _SCAN:
            end = len(data)
        yield marker, data[at:end]
        at = end


def _webp(data: bytes) -> ImageHeader | None:
    """Chunks of the RIFF: a canvas (VP8X) or none, and a lossy (VP8) or a lossless picture (VP8L)."""
    picture, exif, flags = b"", b"", 0
    size: ImageSize | None = None
    for kind, content, whole in islice(_webp_chunks(data), _MOST_PARTS):
        if kind == b"VP8X":
            flags, size = content[0], (_sum(content[4:7]) + 1, _sum(content[7:10]) + 1)
        elif kind in (b"VP8 ", b"VP8L") and not picture:
            size = _webp_size(kind, content)
            part = struct.pack("<4sI", kind, len(content)) + content + b"\0" * (len(content) % 2)
            picture = part if whole else b""
        elif kind == b"EXIF":
            exif = content.removeprefix(b"Exif\0\0")
    body = b"WEBP" + picture
    plain = b"RIFF" + len(body).to_bytes(4, "little") + body if picture else b""
    return ImageHeader("webp", size, _orientation(exif), bool(flags & _WEBP_ANIMATED), plain) if size else None


def _webp_chunks(data: bytes) -> Iterator[tuple[bytes, bytes, bool]]:
    """Kind and content of each, and whether that is all there."""
    at = HEAD_BYTES
    while at + 8 <= len(data):
        kind, length = struct.unpack_from("<4sI", data, at)
        yield kind, data[at + 8 : at + 8 + length], at + 8 + length <= len(data)
        at += 8 + length + length % 2


def _webp_size(kind: bytes, content: bytes) -> ImageSize:
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", content, 6)
        return width & 0x3FFF, height & 0x3FFF
    bits = _sum(content[1:5])
    return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)


def _sum(little_endian: bytes) -> int:
    return int.from_bytes(little_endian, "little")


def _tiff(data: bytes) -> ImageHeader | None:
    """The first picture of a file; others are passed over."""
    tags = _tiff_tags(data)
    size = tags.get(_TIFF_WIDTH, 0), tags.get(_TIFF_HEIGHT, 0)
    return ImageHeader("tiff", size, _orientation(data), plain=data) if all(size) else None


def _bmp(data: bytes) -> ImageHeader | None:
    (header_bytes,) = struct.unpack_from("<I", data, 14)
    if header_bytes not in _BMP_HEADERS:
        return None
    width, height = struct.unpack_from("<HH" if header_bytes == 12 else "<ii", data, 18)
    return ImageHeader("bmp", (width, abs(height)), plain=data)  # below 0: rows from the top


def _orientation(exif: bytes) -> Orientation:
    """What the first directory of EXIF (TIFF) says; upright where it says nothing, or nonsense."""
    return _ORIENTATIONS.get(_tiff_tags(exif).get(_TIFF_ORIENTATION, 1), _UPRIGHT)


def _tiff_tags(data: bytes) -> dict[int, int]:
    """Numbers of the first directory of TIFF, by tag, as far as it is sound."""
    order, tags = {b"II": "<", b"MM": ">"}.get(data[:2]), dict[int, int]()
    if order is None:
        return tags
    try:
        (start,) = struct.unpack_from(f"{order}I", data, 4)
        (count,) = struct.unpack_from(f"{order}H", data, start)
        for entry in range(start + 2, start + 2 + 12 * count, 12):
            tag, kind = struct.unpack_from(f"{order}HH", data, entry)
            if kind in _TIFF_NUMBERS:
                (value,) = struct.unpack_from(order + _TIFF_NUMBERS[kind], data, entry + 8)
                tags[tag] = value
    except struct.error:
        pass
    return tags
