"""Defines how a rotated part of a frame becomes a network's float32 input.

This is the written definition, which the shader (region_to_tensor.comp) and the CPU's own code (region_sampler.py)
follow as well, and the NumPy implementation that TensorFlow Lite's networks get their input by.

Pixel (X, Y) of the network's W x H input samples the upright frame at

    (x, y) = M (X / W, Y / H, 1)

where M, a matrix (2, 3), takes fractions of the region to the frame's pixels, and x = 0, y = 0 is the center of the
first one. Places are rounded to whole 32nds of a pixel, sampling is bilinear, however large the region is, and red,
green and blue are rounded to whole numbers from 0 to 255: as OpenCV's warpPerspective does it to bytes, which cuts
regions for MediaPipe's networks on CPUs. These answer to less than the rounding with more than it is, those of hands
and bodies with up to 3 and 7 % of a thing's size. Samples lie half a pixel of the input, less half a pixel of the
frame, farther up and left than preprocess.py's, and what is found lies that much farther down and right.

Places are computed in integers, so that all three get the same ones: matrices count in 32nds of a pixel, times a power
of two that 32 bits just hold. Luma and both chromas are sampled at the same point, each on its own grid and clamped to
its own edge; then the matrix of colors is applied, and red, green and blue are limited to 0..255. Where the recording
is to be turned or mirrored, that is done to coordinates.

Past the frame's edges is black, or the edge is repeated. Where it is black, the color is multiplied by what of the
bilinear weights falls on pixels of the frame, min(1, x + 1, w - x) and not below 0 along each axis: so a sample between
the last pixel and the first one outside is what bilinear sampling makes of that pixel and a black one. That is done
before the color is rounded. Halves are rounded up, and what is less than a 4096th below them: mixed bytes are whole
1024ths, which shaders have as floats of 0 to 1.

Black becomes low, white high. An input of whole numbers counts in its steps, rounded as in preprocess.py.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.model.graph import Steps
from texelflow.gpu_delegate.model.quantization import nearest_whole

from .color_planes import Floats
from .picture import ImageSize, Picture, PictureFormat, Plane

__all__ = ["CutPlaces", "cut_places", "cut_region"]

Matrix23 = npt.NDArray[np.float64]
IntRows = npt.NDArray[np.int32]
CutPlaces = tuple[IntRows, IntRows]
Places = npt.NDArray[np.int64]
_PARTS = 32  # of a pixel
_FAR = 1e7  # pixels, of which 32 bits still hold 32nds
_MOST_BITS = 20
_HALF = np.float32(0.5 + 1 / 4096)


def cut_places(format: PictureFormat, size: ImageSize, to_frame: Matrix23) -> CutPlaces:
    """Rows (a, b, c, bits) from pixels (X, Y) of an input of `size` to the column and the row of the stored picture.

    (a X + b Y + c) >> bits is in 32nds of a pixel, rounded; 0 is the center of the first one. The first two are luma's,
    or RGBA's, the others those of the planes of chroma. `to_frame` is FrameRegion.to_frame's. Raises ValueError for one
    that is not finite, or is extremely large: places have to be numbers.
    """
    if not np.abs(to_frame).sum() < _FAR:
        raise ValueError(f"a region of a frame has numbers below {_FAR:g}")
    (width, height), matrix = size, np.array(to_frame, np.float64)
    matrix[:, :2] /= width, height
    if format.orientation.transpose:
        matrix = matrix[::-1].copy()
    for axis, is_mirrored in enumerate(format.mirrored):
        if is_mirrored:
            matrix[axis] *= -1
            matrix[axis, 2] += format.size[axis] - 1
    chroma = matrix.copy()
    axes: tuple[tuple[int, int, int], ...] = format.chroma_axis(0), format.chroma_axis(1)
    for row, (mul, add, div) in zip(chroma, axes, strict=True):
        row *= mul / div
        row[2] += add / div
    return _in_integers(matrix, size), _in_integers(chroma, size)


def _in_integers(matrix: Matrix23, size: ImageSize) -> IntRows:
    """The rows that cut_places gives, of a matrix from pixels of the input to those of a plane."""
    found = np.zeros((2, 4), np.int32)
    for row, values in zip(found, matrix * _PARTS, strict=True):
        farthest = float(np.abs(values) @ (*size, 1)) + 1
        bits = min(30 - math.frexp(farthest)[1], _MOST_BITS)
        row[:3] = np.rint(np.ldexp(values, bits))
        row[2] += (1 << bits) >> 1
        row[3] = bits
    return found


def cut_region(
    picture: Picture,
    size: ImageSize,
    to_frame: Matrix23,
    value_range: tuple[float, float] = (0, 1),
    repeats_edges: bool = False,
    steps: Steps | None = None,
) -> Floats:
    """The network's input (1, H, W, 3) for a region of a picture. `value_range` is what black and white become.

    `steps` are the whole numbers that the input takes, if it takes no others. Raises ValueError as cut_places.
    """
    format, (luma, chroma) = picture.format, cut_places(picture.format, size, to_frame)
    x, y = _places(luma, size)
    samples = [_between(plane, x, y) for plane in _luma(picture)]
    if format.layout not in ("rgba", "gray"):
        at = _places(chroma, size)
        samples += [_between(plane, *at) for plane in _chroma(picture)]
    color = np.stack(samples, -1)
    if format.layout != "rgba":
        matrix, offset = (np.asarray(255 * part, np.float32) for part in format.to_rgb())
        codes = color * np.float32(1 / ((1 << format.bits) - 1))
        color = (codes * np.diag(matrix) if format.layout == "gray" else codes @ matrix.T) + offset
        np.clip(color, 0, 255, out=color)
    if not repeats_edges:
        color *= (_cover(x, format.size[0]) * _cover(y, format.size[1]))[..., None]
    low, high = value_range
    tensor: Floats = np.floor(color + _HALF) * np.float32((high - low) / 255) + np.float32(low)
    if steps:
        np.clip(nearest_whole(tensor), steps.low, steps.high, out=tensor)
    return tensor[None]


def _places(rows: IntRows, size: ImageSize) -> tuple[Places, Places]:
    """Columns and rows (H, W) at which the pixels sample, in 32nds."""
    x, y = np.arange(size[0], dtype=np.int64), np.arange(size[1], dtype=np.int64)[:, None]
    columns, lines = ((a * x + (b * y + c)) >> bits for a, b, c, bits in rows.tolist())
    return columns, lines


def _luma(picture: Picture) -> Iterator[npt.NDArray[Any]]:
    """What is sampled on the grid of pixels: red, green and blue, or luma."""
    first: Plane = picture.planes[0]
    if picture.format.layout == "rgba":
        yield from (first[..., color] for color in range(3))
    else:
        yield first[..., 1 if picture.format.layout == "uyvy" else 0] if picture.format.packed else first


def _chroma(picture: Picture) -> Iterator[npt.NDArray[Any]]:
    """Both chromas on their own grid."""
    first, *others = picture.planes
    if picture.format.packed:
        beside = first[..., 0 if picture.format.layout == "uyvy" else 1]
        yield from (beside[:, ::2], beside[:, 1::2])
    elif picture.format.layout == "nv12":
        yield from (others[0][..., number] for number in range(2))
    else:
        yield from others


def _between(plane: npt.NDArray[Any], columns: Places, rows: Places) -> Floats:
    """Samples at places, bilinear; those outside are the edge's."""
    height, width = plane.shape
    x, y = np.clip(columns, 0, (width - 1) * _PARTS), np.clip(rows, 0, (height - 1) * _PARTS)
    left, top = x // _PARTS, y // _PARTS
    right, bottom = np.minimum(left + 1, width - 1), np.minimum(top + 1, height - 1)
    part_x, part_y = (np.asarray(each % _PARTS, np.float32) / _PARTS for each in (x, y))
    upper, lower = (
        plane[row, left].astype(np.float32) * (1 - part_x) + plane[row, right].astype(np.float32) * part_x
        for row in (top, bottom)
    )
    return np.asarray(upper * (1 - part_y) + lower * part_y, np.float32)


def _cover(places: Places, extent: int) -> Floats:
    """How much of the weights at places along an axis falls on its pixels."""
    inside = np.minimum(places + _PARTS, extent * _PARTS - places)
    return np.asarray(np.clip(inside, 0, _PARTS), np.float32) / _PARTS
