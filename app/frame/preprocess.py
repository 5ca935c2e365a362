"""A frame goes in and the network's float32 input comes out; a mask goes in and one of the frame's size comes out.

This is the written definition of both, which the shaders (image_to_tensor.comp, mask_to_frame.comp, composite.frag)
follow as well, and the NumPy implementation that the CPU path runs.

Geometry. Pixels are squares with their centres at +0.5. Pixel (X, Y) of the network's W x H input samples the w x h
frame at column (X + 0.5) * scale_x + offset_x - 0.5, row likewise, where

    stretch    scale = (w / W, h / H), offset = 0: the whole frame, its aspect lost
    crop       scale = min(w / W, h / H) on both axes, centred: the largest part with the network's aspect
    letterbox  scale = max(w / W, h / H) on both axes, centred: the whole frame, with bars

All of that is rational, so each axis is three integers: the coordinate is exactly (X * step + start) / den.

Sampling is bilinear between the four nearest pixels, taps clamped to the frame's edge, weights and sums in float32.
A network pixel whose centre lies in a bar is black. A byte b becomes low + (high - low) * b / 255 there.

Back. Pixel (x, y) of the frame samples the mask with the inverse of the same map, bilinear and clamped likewise. A
frame pixel whose centre lies outside the crop, which the network never saw, has mask 0.
"""

from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt

from app.frame.picture import ImageSize as ImageSize
from app.frame.picture import Picture, PictureFormat
from gpu_delegate.errors import UsageError

Fit = Literal["stretch", "crop", "letterbox"]
Floats = npt.NDArray[np.float32]
Indices = npt.NDArray[np.intp]

_BAND_ROWS = 64  # so many rows of the tensor are made at a time, to stay in the cache


@dataclass(frozen=True)
class Axis:
    """One axis of the map: pixel i of `count` samples the other image, `extent` long, at (i * step + start) / den."""

    count: int
    extent: int
    step: int
    start: int
    den: int

    def inverse(self) -> "Axis":
        """The way back."""
        return Axis(self.extent, self.count, self.den, -self.start, self.step)

    def taps(self) -> tuple[Indices, Indices, Floats]:
        """For every pixel the two neighbours that it samples and the weight of the second one."""
        whole, rest = np.divmod(np.arange(self.count, dtype=np.int64) * self.step + self.start, self.den)
        first, second = (np.clip(whole + i, 0, self.extent - 1).astype(np.intp) for i in (0, 1))
        return first, second, (rest / self.den).astype(np.float32)

    def inside(self) -> npt.NDArray[np.bool_]:
        """Whether the centre that a pixel samples lies within the other image."""
        doubled = 2 * (np.arange(self.count, dtype=np.int64) * self.step + self.start) + self.den
        return (doubled >= 0) & (doubled <= 2 * self.den * self.extent)


@dataclass(frozen=True)
class Sampling:
    """How the network's input samples the frame (or, inverted, how the frame samples the mask)."""

    x: Axis
    y: Axis

    def inverse(self) -> "Sampling":
        """The way back, from the frame to the network's grid."""
        return Sampling(self.x.inverse(), self.y.inverse())


def sampling(frame_size: ImageSize, tensor_size: ImageSize, fit: Fit = "stretch") -> Sampling:
    """The map from the network's grid to the frame. Raises UsageError for an unknown fit or an empty size."""
    (w, h), (tensor_w, tensor_h) = frame_size, tensor_size
    if min(w, h, tensor_w, tensor_h) < 1:
        raise UsageError(f"cannot fit {w}x{h} pixels to {tensor_w}x{tensor_h}: sizes begin at 1x1")
    if fit == "stretch":
        return Sampling(_axis(tensor_w, w, w, tensor_w), _axis(tensor_h, h, h, tensor_h))
    if fit not in ("crop", "letterbox"):
        raise UsageError(f"unknown fit {fit!r}: it is stretch, crop or letterbox")
    wider = w * tensor_h > h * tensor_w
    scale = (h, tensor_h) if wider == (fit == "crop") else (w, tensor_w)
    return Sampling(_axis(tensor_w, w, *scale), _axis(tensor_h, h, *scale))


