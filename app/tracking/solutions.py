"""Solutions, several networks in a row: which runs after which, and which region of the frame each of them sees.

As MediaPipe's solutions, by the constants of their graphs (0.10.21): a detector on the whole frame starts a track, the
landmarks of a frame say where the next frame's are looked for, parts (eyes) are looked for within what was found.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ..models.decoders.found import Finding
from ..models.decoders.region import FrameRegion, angle_between
from .one_euro import OneEuro
from .region_rules import (
    EYE_CORNERS,
    around_box,
    around_hand,
    around_points,
    by_alignment,
    by_body_hand,
    grown,
    mirrored,
)

__all__ = ["SOLUTIONS", "Followed", "PartLook", "PartRegion", "Solution", "solution_ending_with", "solution_of"]

RegionOf = Callable[[Finding], FrameRegion | None]  # None: the finding does not say


@dataclass(frozen=True)
class Followed:
    """The network that follows a thing from frame to frame."""

    starts_at: RegionOf  # by what the detector found
    goes_on_at: RegionOf  # by what it found itself in the frame before
    filter: OneEuro | None  # of its points
    auxiliary_filter: OneEuro | None = None  # of its auxiliary; without one they are used as they came
    certainty_share: float | None = None  # of the new value, where points' certainty is filtered
    size: RegionOf = lambda finding: None  # what speeds are measured by; None: the box around the points
    least_inside: float = 0.8  # from which a region, without its margin, is of one thing with another that it lies in
    compared: float = 1.0  # by how much regions shrink before they are compared: those of people side by side overlap
    held_by: tuple[int, ...] = ()  # points by which a thing is told from another one in the same region


@dataclass(frozen=True)
class PartRegion:
    """Where a part of a thing is."""

    label: str
    region: FrameRegion


@dataclass(frozen=True)
class PartLook:
    """A network that looks at parts of what was found, where each of them is."""

    regions: Callable[[Finding], tuple[PartRegion, ...]]


@dataclass(frozen=True)
class Solution:
    """Networks in a row. `models` are of the catalogue, in the order in which they run: the detector, then one for each
    of `followed` and `parts`. What the last one finds is what is shown, with what is followed if it `shows_whole`."""

    name: str
    seeks: str  # what is missed where nothing is found: face, eye, hand, person; "" where that is anything
    models: tuple[str, ...]
    followed: Followed | None = None
    parts: tuple[PartLook, ...] = ()
    least_score: float = 0.5  # below which a track ends: landmarks' presence
    most: int = 4  # of it that are followed, if nobody says
    looks_again_s: float = 0.1  # the detector's sleep where fewer are followed than asked for; MediaPipe's: 0
    least_overlap: float = 0.5  # from which two regions are of one thing
    shows_whole: bool = False
    decoder: str = ""  # of its last network: who brings a file that it reads has this solution; of several the first


_STEADY = OneEuro(0.05, 80.0)  # MediaPipe's for faces and poses
_HEAD = tuple(range(11))  # of a body's points those that are seen most
_SEEN_BODY_HAND = 0.1  # of a wrist's certainty, from which holistic looks for its hand


def _face_start(finding: Finding) -> FrameRegion | None:
    if len(finding.points) < 2:
        return None
    return grown(around_box(finding.box, angle_between(finding.points[0], finding.points[1], 0)), 1.5)


def _face_next(finding: Finding) -> FrameRegion | None:
    return grown(around_points(finding.points, (33, 263)), 1.5) if len(finding.points) > 263 else None


def _hand_start(finding: Finding) -> FrameRegion | None:
    if len(finding.points) < 3:
        return None
    return grown(around_box(finding.box, angle_between(finding.points[0], finding.points[2], 90)), 2.6, -0.5)


def _hand_next(finding: Finding) -> FrameRegion | None:
    return grown(around_hand(finding.points), 2.0, -0.1) if len(finding.points) == 21 else None


def _body_start(finding: Finding) -> FrameRegion | None:
    return grown(by_alignment(finding.points, 90), 1.25) if len(finding.points) > 1 else None


def _body_square(finding: Finding) -> FrameRegion | None:
    return by_alignment(finding.auxiliary, 90) if len(finding.auxiliary) > 1 else None


def _body_next(finding: Finding) -> FrameRegion | None:
    square = _body_square(finding)
    return grown(square, 1.25) if square else None


def _eye_regions(finding: Finding) -> tuple[PartRegion, ...]:
    """The person's right eye, on the left of the picture, as the network knows eyes; the left one is mirrored."""
    if len(finding.points) < 468:
        return ()
    right, left = (
        grown(around_points(finding.points[list(corners)], (0, 1)), 2.3) for corners in EYE_CORNERS
    )  # fmt: skip
    return PartRegion("right", right), PartRegion("left", mirrored(left))


