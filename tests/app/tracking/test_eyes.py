"""Eyes and irises against those that the network with attention finds by itself."""

from pathlib import Path

import numpy as np

from tests.helpers.oracle_networks import oracle_finder
from tests.helpers.still_frames import frame_of
from tests.tools.mediapipe_beside.drawn_people import photo
from texelflow.app.tracking.solutions import solution_of

_PHOTO = Path(__file__).parents[2] / "data" / "scenes" / "photos" / "astronaut.jpg"
_IRIS = {"right": (468, 33, 133), "left": (473, 362, 263)}  # of a face's 478 points: an iris' middle, an eye's corners


def test_irises_of_both_eyes_lie_where_the_network_with_attention_has_them() -> None:
    frame = frame_of(photo(_PHOTO))
    by_attention, of_eyes = solution_of("face-landmark-attention"), solution_of("iris-landmark")
    assert by_attention
    assert of_eyes
    (face,) = oracle_finder(by_attention, 1, is_still=True).find(frame)
    eyes = oracle_finder(of_eyes, 1, is_still=True).find(frame)
    assert [eye.label for eye in eyes] == ["right", "left"]
    for eye in eyes:
        middle, first, second = face.points[list(_IRIS[eye.label]), :2]
        width = np.hypot(*(second - first))
        assert np.hypot(*(eye.points[71, :2] - middle)) < 0.03 * width  # 0.05 without the pixel that mirroring moves
        assert eye.points[:71, 1].min() < middle[1] < eye.points[:71, 1].max()
