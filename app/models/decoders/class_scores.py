"""Decoder of classifiers: which classes the whole picture is of."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from texelflow.gpu_delegate.base.errors import UsageError

from ...picture.color_planes import Floats
from .box_rows import label_of
from .decoding import AnchorForm, Decoder, InputRange, ModelFacts
from .found import Finding
from .graph_ends import ends_in, is_score
from .region import FrameRegion

__all__ = ["CLASS_SCORES"]

_MOST = 5  # classes that are told
_IMAGENET = (1000, 1001)
_LEAST_TOLD = 0.01  # of a class' score


@dataclass(frozen=True)
class ClassDecoding:
    """The best classes with their scores."""

    why: str
    labels: tuple[str, ...]
    is_raw: bool  # whether the scores are before the softmax
    reads: tuple[int, ...] = (0,)
    input_range: InputRange | None = None
    anchors: AnchorForm | None = None

    def decode(self, outputs: Sequence[Floats], region: FrameRegion) -> tuple[Finding, ...]:
        """As a Decoding does."""
        values = outputs[0].reshape(-1).astype(np.float64)
        values = np.where(np.isfinite(values), values, -np.inf if self.is_raw else 0)
        if self.is_raw and values.size and np.isfinite(values.max()):
            powers = np.exp(values - values.max())
            values = powers / powers.sum()
        scores = np.clip(np.where(np.isfinite(values), values, 0), 0, 1)
        best = np.argsort(-scores, kind="stable")[:_MOST]
        return tuple(
            Finding("class", float(scores[number]), label=label_of(int(number), self.labels, len(scores)))
            for number in best
            if scores[number] >= _LEAST_TOLD
        )


def _decoding(facts: ModelFacts) -> ClassDecoding | None:
    shape = facts.shapes[0] if len(facts.shapes) == 1 else ()
    if len(shape) not in (2, 4) or min(shape) < 1 or prod(shape) != shape[-1]:
        return None
    count, labels = shape[-1], facts.metadata.labels
    has_labels = len(labels) in (count, count + 1) and count > 0
    by = (
        "--task classification" if facts.task == "classification"
        else f"its {len(labels)} labels" if has_labels
        else f"its last operator, {ends_in(facts.graph, 0)}" if ends_in(facts.graph, 0) == "SOFTMAX"
        else "their number, which is ImageNet's" if count in _IMAGENET and not facts.is_called("embed")
        else ""
    )  # fmt: skip
    if not by:
        raise UsageError(
            f"its output {list(shape)} may be scores of classes, points, or a description of the picture: "
            "give --task classification if it is the first"
        )
    is_raw = not is_score(facts.graph, 0) and not _is_share(facts)
    why = f"scores of {count} classes, by {by}{'; their softmax' if is_raw else ''}"
    return ClassDecoding(why, labels, is_raw)


def _is_share(facts: ModelFacts) -> bool:
    """Whether an output of bytes can say no more than 0 to 1."""
    quantization = facts.graph.tensors[facts.graph.outputs[0]].quantization
    return quantization is not None and abs(quantization.scales[0] - 1 / 256) < 1e-3 / 256


CLASS_SCORES = Decoder("class-scores", "classification", _decoding)
