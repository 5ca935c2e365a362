"""What decoders of landmarks share: points of a vector of numbers, and the finding that they are."""

from math import prod

import numpy as np

from ...picture.color_planes import Floats
from ...picture.picture import ImageSize
from .decoding import ModelFacts
from .found import Finding, Points, SkeletonName
from .region import FrameRegion
from .suppression import is_sound, sigmoid

__all__ = ["LEAST_PRESENCE", "found_points", "landmarks_of", "places_of_sizes", "presence_of", "value_counts"]

LEAST_PRESENCE = 0.5  # below which a network saw nothing of its kind, as in MediaPipe's graphs


def value_counts(facts: ModelFacts) -> tuple[int, ...]:
    """How many numbers each output has; 0 where its shape is not known."""
    return tuple(prod(shape) if shape and min(shape) > 0 else 0 for shape in facts.shapes)


def places_of_sizes(facts: ModelFacts, *sizes: int) -> tuple[int, ...] | None:
    """The outputs with so many numbers, each the first that is not taken yet; None where one is missing."""
    counts, places = value_counts(facts), list[int]()
    for size in sizes:
        place = next((p for p, count in enumerate(counts) if count == size and p not in places), None)
        if place is None:
            return None
        places.append(place)
    return tuple(places)


def landmarks_of(values: Floats, columns: int, size: ImageSize, depth: float = 1.0) -> Floats:
    """Points (N, columns) of a vector, x and y as fractions of the network's input, z as one of its width.

    As MediaPipe's tensors_to_landmarks_calculator with normalize_z `depth`; what is behind z stays as it is.
    """
    points = values.reshape(-1, columns).astype(np.float32)
    points[:, 0] /= np.float32(size[0])
    points[:, 1] /= np.float32(size[1])
    if columns > 2:
        points[:, 2] /= np.float32(size[0] * depth)
    return points


def presence_of(values: Floats, is_raw: bool) -> float:
    """From 0 to 1, whether the network sees something of its kind; 0 where that is no number."""
    value = float(sigmoid(values.reshape(-1)[:1])[0] if is_raw else values.reshape(-1)[0])
    return min(max(value, 0.0), 1.0) if np.isfinite(value) else 0.0


def found_points(
    kind: str,
    score: float,
    fractions: Floats,
    region: FrameRegion,
    skeleton: SkeletonName,
    label: str = "",
    certainty: Points | None = None,
) -> tuple[Finding, ...]:
    """The one finding that points (N, 2 or 3) are, with the box around them; none where the score is low.

    The same holds for points that are not finite.
    """
    if not score > LEAST_PRESENCE or not len(fractions) or not is_sound(fractions):
        return ()
    (left, top), (right, bottom) = fractions[:, :2].min(0), fractions[:, :2].max(0)
    box = region.box_to_frame((float(left), float(top), float(right), float(bottom)))
    return (Finding(kind, score, box, label, region.points_to_frame(fractions), certainty, skeleton),)
