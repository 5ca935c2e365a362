"""Plots the times of many runs over time, as text or as a picture."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ...plots import new_figure, save_figure

_LABEL = 10  # columns in front of the axis
_FEWEST_COLUMNS = 20
_MIDDLE, _AROUND, _BEYOND = "*", ":", "^"
_USUAL = 95  # per cent of the spans
_ROOM = 1.25  # above the highest
_SMOOTHED = 200  # parts of the time whose medians are the line of the picture

_Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Span:
    """Milliseconds of the runs in a span of time: two percentiles, 5 and 95, the median, and the most."""

    low: float
    high: float
    median: float
    most: float


def text_plot(at_s: Sequence[float], ms: Sequence[float], columns: int, rows: int) -> list[str]:
    """Milliseconds over seconds: of each span of time the median, and around it what 9 of 10 runs took; ^ is beyond."""
    width = max(_FEWEST_COLUMNS, columns - _LABEL - 2)
    found = _spans(np.asarray(at_s), np.asarray(ms), width)
    top = _top(found)
    picture = [[" "] * width for _ in range(rows)]
    for column, span in found.items():
        for row in range(_row(span.high, top, rows), _row(span.low, top, rows) + 1):
            picture[row][column] = _AROUND
        picture[_row(span.median, top, rows)][column] = _MIDDLE
        if span.most > top:
            picture[0][column] = _BEYOND
    step = top / rows
    lines = [f"{top - step * (row + 0.5):>{_LABEL}.4g} |{''.join(cells)}" for row, cells in enumerate(picture)]
    end = f"{float(at_s[-1]):.4g} s"
    lines.append(f"{'ms':>{_LABEL}} +{'-' * width}")
    lines.append(" " * (_LABEL + 2) + "0 s" + end.rjust(width - 3))
    return [line.rstrip() for line in lines]


def save_plot(path: Path, figures: Mapping[str, Any]) -> None:
    """The series as a PNG file. Raises UsageError without matplotlib, MediaError where it cannot be written."""
    at_s, ms = (np.asarray(figures["series"][name]) for name in ("at_s", "ms"))
    figure = new_figure(10, 4.5)
    axes = figure.add_subplot()
    axes.plot(at_s, ms, ",", color="0.7", zorder=1, rasterized=True)
    spans = _spans(at_s, ms, _SMOOTHED)
    end_s = float(at_s[-1]) or 1.0
    middles = [(column + 0.5) * end_s / _SMOOTHED for column in spans]
    low, high = ([getattr(span, name) for span in spans.values()] for name in ("low", "high"))
    axes.fill_between(middles, low, high, color="tab:blue", alpha=0.25, linewidth=0, label="9 of 10 runs")
    axes.plot(middles, [span.median for span in spans.values()], color="tab:blue", label="median")
    axes.set(xlabel="seconds", ylabel="milliseconds", xlim=(0, end_s), ylim=(0, _top(spans)))
    what = f"{figures['model']}, {figures['backend']}, {figures['count']} runs on {figures['renderer']}"
    axes.set_title(what, fontsize="medium")
    axes.legend(loc="upper right", framealpha=0.8)
    axes.grid(alpha=0.3)
    save_figure(path, figure)


def _spans(at_s: _Values, ms: _Values, count: int) -> dict[int, _Span]:
    """The runs that began in each of `count` spans of time, where there are any."""
    end_s = float(at_s[-1])
    places = np.minimum((at_s / end_s * count).astype(int), count - 1) if end_s > 0 else np.zeros(len(at_s), int)
    borders = np.flatnonzero(np.diff(places)) + 1
    parts = zip(np.split(places, borders), np.split(ms, borders), strict=True)
    return {int(place[0]): _Span(*np.percentile(values, (5, 95, 50, 100)).tolist()) for place, values in parts}


def _top(spans: Mapping[int, _Span]) -> float:
    """What is drawn at most: all medians, and what lies around them but for single spans far above the others."""
    usual = float(np.percentile([span.high for span in spans.values()], _USUAL))
    return max([usual, *(span.median for span in spans.values())]) * _ROOM or 1.0


def _row(value: float, top: float, rows: int) -> int:
    """From the highest down."""
    return min(rows - 1, max(0, math.ceil((top - value) / top * rows) - 1))
