"""Decoder of MediaPipe's pose landmarks: 33 points of a person, sharpened by heat maps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...picture.color_planes import Floats
from ...picture.picture import ImageSize
from .decoding import AnchorForm, Decoder, InputRange, ModelFacts, PointWindows
from .found import Finding
from .point_vectors import found_points, landmarks_of, places_of_sizes, presence_of, value_counts
from .region import FrameRegion
from .suppression import is_near, is_sound, sigmoid

__all__ = ["BODY_POINTS", "sharpened"]

_BODY, _ALL = 33, 39  # of which the last are MediaPipe's auxiliary ones
_VALUES = 5  # of each: x, y, z, visibility, presence
_KERNEL = 9  # pixels of a heat map around a point that count: what its graph leaves as it is
_LEAST_PEAK = 0.5  # of a heat map there, so that it moves the point


@dataclass(frozen=True)
class BodyDecoding:
    """The points of a person, each with its visibility."""

    size: ImageSize
    reads: tuple[int, ...]  # points, presence, then heat maps and points in metres, where there are any
    has_maps: bool
    why: str
    input_range: InputRange | None = (0.0, 1.0)
    anchors: AnchorForm | None = None

    @property
    def windows(self) -> PointWindows | None:
        """What it reads of its heat maps."""
        return PointWindows(0, _VALUES, 2, self.size, (_KERNEL - 1) // 2) if self.has_maps else None

    def decode(self, outputs: Sequence[Floats], region: FrameRegion) -> tuple[Finding, ...]:
        """As a Decoding does."""
        values = landmarks_of(outputs[0], _VALUES, self.size)
        if self.has_maps:
            values[:, :2] = sharpened(values[:, :2], outputs[2])
        points, certainty = values[:, :3], sigmoid(values[:_BODY, 3])
        found = found_points(
            "person", presence_of(outputs[1], False), points[:_BODY], region, "body", certainty=certainty
        )
        if found and len(points) > _BODY and is_sound(points):
            found = (replace(found[0], auxiliary=region.points_to_frame(points[_BODY:])),)
        rest = outputs[2 + self.has_maps :]
        if found and rest and is_sound(rest[0]):
            world = region.directions_to_frame(rest[0].reshape(-1, 3)[:_BODY])
            found = (replace(found[0], world=world),)
        return found


def sharpened(points: Floats, maps: Floats) -> Floats:
    """Points (N, 2), as fractions, moved to the middle of what heat maps (1, H, W, N) have around them.

    As MediaPipe's refine_landmarks_from_heatmap_calculator: maps are raw scores; a point moves where the highest of the
    9x9 pixels around it is at least 0.5.
    """
    height, width, count = maps.shape[-3:]
    sizes, reach, moved = np.array([width, height]), (_KERNEL - 1) // 2, points.copy()
    with np.errstate(all="ignore"):
        cells = np.trunc(np.where(is_near(points), points, -9) * sizes.astype(np.float32)).astype(np.int64)
    inside = ((cells >= 0) & (cells < sizes)).all(axis=1)
    steps = np.arange(-reach, reach + 1)
    columns, rows = (cells[:, axis, None] + steps for axis in (0, 1))
    known = ((rows >= 0) & (rows < height))[:, :, None] & ((columns >= 0) & (columns < width))[:, None]
    places = rows.clip(0, height - 1)[:, :, None], columns.clip(0, width - 1)[:, None], np.arange(count)[:, None, None]
    near = np.where(known, sigmoid(maps.reshape(height, width, count)[places]), 0)
    heat = near.sum(axis=(1, 2), dtype=np.float64)
    strong = inside & (near.max(axis=(1, 2)) >= _LEAST_PEAK) & (heat > 0)
    total = np.where(strong, heat, 1)
    across, down = (near * columns[:, None]).sum(axis=(1, 2)), (near * rows[:, :, None]).sum(axis=(1, 2))
    found = np.stack([across / total / width, down / total / height], axis=1)
    moved[strong] = found[strong]
    return moved


def _decoding(facts: ModelFacts) -> BodyDecoding | None:
    points = places_of_sizes(facts, _ALL * _VALUES, 1)
    if points is None:
        return None
    maps = [place for place, shape in enumerate(facts.shapes) if len(shape) == 4 and shape[3] == _ALL and shape[1] > 1]
    world = [place for place, count in enumerate(value_counts(facts)) if count == _ALL * 3 and place not in maps]
    reads = (*points, *maps[:1], *world[:1])
    why = f"33 points of a person and whether they are seen{', sharpened by heat maps' if maps else ''}"
    return BodyDecoding(facts.input_size, reads, bool(maps), why)


BODY_POINTS = Decoder("body-points", "points", _decoding, repeats_edges=True)
