"""Decoder of MediaPipe's iris landmarks: 71 points around an eye, and 5 of its iris."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...picture.color_planes import Floats
from ...picture.picture import ImageSize
from .decoding import AnchorForm, Decoder, InputRange, ModelFacts
from .found import Finding
from .point_vectors import found_points, landmarks_of, places_of_sizes
from .region import FrameRegion

__all__ = ["EYE_POINTS"]

_EYE, _IRIS = 71 * 3, 5 * 3


@dataclass(frozen=True)
class EyeDecoding:
    """The points of an eye, those of its iris last. The network does not say whether there is one: its score is 1."""

    size: ImageSize
    reads: tuple[int, ...]
    why: str = "71 points around an eye, and 5 of its iris"
    input_range: InputRange | None = (0.0, 1.0)
    anchors: AnchorForm | None = None

    def decode(self, outputs: Sequence[Floats], region: FrameRegion) -> tuple[Finding, ...]:
        """As a Decoding does."""
        points = np.concatenate([landmarks_of(values, 3, self.size) for values in outputs])
        return found_points("eye", 1.0, points, region, "iris")


def _decoding(facts: ModelFacts) -> EyeDecoding | None:
    reads = places_of_sizes(facts, _EYE, _IRIS)
    return EyeDecoding(facts.input_size, reads) if reads and len(facts.shapes) == 2 else None


EYE_POINTS = Decoder("eye-points", "points", _decoding, repeats_edges=True)
