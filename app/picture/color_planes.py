"""Samples pictures on another grid as RGB in float32, in NumPy, as preprocess.py defines it.

The NumPy half of what shaders/frame.glsl does, for the CPU path.
"""

from collections.abc import Iterable
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from .picture import Picture, PictureFormat, Plane

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.intp]
Taps = tuple[Indices, Floats]  # (number, pixels): those that each pixel averages, and the weight of each


_BAND_ROWS = 64  # so many rows of a result are made at a time, to stay in the cache


class PixelsToRgb:
    """For RGBA pictures of one format that are sampled at the same places: all that does not depend on the pixels."""

    def __init__(self, format: PictureFormat, taps: tuple[Taps, Taps]) -> None:
        """taps say which (columns, rows) of the stored picture are averaged."""
        (columns, x_weights), (rows, y_weights) = taps
        self._transpose = format.orientation.transpose
        self._size = columns.shape[1], rows.shape[1]
        self._bilinear = len(columns) == len(rows) == 2
        self._x_weights = np.repeat(x_weights, 4, axis=1)
        self._rows, self._y_weights = rows, (y_weights / 255).astype(np.float32)[..., None]
        if self._bilinear:
            self._taps = tuple(row[:, None] * format.size[0] + column for row in rows for column in columns)
        # Several arrays, not one: at distances of 2 ** n bytes they would evict each other from the cache.
        self._scratch = [np.empty((_BAND_ROWS, self._size[0] * 4), np.float32) for _ in range(4)]
        self._used, among = np.unique(columns, return_inverse=True)  # of the stored columns, where many do not count
        self._columns = among.reshape(columns.shape)
        self._lines = [np.empty((_BAND_ROWS, len(self._used) * 4), np.float32) for _ in range(2)]

    def __call__(self, picture: Picture) -> Floats:
        """(H, W, 3), upright, of as many rows and columns as there are taps; white is 1."""
        pixels = np.ascontiguousarray(picture.planes[0])
        width, height = self._size
        color = np.empty((height, width, 3), np.float32)
        for top in range(0, height, _BAND_ROWS):
            rows = slice(top, min(top + _BAND_ROWS, height))
            means = self._mixed(pixels, rows) if self._bilinear else self._averaged(pixels, rows)
            cv2.cvtColor(means.reshape(-1, width, 4), cv2.COLOR_RGBA2RGB, dst=color[rows])
        return np.asarray(cv2.transpose(color), np.float32) if self._transpose else color

    def _mixed(self, pixels: npt.NDArray[np.uint8], rows: slice) -> Floats:
        """Some rows of the result, where two pixels along each axis are all."""
        colors = pixels.view(np.uint32).reshape(-1)
        a, b, c, d = taps = [scratch[: rows.stop - rows.start] for scratch in self._scratch]
        for values, tap in zip(taps, self._taps, strict=True):
            values[:] = colors.take(tap[rows]).view(np.uint8)
        top, bottom = mix(a, b, self._x_weights[1]), mix(c, d, self._x_weights[1])
        top *= self._y_weights[0][rows]
        bottom *= self._y_weights[1][rows]
        top += bottom
        return top

    def _averaged(self, pixels: npt.NDArray[np.uint8], rows: slice) -> Floats:
        """Some rows of the result, of any number of pixels."""
        colors, count = pixels.view(np.uint32)[..., 0], rows.stop - rows.start
        tall, line = (scratch[:count] for scratch in self._lines)
        for nth, (taken, weights) in enumerate(zip(self._rows, self._y_weights, strict=True)):
            values = colors.take(taken[rows], axis=0)
            if len(self._used) < values.shape[1]:
                values = values.take(self._used, axis=1)
            np.multiply(values.view(np.uint8), weights[rows], out=line if nth else tall)
            if nth:
                tall += line
        wide, part = (scratch[:count] for scratch in self._scratch[:2])
        for nth, (taken, weights) in enumerate(zip(self._columns, self._x_weights, strict=True)):
            values16 = tall.view(np.complex128)  # 16 bytes, a pixel each
            np.multiply(values16.take(taken, axis=1).view(np.float32), weights, out=part if nth else wide)
            if nth:
                wide += part
        return wide


class PlanesToRgb:
    """For pictures of YUV or gray of one format, likewise."""

    def __init__(
        self,
        format: PictureFormat,
        luma: tuple[Taps, Taps],
        chroma: tuple[Taps, Taps],
    ) -> None:
        """luma and chroma say which (columns, rows) of the stored planes are averaged."""
        self._format, self._luma, self._chroma = format, luma, chroma
        matrix, offset = format.to_rgb()
        self._affine = np.hstack([matrix / ((1 << format.bits) - 1), offset[:, None]]).astype(np.float32)

    def __call__(self, picture: Picture) -> Floats:
        """(H, W, 3), upright, of as many rows and columns as there are taps; white is 1."""
        first, *rest = single_planes(picture)
        luma = between(first, *self._luma)
        chroma = [between(plane, *self._chroma) for plane in rest] or [luma, luma]
        color = np.asarray(cv2.transform(cv2.merge([luma, *chroma]), self._affine), np.float32)
        np.clip(color, 0, 1, out=color)
        return np.asarray(cv2.transpose(color), np.float32) if self._format.orientation.transpose else color


def single_planes(picture: Picture) -> tuple[Plane, ...]:
    """Luma (H, W), and Cb and Cr (h, w) where there are any, each as a view of the picture's planes."""
    first, *rest = picture.planes
    if picture.format.packed:
        luma, chroma = (0, 1) if picture.format.layout == "yuyv" else (1, 0)
        return first[..., luma], first[:, 0::2, chroma], first[:, 1::2, chroma]
    if picture.format.layout == "nv12":
        return first, rest[0][..., 0], rest[0][..., 1]
    return picture.planes


def between(plane: Plane, columns: Taps, rows: Taps) -> Floats:
    """A plane (h, w) averaged over some (columns, rows). It is turned over, since rows copy faster."""
    turned = resample_rows(cv2.transpose(plane), columns)
    return resample_rows(cv2.transpose(turned), rows)


def resample_rows(image: npt.ArrayLike, taps: Taps) -> Floats:
    """Averages of some rows of an image, of one channel or several."""
    taken, weights = taps
    rows = np.asarray(image)
    weights = weights.reshape(*weights.shape, *[1] * (rows.ndim - 1))
    if len(taken) == 2:
        near, far = (rows[each].astype(np.float32, copy=False) for each in taken)
        return mix(near, far, weights[1])
    return weighted((rows[each] for each in taken), weights)


def weighted(parts: Iterable[npt.NDArray[Any]], weights: Iterable[Floats]) -> Floats:
    """The sum of parts, each times its weights."""
    total: Floats | None = None
    for part, weight in zip(parts, weights, strict=True):
        product = part.astype(np.float32, copy=False)  # a copy of its own, or taken for this
        product *= weight
        total = product if total is None else np.add(total, product, out=total)
    assert total is not None
    return total


def mix(first: Floats, second: Floats, weight: Floats) -> Floats:
    """first + (second - first) * weight, made in place of the two."""
    second -= first
    second *= weight
    first += second
    return first
