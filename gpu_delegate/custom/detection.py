"""TFLite_Detection_PostProcess: boxes of an SSD network and their scores to the best detections.

Every step rounds as TensorFlow Lite's kernel does (its detection_postprocess.cc): centers and sizes are decoded in
double precision and kept in single, overlaps are computed in single. Places of the outputs that no detection fills are
zero; TensorFlow Lite leaves some of them as they were.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..base.errors import InferenceError
from ..model.graph import Shape, Tensor
from .custom_op import CustomOp, CustomOperator, OpArray
from .option_values import number_option, whole_option
from .partial_sort import first_greatest, greatest_first

_Floats = npt.NDArray[np.float32]
_Selected = list[tuple[float, int, int]]  # score, box, class

_MOST_DETECTIONS, _MOST_CLASSES = 1 << 20, 1 << 20
_PER_CLASS = 100  # detections, where the file does not say
_INT32 = (1 << 31) - 1
_FIRST = 512  # boxes that are put in order at first, before all others


@dataclass(frozen=True)
class _Choice:
    """What the options say of how detections are chosen."""

    detections: int
    classes: int  # of each detection
    per_class: int  # detections of each class, in regular suppression
    is_regular: bool
    least_score: np.float32
    most_overlap: np.float32  # of two detections, as intersection over union
    num_classes: int


def _choice(operator: CustomOperator) -> _Choice:
    options = operator.options
    detections = whole_option(options, "max_detections", 0, _MOST_DETECTIONS)
    per_class = whole_option(options, "detections_per_class", -_INT32, _INT32, _PER_CLASS)
    found = _Choice(
        detections,
        whole_option(options, "max_classes_per_detection", 0, _MOST_DETECTIONS // max(1, detections)),
        min(per_class, detections),
        bool(number_option(options, "use_regular_nms")),
        np.float32(number_option(options, "nms_score_threshold")),
        np.float32(number_option(options, "nms_iou_threshold")),
        whole_option(options, "num_classes", 1, _MOST_CLASSES),
    )
    if not 0 < found.most_overlap <= 1:
        raise InferenceError(f"its option nms_iou_threshold is {found.most_overlap:g}, not above 0 and at most 1")
    if found.is_regular and found.per_class < 1:
        raise InferenceError("its options max_detections and detections_per_class are not numbers from 1 on")
    if not found.is_regular and found.classes < 1:
        raise InferenceError(f"its option max_classes_per_detection is {found.classes}, not a number from 1 on")
    return found


def _shapes(operator: CustomOperator) -> Sequence[Shape]:
    choice = _choice(operator)
    if len(operator.inputs) != 3 or len(operator.outputs) != 4 or None in operator.inputs:
        raise InferenceError(f"{len(operator.inputs)} inputs and {len(operator.outputs)} outputs, not 3 and 4")
    boxes, scores, anchors = (tensor.shape for tensor in operator.inputs if tensor is not None)
    if len(boxes) != 3 or boxes[0] != 1 or boxes[2] < 4:
        raise InferenceError(f"boxes of shape {list(boxes)}, not (1, boxes, 4 or more)")
    background = scores[2] - choice.num_classes if len(scores) == 3 else -1
    if scores[:2] != boxes[:2] or background not in (0, 1):
        raise InferenceError(f"scores of shape {list(scores)} for {boxes[1]} boxes and {choice.num_classes} classes")
    if anchors != (boxes[1], 4):
        raise InferenceError(f"anchors of shape {list(anchors)} for {boxes[1]} boxes")
    count = choice.detections * choice.classes
    if choice.is_regular and count < choice.detections:
        raise InferenceError("its option max_classes_per_detection is 0, which leaves no place for detections")
    return (1, count, 4), (1, count), (1, count), (1,)


def _detect(inputs: Sequence[OpArray], operator: CustomOperator) -> tuple[OpArray, ...]:
    choice, (shape, *_) = _choice(operator), _shapes(operator)
    encodings, scores, anchors = (_floats(*pair) for pair in zip(inputs, operator.inputs, strict=True))
    boxes = _decoded(encodings[0], anchors, operator)
    if ((boxes[:, 0] > boxes[:, 2]) | (boxes[:, 1] > boxes[:, 3])).any():
        raise InferenceError("a box of which an end is before its start, by its anchor")
    own = np.ascontiguousarray(scores[0, :, scores.shape[2] - choice.num_classes :])
    found = _regular(boxes, own, choice) if choice.is_regular else _fast(boxes, own, choice)
    out_boxes = np.zeros(shape, np.float32)
    classes, out_scores = np.zeros(shape[:2], np.float32), np.zeros(shape[:2], np.float32)
    categories = 1 if choice.is_regular else min(choice.classes, choice.num_classes)
    for number_of, (score, box, category) in enumerate(found):
        detection, rank = divmod(number_of, categories)
        place = detection if choice.is_regular else detection * choice.classes + rank
        out_boxes[0, place], classes[0, place], out_scores[0, place] = boxes[box], category, score
    return out_boxes, classes, out_scores, np.array([len(found) // categories], np.float32)


def _floats(values: OpArray, tensor: Tensor | None) -> _Floats:
    if values.dtype == np.float32:
        return values
    quantization = tensor.quantization if tensor else None
    if values.dtype != np.uint8 or quantization is None:
        raise InferenceError(f"an input of {values.dtype}, not float32 or uint8 with a scale")
    zero_point, scale = np.float32(quantization.zero_points[0]), np.float32(quantization.scales[0])
    found: _Floats = (values.astype(np.float32) - zero_point) * scale
    return found


def _decoded(encodings: _Floats, anchors: _Floats, operator: CustomOperator) -> _Floats:
    """Edges (y first, x first, y last, x last) of boxes that are given by centers and sizes beside anchors."""
    names = ("y_scale", "x_scale", "h_scale", "w_scale")
    scales = np.array([np.float32(number_option(operator.options, name)) for name in names], np.float64)
    given, beside = encodings[:, :4].astype(np.float64) / scales, anchors.astype(np.float64)
    centers = (given[:, :2] * beside[:, 2:] + beside[:, :2]).astype(np.float32)
    halves = (0.5 * np.exp(given[:, 2:]) * beside[:, 2:]).astype(np.float32)
    return np.concatenate([centers - halves, centers + halves], axis=1)


def _fast(boxes: _Floats, scores: _Floats, choice: _Choice) -> _Selected:
    """Each box with its best classes; the best of these scores decides between boxes."""
    categories = min(choice.classes, choice.num_classes)
    best = scores[np.arange(len(scores)), np.argmax(scores, axis=1)]
    if np.isnan(best).any():
        best = np.array([row[greatest_first(row, categories)[0]] for row in scores], np.float32)
    found: _Selected = []
    for box in _suppressed(boxes, best, choice, choice.detections):
        ranked = [first_greatest(scores[box])] if categories == 1 else greatest_first(scores[box], categories)
        found += [(float(scores[box, category]), box, int(category)) for category in ranked]
    return found


def _regular(boxes: _Floats, scores: _Floats, choice: _Choice) -> _Selected:
    """The best boxes of each class, of which the best of all are kept; of equal scores the earlier class is first."""
    found: _Selected = []
    for category in range(choice.num_classes):
        own = np.ascontiguousarray(scores[:, category])
        best = [(float(own[box]), box, category) for box in _suppressed(boxes, own, choice, choice.per_class)]
        found = sorted([*found, *best], key=lambda each: -each[0])[: choice.detections]
    return found


def _suppressed(boxes: _Floats, scores: _Floats, choice: _Choice, most: int) -> Iterator[int]:
    """Boxes by descending scores, without those that overlap one before them too much."""
    kept = np.flatnonzero(scores >= choice.least_score)
    taken: list[int] = []
    most = min(len(kept), most)
    for left in _descending(kept, scores[kept]) if most else ():
        for box in taken:
            left = left[~(_overlaps(boxes[box], boxes[left]) > choice.most_overlap)]
        while len(left) and len(taken) < most:
            taken.append(int(left[0]))
            yield taken[-1]
            left = left[1:][~(_overlaps(boxes[left[0]], boxes[left[1:]]) > choice.most_overlap)]
        if len(taken) == most:
            return


def _descending(places: npt.NDArray[np.intp], scores: _Floats) -> Iterator[npt.NDArray[np.intp]]:
    """The places of the greatest scores in order, of equal ones the first, then all others: few are mostly enough."""
    if len(places) > _FIRST:
        least = np.partition(scores, -_FIRST)[-_FIRST]
        first = np.flatnonzero(scores >= least)
        yield places[first[np.argsort(-scores[first], kind="stable")]]
        rest = np.flatnonzero(scores < least)
        places, scores = places[rest], scores[rest]
    yield places[np.argsort(-scores, kind="stable")]


def _overlaps(box: _Floats, others: _Floats) -> _Floats:
    """The intersection of a box with each of others, over their union; 0 where either has no area."""
    area, areas = _areas(box[None]), _areas(others)
    first, last = _greater(box[:2], others[:, :2]), _lesser(box[2:], others[:, 2:])
    sides: _Floats = _greater(last - first, np.float32(0))
    both = sides[:, 0] * sides[:, 1]
    is_empty: npt.NDArray[np.bool_] = (area <= 0) | (areas <= 0)
    return np.where(is_empty, np.float32(0), both / (area + areas - both))


def _areas(boxes: _Floats) -> _Floats:
    sides: _Floats = boxes[:, 2:] - boxes[:, :2]
    return np.multiply(sides[:, 0], sides[:, 1])


def _greater(one: _Floats, other: _Floats | np.float32) -> _Floats:
    """As std::max, which gives its first argument where either is no number."""
    return np.where(one < other, other, one)


def _lesser(one: _Floats, other: _Floats) -> _Floats:
    return np.where(other < one, other, one)


DETECTION_POSTPROCESS = CustomOp("TFLite_Detection_PostProcess", _detect, _shapes)
