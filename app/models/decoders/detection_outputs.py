"""Decoder of four outputs of detections: boxes, classes, scores and their number, as TFLite_Detection_PostProcess's."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from texelflow.gpu_delegate.model.graph import Graph, Node, Opaque

from ...picture.color_planes import Floats
from .box_rows import box_findings, chosen_boxes, edges_as_rows
from .decoding import AnchorForm, Decoder, InputRange, ModelFacts
from .found import Finding
from .region import FrameRegion
from .suppression import MOST_FRACTION

__all__ = ["DETECTION_OUTPUTS", "detection_places"]

_POST_PROCESS = "tflitedetectionpostprocess"
OutputOrder = tuple[int, int, int, int]
_WORDS = (("box", "location"), ("class", "categor"), ("score",), ("num", "count"))  # in outputs' names


def detection_places(graph: Graph) -> OutputOrder | None:
    """Which outputs are boxes, classes, scores and their number, by the operator that makes all four."""
    for node in _post_processing(graph):
        if len(node.outputs) == 4 and {*node.outputs} <= {*graph.outputs}:
            first, second, third, fourth = (graph.outputs.index(output) for output in node.outputs)
            return first, second, third, fourth
    return None


def _post_processing(graph: Graph) -> Iterator[Node]:
    """That operator, where there is one."""
    for node in graph.nodes:
        name = node.attributes.custom_code.decode("latin-1") if isinstance(node.attributes, Opaque) else node.op
        if name.replace("_", "").lower() == _POST_PROCESS:
            yield node


@dataclass(frozen=True)
class DetectionDecoding:
    """Boxes with classes, which the network itself has chosen."""

    labels: tuple[str, ...]
    classes: int  # as many as there are labels for, or 0
    reads: OutputOrder
    why: str
    input_range: InputRange | None = None
    anchors: AnchorForm | None = None

    def decode(self, outputs: Sequence[Floats], region: FrameRegion) -> tuple[Finding, ...]:
        """As a Decoding does."""
        edges, numbers, scores = outputs[0].reshape(-1, 4), outputs[1].reshape(-1), outputs[2].reshape(-1)
        given = float(outputs[3].reshape(-1)[0]) if outputs[3].size else 0.0
        most = min(len(edges), len(numbers), len(scores), int(min(max(given, 0.0), 1e6)) if given == given else 0)
        rows = edges_as_rows(scores[:most], edges[:most, [1, 0, 3, 2]])
        rows[~(np.abs(numbers[:most]) < MOST_FRACTION), 0] = 0
        kept = chosen_boxes(rows)
        return box_findings(rows[kept], numbers[kept].astype(np.int64), self.labels, self.classes, region)


def _decoding(facts: ModelFacts) -> DetectionDecoding | None:
    order = detection_places(facts.graph)
    why = "boxes, classes, scores and their number, as the operator TFLite_Detection_PostProcess puts them out"
    if order is None:
        order = _by_names(facts) or _by_shapes(facts)
        why = "boxes, classes, scores and their number, by the names or shapes of four outputs"
    if order is None:
        return None
    labels = facts.metadata.labels
    return DetectionDecoding(labels, _classes(facts.graph, labels), order, why)


def _classes(graph: Graph, labels: Sequence[str]) -> int:
    """How many classes the scores have, without a background; as the labels where nothing says it."""
    for node in _post_processing(graph):
        if len(node.inputs) > 1:
            shape = graph.tensors[node.inputs[1]].shape
            return shape[-1] - 1 if shape and len(labels) == shape[-1] else len(labels)
    return len(labels)


def _by_names(facts: ModelFacts) -> OutputOrder | None:
    names = [name.lower() for name in facts.names]
    if len(names) != 4:
        return None
    found = [[place for place, name in enumerate(names) if any(word in name for word in words)] for words in _WORDS]
    if any(len(places) != 1 for places in found) or len({places[0] for places in found}) != 4:
        return None
    first, second, third, fourth = (places[0] for places in found)
    return first, second, third, fourth


def _by_shapes(facts: ModelFacts) -> OutputOrder | None:
    """Of TensorFlow 1's order (boxes, classes, scores, number), and of TensorFlow 2's (scores, boxes, number, classes).

    Classes and scores have the same shape, so that other orders are not known.
    """
    shapes = facts.shapes
    if len(shapes) != 4:
        return None
    for order in ((0, 1, 2, 3), (1, 3, 0, 2)):
        boxes, classes, scores, count = (shapes[place] for place in order)
        rows = boxes[1:2]
        if len(boxes) == 3 and boxes[2] == 4 and classes == scores == (1, *rows) and count in ((1,), (1, 1)):
            return (order[0], order[1], order[2], order[3])
    return None


DETECTION_OUTPUTS = Decoder("detection-outputs", "detection", _decoding)
