"""Wraps decoded video frames as pictures: the decoder's own planes, or RGBA where those cannot be used.

Read as decoded are planar YUV 4:2:0, 4:2:2 and 4:4:4 and gray, of 8 bits and, little-endian, of up to 16, nv12 and
packed 4:2:2. Nothing is copied: the arrays are views of the decoder's memory, and keep it alive. All else becomes RGBA
by libswscale. Frames that differ from a recording's first one, or store their rows upside down, are scaled and
converted to its format.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from time import perf_counter_ns
from typing import cast

import av
import numpy as np
from av.sidedata.sidedata import SideDataContainer
from av.sidedata.sidedata import Type as SideDataType

from texelflow.gpu_delegate.base.errors import MediaError

from .convert import Rgba, ToLike, ToRgba, color_matrix, is_full_range, matrix_name
from .picture import ImageSize, Layout, Orientation, Picture, PictureFormat, Plane, Siting, rgba_format, rgba_picture

_CHROMA_SHIFTS = {"420": (1, 1), "422": (1, 0), "444": (0, 0)}
_PACKED: dict[str, Layout] = {"yuyv422": "yuyv", "uyvy422": "uyvy"}
_DEEP = (9, 10, 12, 14, 16)
_SITINGS: dict[int, Siting] = {1: "left", 2: "center", 3: "topleft"}  # by AVChromaLocation


@dataclass(frozen=True)
class VideoFrame:
    """One frame: its number in the file, pts in the file's time base, ms since frame 0, and what was decoded.

    decode_start_ns (of perf_counter) and decode_ms tell what making it took, 0 where nobody measured. captured_ns, on
    the same clock, is when a camera took it, as far as that is known; None for recordings. lead: it is not of the range
    that was asked for, but comes before it or after it, for masks that are those of the whole recording.
    """

    index: int
    pts: int
    time_ms: float
    picture: Picture = field(repr=False)
    decode_start_ns: int = 0
    decode_ms: float = 0.0
    convert: Callable[[], Rgba] | None = field(default=None, repr=False, compare=False)
    captured_ns: int | None = None
    lead: bool = False

    @cached_property
    def rgba(self) -> Rgba:
        """The upright frame, uint8 (H, W, 4), converted when first asked for. Raises MediaError."""
        return self.convert() if self.convert else self.picture.planes[0]

    @property
    def size(self) -> ImageSize:
        """(width, height) of the upright frame."""
        return self.picture.format.upright_size

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """All that is seen in it: one, but for frames of several cameras (grid_frame.py)."""
        return (self.picture,)


class FrameMaker:
    """Makes the frames of one recording, all of the format of its first one; to be called from one thread at a time.

    `rescaled_frames` counts those that changed size in mid-stream. Frames' own conversion to RGB may happen elsewhere.
    """

    def __init__(self, path: str, first: av.VideoFrame) -> None:
        self.orientation = orientation_of(first)
        self.format = picture_format(first, self.orientation)
        self.rescaled_frames = 0
        self._path = path
        self._first = first
        self._to_like = ToLike(first)
        self._to_rgba = ToRgba(first.width, first.height)
        self._lock = threading.Lock()

    def make(
        self,
        index: int,
        pts: int,
        time_ms: float,
        frame: av.VideoFrame,
        start_ns: int,
    ) -> VideoFrame:
        """The frame with its picture; decoding began at start_ns. Raises MediaError where it cannot be converted."""
        self.rescaled_frames += (frame.width, frame.height) != (self._first.width, self._first.height)
        if self.format.layout == "rgba":
            picture, convert = rgba_picture(self._upright(frame)), None
        else:
            picture, convert = Picture(self.format, self._planes(frame)), partial(self._upright, frame)
        return VideoFrame(index, pts, time_ms, picture, start_ns, (perf_counter_ns() - start_ns) / 1e6, convert)

    def _planes(self, frame: av.VideoFrame) -> tuple[Plane, ...]:
        if self._to_like.needs_no(frame) and (planes := views(frame, self.format)):
            return planes
        try:
            planes = views(self._to_like(frame), self.format)
        except (av.FFmpegError, ValueError) as error:
            raise self._unsupported(frame) from error
        if planes is None:
            raise self._unsupported(frame)
        return planes

    def _upright(self, frame: av.VideoFrame) -> Rgba:
        try:
            with self._lock:
                return self.orientation.apply(self._to_rgba(frame))
        except (av.FFmpegError, ValueError) as error:
            raise self._unsupported(frame) from error

    def _unsupported(self, frame: av.VideoFrame) -> MediaError:
        return MediaError(
            f"'{self._path}' has pictures of the format {frame.format.name}, not supported; convert it to yuv420p"
        )


def orientation_of(frame: av.VideoFrame) -> Orientation:
    """What the frame's display matrix says."""
    try:
        side_data = cast(SideDataContainer, frame.side_data)  # PyAV's stubs take it for a plain dictionary
        matrix = side_data.get(SideDataType.DISPLAYMATRIX)
    except ValueError:  # PyAV gives none where one is of a type that it does not know, as EXIF in JPEG pictures
        return Orientation()
    return Orientation.from_matrix(bytes(matrix)) if matrix else Orientation()