def _axis(count: int, extent: int, scale: int, per: int) -> Axis:
    """`count` pixels, each scale / per wide, centred on `extent` pixels."""
    return Axis(count, extent, 2 * scale, scale - per + extent * per - count * scale, 2 * per)


class Preprocessor:
    """Both directions for one format of frames, with all that does not depend on the pixels worked out beforehand."""

    def __init__(
        self,
        frame: PictureFormat,
        tensor_size: ImageSize,
        fit: Fit = "stretch",
        value_range: tuple[float, float] = (0, 1),
    ) -> None:
        """value_range is (low, high), what bytes 0 and 255 become. Raises UsageError as sampling does."""
        self.frame_size, self.tensor_size, self.fit = frame.upright_size, tensor_size, fit
        frame_size = self.frame_size
        there = sampling(frame_size, tensor_size, fit)
        back = there.inverse()
        low, high = value_range
        left, right, x_weights = there.x.taps()
        above, below, y_weights = there.y.taps()
        self._low = np.float32(low)
        self._taps = tuple(row[:, None] * frame_size[0] + column for row in (above, below) for column in (left, right))
        self._x_weights = np.repeat(x_weights, 4)
        self._factors = tuple(
            ((high - low) / 255 * part[:, None]).astype(np.float32) for part in (1 - y_weights, y_weights)
        )
        # Four arrays, not one: at distances of 2 ** n bytes they would get into each other's way in the cache.
        self._scratch = [np.empty((_BAND_ROWS, tensor_size[0] * 4), np.float32) for _ in range(4)]
        self._bars = ~(there.y.inside()[:, None] & there.x.inside())
        self._mask_x, self._mask_y = back.x.taps(), back.y.taps()
        self._unseen = ~(back.y.inside()[:, None] & back.x.inside())

    def image_to_tensor(self, picture: Picture) -> Floats:
        """The network's input (1, H, W, 3) for a picture."""
        (rgba,) = picture.planes
        width, height = self.tensor_size
        pixels = np.ascontiguousarray(rgba).view(np.uint32).reshape(-1)
        tensor = np.empty((height, width, 3), np.float32)
        for top in range(0, height, _BAND_ROWS):
            self._fill(tensor[top : top + _BAND_ROWS], pixels, slice(top, top + _BAND_ROWS))
        if self._low:
            tensor += self._low
        if self._bars.any():
            tensor[self._bars] = self._low
        return tensor[None]

    def _fill(self, band: Floats, pixels: npt.NDArray[np.uint32], rows: slice) -> None:
        """Some rows of the tensor, without what is added to all of it."""
        a, b, c, d = taps = [scratch[: len(band)] for scratch in self._scratch]
        for values, tap in zip(taps, self._taps, strict=True):
            values[:] = pixels.take(tap[rows]).view(np.uint8)
        top, bottom = _mix(a, b, self._x_weights), _mix(c, d, self._x_weights)
        top *= self._factors[0][rows]
        bottom *= self._factors[1][rows]
        top += bottom
        cv2.cvtColor(top.reshape(*band.shape[:2], 4), cv2.COLOR_RGBA2RGB, dst=band)

    def mask_to_frame(self, mask: Floats) -> Floats:
        """The mask (h, w) of the frame from that of the network (H, W)."""
        if self.fit == "stretch":  # OpenCV means the same, to 1e-5, and is ten times as fast
            return np.asarray(cv2.resize(mask, self.frame_size, interpolation=cv2.INTER_LINEAR), np.float32)
        columns = cv2.transpose(_resample_rows(cv2.transpose(mask), self._mask_x))  # rows copy faster than columns
        frame_mask = _resample_rows(np.asarray(columns, np.float32), self._mask_y)
        frame_mask[self._unseen] = 0
        return frame_mask


def _mix(first: Floats, second: Floats, weight: Floats) -> Floats:
    """first + (second - first) * weight, made in place of the two."""
    second -= first
    second *= weight
    first += second
    return first


def _resample_rows(image: npt.ArrayLike, taps: tuple[Indices, Indices, Floats]) -> Floats:
    first, second, weight = taps
    rows = np.asarray(image, np.float32)
    return _mix(rows[first], rows[second], weight[:, None])
