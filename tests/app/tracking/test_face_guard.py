"""Which findings are taken for faces to hide: less of one is needed at the edge, more for a box that hides much."""

from dataclasses import dataclass

import numpy as np
import pytest

from texelflow.app.models.decoders.found import Finding
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.picture.picture import ImageSize, rgba_picture
from texelflow.app.picture.video_frame import VideoFrame
from texelflow.app.tracking.face_guard import FaceGuard


@dataclass
class Sees:
    """A network that finds the same in each region."""

    found: tuple[Finding, ...]
    input_size: ImageSize = (192, 192)

    def find(self, frame: VideoFrame, region: FrameRegion) -> tuple[Finding, ...]:
        return self.found


def face(score: float, x: float, y: float, side: float) -> Finding:
    return Finding("face", score, FrameRegion(x, y, side, side))


@pytest.mark.parametrize(
    ("score", "x", "side", "is_face"),
    [
        pytest.param(0.31, 320, 80, True, id="inside"),
        pytest.param(0.25, 320, 80, False, id="inside, too low"),
        pytest.param(0.16, 640, 80, True, id="half outside"),
        pytest.param(0.16, 46, 80, True, id="near the edge"),
        pytest.param(0.16, 60, 80, False, id="not so near"),
        pytest.param(0.5, 320, 300, False, id="large"),
        pytest.param(0.61, 320, 300, True, id="large and sure"),
        pytest.param(0.46, 100, 300, True, id="large, half outside"),
        pytest.param(0.4, 100, 300, False, id="large, half outside, too low"),
    ],
)
def test_a_score_counts_by_the_place_and_the_size_of_the_box(
    score: float, x: float, side: float, is_face: bool
) -> None:
    frame = VideoFrame(0, 0, 0.0, rgba_picture(np.zeros((480, 640, 4), np.uint8)))
    assert len(FaceGuard(Sees((face(score, x, 240, side),))).find(frame)) == is_face


def test_what_does_not_count_hides_no_other() -> None:
    frame = VideoFrame(0, 0, 0.0, rgba_picture(np.zeros((480, 640, 4), np.uint8)))
    (found,) = FaceGuard(Sees((face(0.55, 320, 240, 300), face(0.4, 330, 240, 80)))).find(frame)
    assert found.score == 0.4
