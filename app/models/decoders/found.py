"""What was found in a frame, as plain data: faces, hands, people, objects, classes."""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from .region import FrameRegion

__all__ = ["FOUND", "Finding", "Points", "SkeletonName", "moved_finding"]

FOUND = ("face", "eye", "hand", "person", "object", "class")  # the kinds

Points = npt.NDArray[np.float32]
# Which points there are, and which of them are joined (skeletons.py).
SkeletonName = Literal[
    "",
    "face-keypoints",
    "face-mesh",
    "face-mesh-attention",
    "iris",
    "palm",
    "hand",
    "body",
    "body-keypoints",
    "coco",
    "body-14",
]


@dataclass(frozen=True, eq=False)
class Finding:
    """One thing that a network found. Places are pixels of the upright frame, of which the first covers 0 to 1.

    Two are equal if they are the same object; `track` says whether they are of one thing.

        with texelflow.Pipeline(model="selfie") as camera:
            picture = camera(frame)
            for found in camera.findings:
                left, top, right, bottom = found.box  # around found.region, an upright rectangle
                print(found.kind, found.label, found.score, found.track, found.skeleton)
                for x, y, *z in found.points:
                    print(x, y, found.certainty, found.world, found.auxiliary)

    kind: face, eye, hand, person, object, or class, which is of the whole picture.
    """

    kind: str
    score: float  # 0 to 1
    region: FrameRegion | None = None  # where it is; None for a class
    label: str = ""  # what its kind alone does not say: left, right, a class' name
    points: Points = field(default_factory=lambda: np.zeros((0, 3), np.float32))  # (N, 2 or 3); z in pixels
    certainty: Points | None = None  # (N,), 0 to 1: whether each point is there to be seen
    skeleton: SkeletonName = ""
    auxiliary: Points = field(default_factory=lambda: np.zeros((0, 3), np.float32))  # more points, which nobody sees:
    # the 6 of a body, of which the first two are the middle and the edge of the circle that it fills
    world: Points = field(default_factory=lambda: np.zeros((0, 3), np.float32))  # the points in metres, from the middle
    track: int = 0  # the same number from frame to frame; 0 where nothing follows it

    @property
    def box(self) -> tuple[float, float, float, float]:
        """(left, top, right, bottom) of an upright box around its region, or else around its points.

        Raises ValueError for a class.
        """
        if self.region:
            corners = self.region.points_to_frame(np.array([[0, 0], [1, 0], [0, 1], [1, 1]], np.float32))
        elif len(self.points):
            corners = self.points
        else:
            raise ValueError("a class has no place")
        (left, top), (right, bottom) = corners[:, :2].min(0), corners[:, :2].max(0)
        return float(left), float(top), float(right), float(bottom)


def moved_finding(found: Finding, left: float, top: float, scale: float) -> Finding:
    """The same in a larger picture, in which the frame is, scaled, with its upper left corner at (left, top)."""
    points, auxiliary = (each * np.float32(scale) for each in (found.points, found.auxiliary))
    for each in (points, auxiliary):
        each[:, :2] += np.array((left, top), np.float32)
    region = found.region
    if region:
        center = region.center_x * scale + left, region.center_y * scale + top
        region = FrameRegion(*center, region.width * scale, region.height * scale, region.angle)
    return replace(found, region=region, points=points, auxiliary=auxiliary)
