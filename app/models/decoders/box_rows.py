"""What decoders of boxes with classes share: rows of boxes as findings, and what classes are called."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...picture.color_planes import Floats
from .found import Finding
from .region import FrameRegion
from .suppression import MOST_FRACTION, spread_detections

__all__ = [
    "LEAST_OVERLAP", "LEAST_SCORE", "best_boxes", "box_findings", "chosen_boxes", "edges_as_rows", "kind_of",
    "label_of",
]  # fmt: skip

LEAST_SCORE, LEAST_OVERLAP = 0.5, 0.5  # of what is found; of two boxes of one thing
_MOST = 64  # boxes of a picture
_NO_CLASS = ("???", "background", "__background__")
_KINDS = {"person": "person", "pedestrian": "person", "face": "face", "hand": "hand", "palm": "hand"}


def label_of(number: int, labels: Sequence[str], classes: int = 0) -> str:
    """What a class is called: its label, else its number.

    Where the labels are one more than the network's `classes`, and the first one is none, they are counted from 1 on.
    """
    shift = int(len(labels) == classes + 1 and bool(labels) and labels[0].casefold() in _NO_CLASS)
    known = labels[number + shift] if 0 <= number + shift < len(labels) else ""
    return known or str(number)


def kind_of(label: str) -> str:
    """Person, face or hand, by a class' label; object for all others."""
    return _KINDS.get(label.casefold(), "object")


def box_findings(
    rows: Floats, classes: npt.NDArray[np.int64], labels: Sequence[str], count: int, region: FrameRegion
) -> tuple[Finding, ...]:
    """Rows (n, 5): score, then center x and y, width and height as fractions of the network's input."""
    return tuple(
        _finding(row, label_of(int(number), labels, count), region) for row, number in zip(rows, classes, strict=True)
    )


def best_boxes(rows: Floats, classes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The numbers of rows (N, 5) that are sure enough and no double of a better one of the same class, best first."""
    sure = np.flatnonzero(rows[:, 0] >= np.float32(LEAST_SCORE))
    return np.asarray(sure[spread_detections(rows[sure], LEAST_OVERLAP, _MOST, classes[sure])], np.int64)


def chosen_boxes(rows: Floats) -> npt.NDArray[np.int64]:
    """The same of rows that the network itself has chosen: none is a double."""
    with np.errstate(invalid="ignore"):
        sound = (np.abs(rows) <= MOST_FRACTION).all(axis=1) & (rows[:, 3:] > 0).all(axis=1)
        kept = np.flatnonzero(sound & (rows[:, 0] >= LEAST_SCORE))
    return np.asarray(kept[np.argsort(-rows[kept, 0], kind="stable")][:_MOST], np.int64)


def _finding(row: Floats, label: str, region: FrameRegion) -> Finding:
    score, x, y, width, height = (float(value) for value in row)
    kind = kind_of(label)
    box = region.box_to_frame((x - width / 2, y - height / 2, x + width / 2, y + height / 2))
    return Finding(kind, min(score, 1.0), box, "" if kind != "object" else label)


def edges_as_rows(scores: Floats, edges: Floats) -> Floats:
    """Rows of scores (N,) and of edges (N, 4): left, top, right, bottom."""
    with np.errstate(all="ignore"):
        sizes = edges[:, 2:] - edges[:, :2]
        return np.concatenate([scores[:, None], edges[:, :2] + sizes / 2, sizes], axis=1)
