"""A picture goes in, its red, green and blue on another grid come out in float32, as preprocess.py defines them.

The NumPy half of what shaders/frame.glsl does, for the CPU path.
"""

import cv2
import numpy as np
import numpy.typing as npt

from .picture import Picture, PictureFormat, Plane

Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.intp]
Taps = tuple[Indices, Indices, Floats]  # for each pixel the two neighbours that it samples, and the second one's weight


_BAND_ROWS = 64  # so many rows of a result are made at a time, to stay in the cache


class PixelsToRgb:
    """For RGBA pictures of one format that are sampled at the same places: all that does not depend on the pixels."""

    def __init__(self, format: PictureFormat, taps: tuple[Taps, Taps], value_range: tuple[float, float]) -> None:
        """taps say which (columns, rows) of the upright picture are sampled; value_range what 0 and 255 become."""
        (left, right, x_weights), (above, below, y_weights) = taps
        low, high = value_range
        width = format.upright_size[0]
        self._orientation = format.orientation
        self._size = len(x_weights), len(y_weights)
        self._low = np.float32(low)
        self._taps = tuple(row[:, None] * width + column for row in (above, below) for column in (left, right))
        self._x_weights = np.repeat(x_weights, 4)
        self._factors = tuple(
            ((high - low) / 255 * part[:, None]).astype(np.float32) for part in (1 - y_weights, y_weights)
        )
        # Four arrays, not one: at distances of 2 ** n bytes they would evict each other from the cache.
        self._scratch = [np.empty((_BAND_ROWS, self._size[0] * 4), np.float32) for _ in range(4)]

    def __call__(self, picture: Picture) -> Floats:
        """(H, W, 3), upright, of as many rows and columns as there are taps."""
        pixels = self._orientation.apply(picture.planes[0]).view(np.uint32).reshape(-1)
        width, height = self._size
        color = np.empty((height, width, 3), np.float32)
        for top in range(0, height, _BAND_ROWS):
            self._fill(color[top : top + _BAND_ROWS], pixels, slice(top, top + _BAND_ROWS))
        if self._low:
            color += self._low
        return color

    def _fill(self, band: Floats, pixels: npt.NDArray[np.uint32], rows: slice) -> None:
        """Some rows of the result, without what is added to all of it."""
        a, b, c, d = taps = [scratch[: len(band)] for scratch in self._scratch]
        for values, tap in zip(taps, self._taps, strict=True):
            values[:] = pixels.take(tap[rows]).view(np.uint8)
        top, bottom = mix(a, b, self._x_weights), mix(c, d, self._x_weights)
        top *= self._factors[0][rows]
        bottom *= self._factors[1][rows]
        top += bottom
        cv2.cvtColor(top.reshape(*band.shape[:2], 4), cv2.COLOR_RGBA2RGB, dst=band)


class PlanesToRgb:
    """For pictures of YUV or grey of one format, likewise."""

    def __init__(
        self,
        format: PictureFormat,
        luma: tuple[Taps, Taps],
        chroma: tuple[Taps, Taps],
        value_range: tuple[float, float],
    ) -> None:
        """luma and chroma say which (columns, rows) of the stored planes are sampled."""
        self._format, self._luma, self._chroma = format, luma, chroma
        matrix, offset = format.to_rgb()
        self._affine = np.hstack([matrix / ((1 << format.bits) - 1), offset[:, None]]).astype(np.float32)
        self._low, self._span = value_range[0], value_range[1] - value_range[0]

    def __call__(self, picture: Picture) -> Floats:
        """(H, W, 3), upright, of as many rows and columns as there are taps."""
        first, *rest = single_planes(picture)
        luma = between(first, *self._luma)
        chroma = [between(plane, *self._chroma) for plane in rest] or [luma, luma]
        color = np.asarray(cv2.transform(cv2.merge([luma, *chroma]), self._affine), np.float32)
        np.clip(color, 0, 1, out=color)
        if (self._low, self._span) != (0, 1):
            color *= np.float32(self._span)
            color += np.float32(self._low)
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
    """A plane (h, w) sampled bilinearly at some (columns, rows). It is turned over, since rows copy faster."""
    turned = resample_rows(cv2.transpose(plane), columns)
    return resample_rows(cv2.transpose(turned), rows)


def resample_rows(image: npt.ArrayLike, taps: Taps) -> Floats:
    """Some rows of an image, each mixed of two."""
    first, second, weight = taps
    rows = np.asarray(image)
    near, far = (rows[taken].astype(np.float32, copy=False) for taken in (first, second))
    return mix(near, far, weight[:, None])


def mix(first: Floats, second: Floats, weight: Floats) -> Floats:
    """first + (second - first) * weight, made in place of the two."""
    second -= first
    second *= weight
    first += second
    return first
