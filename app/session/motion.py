"""Measures motion: how much a picture is like the last one that the network saw, in dB.

Some thousand samples of luma, spread evenly, are compared: the peak signal-to-noise ratio of the block of 8 x 8 samples
that differs most. So a hand that waves in a corner is motion, however still the rest is. A camera's noise is not, which
is the same everywhere: of noise alone the worst of so many blocks has about 1.6 times the mean square of all, and that
much is allowed for, so that the figure is that of the whole picture. With a deviation of 3 of 255 it is 35 dB.
"""

from functools import lru_cache
from math import inf, log10

import numpy as np

from ..picture.picture import Layout, Picture, PictureFormat, Plane
from ..picture.preprocess import Floats

_SAMPLES = 4800  # every 8th pixel of every 8th row of 640x480
_BLOCK = 8  # samples along a side
_ALLOWED = 1.6  # of noise: the worst of some 80 blocks of 64 samples against their mean
_PEAK = 255.0
_LUMA: dict[Layout, int] = {"rgba": 1, "yuyv": 0, "uyvy": 1}  # the channel of the first plane; of colors it is green


class MotionCheck:
    """Remembers one picture, or one of each camera, and compares others with it. Takes no longer for larger ones."""

    def __init__(self) -> None:
        self._kept: tuple[Floats, ...] = ()
        self._formats: tuple[PictureFormat, ...] = ()

    def similarity_db(self, *pictures: Picture) -> float | None:
        """Of the picture to the one that is kept, of several the least; None if there is none, or another format."""
        if not self._kept or tuple(picture.format for picture in pictures) != self._formats:
            return None
        return min(_similarity_db(luma(picture), kept) for picture, kept in zip(pictures, self._kept, strict=True))

    def keep(self, *pictures: Picture) -> None:
        """This is what the network saw last."""
        self._kept, self._formats = tuple(map(luma, pictures)), tuple(picture.format for picture in pictures)

    def forget(self) -> None:
        """The network has seen nothing yet."""
        self._kept = ()


def _similarity_db(one: Floats, other: Floats) -> float:
    differences = one - other
    rows, columns = (_means(side) for side in differences.shape)
    worst = float((rows @ (differences * differences) @ columns.T).max()) / _ALLOWED
    return 10 * log10(_PEAK**2 / worst) if worst > 0 else inf


def luma(picture: Picture) -> Floats:
    """Samples (rows, columns) from 0 to 255, as far apart along x and y."""
    form, plane = picture.format, picture.planes[0]
    step = max(1, round((form.size[0] * form.size[1] / _SAMPLES) ** 0.5))
    samples: Plane = plane[::step, ::step]
    if samples.ndim == 3:
        samples = samples[..., _LUMA[form.layout]]
    scaled: Floats = np.multiply(samples, _PEAK / ((1 << form.bits) - 1), dtype=np.float32)
    return scaled


@lru_cache(maxsize=8)
def _means(side: int) -> Floats:
    """A matrix (blocks, samples) that makes means over blocks of a row of so many samples."""
    borders = np.linspace(0, side, max(1, side // _BLOCK) + 1).round()
    places = np.arange(side)
    inside = (borders[:-1, None] <= places) & (places < borders[1:, None])
    means: Floats = (inside / inside.sum(1, keepdims=True)).astype(np.float32)
    return means
