"""Converts decoded pictures to upright RGBA, and RGBA to pictures ready for an encoder.

YUV becomes RGB by the matrix and the range that the recording states. Where it states none: full range for the
formats that are full by definition (yuvj*, gray), limited otherwise; BT.709 from 1280x720 on, BT.601 below, as players
do. HDR is not tone-mapped.
"""

from typing import TypeAlias

import av
import numpy as np
import numpy.typing as npt

from .picture import Matrix

Rgba: TypeAlias = npt.NDArray[np.uint8]

# libswscale's flags by value, since PyAV names them only in some versions: bicubic, full chroma interpolation, full
# chroma input, accurate rounding. With them odd widths are exact to the last column.
_SWS_FLAGS = 0x4 | 0x2000 | 0x4000 | 0x40000
_LIMITED, _FULL = 1, 2  # AVColorRange
_MATRICES: dict[int, Matrix] = {
    1: "bt709",
    4: "fcc",
    5: "bt601",
    6: "bt601",
    7: "smpte240m",
    9: "bt2020",
}  # AVColorSpace that libswscale converts
_BT709, _BT601 = 1, 6
_STRETCH = np.clip((np.arange(256) - 16) * (255 / 219) + 0.5, 0, 255).astype(np.uint8)


def color_matrix(frame: av.VideoFrame) -> int:
    """The frame's AVColorSpace, guessed from its size where it states none that can be converted."""
    if frame.colorspace in _MATRICES:
        return frame.colorspace
    return _BT709 if frame.width >= 1280 or frame.height >= 720 else _BT601


def color_range(frame: av.VideoFrame) -> int:
    """The frame's AVColorRange, limited or full."""
    if frame.color_range in (_LIMITED, _FULL):
        return frame.color_range
    return _FULL if frame.format.name.startswith(("yuvj", "gray", "ya")) else _LIMITED


def is_full_range(frame: av.VideoFrame) -> bool:
    """Whether samples use all their codes."""
    return color_range(frame) == _FULL


def matrix_name(color_space: int) -> Matrix:
    """Of an AVColorSpace that color_matrix gave."""
    return _MATRICES[color_space]


def describe_color(frame: av.VideoFrame) -> tuple[str, str]:
    """Matrix and range by name, as conversion uses them: ('bt709', 'limited'); RGB formats are ('rgb', 'full')."""
    if frame.format.is_rgb:
        return "rgb", "full"
    return _MATRICES[color_matrix(frame)], "full" if color_range(frame) == _FULL else "limited"


class ToRgba:
    """Converts decoded frames to RGBA of one fixed size; keeps the scaler between frames."""

    def __init__(self, width: int, height: int) -> None:
        self._size = (width, height)
        self._scaler = av.video.reformatter.VideoReformatter()

    def __call__(self, frame: av.VideoFrame) -> Rgba:
        """The frame as stored, not yet upright: uint8 (H, W, 4), alpha 255. Raises av.FFmpegError or ValueError."""
        if not frame.format.is_rgb:
            frame.colorspace, frame.color_range = color_matrix(frame), color_range(frame)
        width, height = self._size
        converted = self._scaler.reformat(
            frame, width, height, "rgba", interpolation=_SWS_FLAGS, dst_color_range=_FULL, threads=1
        )
        rgba = np.array(converted.to_ndarray(), np.uint8)
        if frame.format.name.startswith("gray") and color_range(frame) == _LIMITED:
            rgba = _STRETCH[rgba]  # libswscale treats every gray picture as full range
        rgba[..., 3] = 255
        return rgba


class ToLike:
    """Converts decoded frames to the size, format, matrix and range of a model; keeps the scaler between frames."""

    def __init__(self, model: av.VideoFrame) -> None:
        self._traits = _traits(model)
        self._scaler = av.video.reformatter.VideoReformatter()

    def needs_no(self, frame: av.VideoFrame) -> bool:
        """Whether the frame is like the model as it is."""
        return _traits(frame) == self._traits

    def __call__(self, frame: av.VideoFrame) -> av.VideoFrame:
        """Raises av.FFmpegError or ValueError."""
        width, height, name, matrix, levels = self._traits
        if not frame.format.is_rgb:
            frame.colorspace, frame.color_range = color_matrix(frame), color_range(frame)
        return self._scaler.reformat(
            frame,
            width,
            height,
            name,
            interpolation=_SWS_FLAGS,
            dst_colorspace=matrix,
            dst_color_range=levels,
            threads=1,
        )


def _traits(frame: av.VideoFrame) -> tuple[int, int, str, int, int]:
    return frame.width, frame.height, frame.format.name, color_matrix(frame), color_range(frame)


class FromRgba:
    """Converts RGBA frames to a format of FFmpeg's; YUV is in limited range.

    By default it is BT.709, which is how the recorder tags it.
    Alpha is kept where the format has it, and colors are not multiplied by it.
    """

    def __init__(self, pixel_format: str = "yuv420p", matrix: Matrix = "bt709") -> None:
        self._format = pixel_format
        self._range = _LIMITED if pixel_format.startswith(("yuv", "nv")) else _FULL
        self._matrix = next(number for number, name in _MATRICES.items() if name == matrix)
        self._scaler = av.video.reformatter.VideoReformatter()

    def __call__(self, rgba: Rgba) -> av.VideoFrame:
        """One frame, uint8 (H, W, 4) with even W and H."""
        frame = av.VideoFrame.from_ndarray(rgba, format="rgba")
        return self._scaler.reformat(
            frame,
            format=self._format,
            interpolation=_SWS_FLAGS,
            src_color_range=_FULL,
            dst_color_range=self._range,
            dst_colorspace=self._matrix,
            threads=1,
        )
