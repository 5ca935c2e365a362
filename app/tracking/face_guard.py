"""Finds faces to hide them: in every frame, at a low score, and three times, so that one is found as early as can be.

The score is lowest at the frame's edge, and that of a box that would hide half of the frame is no lower than usual.

The detector sees the frame, and once more a larger region around it, in which faces at the edge are not at its own
edge, and one of four overlapping parts, in turn, in which small ones are larger. What is left to other means (frames
that are seen before they are drawn, edge_motion.py) is counted by tests/tools/uncovered_faces.py.
"""

from dataclasses import replace

from ..models.decoders.blaze_boxes import BlazeDecoding
from ..models.decoders.found import Finding
from ..models.decoders.region import FrameRegion, whole_region
from ..models.finding_model import FindingModel
from ..picture.picture import ImageSize
from ..picture.video_frame import VideoFrame
from .finder import RegionNetwork, found_in_each
from .region_rules import around_box, share_inside

__all__ = ["GUARD_MODEL", "FaceGuard", "guarding"]

GUARD_MODEL = "face-detection-full"  # of the catalogue
# Scores from which on a face is hidden, of those that are large, too: at the frame's edge, where a part of one may be
# seen, and elsewhere.
_LEAST_AT_EDGE, _LEAST = 0.15, 0.3
_LARGE_AT_EDGE, _LARGE_INSIDE = 0.45, 0.6
_NEAR_EDGE = 0.1  # how near the frame's edge that is, in widths of a box
_LARGE = 0.55  # of the frame's shorter side: a box that is wider hides much, maybe for nothing
_LARGER = 1.3  # the second region, in frames
_LONG, _SHORT = 0.6, 0.8  # the side of a part, a square: of the frame's sides, the larger of both
_SAME = 0.5  # of the smaller box: what both have in common from which on they are of one face


def guarding(model: FindingModel) -> FindingModel:
    """A detector that is content with less: what it is not sure of is hidden, too."""
    decoding = model.decoding
    assert isinstance(decoding, BlazeDecoding), "it is one of MediaPipe's detectors"
    anchors = replace(decoding.anchors, least_score=_LEAST_AT_EDGE)
    return replace(model, decoding=replace(decoding, anchors=anchors))


class FaceGuard:
    """A FrameFinder. Tracks have no numbers: who covers faces follows them (face_covers.py)."""

    def __init__(self, detector: RegionNetwork) -> None:
        self._detector = detector
        self._turn = 0  # which part comes next

    def find(self, frame: VideoFrame) -> tuple[Finding, ...]:
        """All faces, the most certain first. Raises TexelflowError."""
        whole = whole_region(frame.size, self._detector.input_size)
        larger = replace(whole, width=_LARGER * whole.width, height=_LARGER * whole.height)
        part = _parts(frame.size)[self._turn]
        self._turn = (self._turn + 1) % 4
        seen = found_in_each(self._detector, frame, (whole, larger, part))
        placed = [(finding, around_box(finding.box)) for found in seen for finding in found]
        kept: list[tuple[Finding, FrameRegion]] = []
        for finding, place in sorted(placed, key=lambda each: -each[0].score):
            if finding.score < _least_score(place, frame.size):
                continue
            if all(share_inside(place, other) < _SAME for _, other in kept):
                kept.append((finding, place))
        return tuple(finding for finding, _ in kept)

    def begin_anew(self) -> None:
        """The parts begin anew; nothing else is remembered."""
        self._turn = 0


def _least_score(place: FrameRegion, frame: ImageSize) -> float:
    """From which on what was found there is hidden."""
    inside = (middle - abs(size / 2) for middle, size in (
        (place.center_x, place.width), (frame[0] - place.center_x, place.width),
        (place.center_y, place.height), (frame[1] - place.center_y, place.height),
    ))  # fmt: skip
    at_edge, is_large = min(inside) < _NEAR_EDGE * place.width, place.width > _LARGE * min(frame)
    if at_edge:
        return _LARGE_AT_EDGE if is_large else _LEAST_AT_EDGE
    return _LARGE_INSIDE if is_large else _LEAST


def _parts(frame: ImageSize) -> tuple[FrameRegion, ...]:
    """Four squares that overlap, one around each corner."""
    width, height = frame
    side = max(_LONG * max(frame), _SHORT * min(frame))
    x, y = (width / 4, height / 3) if width >= height else (width / 3, height / 4)
    middles = (x, y), (width - x, y), (x, height - y), (width - x, height - y)
    return tuple(FrameRegion(*middle, side, side) for middle in middles)