def _palm_region(finding: Finding) -> tuple[PartRegion, ...]:
    region = _hand_start(finding)
    return (PartRegion("", region),) if region else ()


def _body_hand_regions(finding: Finding) -> tuple[PartRegion, ...]:
    regions = []
    for label, wrist, little, index in (("left", 15, 17, 19), ("right", 16, 18, 20)):
        seen = finding.certainty is None or finding.certainty[wrist] > _SEEN_BODY_HAND
        if seen and len(finding.points) > index:
            points = finding.points
            regions.append(
                PartRegion(label, grown(by_body_hand(points[wrist], points[little], points[index]), 2.7, -0.1))
            )
    return tuple(regions)


def _recropped_hand(finding: Finding) -> tuple[PartRegion, ...]:
    return (PartRegion(finding.label, finding.region),) if finding.region else ()


_FACE = Followed(_face_start, _face_next, _STEADY)
_HAND = Followed(_hand_start, _hand_next, _STEADY)
_BODY = Followed(
    _body_start, _body_next, _STEADY,
    auxiliary_filter=OneEuro(0.01, 10.0), certainty_share=0.1, size=_body_square, least_inside=1.0, compared=0.25,
    held_by=_HEAD,
)  # fmt: skip
_PALM = PartLook(_palm_region)

SOLUTIONS = (
    *(
        Solution(name, seeks, (name,), most=8)
        for name, seeks in (
            ("face-detection-short", "face"), ("face-detection-full", "face"), ("face-detection-back", "face"),
            ("palm-detection-full", "hand"), ("palm-detection-lite", "hand"), ("pose-detection", "person"),
        )
    ),
    Solution("face-landmark", "face", ("face-detection-short", "face-landmark"), _FACE, decoder="face-points"),
    Solution(
        "face-landmark-attention", "face", ("face-detection-short", "face-landmark-attention"), _FACE,
        decoder="face-points-attention",
    ),
    Solution(
        "iris-landmark", "eye", ("face-detection-short", "face-landmark", "iris-landmark"), _FACE,
        (PartLook(_eye_regions),), decoder="eye-points",
    ),
    Solution("hand-landmark-full", "hand", ("palm-detection-full", "hand-landmark-full"), _HAND, decoder="hand-points"),
    Solution("hand-landmark-lite", "hand", ("palm-detection-lite", "hand-landmark-lite"), _HAND),
    Solution("hand-recrop", "hand", ("palm-detection-full", "hand-recrop"), parts=(_PALM,), decoder="hand-recrop"),
    Solution("pose-landmark", "person", ("pose-detection", "pose-landmark"), _BODY, decoder="body-points"),
    Solution(  # hands as MediaPipe's holistic finds them; no model has this name, app/models/entries.py has it
        "body-hands", "person", ("pose-detection", "pose-landmark", "hand-recrop", "hand-landmark-full"), _BODY,
        (PartLook(_body_hand_regions), PartLook(_recropped_hand)), shows_whole=True,
    ),
)  # fmt: skip


def solution_of(name: str) -> Solution | None:
    """The one that a model of the catalogue is the last network of, or that has this name; None if there is none."""
    return next((solution for solution in SOLUTIONS if solution.name == name), None)


def solution_ending_with(name: str, decoder: str | None) -> Solution | None:
    """That of a model's name or, of a file, that of a network which is read alike; None if it runs alone."""
    alike = (each for each in SOLUTIONS if each.decoder and each.decoder == decoder)
    return solution_of(name) or next(alike, None)
