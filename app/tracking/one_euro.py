"""The one-euro filter: still points are held still, moving ones followed at once.

Casiez, Roussel and Vogel, "1€ Filter: A Simple Speed-based Low-pass Filter for Noisy Input in Interactive Systems",
2012, with the details of MediaPipe's landmarks_smoothing: speeds are in sizes of the object per second, so that a
constant holds for near and far ones, and are measured between values as they came.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..models.decoders.found import Points

__all__ = ["OneEuro", "OneEuroFilter", "VisibilityFilter"]

_FIRST_RATE = 30.0  # Hz, until two frames are known
_LEAST_SIZE = 1e-6  # pixels: a smaller object is not filtered


@dataclass(frozen=True)
class OneEuro:
    """A filter's constants. Cutoffs in Hz; beta raises the cutoff by the speed, in sizes of the object per second."""

    least_cutoff: float
    beta: float
    speed_cutoff: float = 1.0


class OneEuroFilter:
    """The filter of one object's points."""

    def __init__(self, form: OneEuro) -> None:
        self._form = form
        self._seconds: float | None = None
        self._rate = _FIRST_RATE
        self._last: npt.NDArray[np.float64] | None = None  # as they came
        self._held: npt.NDArray[np.float64] = np.zeros(0)
        self._speed: npt.NDArray[np.float64] = np.zeros(0)

    def smoothed(self, points: Points, seconds: float, size: float) -> Points:
        """Points (N, 2 or 3) in pixels of a frame at a time, of an object of a size in pixels.

        They come back as they are where the time does not go on or the object has no size. Another number of points
        begins anew.
        """
        if (self._seconds is not None and seconds <= self._seconds) or not size > _LEAST_SIZE:
            return points
        if self._seconds is not None:
            self._rate = 1 / (seconds - self._seconds)
        self._seconds = seconds
        values = points.astype(np.float64)
        if self._last is None or self._last.shape != values.shape:
            self._last, self._held, self._speed = values, values, np.zeros_like(values)
            return points
        speed = (values - self._last) / size * self._rate
        share = self._share(np.float64(self._form.speed_cutoff))
        self._speed = share * speed + (1 - share) * self._speed
        share = self._share(self._form.least_cutoff + self._form.beta * np.abs(self._speed))
        self._held = share * values + (1 - share) * self._held
        self._last = values
        return self._held.astype(np.float32)

    def _share(self, cutoff: npt.NDArray[np.float64] | np.float64) -> npt.NDArray[np.float64]:
        """Of the new value in the result of a low-pass filter."""
        return np.asarray(1 / (1 + self._rate / (2 * math.pi * cutoff)))


class VisibilityFilter:
    """A low-pass filter of how certain points are."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._held: Points | None = None

    def smoothed(self, certainty: Points) -> Points:
        """(N,), 0 to 1."""
        if self._held is None or self._held.shape != certainty.shape:
            self._held = certainty
        else:
            self._held = (self._share * certainty + (1 - self._share) * self._held).astype(np.float32)
        return self._held
