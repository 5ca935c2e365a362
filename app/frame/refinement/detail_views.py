"""Decides which parts of a frame a network looks at once more, larger: a person's, and the upper part of it.

What is known of a mask is its profile: of each of COLUMNS columns the first and the last row in which somebody is (the
mask over 0.5), and how many such rows there are. The definition:

    people  runs of columns with LEAST_ROWS of all rows or more, over gaps of one column; those whose rows, all
            together, are LEAST_AREA of the picture or more; the two largest, from left to right
    views   of one person all of it, and its upper part: UPPER of its height, and the columns that begin there; of two
            people each. All are grown by MARGIN of their longer side, and end at the picture's edges
    steady  a view stays where it is while no side of it is further from what is wanted than SLACK of the longer side;
            such a side goes on by FOLLOWS of the way, one that is to lie at the picture's edge at once. Where there are
            other people than before, or a view shares less than half with the one before it, all is as wanted
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["COLUMNS", "MOST_VIEWS", "DetailView", "Profile", "steady_views", "wanted_views"]

COLUMNS = 64
MOST_VIEWS = 2

_LEAST_ROWS, _LEAST_AREA = 0.025, 0.01
_UPPER, _MARGIN = 0.6, 0.12
_SLACK, _FOLLOWS = 0.05, 0.35

Profile = npt.NDArray[np.float64]  # (columns, 3): first row, end, rows in between, in parts of the height


@dataclass(frozen=True)
class DetailView:
    """A rectangle of what the network sees of a frame, in parts of its width and height."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def zoom(self) -> float:
        """How much larger the network sees what is in it, by areas."""
        return 1 / max((self.right - self.left) * (self.bottom - self.top), 1e-6)

    @property
    def sides(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom."""
        return self.left, self.top, self.right, self.bottom

    def shares(self, other: "DetailView") -> float:
        """The intersection of both over their union."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        both = max(width, 0.0) * max(height, 0.0)
        return both / (1 / self.zoom + 1 / other.zoom - both)


def wanted_views(profile: Profile, aspect: float) -> tuple[DetailView, ...]:
    """What to look at by a profile; none where nobody is. `aspect` is the picture's width by its height."""
    people = _people(profile)
    views = [_grown(profile, columns, 1.0, aspect) for columns in people]
    if len(people) == 1:
        views.append(_grown(profile, people[0], _UPPER, aspect))
    return tuple(views)


def steady_views(before: Sequence[DetailView], wanted: Sequence[DetailView]) -> tuple[DetailView, ...]:
    """What to look at after what was looked at before."""
    pairs = list(zip(before, wanted, strict=False))
    if len(before) != len(wanted) or any(old.shares(new) < 0.5 for old, new in pairs):
        return tuple(wanted)
    return tuple(_followed(old, new) for old, new in pairs)


def _followed(old: DetailView, new: DetailView) -> DetailView:
    slack = _SLACK * max(new.right - new.left, new.bottom - new.top)
    sides = list[float]()
    for was, wanted in zip(old.sides, new.sides, strict=True):
        if wanted in (0.0, 1.0):
            sides.append(wanted)
        else:
            sides.append(was if abs(wanted - was) <= slack else was + _FOLLOWS * (wanted - was))
    return DetailView(*sides)


def _people(profile: Profile) -> list[tuple[int, int]]:
    """The first column and the end of each."""
    runs, last = list[list[int]](), -3
    for column in np.flatnonzero(profile[:, 2] >= _LEAST_ROWS).tolist():
        if column - last > 2:
            runs.append([column, column])
        runs[-1][1] = last = column
    ends = [(first, end + 1) for first, end in runs]
    areas = {pair: float(profile[slice(*pair), 2].sum()) / len(profile) for pair in ends}
    large = sorted((pair for pair in ends if areas[pair] >= _LEAST_AREA), key=lambda pair: -areas[pair])
    return sorted(large[:MOST_VIEWS])


def _grown(profile: Profile, columns: tuple[int, int], part: float, aspect: float) -> DetailView:
    """The view of a person's upper part."""
    rows = profile[slice(*columns)]
    seen = rows[:, 2] >= _LEAST_ROWS
    top, bottom = float(rows[seen, 0].min()), float(rows[seen, 1].max())
    end = top + part * (bottom - top)
    inside = columns[0] + np.flatnonzero(seen & (rows[:, 0] < end))
    left, right = float(inside[0]) / len(profile), float(inside[-1] + 1) / len(profile)
    more = _MARGIN * max((right - left) * aspect, end - top)
    return DetailView(
        max(left - more / aspect, 0.0), max(top - more, 0.0), min(right + more / aspect, 1.0), min(end + more, 1.0)
    )
