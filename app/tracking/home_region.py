"""Where a track began, moved as its points have moved since: from there its network sees the thing that it began with.

A network that is given a region with two people in it answers with the larger one, or with points between both, and
each region by its own answer has more of the other. A region that keeps place and size by the head does not go over.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from ..models.decoders.found import Points
from ..models.decoders.region import FrameRegion

__all__ = ["DOUBTED_STEP", "MOST_STEP", "Home", "is_in", "step_between"]

DOUBTED_STEP = 0.02  # from a frame to the next, from which a thing is looked at from its home, too
MOST_STEP = 0.05  # of one thing


@dataclass(frozen=True)
class Home:
    """A region, and the points (N, 2), in pixels, that were seen in it."""

    region: FrameRegion
    points: Points

    def moved_to(self, points: Points) -> FrameRegion:
        """The region as it lies to the points now: moved, and scaled, as fits them best; its angle stays.

        >>> home = Home(FrameRegion(10, 30, 40, 40), np.array([[0, 0], [20, 0]], np.float32))
        >>> home.moved_to(np.array([[100, 0], [140, 0]], np.float32))
        FrameRegion(center_x=120.0, center_y=60.0, width=80.0, height=80.0, angle=0.0)
        """
        region, middle, new_middle = self.region, self.points.mean(axis=0), points.mean(axis=0)
        spread = float(np.square(self.points - middle).sum())
        scale = math.sqrt(float(np.square(points - new_middle).sum()) / spread) if spread > 0 else 1.0
        return replace(
            region,
            center_x=float(new_middle[0] + scale * (region.center_x - middle[0])),
            center_y=float(new_middle[1] + scale * (region.center_y - middle[1])),
            width=region.width * scale,
            height=region.height * scale,
        )


def step_between(before: Points, now: Points, side: float) -> float:
    """How far points (N, 2) are apart in the mean, in sides of their region."""
    return float(np.hypot(*(now - before).T).mean()) / max(abs(side), 1.0)


def is_in(points: Points, box: tuple[float, float, float, float]) -> bool:
    """Whether the middle of points (N, 2) is in a box (left, top, right, bottom)."""
    (x, y), (left, top, right, bottom) = points.mean(axis=0), box
    return bool(left <= x <= right and top <= y <= bottom)
