"""Decoder of MediaPipe's hand landmarks: 21 points of a hand, and which hand it is."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...picture.color_planes import Floats
from ...picture.picture import ImageSize
from .decoding import AnchorForm, Decoder, InputRange, ModelFacts
from .found import Finding
from .point_vectors import found_points, landmarks_of, places_of_sizes, presence_of
from .region import FrameRegion
from .suppression import is_sound

__all__ = ["HAND_POINTS"]

_POINTS = 21 * 3
_DEPTH = 0.4  # by which MediaPipe's graph divides z


@dataclass(frozen=True)
class HandDecoding:
    """The points of a hand; labelled left or right, as it is of its owner in a picture that is not mirrored.

    MediaPipe, which takes pictures to be mirrored, says the other one.
    """

    size: ImageSize
    reads: tuple[int, ...]
    why: str = "21 points of a hand, whether there is one, and which"
    input_range: InputRange | None = (0.0, 1.0)
    anchors: AnchorForm | None = None

    def decode(self, outputs: Sequence[Floats], region: FrameRegion) -> tuple[Finding, ...]:
        """As a Decoding does."""
        points = landmarks_of(outputs[0], 3, self.size, _DEPTH)
        label = "right" if presence_of(outputs[2], False) > 0.5 else "left"
        found = found_points("hand", presence_of(outputs[1], False), points, region, "hand", label)
        if len(outputs) < 4 or not is_sound(outputs[3]):
            return found
        world = region.directions_to_frame(outputs[3].reshape(-1, 3))
        return tuple(replace(hand, world=world) for hand in found)


def _decoding(facts: ModelFacts) -> HandDecoding | None:
    if len(facts.shapes) not in (3, 4):
        return None
    reads = places_of_sizes(facts, _POINTS, 1, 1, *([_POINTS] if len(facts.shapes) == 4 else []))
    return HandDecoding(facts.input_size, reads) if reads else None


HAND_POINTS = Decoder("hand-points", "points", _decoding, repeats_edges=True)
