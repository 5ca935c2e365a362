"""Decoders of MediaPipe's face landmarks: 468 points, or 478 with irises and what was looked at more closely."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import starmap

import numpy as np

from ...picture.color_planes import Floats
from ...picture.picture import ImageSize
from .decoding import AnchorForm, Decoder, InputRange, ModelFacts
from .found import Finding, SkeletonName
from .point_vectors import found_points, landmarks_of, places_of_sizes, presence_of
from .region import FrameRegion

__all__ = ["ATTENTION_POINTS", "FACE_POINTS"]

# Which points of the mesh the further outputs of the network with attention say more exactly; then the points around
# each eye, whose mean depth its iris gets. Facts of MediaPipe's face_landmark_front graph (0.10.21), Apache-2.0.
_LIPS = (
    61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291, 185, 40, 39, 37, 0, 267, 269, 270, 409,
    78, 95, 88, 178, 87, 14, 317, 402, 318, 324, 308, 191, 80, 81, 82, 13, 312, 311, 310, 415,
    76, 77, 90, 180, 85, 16, 315, 404, 320, 307, 306, 184, 74, 73, 72, 11, 302, 303, 304, 408,
    62, 96, 89, 179, 86, 15, 316, 403, 319, 325, 292, 183, 42, 41, 38, 12, 268, 271, 272, 407,
)  # fmt: skip
_LEFT_EYE = (
    33, 7, 163, 144, 145, 153, 154, 155, 133, 246, 161, 160, 159, 158, 157, 173,
    130, 25, 110, 24, 23, 22, 26, 112, 243, 247, 30, 29, 27, 28, 56, 190,
    226, 31, 228, 229, 230, 231, 232, 233, 244, 113, 225, 224, 223, 222, 221, 189,
    35, 124, 46, 53, 52, 65, 143, 111, 117, 118, 119, 120, 121, 128, 245, 156, 70, 63, 105, 66, 107, 55, 193,
)  # fmt: skip
_RIGHT_EYE = (
    263, 249, 390, 373, 374, 380, 381, 382, 362, 466, 388, 387, 386, 385, 384, 398,
    359, 255, 339, 254, 253, 252, 256, 341, 463, 467, 260, 259, 257, 258, 286, 414,
    446, 261, 448, 449, 450, 451, 452, 453, 464, 342, 445, 444, 443, 442, 441, 413,
    265, 353, 276, 283, 282, 295, 372, 340, 346, 347, 348, 349, 350, 357, 465, 383, 300, 293, 334, 296, 336, 285, 417,
)  # fmt: skip
_AROUND_EYE = 16  # the first points of an eye, which are its lids
_IRISES = ((468, _LEFT_EYE), (473, _RIGHT_EYE))
_IRIS_POINTS = 5
_SIZES = (1404, 160, 142, 142, 10, 10, 1)


@dataclass(frozen=True)
class FaceDecoding:
    """A mesh of points, and whether there is a face."""

    why: str
    size: ImageSize
    skeleton: SkeletonName
    reads: tuple[int, ...]
    input_range: InputRange | None = (0.0, 1.0)
    anchors: AnchorForm | None = None

    def decode(self, outputs: Sequence[Floats], region: FrameRegion) -> tuple[Finding, ...]:
        """As a Decoding does."""
        points = landmarks_of(outputs[0], 3, self.size)
        return found_points("face", presence_of(outputs[1], True), points, region, self.skeleton)


@dataclass(frozen=True)
class AttentionDecoding(FaceDecoding):
    """The same with lips, eyes and irises from outputs of their own."""

    def decode(self, outputs: Sequence[Floats], region: FrameRegion) -> tuple[Finding, ...]:
        """As a Decoding does, joined as MediaPipe's landmarks_refinement_calculator joins them."""
        mesh = landmarks_of(outputs[0], 3, self.size)
        points = np.zeros((len(mesh) + 2 * _IRIS_POINTS, 3), np.float32)
        points[: len(mesh)] = mesh
        for values, places in zip(outputs[1:4], (_LIPS, _LEFT_EYE, _RIGHT_EYE), strict=True):
            points[list(places), :2] = landmarks_of(values, 2, self.size)
        for values, (first, eye) in zip(outputs[4:6], _IRISES, strict=True):
            points[first : first + _IRIS_POINTS, :2] = landmarks_of(values, 2, self.size)
            points[first : first + _IRIS_POINTS, 2] = points[list(eye[:_AROUND_EYE]), 2].mean()
        return found_points("face", presence_of(outputs[6], True), points, region, self.skeleton)


def _mesh(facts: ModelFacts) -> FaceDecoding | None:
    forms: tuple[tuple[int, int, SkeletonName], ...] = ((1404, 468, "face-mesh"), (1434, 478, "face-mesh-attention"))
    return next(filter(None, starmap(lambda *form: _of_form(facts, *form), forms)), None)


def _of_form(facts: ModelFacts, size: int, points: int, skeleton: SkeletonName) -> FaceDecoding | None:
    reads = places_of_sizes(facts, size, 1)
    if reads is None or len(facts.shapes) > 3:
        return None
    return FaceDecoding(f"{points} points of a face, and whether there is one", facts.input_size, skeleton, reads)


def _attention(facts: ModelFacts) -> AttentionDecoding | None:
    reads = places_of_sizes(facts, *_SIZES)
    if reads is None or len(facts.shapes) != len(_SIZES):
        return None
    why = "478 points of a face: a mesh, with lips, eyes and irises from outputs of their own"
    return AttentionDecoding(why, facts.input_size, "face-mesh-attention", reads)


FACE_POINTS = Decoder("face-points", "points", _mesh, repeats_edges=True)
ATTENTION_POINTS = Decoder("face-points-attention", "points", _attention, repeats_edges=True)
