"""Computes which part of a frame each pixel of the network's input samples.

The map is rational, so that GPU and CPU agree on it exactly; preprocess.py has its definition.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.targets.llvm.sampling_tables import Neighbors

from .color_planes import Indices, Taps
from .picture import ImageSize, PictureFormat

Fit = Literal["stretch", "crop", "letterbox"]

_LONGEST = 5, 2  # a ratio: pixels along a side of what is averaged; longer ones blur edges that the network sees


@dataclass(frozen=True)
class SampledAxis:
    """One axis of the map: pixel i of `count` samples the other image, `extent` long, about (i * step + start) / den.

    It averages an interval of one pixel of the other image, which is bilinear sampling; with `area` all of its own, or
    _LONGEST of it.
    """

    count: int
    extent: int
    step: int
    start: int
    den: int
    area: bool = False

    def inverse(self) -> "SampledAxis":
        """The way back, bilinear."""
        return SampledAxis(self.extent, self.count, self.den, -self.start, self.step)

    def mirrored(self) -> "SampledAxis":
        """The same places, counted from the other image's other end."""
        return replace(self, step=-self.step, start=(self.extent - 1) * self.den - self.start)

    def onto(self, extent: int, mul: int, add: int, div: int) -> "SampledAxis":
        """The same places on a grid on which the other image's coordinate i is (i * mul + add) / div."""
        start = self.start * mul + add * self.den
        return SampledAxis(self.count, extent, self.step * mul, start, self.den * div, self.area)

    @property
    def length(self) -> float:
        """Of the interval that is averaged, in pixels of the other image."""
        return self._wide / (_LONGEST[1] * self.den)

    @property
    def _wide(self) -> int:
        """The same in units of 1 / (_LONGEST[1] * den)."""
        longest, unit = _LONGEST
        return min(max(abs(self.step), self.den) * unit, self.den * longest) if self.area else self.den * unit

    def intervals(self) -> "SampledAxis":
        """Where they begin, counted from the beginning of the other image's first pixel."""
        unit = _LONGEST[1]
        start = unit * (2 * self.start + self.den) - self._wide
        return replace(self, step=2 * unit * self.step, start=start, den=2 * unit * self.den)

    def places(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """(i * step + start) / den of every pixel, as whole numbers and what is left."""
        whole, rest = np.divmod(np.arange(self.count, dtype=np.int64) * self.step + self.start, self.den)
        return whole, rest / self.den

    def span(self) -> int:
        """How many pixels of the other image an interval touches at most, 2 or more."""
        return max(2, math.ceil(float(self.intervals().places()[1].max()) + self.length))

    def taps(self) -> Taps:
        """For every pixel those that it averages, and the weight of each."""
        whole, part = self.intervals().places()
        nth = np.arange(self.span())[:, None]
        pixels = np.clip(whole + nth, 0, self.extent - 1)
        weights = np.where(nth == 0, 1 - part, np.clip(part + self.length - nth, 0, 1)) / self.length
        return pixels.astype(np.intp), weights.astype(np.float32)

    def neighbors(self) -> Neighbors:
        """The same as taps, with pixels outside as such."""
        return Neighbors(self.extent, self.intervals().places()[0], self.taps()[1])

    def inside(self) -> npt.NDArray[np.bool_]:
        """Whether the center that a pixel samples lies within the other image."""
        doubled = 2 * (np.arange(self.count, dtype=np.int64) * self.step + self.start) + self.den
        return (doubled >= 0) & (doubled <= 2 * self.den * self.extent)

    def spread(self, number: int) -> Indices:
        """So many pixels of the other image, evenly from one end to the other of what all pixels see of it."""
        ends = (2 * self.start + self.den + (2 * i - 1) * self.step for i in (0, self.count))
        low, high = sorted(min(max(end, 0), 2 * self.den * self.extent) for end in ends)
        middles = [low * 2 * number + (2 * i + 1) * (high - low) for i in range(number)]
        return np.array([min(m // (4 * self.den * number), self.extent - 1) for m in middles], np.intp)


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


def sampling(frame_size: ImageSize, tensor_size: ImageSize, fit: Fit = "stretch", area: bool = False) -> Sampling:
    """The map from the network's grid to the frame. Raises UsageError for an unknown fit or an empty size."""
    (w, h), (tensor_w, tensor_h) = frame_size, tensor_size
    if min(w, h, tensor_w, tensor_h) < 1:
        raise UsageError(f"cannot fit {w}x{h} pixels to {tensor_w}x{tensor_h}: sizes begin at 1x1")
    if fit == "stretch":
        return Sampling(_axis(tensor_w, w, w, tensor_w, area), _axis(tensor_h, h, h, tensor_h, area))
    if fit not in ("crop", "letterbox"):
        raise UsageError(f"unknown fit {fit!r}: it is stretch, crop or letterbox")
    wider = w * tensor_h > h * tensor_w
    scale = (h, tensor_h) if wider == (fit == "crop") else (w, tensor_w)
    return Sampling(_axis(tensor_w, w, *scale, area), _axis(tensor_h, h, *scale, area))


def _axis(count: int, extent: int, scale: int, per: int, area: bool) -> SampledAxis:
    """`count` pixels, each scale / per wide, centered on `extent` pixels."""
    return SampledAxis(count, extent, 2 * scale, scale - per + extent * per - count * scale, 2 * per, area)
