"""Finds faces to hide them: in every frame, at a low score, and twice, so that a face cut by the edge is found early.

The detector sees the frame, and once more a larger region around it, in which faces at the edge are not at its own
edge. Of faces that come in, 6 to 16 pixels a frame, that leaves 49 of 639 frames to other means (edge_motion.py), where
one look leaves 120. It costs the detector twice.
"""

from dataclasses import replace

from ..models.decoders.blaze_boxes import BlazeDecoding
from ..models.decoders.found import Finding
from ..models.decoders.region import whole_region
from ..models.finding_model import FindingModel
from ..picture.video_frame import VideoFrame
from .finder import RegionNetwork, found_in_each
from .region_rules import around_box, share_inside

__all__ = ["GUARD_MODEL", "FaceGuard", "guarding"]

GUARD_MODEL = "face-detection-full"  # of the catalogue
_LEAST_SCORE = 0.3
_LARGER = 1.3  # the second region, in frames
_SAME = 0.5  # of the smaller box: what both have in common from which on they are of one face


def guarding(model: FindingModel) -> FindingModel:
    """A detector that is content with less: what it is not sure of is hidden, too."""
    decoding = model.decoding
    assert isinstance(decoding, BlazeDecoding), "it is one of MediaPipe's detectors"
    anchors = replace(decoding.anchors, least_score=_LEAST_SCORE)
    return replace(model, decoding=replace(decoding, anchors=anchors))


class FaceGuard:
    """A FrameFinder. Tracks have no numbers: who covers faces follows them (face_covers.py)."""

    def __init__(self, detector: RegionNetwork) -> None:
        self._detector = detector

    def find(self, frame: VideoFrame) -> tuple[Finding, ...]:
        """All faces, the most certain first. Raises TexelflowError."""
        whole = whole_region(frame.size, self._detector.input_size)
        larger = replace(whole, width=_LARGER * whole.width, height=_LARGER * whole.height)
        found = [finding for seen in found_in_each(self._detector, frame, (whole, larger)) for finding in seen]
        kept: list[Finding] = []
        for finding in sorted(found, key=lambda each: -each.score):
            place = around_box(finding.box)
            if all(share_inside(place, around_box(other.box)) < _SAME for other in kept):
                kept.append(finding)
        return tuple(kept)

    def begin_anew(self) -> None:
        """Nothing is remembered."""
