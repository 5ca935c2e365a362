"""Decoder of MediaPipe's hand recrop: where in a region a hand is, how large, and how it is turned."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...picture.color_planes import Floats
from ...picture.picture import ImageSize
from .decoding import AnchorForm, Decoder, InputRange, ModelFacts
from .found import Finding
from .point_vectors import landmarks_of, places_of_sizes
from .region import FrameRegion, region_between
from .suppression import is_sound

__all__ = ["HAND_RECROP"]

_SHIFT = -0.1  # of the square, in its own height: MediaPipe's hand_recrop_by_roi graph


@dataclass(frozen=True)
class RecropDecoding:
    """A square around a hand, of two points that the network puts out: its middle, and one on its edge, at the wrist.

    The network does not say whether there is a hand: its score is 1.
    """

    size: ImageSize
    reads: tuple[int, ...]
    why: str = "the middle of a hand, and a point that says how large it is and how it is turned"
    input_range: InputRange | None = (0.0, 1.0)
    anchors: AnchorForm | None = None

    def decode(self, outputs: Sequence[Floats], region: FrameRegion) -> tuple[Finding, ...]:
        """As a Decoding does."""
        fractions = landmarks_of(outputs[0], 2, self.size)
        if not is_sound(fractions):
            return ()
        points = region.points_to_frame(fractions)
        (x, y), (edge_x, edge_y) = points.tolist()
        square = region_between((x, y), (edge_x, edge_y), -90).moved(0, _SHIFT)
        return (Finding("hand", 1.0, square, points=points),) if square.width > 0 else ()


def _decoding(facts: ModelFacts) -> RecropDecoding | None:
    reads = places_of_sizes(facts, 4)
    is_it = reads is not None and len(facts.shapes) == 1 and facts.is_called("output_crop", "hand_recrop")
    return RecropDecoding(facts.input_size, reads) if is_it and reads else None


HAND_RECROP = Decoder("hand-recrop", "detection", _decoding, repeats_edges=True)
