"""Decoder of MediaPipe's detectors: faces, palms and people, boxes and points by anchors."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from texelflow.gpu_delegate.model.graph import Shape

from ...picture.color_planes import Floats
from ...picture.picture import ImageSize
from .anchors import grid_anchors, strides_of
from .decoding import AnchorForm, Decoder, InputRange, ModelFacts
from .found import Finding, SkeletonName
from .region import FrameRegion

__all__ = ["BLAZE_BOXES", "BlazeDecoding", "missed_anchors"]


@dataclass(frozen=True)
class _Family:
    kind: str
    skeleton: SkeletonName
    what: str
    input_range: InputRange | None


_FAMILIES = {  # by the numbers that each box has
    16: _Family("face", "face-keypoints", "face boxes and 6 points", (-1.0, 1.0)),
    18: _Family("hand", "palm", "palm boxes and 7 points", None),  # 0 to 1 since 192x192, -1 to 1 before
    12: _Family("person", "body-keypoints", "boxes of people and 4 points", (-1.0, 1.0)),
}
_KNOWN = {  # by input size and boxes: which of MediaPipe's it is
    (128, 896, 16): "BlazeFace's short range", (192, 2304, 16): "BlazeFace's full range",
    (256, 896, 16): "BlazeFace for back cameras", (192, 2016, 18): "the palm detector",
    (256, 2944, 18): "the palm detector of 2020", (128, 896, 18): "the palm detector of 2021",
    (224, 2254, 12): "BlazePose's detector", (128, 896, 12): "BlazePose's detector of 2020",
}  # fmt: skip

# By the same, where MediaPipe's graph has another one: what its solution is asked for does not reach this one.
_LEAST_SCORES = {(192, 2304, 16): 0.6}


@dataclass(frozen=True)
class BlazeDecoding:
    """Boxes of one kind, with points."""

    kind: str
    skeleton: SkeletonName
    why: str
    input_range: InputRange | None
    anchors: AnchorForm = field(repr=False)
    reads: tuple[int, ...]

    def decode(self, outputs: Sequence[Floats], region: FrameRegion) -> tuple[Finding, ...]:
        """As a Decoding does."""
        return tuple(self._finding(row, region) for row in outputs[0])

    def _finding(self, row: Floats, region: FrameRegion) -> Finding:
        x, y, width, height = (float(value) for value in row[1:5])
        box = region.box_to_frame((x - width / 2, y - height / 2, x + width / 2, y + height / 2))
        points = region.points_to_frame(row[5:].reshape(-1, 2))
        return Finding(self.kind, float(row[0]), box, points=points, skeleton=self.skeleton)


def _decoding(facts: ModelFacts) -> BlazeDecoding | None:
    shapes = facts.shapes
    if len(shapes) < 2 or any(len(shape) != 3 or shape[0] != 1 or shape[1] < 1 for shape in shapes):
        return None
    boxes = sorted((p for p, s in enumerate(shapes) if s[2] in _FAMILIES), key=lambda p: -shapes[p][1])
    scores = sorted((p for p, s in enumerate(shapes) if s[2] == 1), key=lambda p: -shapes[p][1])
    counts = [[shapes[place][1] for place in places] for places in (boxes, scores)]
    columns = {shapes[place][2] for place in boxes}
    if len(columns) != 1 or counts[0] != counts[1] or len(boxes) + len(scores) != len(shapes):
        return None
    count, values = sum(counts[0]), columns.pop()
    strides = strides_of(facts.input_size, count)
    if strides is None:
        return None
    reads = (*boxes, *scores)
    width, height = facts.input_size
    form = AnchorForm(
        grid_anchors(facts.input_size, strides),
        tuple(range(len(boxes))),
        tuple(range(len(boxes), len(reads))),
        (float(width), float(height)),
        values,
        least_score=_LEAST_SCORES.get((width, count, values), 0.5),
    )
    family = _FAMILIES[values]
    known = _KNOWN.get((width, count, values))
    which = f" as {known}" if known and width == height else f" of strides {', '.join(map(str, strides))}"
    why = f"{family.what} by anchors: {count} anchors{which}"
    return BlazeDecoding(family.kind, family.skeleton, why, family.input_range, form, reads)


def missed_anchors(shapes: Sequence[Shape], size: ImageSize) -> str:
    """Why outputs that look like such a detector's are none for an input of that size; "" where they do not."""
    boxes = [shape for shape in shapes if len(shape) == 3 and shape[2] in _FAMILIES]
    scores = [shape for shape in shapes if len(shape) == 3 and shape[2] == 1]
    if not boxes or not scores or len(boxes) + len(scores) != len(shapes):
        return ""
    many, scored = (sum(shape[1] for shape in found) for found in (boxes, scores))
    what = f"{_FAMILIES[boxes[0][2]].what} as MediaPipe's detectors have them"
    if many != scored:
        return f"{what}, but {many} boxes with {scored} scores"
    return f"{what}, but {many} of them, for which an input of {size[0]}x{size[1]} has no anchors"


BLAZE_BOXES = Decoder("blaze-boxes", "detection", _decoding)
