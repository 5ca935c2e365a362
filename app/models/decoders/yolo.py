"""Decoders of YOLO networks: boxes with classes, with points of people, or chosen by the network itself."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...picture.color_planes import Floats
from ...picture.picture import ImageSize
from .box_rows import LEAST_SCORE, best_boxes, box_findings, chosen_boxes, edges_as_rows
from .decoding import AnchorForm, Decoder, InputRange, ModelFacts, SureRows
from .found import Finding
from .region import FrameRegion
from .suppression import MOST_FRACTION, is_sound

__all__ = ["YOLO_BOXES", "YOLO_CHOSEN", "YOLO_POINTS"]

_STRIDES = (8, 16, 32)
_BODY = 17 * 3  # x, y and certainty of COCO's key points
_MASKS = 32  # coefficients of masks, behind the classes of networks that have them
_CHOSEN, _MOST_CHOSEN = 300, 1000  # rows of networks as they are exported, and at most


@dataclass(frozen=True)
class YoloDecoding:
    """Boxes with classes; a score for each class, and of older networks one that there is anything."""

    why: str
    size: ImageSize
    reads: tuple[int, ...]
    labels: tuple[str, ...]
    classes: int
    boxes_last: bool  # whether the output is (1, values, boxes)
    has_objectness: bool
    points: int = 0  # numbers of points behind the scores
    input_range: InputRange | None = (0.0, 1.0)
    anchors: AnchorForm | None = None

    @property
    def rows(self) -> SureRows:
        """What it reads of its many boxes."""
        first = 4 + self.has_objectness
        behind = first + self.classes
        kept = ((0, first), (behind, behind + self.points)) if self.points else ((0, first),)
        factor = 4 if self.has_objectness else -1
        return SureRows(0, 0, first, self.classes, kept, LEAST_SCORE, 0.0, factor, self.boxes_last)

    def decode(self, outputs: Sequence[Floats], region: FrameRegion) -> tuple[Finding, ...]:
        """As a Decoding does. Places are fractions or pixels of the input, as exporters have it: sizes tell which."""
        values = outputs[0].reshape(outputs[0].shape[-2:])
        values = values.T if self.boxes_last else values
        scores = values[:, 4 + self.has_objectness : 4 + self.has_objectness + self.classes]
        classes = np.asarray(np.where(np.isfinite(scores), scores, -1).argmax(axis=1), np.int64)
        best = scores[np.arange(len(scores)), classes]
        with np.errstate(all="ignore"):
            best = best * values[:, 4] if self.has_objectness else best
        unit = self._unit(values[:, 2:4])
        rows = np.concatenate([best[:, None], values[:, :4] / np.tile(unit, 2)], axis=1).astype(np.float32)
        kept = best_boxes(rows, classes)
        found = box_findings(rows[kept], classes[kept], self.labels, self.classes, region)
        if not self.points:
            return found
        bodies = values[kept, -self.points :].reshape(len(kept), self.points // 3, 3)
        return tuple(self._body(each, body, unit, region) for each, body in zip(found, bodies, strict=True))

    def _unit(self, sizes: Floats) -> Floats:
        """What places are divided by: of all boxes, some are more than two pixels wide, and none two inputs."""
        sound = sizes[np.isfinite(sizes)]
        return np.array(self.size if sound.size and sound.max() > 2 else (1, 1), np.float32)

    def _body(self, found: Finding, body: Floats, unit: Floats, region: FrameRegion) -> Finding:
        if not is_sound(body):
            return found
        points, certainty = region.points_to_frame(body[:, :2] / unit), np.clip(body[:, 2], 0, 1)
        return Finding("person", found.score, found.region, "", points, certainty, "coco")


@dataclass(frozen=True)
class ChosenDecoding:
    """Rows of left, top, right, bottom, score and class, which the network itself has chosen."""

    why: str
    size: ImageSize
    reads: tuple[int, ...]
    labels: tuple[str, ...]
    input_range: InputRange | None = (0.0, 1.0)
    anchors: AnchorForm | None = None

    def decode(self, outputs: Sequence[Floats], region: FrameRegion) -> tuple[Finding, ...]:
        """As a Decoding does."""
        values = outputs[0].reshape(-1, 6)
        values = values[(np.abs(values) <= MOST_FRACTION).all(axis=1) & (values[:, 4] >= LEAST_SCORE)]
        unit = self.size if values.size and values[:, :4].max() > 2 else (1, 1)
        rows = edges_as_rows(values[:, 4], values[:, :4] / np.array((*unit, *unit), np.float32))
        kept = chosen_boxes(rows)
        return box_findings(rows[kept], values[kept, 5].astype(np.int64), self.labels, len(self.labels), region)


def _counts(size: ImageSize) -> int:
    return sum((size[0] // stride) * (size[1] // stride) for stride in _STRIDES)


def _form(facts: ModelFacts) -> tuple[int, int, bool, bool] | None:
    """Of the first output: its place, values of each box, whether boxes come last, whether it is of the older kind."""
    each = _counts(facts.input_size)
    for place, shape in enumerate(facts.shapes):
        if len(shape) == 3 and shape[0] == 1 and each:
            if shape[2] == each and shape[1] > 4:
                return place, shape[1], True, False
            if shape[1] == each and shape[2] > 4:
                return place, shape[2], False, False
            if shape[1] == 3 * each and shape[2] > 5:
                return place, shape[2], False, True
    return None


def _boxes(facts: ModelFacts) -> YoloDecoding | None:
    form = _form(facts)
    if form is None:
        return None
    place, values, boxes_last, is_older = form
    has_masks = any(len(shape) == 4 and shape[3] == _MASKS for shape in facts.shapes)
    classes = values - 4 - is_older - (_MASKS if has_masks else 0)
    if classes < 1:
        return None
    which = "YOLO v5's" if is_older else "YOLO v8's or v11's"
    counted = _counts(facts.input_size) * (3 if is_older else 1)
    why = f"{counted} boxes of {classes} classes, as {which}{'; masks are not drawn' if has_masks else ''}"
    labels = facts.metadata.labels
    return YoloDecoding(why, facts.input_size, (place,), labels, classes, boxes_last, is_older)


def _points(facts: ModelFacts) -> YoloDecoding | None:
    form = _form(facts)
    if form is None or form[1] != 5 + _BODY or form[3] or len(facts.metadata.labels) == 1 + _BODY:
        return None
    place, _, boxes_last, _ = form
    why = (
        f"{_counts(facts.input_size)} boxes with 17 points, as YOLO v8's or v11's for poses "
        f"(--task detection: boxes of {1 + _BODY} classes)"
    )
    return YoloDecoding(why, facts.input_size, (place,), ("person",), 1, boxes_last, False, _BODY)


def _chosen(facts: ModelFacts) -> ChosenDecoding | None:
    shape = facts.shapes[0] if len(facts.shapes) == 1 else ()
    if len(shape) != 3 or shape[0] != 1 or shape[2] != 6 or not 1 <= shape[1] <= _MOST_CHOSEN:
        return None
    if shape[1] != _CHOSEN and facts.task != "detection" and not facts.is_called("yolo"):
        return None  # other networks have six numbers in rows, too
    why = f"{shape[1]} rows of left, top, right, bottom, score and class, as YOLO v10's"
    return ChosenDecoding(why, facts.input_size, (0,), facts.metadata.labels)


YOLO_POINTS = Decoder("yolo-points", "points", _points)
YOLO_BOXES = Decoder("yolo-boxes", "detection", _boxes)
YOLO_CHOSEN = Decoder("yolo-chosen", "detection", _chosen)
