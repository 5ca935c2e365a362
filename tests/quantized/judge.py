"""Judges how near the outputs of a quantized model are to the reference kernels, here and in XNNPACK.

What is asked: of all output values as many equal the reference's as with XNNPACK, less 1 of 100; the greatest value of
a vector is the same one as often, less 2 of 100; the classes of pixels are equal as often, less 1 of 100; and every
detection of the reference has one of the same class whose box overlaps it by 0.9 (intersection over union).
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tests.model_files.model_builder import Array

Run = Callable[[Sequence[Array]], list[Array]]
Outputs = list[list[Array]]  # of each input

VALUES_BELOW, TOP_BELOW, CLASSES_BELOW = 0.01, 0.02, 0.01
LEAST_CLASSES, LEAST_SIDE = 10, 8  # of a vector with a greatest value that means something, and of a map
LEAST_OVERLAP, LEAST_SCORE = 0.9, 0.5


@dataclass(frozen=True)
class Nearness:
    """How near outputs are to the reference's, as shares of 1; None where a model has nothing of the kind."""

    values: float  # equal ones
    apart: float  # the greatest difference of two values: in steps, where outputs are 8-bit integers
    top: float | None = None
    classes: float | None = None
    detections: float | None = None


def nearness(found: Outputs, wanted: Outputs) -> Nearness:
    """Of all inputs together."""
    pairs = [(a, b) for one, right in zip(found, wanted, strict=True) for a, b in zip(one, right, strict=True)]
    size = sum(b.size for _, b in pairs)
    equal = sum(int((a == b).sum()) for a, b in pairs)
    apart = max(float(np.abs(np.subtract(a, b, dtype=np.float64)).max()) for a, b in pairs)
    if _has_detections(wanted[0]):
        return Nearness(equal / size, apart, detections=_matched(found, wanted))
    return Nearness(
        equal / size,
        apart,
        _mean([float(np.argmax(a) == np.argmax(b)) for a, b in pairs if _is_vector(b)]),
        _mean([_equal_classes(a, b) for a, b in pairs if _is_map(b)]),
    )


def faults(ours: Nearness, theirs: Nearness) -> list[str]:
    """What falls short of XNNPACK in the same run, by more than it may."""
    found = []
    for name, below in (("values", VALUES_BELOW), ("top", TOP_BELOW), ("classes", CLASSES_BELOW)):
        mine, other = asdict(ours)[name], asdict(theirs)[name]
        if mine is not None and mine < other - below:
            found.append(f"{name}: {mine:.4f}, XNNPACK {other:.4f}")
    if ours.detections is not None and ours.detections < 1:
        found.append(f"detections: {ours.detections:.4f} match, with XNNPACK {theirs.detections:.4f}")
    return found


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _is_vector(values: Array) -> bool:
    return values.ndim == 2 and values.shape[0] == 1 and values.shape[1] >= LEAST_CLASSES


def _is_map(values: Array) -> bool:
    """Of classes as ARG_MAX gives them, or of scores for each."""
    maps = (values.ndim == 3 and values.dtype.kind == "i" and values.dtype.itemsize > 1) or (
        values.ndim == 4 and values.shape[3] > 1
    )
    return maps and min(values.shape[1:3]) >= LEAST_SIDE


def _equal_classes(found: Array, wanted: Array) -> float:
    if wanted.ndim == 4:
        found, wanted = found.argmax(3), wanted.argmax(3)
    return float((found == wanted).mean())


def _has_detections(outputs: Sequence[Array]) -> bool:
    """Whether these are the four of TFLite_Detection_PostProcess: boxes, classes, scores, their number."""
    return len(outputs) == 4 and outputs[0].shape[2:] == (4,) and outputs[1].shape == outputs[2].shape


def _matched(found: Outputs, wanted: Outputs) -> float | None:
    """The share of the reference's detections that are sure enough which ours have as well."""
    matches = []
    for (boxes, classes, scores, _), (right_boxes, right_classes, right_scores, _) in zip(found, wanted, strict=True):
        for k in np.flatnonzero(right_scores[0] >= LEAST_SCORE):
            overlaps = [
                overlap(box, right_boxes[0, k])
                for box, label, score in zip(boxes[0], classes[0], scores[0], strict=True)
                if label == right_classes[0, k] and score > 0
            ]
            matches.append(float(max(overlaps, default=0.0) >= LEAST_OVERLAP))
    return _mean(matches)


def overlap(box: Any, other: Any) -> float:
    """Intersection over union of (top, left, bottom, right)."""
    top, left = np.maximum(box[:2], other[:2])
    bottom, right = np.minimum(box[2:], other[2:])
    both = max(0.0, bottom - top) * max(0.0, right - left)
    union = sum(float((low - high) * (right - left)) for high, left, low, right in (box, other)) - both
    return both / union if union > 0 else 0.0
