"""Reads a network's outputs as its task has them, and collects the figures of a task over many pictures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.model.graph import Graph

from ...models.decoders.detection_outputs import detection_places
from .accuracy import VOID, Confusion, TopK
from .average_precision import AveragePrecision, Detections, TrueBoxes

OutputValues = npt.NDArray[Any]
TaskShares = dict[str, float | None]
_MOST_CLASSES = 4096


class TaskFigures(Protocol):
    """Collects what one way of running a model gives."""

    def add(self, outputs: Sequence[OutputValues], true: Any, size: tuple[int, int]) -> None:
        """Real values of a picture's outputs, what is true of it, and its (height, width)."""

    def figures(self) -> TaskShares:
        """By name, from 0 to 1; None where there is nothing to tell."""


@dataclass
class Classification:
    """Top-1 and top-5 of the first output; `true` is the class."""

    top: TopK = field(default_factory=TopK)

    def add(self, outputs: Sequence[OutputValues], true: int, size: tuple[int, int]) -> None:
        """See TaskFigures. Raises UsageError for a class that the network does not have."""
        scores = outputs[0].ravel().astype(np.float64)
        if not 0 <= true < scores.size:
            raise UsageError(f"class {true}: the network has {scores.size}, from 0 on")
        self.top.add(scores, true)

    def figures(self) -> TaskShares:
        """See TaskFigures."""
        counts, all_of_them = {"top_1": self.top.first, "top_5": self.top.first_five}, self.top.pictures
        return {name: count / all_of_them if all_of_them else None for name, count in counts.items()}


@dataclass
class Segmentation:
    """Mean IoU of the first output; `true` is a map of class numbers, in whose size the network's is compared."""

    confusion: Confusion

    def add(self, outputs: Sequence[OutputValues], true: npt.NDArray[np.uint8], size: tuple[int, int]) -> None:
        """See TaskFigures. Raises UsageError for a class that the network does not have."""
        found, classes = _class_map(outputs[0]), self.confusion.classes
        wrong = int(true[true != VOID].max(initial=0))
        if wrong >= classes:
            raise UsageError(f"a mask has the class {wrong}: the network has {classes}, from 0 on, and {VOID} is none")
        rows, columns = (
            np.minimum((np.arange(wanted) + 0.5) * have / wanted, have - 1).astype(np.int64)
            for have, wanted in zip(found.shape, true.shape, strict=True)
        )
        self.confusion.add(np.clip(found[rows][:, columns], 0, classes - 1), true.astype(np.int64))

    def figures(self) -> TaskShares:
        """See TaskFigures."""
        return {"mean_iou": self.confusion.mean_iou()}


@dataclass
class Detection:
    """COCO's mean average precision; `true` are boxes in pixels."""

    order: tuple[int, int, int, int]  # of outputs: boxes, classes, scores, their number
    categories: Mapping[int, int]  # by class
    precision: AveragePrecision = field(default_factory=AveragePrecision)

    def add(self, outputs: Sequence[OutputValues], true: TrueBoxes, size: tuple[int, int]) -> None:
        """See TaskFigures."""
        boxes, classes, scores, count = (outputs[place].astype(np.float64) for place in self.order)
        boxes, classes, scores = boxes.reshape(-1, 4), classes.ravel(), scores.ravel()
        given = count.ravel()[0] if count.size else 0.0
        most = min(len(boxes), len(classes), len(scores), int(given) if np.isfinite(given) and given > 0 else 0)
        numbered = [self.categories.get(int(each), -1) if np.isfinite(each) else -1 for each in classes[:most]]
        kept = np.isfinite(boxes[:most]).all(axis=1) & np.isfinite(scores[:most]) & (np.array(numbered) >= 0)
        height, width = size
        in_pixels = boxes[:most][kept][:, [1, 0, 3, 2]] * (width, height, width, height)
        found = Detections(in_pixels, scores[:most][kept], np.array(numbered, np.int64)[kept])
        self.precision.add(found, true)

    def figures(self) -> TaskShares:
        """See TaskFigures."""
        averages = self.precision.averages()
        if not len(averages):
            return {"map": None, "map_50": None}
        return {"map": float(averages.mean()), "map_50": float(averages[:, 0].mean())}


def detection_order(graph: Graph) -> tuple[int, int, int, int]:
    """Which outputs are boxes, classes, scores and their number: those of TFLite_Detection_PostProcess, or the order
    of these four. Raises UsageError."""
    found = detection_places(graph)
    if found:
        return found
    if len(graph.outputs) == 4:
        return 0, 1, 2, 3
    raise UsageError(
        f"{graph.name}: the outputs of detection are boxes, classes, scores and their number, and there are "
        f"{len(graph.outputs)}"
    )


def mask_classes(graph: Graph) -> int:
    """How many classes the first output tells apart. Raises UsageError."""
    tensor = graph.tensors[graph.outputs[0]]
    if len(tensor.shape) in (3, 4) and tensor.dtype in ("int32", "int64"):
        return VOID
    if len(tensor.shape) == 4 and 1 <= tensor.shape[3] <= _MOST_CLASSES:
        return max(2, tensor.shape[3])
    raise UsageError(f"{graph.name}: the output has the shape {list(tensor.shape)}, not [1, height, width, classes]")


def _class_map(values: OutputValues) -> npt.NDArray[np.int64]:
    """(H, W): numbers of classes, the class of most, or of one channel whether it is a half or more."""
    if values.dtype.kind in "iu" and (values.ndim == 3 or values.shape[3] == 1):
        return values.reshape(values.shape[1:3]).astype(np.int64)
    scores = values[0]
    return np.asarray(scores[..., 0] >= 0.5 if scores.shape[2] == 1 else scores.argmax(axis=2), np.int64)
