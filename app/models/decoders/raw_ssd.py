"""Decoders of SSD networks without their postprocessing, and of EfficientDet's rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...picture.color_planes import Floats
from ...picture.picture import ImageSize
from .anchors import ssd_anchors, ssd_count
from .box_rows import LEAST_SCORE, best_boxes, box_findings, chosen_boxes, edges_as_rows
from .decoding import AnchorForm, Decoder, InputRange, ModelFacts, SureRows
from .found import Finding
from .graph_ends import is_score
from .region import FrameRegion
from .suppression import MOST_FRACTION, sigmoid

__all__ = ["EFFICIENT_ROWS", "RAW_SSD"]

_CENTERS, _SIZES = 10.0, 5.0  # by which TensorFlow's SSD divides what a network says of them
_ROWS, _MOST_ROWS = 100, 1000  # of EfficientDet as it is exported, and at most


@dataclass(frozen=True)
class SsdDecoding:
    """Boxes beside anchors, center y and x, height and width; a score for each class, of which the first is none."""

    why: str
    reads: tuple[int, int]
    labels: tuple[str, ...]
    places: Floats = field(repr=False)  # the anchors (N, 4), center x and y, width and height
    classes: int  # without that of none
    is_raw: bool  # whether scores are before the sigmoid
    input_range: InputRange | None = (-1.0, 1.0)
    anchors: AnchorForm | None = None

    @property
    def rows(self) -> SureRows:
        """What it reads of its many boxes: raw scores from 0 on are 0.5 and more."""
        least, nothing = (0.0, -100.0) if self.is_raw else (LEAST_SCORE, 0.0)
        return SureRows(1, 0, 1, self.classes, ((0, 4),), least, nothing)

    def decode(self, outputs: Sequence[Floats], region: FrameRegion) -> tuple[Finding, ...]:
        """As a Decoding does."""
        raw, scores = outputs[0].reshape(-1, 4)[:, [1, 0, 3, 2]], outputs[1].reshape(len(self.places), -1)
        scores = np.where(np.isfinite(scores), scores, -100 if self.is_raw else 0)[:, 1:].astype(np.float32)
        classes = np.asarray(scores.argmax(axis=1), np.int64)
        best = scores[np.arange(len(scores)), classes]
        best = sigmoid(best) if self.is_raw else best
        with np.errstate(all="ignore"):
            centers = raw[:, :2] / np.float32(_CENTERS) * self.places[:, 2:] + self.places[:, :2]
            sizes = np.exp(raw[:, 2:] / np.float32(_SIZES)) * self.places[:, 2:]
        rows = np.concatenate([best[:, None], centers, sizes], axis=1).astype(np.float32)
        kept = best_boxes(rows, classes)
        return box_findings(rows[kept], classes[kept], self.labels, scores.shape[1], region)


@dataclass(frozen=True)
class RowsDecoding:
    """Rows of picture, top, left, bottom, right (in pixels of the input), score and class."""

    why: str
    size: ImageSize
    labels: tuple[str, ...]
    reads: tuple[int, ...] = (0,)
    input_range: InputRange | None = (0.0, 255.0)
    anchors: AnchorForm | None = None

    def decode(self, outputs: Sequence[Floats], region: FrameRegion) -> tuple[Finding, ...]:
        """As a Decoding does."""
        values = outputs[0].reshape(-1, 7)
        values = values[(np.abs(values) <= MOST_FRACTION).all(axis=1)]
        width, height = self.size
        edges = values[:, [2, 1, 4, 3]] / np.array((width, height, width, height), np.float32)
        rows, classes = edges_as_rows(values[:, 5], edges), values[:, 6].astype(np.int64)
        kept = chosen_boxes(rows)
        return box_findings(rows[kept], classes[kept], self.labels, len(self.labels), region)


def _ssd(facts: ModelFacts) -> SsdDecoding | None:
    shapes = facts.shapes
    if len(shapes) != 2 or any(len(shape) != 3 or shape[0] != 1 for shape in shapes) or shapes[0][1] != shapes[1][1]:
        return None
    boxes = [place for place in (0, 1) if shapes[place][2] == 4]
    if not boxes or shapes[1 - boxes[0]][2] < 2:
        return None
    if shapes[0][1] != ssd_count(facts.input_size):
        return None
    anchors, box = ssd_anchors(facts.input_size), boxes[0]
    classes = shapes[1 - box][2]
    why = f"{len(anchors)} boxes beside anchors as SSD's on MobileNet, {classes - 1} classes and none"
    is_raw = not is_score(facts.graph, 1 - box)
    return SsdDecoding(why, (box, 1 - box), facts.metadata.labels, anchors, classes - 1, is_raw)


def _rows(facts: ModelFacts) -> RowsDecoding | None:
    shape = facts.shapes[0] if len(facts.shapes) == 1 else ()
    if len(shape) != 3 or shape[0] != 1 or shape[2] != 7 or not 1 <= shape[1] <= _MOST_ROWS:
        return None
    if shape[1] != _ROWS and facts.task != "detection" and not facts.is_called("efficientdet"):
        return None
    why = f"{shape[1]} rows of picture, box, score and class, as EfficientDet's"
    return RowsDecoding(why, facts.input_size, facts.metadata.labels)


RAW_SSD = Decoder("raw-ssd", "detection", _ssd)
EFFICIENT_ROWS = Decoder("efficientdet-rows", "detection", _rows)
