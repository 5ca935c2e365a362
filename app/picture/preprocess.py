"""A frame goes in and the network's float32 input comes out; a mask goes in and one of the frame's size comes out.

This is the written definition of both, which the shaders (image_to_tensor.comp, frame.glsl, mask_to_frame.comp,
mask_over.glsl) follow as well, and with planes.py the NumPy implementation that the CPU path runs.

Geometry. Pixels are squares with their centres at +0.5. Pixel (X, Y) of the network's W x H input samples the w x h
frame at column (X + 0.5) * scale_x + offset_x - 0.5, row likewise, where

    stretch    scale = (w / W, h / H), offset = 0: the whole frame, its aspect lost
    crop       scale = min(w / W, h / H) on both axes, centred: the largest part with the network's aspect
    letterbox  scale = max(w / W, h / H) on both axes, centred: the whole frame, with bars

All of that is rational, so each axis is three integers: the coordinate is exactly (X * step + start) / den.

Sampling is bilinear between the four nearest pixels, taps clamped to the frame's edge, weights and sums in float32.
A network pixel whose centre lies in a bar is black. Black becomes low there, white high, a byte b of RGBA
low + (high - low) * b / 255.

YUV is not made RGB beforehand. Luma and both chromas are sampled at the same point, each on its own grid and clamped to
its own edge; then the matrix is applied to the three samples, and red, green and blue are clamped to 0..1. Nothing is
rounded on the way. With pixels counted from 0 at the centre of the first one, luma's coordinate u lies along an axis of
which chroma has half the samples (others: u itself) at

    u / 2            where chroma lies on the first of two pixels: siting left along x, topleft along x and y
    u / 2 - 0.25     where it lies amid two pixels: siting left along y, center along x and y

Of n bits, codes Y, B, R become y, b, r as the range says: full, y = Y / (2^n - 1), b = (B - 2^(n-1)) / (2^n - 1);
limited, with m = 2^(n-8), y = (Y - 16 m) / 219 m, b = (B - 128 m) / 224 m. Then, with the matrix's Kr and Kb,

    red = y + 2 (1 - Kr) r      blue = y + 2 (1 - Kb) b      green = (y - Kr red - Kb blue) / (1 - Kr - Kb)

Grey is luma alone. Where the recording is to be turned or mirrored, that is done to coordinates: what is sampled is the
stored picture at the place that the upright point comes from.

Back. Pixel (x, y) of the frame samples the mask with the inverse of the same map, bilinear and clamped likewise. A
frame pixel whose centre lies outside the crop, which the network never saw, has mask 0.
"""

from dataclasses import dataclass
from typing import Literal

import cv2
import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.errors import UsageError

from .picture import ImageSize as ImageSize
from .picture import Picture, PictureFormat
from .planes import Floats as Floats
from .planes import PixelsToRgb, PlanesToRgb, Taps, resample_rows

Fit = Literal["stretch", "crop", "letterbox"]


@dataclass(frozen=True)
class SampledAxis:
    """One axis of the map: pixel i of `count` samples the other image, `extent` long, at (i * step + start) / den."""

    count: int
    extent: int
    step: int
    start: int
    den: int

    def inverse(self) -> "SampledAxis":
        """The way back."""
        return SampledAxis(self.extent, self.count, self.den, -self.start, self.step)

    def mirrored(self) -> "SampledAxis":
        """The same places, counted from the other image's other end."""
        return SampledAxis(self.count, self.extent, -self.step, (self.extent - 1) * self.den - self.start, self.den)

    def onto(self, extent: int, mul: int, add: int, div: int) -> "SampledAxis":
        """The same places on a grid on which the other image's coordinate i is (i * mul + add) / div."""
        return SampledAxis(self.count, extent, self.step * mul, self.start * mul + add * self.den, self.den * div)

    def taps(self) -> Taps:
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

    x: SampledAxis
    y: SampledAxis

    def stored(self, format: PictureFormat) -> "Sampling":
        """The same places in the stored picture: x of its columns, y of its rows."""
        upright = (self.y, self.x) if format.orientation.transpose else (self.x, self.y)
        return Sampling(*(a.mirrored() if m else a for a, m in zip(upright, format.mirrored, strict=True)))

    def chroma(self, format: PictureFormat) -> "Sampling":
        """The same places of the stored picture in its planes of chroma."""
        width, height = format.chroma_size
        return Sampling(self.x.onto(width, *format.chroma_axis(0)), self.y.onto(height, *format.chroma_axis(1)))

    def taps(self) -> tuple[Taps, Taps]:
        """Of both axes."""
        return self.x.taps(), self.y.taps()

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


def _axis(count: int, extent: int, scale: int, per: int) -> SampledAxis:
    """`count` pixels, each scale / per wide, centred on `extent` pixels."""
    return SampledAxis(count, extent, 2 * scale, scale - per + extent * per - count * scale, 2 * per)


class Preprocessor:
    """Both directions for one format of frames, with all that does not depend on the pixels worked out beforehand."""

    def __init__(
        self,
        frame: PictureFormat,
        tensor_size: ImageSize,
        fit: Fit = "stretch",
        value_range: tuple[float, float] = (0, 1),
    ) -> None:
        """value_range is (low, high), what black and white become. Raises UsageError as sampling does."""
        self.frame_size, self.fit = frame.upright_size, fit
        there = sampling(self.frame_size, tensor_size, fit)
        back, stored = there.inverse(), there.stored(frame)
        if frame.layout == "rgba":
            self._to_rgb: PixelsToRgb | PlanesToRgb = PixelsToRgb(frame, there.taps(), value_range)
        else:
            self._to_rgb = PlanesToRgb(frame, stored.taps(), stored.chroma(frame).taps(), value_range)
        self._low = np.float32(value_range[0])
        self._bars = ~(there.y.inside()[:, None] & there.x.inside())
        self._mask_x, self._mask_y = back.taps()
        self._unseen = ~(back.y.inside()[:, None] & back.x.inside())

    def image_to_tensor(self, picture: Picture) -> Floats:
        """The network's input (1, H, W, 3) for a picture."""
        tensor = self._to_rgb(picture)
        if self._bars.any():
            tensor[self._bars] = self._low
        return tensor[None]

    def mask_to_frame(self, mask: Floats) -> Floats:
        """The mask (h, w) of the frame from that of the network (H, W)."""
        if self.fit == "stretch":  # OpenCV means the same, to 1e-5, and is ten times as fast
            return np.asarray(cv2.resize(mask, self.frame_size, interpolation=cv2.INTER_LINEAR), np.float32)
        columns = cv2.transpose(resample_rows(cv2.transpose(mask), self._mask_x))  # rows copy faster than columns
        frame_mask = resample_rows(np.asarray(columns, np.float32), self._mask_y)
        frame_mask[self._unseen] = 0
        return frame_mask