def picture_format(frame: av.VideoFrame, orientation: Orientation) -> PictureFormat:
    """That of the frame's planes, or of upright RGBA where those are not read as they are."""
    size = frame.width, frame.height
    name = frame.format.name
    if name not in _LAYOUTS or (name in _PACKED and frame.width % 2):
        return rgba_format((size[1], size[0]) if orientation.transpose else size)
    layout, bits, shifts = _LAYOUTS[name]
    matrix = matrix_name(color_matrix(frame))
    return PictureFormat(size, layout, bits, shifts, matrix, is_full_range(frame), _siting(frame), orientation)


def views(frame: av.VideoFrame, format: PictureFormat) -> tuple[Plane, ...] | None:
    """The frame's planes as arrays that share its memory; None where its rows are not as the format needs them."""
    dtype = np.dtype(np.uint8 if format.bits <= 8 else "<u2")
    found = []
    for plane, shape in zip(frame.planes, format.plane_shapes, strict=True):
        pixel_bytes = dtype.itemsize * int(np.prod(shape[2:]))
        row_bytes = shape[1] * pixel_bytes
        whole = plane.line_size >= row_bytes and plane.line_size % pixel_bytes == 0
        if not whole or plane.buffer_size < plane.line_size * (shape[0] - 1) + row_bytes:
            return None
        strides = (plane.line_size, pixel_bytes, dtype.itemsize)[: len(shape)]
        array: Plane = np.ndarray(shape, dtype, memoryview(plane), strides=strides)
        array.flags.writeable = False
        found.append(array)
    return tuple(found)


def _siting(frame: av.VideoFrame) -> Siting:
    """Where chroma lies. Older versions of PyAV do not tell: then it is as JPEG has it, or as all others have it."""
    stated = _SITINGS.get(getattr(frame, "chroma_location", 0))
    return stated or ("center" if frame.format.name.startswith("yuvj") else "left")


def _layouts() -> dict[str, tuple[Layout, int, tuple[int, int]]]:
    """FFmpeg's names of the formats that are read as decoded: layout, bits and chroma shifts."""
    known: dict[str, tuple[Layout, int, tuple[int, int]]] = {"gray": ("gray", 8, (0, 0)), "nv12": ("nv12", 8, (1, 1))}
    known |= {name: (layout, 8, (1, 0)) for name, layout in _PACKED.items()}
    known |= {f"gray{bits}le": ("gray", bits, (0, 0)) for bits in _DEEP}
    for name, shifts in _CHROMA_SHIFTS.items():
        known |= {f"{family}{name}p": ("yuv", 8, shifts) for family in ("yuv", "yuvj")}
        known |= {f"yuv{name}p{bits}le": ("yuv", bits, shifts) for bits in _DEEP}
    return known


_LAYOUTS = _layouts()
