"""Compares what two ways of running the same networks find: their outputs, how many things there are, and where.

One way is followed, and the other one sees the same regions of the same frames: a difference stays in its frame.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from texelflow.gpu_delegate.cpu.compare import errors, magnitude_of
from texelflow.gpu_delegate.model.layout import Precision

from ...models.decoders.found import Finding
from ...models.decoders.region import FrameRegion
from ...models.finding_model import FindingModel
from ...picture.color_planes import Floats
from ...picture.picture import ImageSize, Picture
from ...picture.video_frame import VideoFrame
from ...tracking.region_rules import around_box, overlap
from .cpu_regions import CpuRegions
from .finding_outputs import found_in
from .region_networks import FrameRegions

__all__ = [
    "FoundDifference",
    "FoundLimits",
    "PairedRegions",
    "RegionPair",
    "compare_found",
    "found_limits_of",
    "worst_of",
]


@dataclass(frozen=True)
class FoundLimits:
    """How far what is found may be apart, where there is the same number of things."""

    error: float  # of outputs, in parts of 1 or their magnitude
    iou: float  # of boxes
    distance: float  # of points, in parts of the thing's size

    @property
    def words(self) -> str:
        """What is allowed, for a person."""
        places = f"boxes of IoU {self.iou} at least, points {self.distance:.2g} of the thing's size apart at most"
        return f"outputs within {self.error:g} of 1 or their magnitude, the same number of things, {places}"


_LIMITS: Mapping[Precision, FoundLimits] = MappingProxyType(
    {
        "fp32": FoundLimits(5e-3, 0.99, 0.01),
        "fp16": FoundLimits(0.2, 0.9, 0.05),
        "fp16-arithmetic": FoundLimits(0.4, 0.8, 0.1),
        "bf16": FoundLimits(0.4, 0.8, 0.1),
    }
)
_OF_STEPS = FoundLimits(0.2, 0.9, 0.05)  # a value that one rounding takes to the next step takes others with it


def found_limits_of(precision: Precision, error: float | None, is_quantized: bool) -> FoundLimits:
    """What is allowed; with another error of outputs if one is given."""
    limits = _OF_STEPS if is_quantized and precision == "fp32" else _LIMITS[precision]
    return limits if error is None else replace(limits, error=error)


@dataclass(frozen=True)
class FoundDifference:
    """What one way finds against what another one is expected to be right about."""

    error: float  # the largest of outputs, in parts of 1 or their magnitude; NaN where numbers are none
    found: int
    expected: int
    iou: float  # the least of boxes, 1 where there are none; 0 where a thing has none that is like it
    distance: float  # the largest of points, in parts of the thing's size

    def agrees(self, limits: FoundLimits) -> bool:
        """Whether all is within the limits; NaN never is."""
        near = self.error <= limits.error and self.distance <= limits.distance
        return near and self.found == self.expected and self.iou >= limits.iou


def worst_of(differences: Sequence[FoundDifference]) -> FoundDifference:
    """The worst of each figure, and the sums of what was found. Of none: nothing, and no difference."""
    return FoundDifference(
        error=float(np.max([each.error for each in differences], initial=0)),
        found=sum(each.found for each in differences),
        expected=sum(each.expected for each in differences),
        iou=min((each.iou for each in differences), default=1.0),
        distance=float(np.max([each.distance for each in differences], initial=0)),
    )


def compare_found(found: Sequence[Finding], expected: Sequence[Finding], error: float = 0.0) -> FoundDifference:
    """Each thing is compared with the nearest one of its kind and label that no other has."""
    left, ious, distances = list(found), list[float](), [0.0]
    for wanted in expected:
        alike = [each for each in left if (each.kind, each.label) == (wanted.kind, wanted.label)]
        near = max(alike, key=lambda each: _iou(each, wanted), default=None)
        if near is None:
            ious.append(0.0)
            continue
        left.remove(near)
        ious.append(_iou(near, wanted))
        distances.append(_distance(near, wanted))
    return FoundDifference(error, len(found), len(expected), min(ious, default=1.0), float(np.max(distances)))


def _iou(first: Finding, second: Finding) -> float:
    """1 of what has no place."""
    if first.kind == "class":
        return 1.0
    return overlap(around_box(first.box), around_box(second.box))


def _distance(found: Finding, expected: Finding) -> float:
    """Of the points that are furthest apart; infinite where there are not the same ones."""
    if len(found.points) != len(expected.points):
        return float("inf")
    if not len(expected.points):
        return 0.0
    left, top, right, bottom = expected.box
    size = (right - left + bottom - top) / 2
    return float(np.linalg.norm((found.points - expected.points)[:, :2], axis=1).max() / max(size, 1.0))


@dataclass(frozen=True)
class RegionPair:
    """What a network saw in a region both ways."""

    model: FindingModel
    region: FrameRegion
    found: tuple[Finding, ...]
    expected: tuple[Finding, ...]
    error_of: Mapping[str, float]  # of each output, in parts of 1 or its magnitude

    @property
    def difference(self) -> FoundDifference:
        """In numbers."""
        return compare_found(self.found, self.expected, float(np.max([*self.error_of.values()], initial=0)))


class PairedRegions:
    """A network that two ways run: what TensorFlow Lite finds is what is found."""

    def __init__(self, ours: FrameRegions, reference: CpuRegions) -> None:
        self._ours, self._reference = ours, reference
        self._pairs: list[RegionPair] = []

    @property
    def model(self) -> FindingModel:
        """The network."""
        return self._reference.model

    def taken(self) -> tuple[RegionPair, ...]:
        """What both have seen since this was asked for the last time."""
        pairs, self._pairs = tuple(self._pairs), []
        return pairs

    @property
    def input_size(self) -> ImageSize:
        """See RegionNetwork."""
        return self._reference.input_size

    def find(self, frame: VideoFrame, region: FrameRegion) -> tuple[Finding, ...]:
        """What the reference finds. Raises TexelflowError."""
        model = self._reference.model
        wanted = self._reference.outputs(frame.picture, region)
        expected = found_in(model, wanted, region)
        found, outputs = self._ours.find(frame, region), self._ours.outputs(frame.picture, region)
        names = [model.graph.tensors[place].name for place in model.graph.outputs]
        parts = {name: _part(*both) for name, *both in zip(names, outputs, wanted, strict=True)}
        self._pairs.append(RegionPair(model, region, found, expected, parts))
        return expected

    def input_of(self, picture: Picture, region: FrameRegion) -> Floats:
        """The network's input (1, H, W, 3) for a region, as TensorFlow Lite gets it."""
        return self._reference.region_to_tensor(picture, region)


def _part(found: Floats, expected: Floats) -> float:
    """The largest difference, in parts of 1 or the magnitude; infinite between shapes that differ."""
    if found.shape != expected.shape:
        return float("inf")
    return float(errors(found, expected).max(initial=0) / max(1.0, magnitude_of(expected)))
