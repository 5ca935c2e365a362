"""Judges the masks of a clip's frames by their true mattes, in figures.

    F-score       of the outlines at 0.5: the harmonic mean of precision and recall, where an outline's pixel counts as
                  right with the other outline at most TOLERANCE pixels away; 1 where neither has one, 0 where one has
    matte error   mean |mask - matte| over all pixels
    edge error    the same over the pixels within BAND pixels of the true outline
    flicker       mean absolute change of (mask - matte) from one frame to the next
    lag           by how many frames the true mattes have to come later to fit the masks best: the shift of the least
                  mean square difference, of whole frames from -2 to 4, and between them of the parabola through the
                  least one and its neighbors, on pictures of a quarter of the side; 0 where nothing moves

All frames count, those without a person as well: a network is right there if it sees nothing. A truth may say where
nothing is judged (what a person holds, others in the background): pixels and outlines there do not count.
"""

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from ...picture.preprocess import Floats

TOLERANCE, BAND = 2, 10  # pixels
THRESHOLD = 0.5

_SHRUNK = 4
_EARLIEST, _LATEST = -2, 4  # lags that are tried
_STILL = 1e-6  # of the squares: a smaller difference is not significant
_Bits = npt.NDArray[np.uint8]
_Bools = npt.NDArray[np.bool_]


class Truth:
    """One frame's true matte (h, w), where it is judged, and what is derived from both."""

    def __init__(self, matte: Floats, ignored: _Bools | None = None) -> None:
        self.matte = matte
        self.ignored = ignored if ignored is not None and ignored.any() else None
        whole = outline(matte)
        self.outline = self.only_judged(whole)
        self.near = _dilated(whole, TOLERANCE)
        self.band = self.only_judged(_dilated(whole, BAND)).astype(bool)

    def only_judged(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The same (h, w), 0 where nothing is judged."""
        return values if self.ignored is None else np.where(self.ignored, values.dtype.type(0), values)

    def completed(self, mask: Floats) -> Floats:
        """A mask that is right where nothing is judged."""
        return mask if self.ignored is None else np.where(self.ignored, self.matte, mask)

    @cached_property
    def judged_pixels(self) -> int:
        """How many are judged."""
        return self.matte.size - (0 if self.ignored is None else int(np.count_nonzero(self.ignored)))

    @cached_property
    def small(self) -> Floats:
        """For the lag."""
        return _shrunk(self.matte)


@dataclass(frozen=True)
class Quality:
    """The figures of one way to make masks; 0 to 1 but for the lag."""

    frames: int
    f_score: float
    matte_error: float
    edge_error: float
    flicker: float
    lag_frames: float


class MaskScorer:
    """Compares masks with mattes, frame after frame; a few frames are in RAM, however many come."""

    def __init__(self) -> None:
        self._sums = np.zeros(5)  # F-score, error, error in bands, pixels of bands, change
        self._frames = 0
        self._error: Floats | None = None
        self._masks: deque[Floats] = deque(maxlen=1 - _EARLIEST)
        self._mattes: deque[Floats] = deque(maxlen=_LATEST - _EARLIEST + 1)
        self._squares = np.zeros(_LATEST - _EARLIEST + 1)  # by lag

    def add(self, mask: Floats, truth: Truth) -> None:
        """The mask (h, w) of the next frame."""
        error = truth.only_judged(mask - truth.matte)
        apart, judged = np.abs(error), max(truth.judged_pixels, 1)
        change = 0.0 if self._error is None else float(np.abs(truth.only_judged(error - self._error)).sum()) / judged
        in_band = apart[truth.band]
        self._sums += (f_score(mask, truth), apart.sum() / judged, in_band.sum(), in_band.size, change)
        self._frames, self._error = self._frames + 1, error
        self._masks.append(_shrunk(truth.completed(mask)))
        self._mattes.append(truth.small)
        if len(self._mattes) == self._mattes.maxlen:
            self._squares += [float(np.square(self._masks[0] - matte).mean()) for matte in reversed(self._mattes)]

    def quality(self) -> Quality:
        """The figures so far. Raises ValueError before there are two frames."""
        if self._frames < 2:
            raise ValueError("quality takes two frames or more")
        score, error, band_error, band, change = self._sums.tolist()
        frames = self._frames
        moves = np.ptp(self._squares) > _STILL * self._squares.max()
        lag = _EARLIEST + least_of_parabola(self._squares) if moves else 0.0
        return Quality(frames, score / frames, error / frames, band_error / max(band, 1), change / (frames - 1), lag)


def outline(mask: Floats) -> _Bits:
    """1 at the pixels of the person (mask >= 0.5) that touch one of the background, also across a corner."""
    person = (mask >= THRESHOLD).astype(np.uint8)
    inside = cv2.erode(person, np.ones((3, 3), np.uint8), borderType=cv2.BORDER_REPLICATE)
    return np.asarray(person - inside, np.uint8)


def f_score(mask: Floats, truth: Truth) -> float:
    """Of the mask's outline against the true one."""
    whole = outline(mask)
    found = truth.only_judged(whole)
    count, wanted = int(found.sum()), int(truth.outline.sum())
    if not count or not wanted:
        return float(count == wanted)
    precision = int((found & truth.near).sum()) / count
    recall = int((truth.outline & _dilated(whole, TOLERANCE)).sum()) / wanted
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def least_of_parabola(values: npt.NDArray[np.float64]) -> float:
    """Where the least value lies, counted from 0, in parts of a step by the parabola through it and its neighbors."""
    at = int(np.argmin(values))
    if not 0 < at < len(values) - 1:
        return float(at)
    before, least, after = values[at - 1 : at + 2]
    bend = before - 2 * least + after
    return at + float((before - after) / (2 * bend)) if bend else float(at)


def _dilated(bits: _Bits, radius: int) -> _Bits:
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1))
    return np.asarray(cv2.dilate(bits, disc), np.uint8)


def _shrunk(picture: Floats) -> Floats:
    height, width = (max(1, side // _SHRUNK) for side in picture.shape)
    return np.asarray(cv2.resize(picture, (width, height), interpolation=cv2.INTER_AREA), np.float32)
