"""Computes how long flashes of a window took to appear in a camera's pictures.

The camera may see more than the window, or a part of it, mirrored or not, in any light: it is enough that its
pictures become brighter and darker with the window. Nothing is measured here, and no clock is read.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.float64]  # ms

LONGEST_MS = 3000.0  # a network camera may be that late
_SURROUNDINGS_MS = 1500.0  # slower changes are not flashes, but daylight or the camera's exposure
_LEAST_LIKENESS = 0.45  # of pictures to flashes; chance and other light reach 0.3
_NEAR = 1.5  # periods around an edge that may belong to it: a rolling shutter, a slow screen
_PLATEAU = 3  # pictures before and after an edge that say how bright it was
_LEAST_TOLD = 0.25  # of the changes: fewer are so by chance, in one of 1,600 recordings of 5 pictures a second
_LEAST_STEP = 0.3  # of the usual one: a smaller step is not an edge
_LONGEST_GAP = 1.75  # periods: where a picture is missing, the time of the edge is unknown
_LEAST_PICTURES = 8


@dataclass(frozen=True)
class Change:
    """The window became white, or black, at a time in ms."""

    at_ms: float
    white: bool


def delays_ms(changes: Sequence[Change], times_ms: Times, luma: Times) -> list[float | None] | None:
    """From each change to the moment at which the pictures, (N,) times with (N,) luma, are half-way there.

    That moment is interpolated between two pictures. None for changes that cannot be told; None at all if the pictures
    are not like the changes, however late.
    """
    if len(changes) < 2 or len(times_ms) < _LEAST_PICTURES or period_ms(times_ms) <= 0:
        return None
    lag_ms = _likeliest_lag(changes, times_ms, luma)
    if lag_ms is None:
        return None
    edges = _Edges(changes, times_ms, luma, lag_ms)
    steps = [edges.step(place) for place in range(len(changes))]
    known = [step for step in steps if step is not None]
    least = _LEAST_STEP * float(np.median(known)) if known else 0.0
    delays = [
        None if step is None or step <= max(least, 0.0) else edges.delay_ms(place) for place, step in enumerate(steps)
    ]
    told = sum(delay is not None for delay in delays)
    return delays if told >= _LEAST_TOLD * len(changes) else None


def period_ms(times_ms: Times) -> float:
    """The usual time between two pictures; 0 for fewer than two."""
    return float(np.median(np.diff(times_ms))) if len(times_ms) > 1 else 0.0


def _likeliest_lag(changes: Sequence[Change], times_ms: Times, luma: Times) -> float | None:
    """By how much the changes must be late to be most like the pictures: the peak of their correlation."""
    seen = _without_slow(times_ms, luma)
    lags_ms = np.arange(0, LONGEST_MS, max(period_ms(times_ms) / 2, 1.0))
    likeness = [_correlation(_without_slow(times_ms, _pattern(changes, times_ms - lag)), seen) for lag in lags_ms]
    best = int(np.argmax(likeness))
    return float(lags_ms[best]) if likeness[best] >= _LEAST_LIKENESS else None


def _pattern(changes: Sequence[Change], times_ms: Times) -> Times:
    """What the window showed at those times: 1 where it was white, 0 where black."""
    levels = np.array([not changes[0].white, *(change.white for change in changes)], np.float64)
    return levels[np.searchsorted([change.at_ms for change in changes], times_ms, side="right")]


def _without_slow(times_ms: Times, values: Times) -> Times:
    """Values less the mean of those around them."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    first = np.searchsorted(times_ms, times_ms - _SURROUNDINGS_MS / 2)
    end = np.searchsorted(times_ms, times_ms + _SURROUNDINGS_MS / 2, side="right")
    return np.asarray(values - (sums[end] - sums[first]) / (end - first), np.float64)


def _correlation(one: Times, other: Times) -> float:
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / size if size > 0 else 0.0


class _Edges:
    """The pictures around each change, as late as changes are on the whole."""

    def __init__(self, changes: Sequence[Change], times_ms: Times, luma: Times, lag_ms: float) -> None:
        self._changes, self._times_ms, self._luma = changes, times_ms, luma
        self._near_ms = _NEAR * period_ms(times_ms)
        self._due_ms = [-np.inf, *(change.at_ms + lag_ms for change in changes), np.inf]

    def step(self, place: int) -> float | None:
        """By how much pictures became brighter at a change to white, darker at one to black; None if nobody saw."""
        levels = self._levels(place)
        return None if levels is None else (levels[1] - levels[0]) * (1 if self._changes[place].white else -1)

    def delay_ms(self, place: int) -> float | None:
        """From the change to the middle of the edge; None where a picture is missing."""
        before, after = self._plateaus(place)
        levels = self._levels(place)
        if levels is None:
            return None
        around = slice(before[-1], after[0] + 1)
        times_ms, rest = self._times_ms[around], self._luma[around] - sum(levels) / 2
        rest = rest if self._changes[place].white else -rest
        crossings = np.flatnonzero((rest[:-1] < 0) & (rest[1:] >= 0))
        if not len(crossings):
            return None
        first = crossings[0]
        gap_ms = times_ms[first + 1] - times_ms[first]
        if gap_ms > _LONGEST_GAP * period_ms(self._times_ms):
            return None
        crossing_ms = times_ms[first] + gap_ms * -rest[first] / (rest[first + 1] - rest[first])
        return float(crossing_ms - self._changes[place].at_ms)

    def _levels(self, place: int) -> tuple[float, float] | None:
        """Luma before and after the edge."""
        before, after = self._plateaus(place)
        if not len(before) or not len(after):
            return None
        return float(np.median(self._luma[before])), float(np.median(self._luma[after]))

    def _plateaus(self, place: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Numbers of the pictures between the edge and its neighbors that are nearest to it, but no part of it."""
        last_ms, due_ms, next_ms = self._due_ms[place : place + 3]
        times_ms, near_ms = self._times_ms, self._near_ms
        before = np.flatnonzero((times_ms > last_ms + near_ms) & (times_ms < due_ms - near_ms))
        after = np.flatnonzero((times_ms > due_ms + near_ms) & (times_ms < next_ms - near_ms))
        return before[-_PLATEAU:], after[:_PLATEAU]
