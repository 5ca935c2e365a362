"""Where the next network looks: regions made of boxes and points, as MediaPipe's graphs make them.

All in pixels of the upright frame; MediaPipe has the same in fractions of it. An angle is clockwise, in radians.
"""

import math
from dataclasses import replace

import numpy as np

from ..models.decoders.found import Points
from ..models.decoders.region import FrameRegion, angle_between, region_between
from ..picture.picture import ImageSize

__all__ = [
    "EYE_CORNERS", "around_box", "around_hand", "around_points", "by_alignment", "by_body_hand", "core_of", "grown",
    "is_usable", "mirrored", "overlap", "share_inside",
]  # fmt: skip

# Corners of the eyes among the points of a face: on the left of the picture, then on its right.
EYE_CORNERS = ((33, 133), (362, 263))

_MOST_SIZES = 16.0  # of the frame: a region that is larger is of nothing
_LEAST_PIXELS = 1.0
# Of a hand's 21 points those that move least against its palm: MediaPipe makes the region of them alone.
_STEADY_HAND = (0, 1, 2, 3, 5, 6, 9, 10, 13, 14, 17, 18)
_WRIST, _INDEX_KNUCKLE, _MIDDLE_KNUCKLE, _RING_KNUCKLE = 0, 5, 9, 13  # in 0.10; joints of fingers before


def around_box(box: tuple[float, float, float, float], angle: float = 0.0) -> FrameRegion:
    """A region with the box's middle and size, turned: DetectionsToRectsCalculator."""
    left, top, right, bottom = box
    return FrameRegion((left + right) / 2, (top + bottom) / 2, right - left, bottom - top, angle)


def around_points(points: Points, ends: tuple[int, int] | None = None, target_degrees: float = 0.0) -> FrameRegion:
    """The same around points (N, 2 or 3), level along the line between two of them."""
    left, top = points[:, :2].min(axis=0)
    right, bottom = points[:, :2].max(axis=0)
    angle = angle_between(points[ends[0]], points[ends[1]], target_degrees) if ends else 0.0
    return around_box((float(left), float(top), float(right), float(bottom)), angle)


def by_alignment(points: Points, target_degrees: float) -> FrameRegion:
    """A square by its middle and a point as far as its edge, the first two points: AlignmentPointsRectsCalculator."""
    (x, y), (edge_x, edge_y) = points[:2, :2].tolist()
    return region_between((x, y), (edge_x, edge_y), target_degrees)


def around_hand(points: Points) -> FrameRegion:
    """A rectangle around a hand's steady points (21, 2 or 3), upright from its wrist: HandLandmarksToRectCalculator."""
    middle = (points[_INDEX_KNUCKLE] + points[_RING_KNUCKLE]) / 2
    angle = angle_between(points[_WRIST], (middle + points[_MIDDLE_KNUCKLE]) / 2, 90)
    steady = np.asarray(points[list(_STEADY_HAND), :2], np.float64)
    cosine, sine = math.cos(angle), math.sin(angle)
    turned = steady @ np.array([[cosine, -sine], [sine, cosine]])
    low, high = turned.min(axis=0), turned.max(axis=0)
    x, y = np.array([[cosine, -sine], [sine, cosine]]) @ ((low + high) / 2)
    return FrameRegion(float(x), float(y), float(high[0] - low[0]), float(high[1] - low[1]), angle)


def by_body_hand(wrist: Points, little: Points, index: Points) -> FrameRegion:
    """Where a body's points say that a hand is: HandDetectionsFromPoseToRectsCalculator."""
    return by_alignment(np.stack([(2 * index + little) / 3, wrist]), -90)


def grown(region: FrameRegion, scale: float, shift_down: float = 0.0) -> FrameRegion:
    """A square with the longer side times a scale, moved along the region's own height: RectTransformationCalculator.

    >>> grown(FrameRegion(50, 50, 20, 10), 2.0, shift_down=-0.5)
    FrameRegion(center_x=50.0, center_y=45.0, width=40.0, height=40.0, angle=0.0)
    """
    side = max(region.width, region.height) * scale
    return replace(region.moved(0, shift_down), width=side, height=side)


def core_of(region: FrameRegion, scale: float) -> FrameRegion:
    """The same place and shape, smaller."""
    return replace(region, width=region.width * scale, height=region.height * scale)


def mirrored(region: FrameRegion) -> FrameRegion:
    """The same place, which its network sees with left and right exchanged: its width is negative."""
    return replace(region, width=-region.width)


def overlap(first: FrameRegion, second: FrameRegion) -> float:
    """Intersection over union, 0 to 1, as if neither were turned: so MediaPipe compares regions."""
    common = _common(first, second)
    union = abs(first.width * first.height) + abs(second.width * second.height) - common
    return min(common / union, 1.0) if union > 0 else 0.0


def share_inside(first: FrameRegion, second: FrameRegion) -> float:
    """Intersection over the smaller one, 0 to 1, likewise."""
    smaller = min(abs(first.width * first.height), abs(second.width * second.height))
    return min(_common(first, second) / smaller, 1.0) if smaller > 0 else 0.0


def _common(first: FrameRegion, second: FrameRegion) -> float:
    """The area that is part of both."""
    sides = []
    for middle, other, size, other_size in (
        (first.center_x, second.center_x, abs(first.width), abs(second.width)),
        (first.center_y, second.center_y, abs(first.height), abs(second.height)),
    ):
        low, high = max(middle - size / 2, other - other_size / 2), min(middle + size / 2, other + other_size / 2)
        sides.append(max(high - low, 0.0))
    return sides[0] * sides[1]


def is_usable(region: FrameRegion, frame: ImageSize) -> bool:
    """Whether a network can look there: it has a size, is not far larger than the frame, and touches it."""
    numbers = region.center_x, region.center_y, region.width, region.height, region.angle
    if not all(map(math.isfinite, numbers)):
        return False
    least, most = sorted((abs(region.width), abs(region.height)))
    if least < _LEAST_PIXELS or most > _MOST_SIZES * max(frame):
        return False
    reach = math.hypot(region.width, region.height) / 2
    return -reach < region.center_x < frame[0] + reach and -reach < region.center_y < frame[1] + reach
