"""Finds hard cuts in a sequence of pictures, by the histograms and the order of their samples of luma.

Of each picture some thousand samples are taken as the exposure takes its own (exposure.py). There are compared

    structure   how light each of 16 x 12 parts is: the mean of its samples' ranks among all, which flashes, fades and
                changes of exposure leave as they are. Of two pictures it is the correlation of these
    shared      what the histograms of two pictures, moved to one median, have in common, from 0 to 1. What moves, or a
                camera that does, leaves it about as it is

Two pictures are APART in structure, or little LIKE one another and with less than SHARED of their histograms: a cut.

Of a picture that is all but black, white or even there is no structure: what comes behind it is compared with the last
one that had some. So a flash of white is no cut, and a scene that fades in from black is one. After FORGOTTEN even
pictures the next one with structure is a cut in any case: so a piece of a recording, whose lead is longer, has the cuts
of the whole. What is drawn by these numbers, and measured: tests/app/picture/test_cuts.py.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from .picture import Layout, Picture, PictureFormat, Plane

APART, LIKE, SHARED = 0.3, 0.6, 0.8
FORGOTTEN = 12  # even pictures

_COLUMNS, _ROWS = 64, 48  # of the samples, about
_PARTS_X, _PARTS_Y = 16, 12
_BINS = 32  # of the histogram
_EVEN = 12  # of 255: what nine tenths of the samples reach over
_ENDS, _MOST_AT_ENDS = 6, 0.7  # codes that are black or white, and the share of samples there
_LUMA: dict[Layout, int] = {"rgba": 1, "yuyv": 0, "uyvy": 1}  # the channel of the first plane; of colors it is green

_Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class LightSamples:
    """What is compared of a picture."""

    parts: _Floats  # the mean ranks, less their mean, and divided by their norm
    histogram: _Floats  # around the median; of sum 1
    is_even: bool
    has_structure: bool


def light_samples(picture: Picture) -> LightSamples:
    """Of a picture in RAM."""
    codes = _codes(picture)
    counts = np.bincount(codes.reshape(-1), minlength=256)
    share, below = np.float32(1 / codes.size), counts.cumsum()
    ranks = ((below - 0.5 * counts).astype(np.float32) * share)[codes]
    rows, columns = codes.shape
    parts = (_means(rows, min(rows, _PARTS_Y)) @ ranks @ _means(columns, min(columns, _PARTS_X)).T).reshape(-1)
    parts -= parts.mean()
    low, middle, high = np.searchsorted(below, (0.05 * codes.size, 0.5 * codes.size, 0.95 * codes.size)).tolist()
    moved = np.clip(np.arange(256) + (127 - middle), 0, 255) * _BINS // 256
    histogram = np.bincount(moved, counts, _BINS).astype(np.float32) * share
    is_even, at_ends = high - low <= _EVEN, int(counts[:_ENDS].sum() + counts[-_ENDS:].sum())
    has_structure = not is_even and at_ends <= _MOST_AT_ENDS * codes.size
    return LightSamples(parts / max(float(np.sqrt(parts @ parts)), 1e-6), histogram, is_even, has_structure)


def likeness(one: LightSamples, other: LightSamples) -> tuple[float, float]:
    """The correlation of structures, from -1 to 1, and what both histograms share, from 0 to 1."""
    return float(one.parts @ other.parts), float(np.minimum(one.histogram, other.histogram).sum())


def are_apart(structure: float, shared: float) -> bool:
    """Whether pictures that are so much alike have a cut between them."""
    return structure < APART or (structure < LIKE and shared < SHARED)


class CutDetector:
    """Remembers the last picture that has structure, and finds cuts behind it."""

    def __init__(self) -> None:
        self._before: LightSamples | None = None
        self._even = 0  # pictures in a row
        self._format: PictureFormat | None = None

    def is_cut(self, picture: Picture) -> bool:
        """Whether the next picture has nothing to do with those before; False for what has no planes in RAM."""
        if not picture.planes:
            return False
        if picture.format != self._format:
            self.begin_anew()
            self._format = picture.format
        found, before = light_samples(picture), self._before
        self._even += found.is_even
        if not found.has_structure:
            return False
        forgotten, self._even, self._before = self._even >= FORGOTTEN, 0, found
        return forgotten or (before is not None and are_apart(*likeness(before, found)))

    def begin_anew(self) -> None:
        """The next picture has nothing to do with those before, which is known already."""
        self._before, self._even = None, 0


def _codes(picture: Picture) -> npt.NDArray[np.uint8]:
    """Samples of luma (rows, columns), from 0 to 255, evenly over the stored picture."""
    form = picture.format
    plane: Plane = picture.planes[0]
    rows, columns = (max(1, side // number) for side, number in zip(plane.shape, (_ROWS, _COLUMNS), strict=False))
    samples: Plane = plane[rows // 2 :: rows, columns // 2 :: columns]
    if samples.ndim == 3:
        samples = samples[..., _LUMA[form.layout]]
    return np.asarray(np.minimum(samples >> (form.bits - 8), 255) if form.bits > 8 else samples, np.uint8)


@lru_cache(maxsize=8)
def _means(samples: int, parts: int) -> _Floats:
    """A matrix (parts, samples) that makes means over neighbors of a row of so many samples."""
    places = (np.arange(samples) * parts // samples)[None] == np.arange(parts)[:, None]
    means: _Floats = (places / places.sum(1, keepdims=True)).astype(np.float32)
    return means
