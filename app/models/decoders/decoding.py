"""What a decoder is: a record that knows the models it is for, and makes of one's outputs what was found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from texelflow.gpu_delegate.model.graph import Graph, Shape

from ...picture.color_planes import Floats
from ...picture.picture import ImageSize
from ..entries import ModelEntry
from ..metadata import ModelMetadata
from ..spec import Task
from .found import Finding
from .region import FrameRegion

__all__ = [
    "AnchorForm",
    "Decoder",
    "Decoding",
    "ModelFacts",
    "PointWindows",
    "ReadsRows",
    "ReadsWindows",
    "SureRows",
]

InputRange = tuple[float, float]  # what black and white are


@dataclass(frozen=True)
class ModelFacts:
    """By which a decoder knows its models."""

    name: str  # of the catalogue's entry, or of the file
    graph: Graph = field(repr=False)  # inputs and outputs with their names and shapes
    entry: ModelEntry | None
    metadata: ModelMetadata  # labels are of the first output that has some
    input_size: ImageSize  # (width, height)
    task: Task | None = None  # what its user says that it does

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """Of the outputs, in their order; () where only a run tells."""
        return tuple(self.graph.tensors[place].shape for place in self.graph.outputs)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the outputs, in their order."""
        return tuple(self.graph.tensors[place].name for place in self.graph.outputs)

    def is_called(self, *words: str) -> bool:
        """Whether one of the words, in lower case, is part of its name, its metadata's or an output's."""
        said = " ".join((self.name, self.metadata.name, *self.names)).lower()
        return any(word in said for word in words)


@dataclass(frozen=True)
class AnchorForm:
    """How raw numbers of a network with anchors become a few detections; what NumPy and a compute shader compute alike.

    Boxes, and points behind them, are offsets from anchors; the best are joined by weighted non-maximum suppression,
    as in MediaPipe's tensors_to_detections and non_max_suppression calculators. suppression.py says it in NumPy.
    """

    anchors: Floats = field(repr=False)  # (N, 4): center x, y, width, height as fractions of the input
    boxes: tuple[int, ...]  # outputs with (1, N, C) or maps of them, in the anchors' order
    scores: tuple[int, ...]  # outputs with (1, N, 1) or maps of them, before the sigmoid
    scale: tuple[float, float]  # by which offsets are divided: the input's width and height
    columns: int  # C: 4 of the box, center x, y, width, height, then x, y of each point
    least_score: float = 0.5
    clip: float = 100.0  # of raw scores
    least_iou: float = 0.3  # from which two boxes are of one thing
    most: int = 8  # detections that are given back


@dataclass(frozen=True)
class PointWindows:
    """What a decoder reads of heat maps: pixels around its points, each in a map of its own."""

    points: int  # among what it reads: N points of `columns` numbers, x and y first, in pixels of the input
    columns: int
    maps: int  # likewise, (1, H, W, N)
    size: ImageSize  # of the input
    reach: int  # pixels to each side of the one that a point lies in


@runtime_checkable
class ReadsWindows(Protocol):
    """A decoding that needs no more of its heat maps, so that a GPU need not give all of them away."""

    @property
    def windows(self) -> PointWindows | None: ...


@dataclass(frozen=True)
class SureRows:
    """What a decoder reads of outputs with a row for each box: those with a score, and that of their best class."""

    scores: int  # among what it reads: (1, N, V), or (1, V, N) where rows come last
    boxes: int  # likewise, perhaps the same
    first: int  # of the columns with scores
    classes: int
    kept: tuple[tuple[int, int], ...]  # at most two ranges of the boxes' columns
    least: float  # score of a row that is read
    nothing: float  # what stands for the score of others
    factor: int = -1  # the column by which scores are multiplied, if any
    rows_last: bool = False


@runtime_checkable
class ReadsRows(Protocol):
    """A decoding that needs no more of outputs with very many rows."""

    @property
    def rows(self) -> SureRows: ...


class Decoding(Protocol):
    """A decoder made for one model."""

    @property
    def why(self) -> str:
        """By what the model was known, for people."""

    @property
    def anchors(self) -> AnchorForm | None:
        """None where the network's outputs are few, or nothing joins them."""

    @property
    def input_range(self) -> InputRange | None:
        """What black and white are for networks of this form; None where that differs from one to the other."""

    @property
    def reads(self) -> tuple[int, ...]:
        """Which of the file's outputs `decode` takes, in its order; the others need not be computed."""

    def decode(self, outputs: Sequence[Floats], region: FrameRegion) -> tuple[Finding, ...]:
        """What the network found in a region of the frame that it saw, best first.

        `outputs` are those that it `reads`, dequantized; with `anchors` instead one array (n, 1 + C), as
        detections_by_anchors gives it: the score of each detection, and its box and points as fractions of the
        network's input. Numbers that are not finite are no findings.
        """


@dataclass(frozen=True)
class Decoder:
    """One way of reading a network's outputs. `decoding` gives None for a model that it is not for."""

    name: str
    task: Task
    decoding: Callable[[ModelFacts], Decoding | None]
    repeats_edges: bool = False  # past the frame, as MediaPipe has it for regions around one thing; else black
