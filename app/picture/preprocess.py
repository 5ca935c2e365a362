"""Defines how a frame becomes the network's float32 input, and how its mask is brought back to the frame's size.

This is the written definition of both, which the shaders (image_to_tensor.comp, exposure.comp, frame.glsl,
frame_mean.glsl, mask_to_frame.comp, mask_over.glsl) follow as well, and with sampling.py, color_planes.py and
exposure.py the NumPy implementation that the CPU path runs. There are two ways in: `plain`, which other programs take
as well and which the frame job is measured by, and `auto`, which holds on pictures that are noisy or dark.

Geometry. Pixels are squares with their centers at +0.5. Pixel (X, Y) of the network's W x H input samples the w x h
frame at column (X + 0.5) * scale_x + offset_x - 0.5, row likewise, where

    stretch    scale = (w / W, h / H), offset = 0: the whole frame, its aspect lost
    crop       scale = min(w / W, h / H) on both axes, centered: the largest part with the network's aspect
    letterbox  scale = max(w / W, h / H) on both axes, centered: the whole frame, with bars

All of that is rational, so each axis is three integers: the coordinate is exactly (X * step + start) / den.

Sampling is the mean of an interval along each axis, centered on the coordinate: every pixel counts by how much of it
lies within, pixels beyond the frame's edge repeat the one at the edge, weights and sums are in float32. In `plain` it
is one pixel long, which is bilinear sampling. In `auto` it is as long as scale, the area
under the network's pixel, but 1 pixel at least and 2.5 at most: means of more would blur what the network knows a
person's edge by.
A network pixel whose center lies in a bar is black. Black becomes low there, white high, a byte b of RGBA
low + (high - low) * b / 255. An input of whole numbers, as quantized networks have it, counts in them: low and high are
in its steps, and each value is rounded to the nearest one, halves away from zero, and limited to those that there are.

YUV is not made RGB beforehand. Luma and both chromas are sampled at the same point, each on its own grid, by its own
scale and clamped to its own edge; then the matrix is applied to the three samples, and red, green and blue are clamped
to 0..1. Nothing is rounded on the way. With pixels counted from 0 at the center of the first one, luma's coordinate u
lies along an axis of which chroma has half the samples (others: u itself) at

    u / 2            where chroma lies on the first of two pixels: siting left along x, topleft along x and y
    u / 2 - 0.25     where it lies amid two pixels: siting left along y, center along x and y

Of n bits, codes Y, B, R become y, b, r as the range says: full, y = Y / (2^n - 1), b = (B - 2^(n-1)) / (2^n - 1);
limited, with m = 2^(n-8), y = (Y - 16 m) / 219 m, b = (B - 128 m) / 224 m. Then, with the matrix's Kr and Kb,

    red = y + 2 (1 - Kr) r      blue = y + 2 (1 - Kb) b      green = (y - Kr red - Kb blue) / (1 - Kr - Kb)

Gray is luma alone. Where the recording is to be turned or mirrored, that is done to coordinates: what is sampled is the
stored picture at the place that the upright point comes from.

Exposure, in `auto` alone: red, green and blue, 0 to 1, are multiplied by a gain and clamped to 1. The gain comes from
64 columns times 48 rows of the stored picture, sample k of n in the pixel in which (k + 0.5) / n of the part lies that
the network sees (so bars do not count). A sample's code is luma's, its upper 8 bits; of RGBA, in integers,
(77 red + 150 green + 29 blue + 128) >> 8. The level is the largest code that more than a twentieth of the samples
reach. Its light l is level / 255, or in the limited range (level - 16) / 219. Then

    gain = 1 where l >= 0.5, 3 where l <= 0, else (0.5 / l)^2, at most 3

so that a picture that is bright somewhere stays as it is. Of pictures that follow each other the gain goes on by a
tenth of the way to the new one; the first one's is taken at once, and one that differs from the last by more than a
quarter. Where every frame of a recording counts, one of 300 counts as a first one: the multiples of 300, or those
that are by the lead of masks (docs/pieces.md) before them.

Back. Pixel (x, y) of the frame samples the mask with the inverse of the same map, bilinear and clamped likewise. A
frame pixel whose center lies outside the crop, which the network never saw, has mask 0. Values of the mask up to 1e-20
may count as 0 beforehand.
"""

from typing import Literal

import cv2
import numpy as np

from texelflow.gpu_delegate.model.graph import Steps
from texelflow.gpu_delegate.model.quantization import nearest_whole

from .color_planes import Floats as Floats
from .color_planes import PixelsToRgb, PlanesToRgb, resample_rows
from .exposure import Exposure
from .picture import ImageSize as ImageSize
from .picture import Picture, PictureFormat
from .region_cut import Matrix23, cut_region
from .sampling import Fit as Fit
from .sampling import SampledAxis as SampledAxis
from .sampling import Sampling as Sampling
from .sampling import sampling as sampling
from .stretch import StretchedToRgb, is_stretched

