"""Computes the exposure gain of pictures, one after the other: the factor for each one's light before the network.

preprocess.py has the definition; shaders/exposure.comp is the other implementation of it.
"""

import numpy as np
import numpy.typing as npt

from .picture import Picture, PictureFormat
from .sampling import Sampling

COLUMNS, ROWS = 64, 48  # of the samples
SHARE = 20  # more than one sample of so many is at least as bright as the level
BRIGHT = 0.5  # the level from which on a picture is bright enough
MOST_GAIN = 3.0
STEADY = 0.1  # of the way to another gain is gone with each picture
JUMP = 0.25  # of the gain: what differs by more counts at once
RENEWED = 300  # frames of a recording after which none before counts, so that its pieces are as the whole

_RGB_WEIGHTS = np.array([77, 150, 29, 0], np.int64)  # of 256: BT.601's luma


def level_range(format: PictureFormat) -> tuple[float, float]:
    """The codes of eight bits that are black and white."""
    return (0.0, 255.0) if format.full_range else (16.0, 235.0)


class Exposure:
    """The gain of pictures of one format, and that of the last one."""

    def __init__(self, format: PictureFormat, stored: Sampling) -> None:
        """`stored` is what the network sees of the stored picture."""
        self._format = format
        self._samples = np.ix_(stored.y.spread(ROWS), stored.x.spread(COLUMNS))
        self._before = np.float32(0)

    def gain(self, picture: Picture) -> float:
        """Of the next picture, from 1 to MOST_GAIN."""
        black, white = level_range(self._format)
        light = (np.float32(self._level(picture)) - np.float32(black)) / np.float32(white - black)
        ratio = np.float32(BRIGHT) / light if light > 0 else np.float32(MOST_GAIN)
        now = min(max(ratio * ratio, np.float32(1)), np.float32(MOST_GAIN))
        before = self._before
        follows = abs(now - before) <= np.float32(JUMP) * before
        self._before = before + np.float32(STEADY) * (now - before) if follows else now
        return float(self._before)

    @property
    def last(self) -> float:
        """The gain of the last picture; 1 before there was one."""
        return float(self._before) or 1.0

    def begin_anew(self) -> None:
        """Forget the last one."""
        self._before = np.float32(0)

    def _level(self, picture: Picture) -> int:
        """The largest code of eight bits that more than one sample of SHARE reaches."""
        reached = np.bincount(self._codes(picture).ravel(), minlength=256)[::-1].cumsum()[::-1]
        return int(np.flatnonzero(reached * SHARE > COLUMNS * ROWS)[-1])

    def _codes(self, picture: Picture) -> npt.NDArray[np.int64]:
        """Luma of the samples, in eight bits."""
        samples = picture.planes[0][self._samples].astype(np.int64)
        if self._format.layout == "rgba":
            return np.asarray((samples @ _RGB_WEIGHTS + 128) >> 8, np.int64)
        if self._format.packed:
            samples = samples[..., 0 if self._format.layout == "yuyv" else 1]
        return np.asarray(np.minimum(samples >> self._format.bits - 8, 255), np.int64)
