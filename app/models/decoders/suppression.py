"""From the raw numbers of a network with anchors to a few detections, in NumPy; what shaders are compared with.

Detections are rows of float32: the score, then the box, as center x, center y, width and height, then x and y of each
point, all of them fractions of the network's input. What is no number, has no area, or lies a million inputs away, is
no detection.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...picture.color_planes import Floats
from .decoding import AnchorForm

__all__ = [
    "MOST_FRACTION", "detections_by_anchors", "is_near", "is_sound", "joined_detections", "overlap_with", "sigmoid",
    "spread_detections",
]  # fmt: skip

MOST_FRACTION = 1e6


def sigmoid(raw: Floats, clip: float = 100.0) -> Floats:
    """Scores from 0 to 1 of raw ones, which are held within -clip and clip first."""
    bounded = np.clip(raw.astype(np.float32, copy=False), np.float32(-clip), np.float32(clip))
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-bounded)), np.float32)


def detections_by_anchors(form: AnchorForm, outputs: Sequence[Floats]) -> Floats:
    """The detections (n, 1 + C) in a network's outputs, best first: at most `form.most`, joined by overlap.

    As MediaPipe's tensors_to_detections and its weighted non_max_suppression compute them from the same numbers.
    """
    count, columns = len(form.anchors), form.columns
    scores = sigmoid(np.concatenate([outputs[place].reshape(-1) for place in form.scores]), form.clip)
    kept = np.flatnonzero(scores >= np.float32(form.least_score))
    raw = np.concatenate([outputs[place].reshape(-1, columns) for place in form.boxes])
    if len(scores) != count or len(raw) != count:
        raise ValueError(f"{len(raw)} boxes and {len(scores)} scores for {count} anchors")
    anchors, raw = form.anchors[kept], raw[kept].astype(np.float32)
    scale = np.array(form.scale, np.float32)
    with np.errstate(all="ignore"):
        places = raw.reshape(len(kept), columns // 2, 2) / scale * anchors[:, None, 2:]
        places[:, [0, *range(2, columns // 2)]] += anchors[:, None, :2]
    rows = np.concatenate([scores[kept, None], places.reshape(len(kept), columns)], axis=1)
    return joined_detections(rows, form.least_iou, form.most)


def joined_detections(rows: Floats, least_iou: float, most: int) -> Floats:
    """The best of rows, each the mean of all that overlap it by more, weighted by their scores; its score stays.

    What joined one is gone for those after it. Of equal scores the first row is best.
    """
    rest, found = _sound(rows), list[Floats]()
    while len(rest) and len(found) < most:
        near = overlap_with(rest[0, 1:5], rest[:, 1:5]) > np.float32(least_iou)
        near[0] = True
        weights = rest[near, :1]
        joined = (rest[near, 1:] * weights).sum(0, dtype=np.float32) / weights.sum(dtype=np.float32)
        found.append(np.concatenate([rest[0, :1], joined]))
        rest = rest[~near]
    return np.stack(found) if found else np.zeros((0, rows.shape[1]), np.float32)


def spread_detections(
    rows: Floats, least_iou: float, most: int, groups: npt.NDArray[np.int64] | None = None
) -> npt.NDArray[np.int64]:
    """The numbers of the best rows, of which none overlaps a better one by more: plain non-maximum suppression.

    Rows of different groups, which are classes, do not suppress one another.
    """
    order = _order(rows)
    kept = list[int]()
    while len(order) and len(kept) < most:
        best, order = order[0], order[1:]
        kept.append(int(best))
        near = overlap_with(rows[best, 1:5], rows[order, 1:5]) > np.float32(least_iou)
        order = order[~(near if groups is None else near & (groups[order] == groups[best]))]
    return np.array(kept, np.int64)


def overlap_with(box: Floats, boxes: Floats) -> Floats:
    """Intersection over union of a box (4,) with each of (n, 4), center x, center y, width and height."""
    with np.errstate(all="ignore"):
        low, high = boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2
        common = np.minimum(high, box[:2] + box[2:] / 2) - np.maximum(low, box[:2] - box[2:] / 2)
        shared = np.maximum(common, 0).prod(axis=1)
        union = box[2:].prod() + boxes[:, 2:].prod(axis=1) - shared
        return np.where(union > 0, shared / np.where(union > 0, union, 1), 0).astype(np.float32)


def is_near(values: Floats) -> npt.NDArray[np.bool_]:
    """Whether each is a number that a fraction of an input, or metres, may be."""
    return np.asarray(np.abs(values) <= MOST_FRACTION)


def is_sound(values: Floats) -> bool:
    """Whether all are such numbers."""
    return bool(is_near(values).all())


def _order(rows: Floats) -> npt.NDArray[np.int64]:
    """The numbers of rows that are detections, best first."""
    sound = np.flatnonzero((np.abs(rows) <= MOST_FRACTION).all(axis=1) & (rows[:, 3:5] > 0).all(axis=1))
    return np.asarray(sound[np.argsort(-rows[sound, 0], kind="stable")], np.int64)


def _sound(rows: Floats) -> Floats:
    return np.asarray(rows[_order(rows)], np.float32)