Preprocessing = Literal["auto", "plain"]

_TRACE = 1e-20  # of a mask: no more than this, weighted, may be subnormal, with which some CPUs are 100 times as slow


class Preprocessor:
    """Both directions for one format of frames, with all that does not depend on the pixels worked out beforehand."""

    def __init__(
        self,
        frame: PictureFormat,
        tensor_size: ImageSize,
        fit: Fit = "stretch",
        value_range: tuple[float, float] = (0, 1),
        preprocessing: Preprocessing = "plain",
        mask_size: ImageSize | None = None,
        steps: Steps | None = None,
    ) -> None:
        """value_range is (low, high), what black and white become; masks have the tensor's size if they have no other.

        `steps` are the whole numbers that the input takes, if it takes no others. Raises UsageError as sampling does.
        """
        self.frame_size, self.fit, self._tensor_size = frame.upright_size, fit, tensor_size
        there = sampling(self.frame_size, tensor_size, fit, area=preprocessing == "auto")
        back = sampling(self.frame_size, mask_size or tensor_size, fit).inverse()
        stored = there.stored(frame)
        self._to_rgb: PixelsToRgb | PlanesToRgb | StretchedToRgb
        if is_stretched(frame, fit, there):
            self._to_rgb = StretchedToRgb(frame, tensor_size)
        elif frame.layout == "rgba":
            self._to_rgb = PixelsToRgb(frame, stored.taps())
        else:
            self._to_rgb = PlanesToRgb(frame, stored.taps(), stored.chroma(frame).taps())
        self._exposure = Exposure(frame, stored) if preprocessing == "auto" else None
        self._low, self._span = value_range[0], value_range[1] - value_range[0]
        self._steps = steps
        self._bars = ~(there.y.inside()[:, None] & there.x.inside())
        self._mask_x, self._mask_y = back.taps()
        self._unseen = ~(back.y.inside()[:, None] & back.x.inside())

    def image_to_tensor(self, picture: Picture) -> Floats:
        """The network's input (1, H, W, 3) for a picture, which comes after the one before it."""
        tensor = self._to_rgb(picture)
        gain = self._exposure.gain(picture) if self._exposure else 1.0
        if gain != 1:
            np.minimum(tensor * np.float32(gain), 1, out=tensor)
        if (self._low, self._span) != (0, 1):
            tensor *= np.float32(self._span)
            tensor += np.float32(self._low)
        if self._bars.any():
            tensor[self._bars] = self._low
        if self._steps:
            np.clip(nearest_whole(tensor), self._steps.low, self._steps.high, out=tensor)
        return tensor[None]

    def region_to_tensor(self, picture: Picture, to_frame: Matrix23, gain: float | None = None) -> Floats:
        """The same for a region of the last picture, as region_cut.py has it, its edges repeated."""
        tensor = cut_region(picture, self._tensor_size, to_frame, repeats_edges=True)
        if gain is None:
            gain = self._exposure.last if self._exposure else 1.0
        if gain != 1:
            np.minimum(tensor * np.float32(gain), 1, out=tensor)
        tensor = tensor * np.float32(self._span) + np.float32(self._low)
        return np.clip(nearest_whole(tensor), self._steps.low, self._steps.high) if self._steps else tensor

    def follow(self, picture: Picture) -> None:
        """A picture whose input nobody needs: the next ones come after it."""
        if self._exposure:
            self._exposure.gain(picture)

    def begin_anew(self) -> None:
        """The next picture has nothing to do with those before."""
        if self._exposure:
            self._exposure.begin_anew()

    def mask_to_frame(self, mask: Floats) -> Floats:
        """The mask (h, w) of the frame from that of the network (H, W); pictures (H, W, C) likewise."""
        mask = _without_traces(mask)
        if self.fit == "stretch":  # OpenCV means the same, to 1e-5, and is ten times as fast
            return np.asarray(cv2.resize(mask, self.frame_size, interpolation=cv2.INTER_LINEAR), np.float32)
        columns = cv2.transpose(resample_rows(cv2.transpose(mask), self._mask_x))  # rows copy faster than columns
        frame_mask = resample_rows(np.asarray(columns, np.float32), self._mask_y)
        frame_mask[self._unseen] = 0
        return frame_mask


def _without_traces(mask: Floats) -> Floats:
    """A mask, or a picture, in which values up to _TRACE are 0; one with negative values stays as it is."""
    if mask.min() < 0:
        return mask
    return np.asarray(cv2.threshold(mask, _TRACE, 0, cv2.THRESH_TOZERO)[1], np.float32)
