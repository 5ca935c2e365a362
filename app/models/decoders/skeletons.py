"""Which points of what was found are joined by lines, and what points are called.

Connections and names are facts of MediaPipe 0.10.21 (face_mesh_connections, hands_connections, pose_connections, names
of its landmarks; Apache-2.0, (c) The MediaPipe Authors), those of "coco" of the COCO key points (cocodataset.org).
"body-14" are the points of AI Challenger: crown, neck, and of each side shoulder, elbow, wrist, then hip, knee, ankle.
Left and right are those of the person who is seen.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

from .found import SkeletonName

__all__ = ["SKELETONS", "Skeleton"]

Chain = tuple[int, ...]


@dataclass(frozen=True)
class Skeleton:
    """Lines through points, and the names of points: of all of them, or of none."""

    chains: tuple[Chain, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Numbers of points that a line joins, each once."""
        return tuple(pair for chain in self.chains for pair in pairwise(chain))


_FACE: tuple[Chain, ...] = (
    (61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291, 409, 270, 269, 267, 0, 37, 39, 40, 185, 61),  # lips
    (78, 95, 88, 178, 87, 14, 317, 402, 318, 324, 308, 415, 310, 311, 312, 13, 82, 81, 80, 191, 78),
    (33, 7, 163, 144, 145, 153, 154, 155, 133, 173, 157, 158, 159, 160, 161, 246, 33),  # eyes
    (263, 249, 390, 373, 374, 380, 381, 382, 362, 398, 384, 385, 386, 387, 388, 466, 263),
    (46, 53, 52, 65, 55), (70, 63, 105, 66, 107),  # brows
    (276, 283, 282, 295, 285), (300, 293, 334, 296, 336),
    (10, 338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377, 152, 148, 176, 149, 150,
     136, 172, 58, 132, 93, 234, 127, 162, 21, 54, 103, 67, 109, 10),  # oval
)  # fmt: skip
_IRISES: tuple[Chain, ...] = ((469, 470, 471, 472, 469), (474, 475, 476, 477, 474))
_EYE: tuple[Chain, ...] = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 14, 13, 12, 11, 10, 9, 0),  # its lids
    (72, 73, 74, 75, 72),  # the edge of its iris, whose middle is 71
)
_HAND: tuple[Chain, ...] = (
    (0, 1, 2, 3, 4), (0, 5, 6, 7, 8), (5, 9, 13, 17, 0), (9, 10, 11, 12), (13, 14, 15, 16), (17, 18, 19, 20),
)  # fmt: skip
_HAND_NAMES = (
    "wrist", "thumb cmc", "thumb mcp", "thumb ip", "thumb tip",
    *(f"{finger} {joint}" for finger in ("index", "middle", "ring", "pinky") for joint in ("mcp", "pip", "dip", "tip")),
)  # fmt: skip
_BODY: tuple[Chain, ...] = (
    (8, 6, 5, 4, 0, 1, 2, 3, 7), (9, 10),  # face
    (12, 11, 23, 24, 12),  # trunk
    (11, 13, 15, 17, 19, 15, 21), (12, 14, 16, 18, 20, 16, 22),  # arms and hands
    (23, 25, 27, 29, 31, 27), (24, 26, 28, 30, 32, 28),  # legs and feet
)  # fmt: skip
_SIDES = ("left", "right")
_BODY_NAMES = (
    "nose", *(f"{side} eye {part}" for side in _SIDES for part in ("inner", "middle", "outer")),
    "left ear", "right ear", "mouth left", "mouth right",
    *(
        f"{side} {part}"
        for part in (
            "shoulder", "elbow", "wrist", "pinky", "index", "thumb", "hip", "knee", "ankle", "heel", "foot index",
        )
        for side in _SIDES
    ),
)  # fmt: skip
_COCO: tuple[Chain, ...] = (
    (4, 2, 0, 1, 3), (6, 5, 11, 12, 6), (5, 7, 9), (6, 8, 10), (11, 13, 15), (12, 14, 16),
)  # fmt: skip
_COCO_NAMES = (
    "nose",
    *(
        f"{side} {part}"
        for part in ("eye", "ear", "shoulder", "elbow", "wrist", "hip", "knee", "ankle")
        for side in _SIDES
    ),
)

SKELETONS: Mapping[SkeletonName, Skeleton] = MappingProxyType(
    {
        "": Skeleton(),
        "face-keypoints": Skeleton(names=("right eye", "left eye", "nose tip", "mouth", "right ear", "left ear")),
        "face-mesh": Skeleton(_FACE),
        "face-mesh-attention": Skeleton((*_FACE, *_IRISES)),
        "iris": Skeleton(_EYE),
        "palm": Skeleton(
            ((0, 1, 2, 3, 4, 0), (0, 5, 6)),
            ("wrist", "index mcp", "middle mcp", "ring mcp", "pinky mcp", "thumb cmc", "thumb mcp"),
        ),
        "hand": Skeleton(_HAND, _HAND_NAMES),
        "body": Skeleton(_BODY, _BODY_NAMES),
        "body-keypoints": Skeleton(((0, 2),), ("hips", "edge of the body", "shoulders", "edge of the upper body")),
        "coco": Skeleton(_COCO, _COCO_NAMES),
        "body-14": Skeleton(((0, 1), (2, 1, 5), (2, 3, 4), (5, 6, 7), (1, 8, 9, 10), (1, 11, 12, 13))),
    }
)
