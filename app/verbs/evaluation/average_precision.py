"""Mean average precision of detections, by the definition of COCO's evaluation (cocodataset.org, Detection Evaluation).

For each class and each least overlap the detections of all pictures are taken in the order of their scores. One is
right if it overlaps a box of its class, that no better one has, by so much. Precision at a recall is the best that
there is at this recall or a higher one; the average is that at 101 recalls from 0 to 1. The mean is that of classes
that have boxes, and of overlaps from 0.5 to 0.95.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Float64s = npt.NDArray[np.float64]

OVERLAPS: Float64s = np.linspace(0.5, 0.95, 10)
_RECALLS: Float64s = np.linspace(0.0, 1.0, 101)
MOST_DETECTIONS = 100  # of one class in one picture


@dataclass(frozen=True)
class Detections:
    """Of one picture: boxes as (left, top, right, bottom), with scores and classes."""

    boxes: Float64s  # (N, 4)
    scores: Float64s
    classes: npt.NDArray[np.int64]


@dataclass(frozen=True)
class TrueBoxes:
    """Of one picture; a crowd is a box of many, which detections may lie in without being right or wrong."""

    boxes: Float64s  # (N, 4)
    classes: npt.NDArray[np.int64]
    crowds: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class _Judged:
    """Detections of one class in one picture, best first: by least overlap, which are right and which do not count."""

    scores: Float64s
    right: npt.NDArray[np.bool_]  # (overlaps, N)
    ignored: npt.NDArray[np.bool_]


@dataclass
class AveragePrecision:
    """Collects the detections of pictures."""

    _judged: dict[int, list[_Judged]] = field(default_factory=dict)  # by class
    _boxes: dict[int, int] = field(default_factory=dict)  # that are no crowds, by class

    def add(self, found: Detections, true: TrueBoxes) -> None:
        """One picture."""
        for each in {*found.classes.tolist(), *true.classes.tolist()}:
            own, wanted = found.classes == each, true.classes == each
            judged = judge(found.boxes[own], found.scores[own], true.boxes[wanted], true.crowds[wanted])
            self._judged.setdefault(each, []).append(judged)
            self._boxes[each] = self._boxes.get(each, 0) + int((~true.crowds[wanted]).sum())

    def averages(self) -> Float64s:
        """(classes, overlaps) of those classes that have boxes; no rows where none has."""
        rows = [_averages(self._judged[each], count) for each, count in sorted(self._boxes.items()) if count > 0]
        return np.array(rows).reshape(-1, len(OVERLAPS))


def overlaps(boxes: Float64s, others: Float64s, crowds: npt.NDArray[np.bool_]) -> Float64s:
    """Intersection over union of each box with each other one; over the box alone where the other is a crowd."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    common = np.prod(np.maximum(high - low, 0.0), axis=2)
    areas, other_areas = (np.prod(np.maximum(each[:, 2:] - each[:, :2], 0.0), axis=1) for each in (boxes, others))
    union = np.where(crowds[None], areas[:, None], areas[:, None] + other_areas[None] - common)
    return np.divide(common, union, out=np.zeros_like(common), where=union > 0)


def judge(boxes: Float64s, scores: Float64s, true: Float64s, crowds: npt.NDArray[np.bool_]) -> _Judged:
    """Detections and true boxes of one class in one picture, each box given to the best detection that finds it."""
    order = np.argsort(-scores, kind="stable")[:MOST_DETECTIONS]
    shared = overlaps(boxes[order], true, crowds)
    right, ignored = (np.zeros((len(OVERLAPS), len(order)), bool) for _ in range(2))
    for row, least in enumerate(OVERLAPS):
        free = ~crowds
        for number in range(len(order)):
            single = _best(shared[number], free, least)
            if single is not None:
                free[single] = False
                right[row, number] = True
            elif _best(shared[number], crowds, least) is not None:
                ignored[row, number] = True
    return _Judged(scores[order], right, ignored)


def _best(shared: Float64s, allowed: npt.NDArray[np.bool_], least: float) -> int | None:
    """The box that shares most, of those allowed; the last of several that share as much."""
    values = np.where(allowed, shared, -1.0)
    if not len(values) or values.max() < min(least, 1 - 1e-10):
        return None
    return int(np.flatnonzero(values == values.max())[-1])


def _averages(judged: Sequence[_Judged], boxes: int) -> Float64s:
    """By least overlap."""
    order = np.argsort(-np.concatenate([each.scores for each in judged]), kind="stable")
    right, ignored = (
        np.concatenate([getattr(each, name) for each in judged], axis=1)[:, order] for name in ("right", "ignored")
    )
    hits, misses = np.cumsum(right, axis=1, dtype=np.float64), np.cumsum(~right & ~ignored, axis=1, dtype=np.float64)
    taken = np.maximum(hits + misses, 1.0)
    best = np.maximum.accumulate((hits / taken)[:, ::-1], axis=1)[:, ::-1]
    recalls = hits / boxes
    found = np.zeros((len(OVERLAPS), len(_RECALLS)))
    for row in range(len(OVERLAPS)):
        places = np.searchsorted(recalls[row], _RECALLS, side="left")
        reached = places < best.shape[1]
        found[row, reached] = best[row, places[reached]]
    averages: Float64s = found.mean(axis=1)
    return averages
