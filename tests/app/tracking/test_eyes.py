"""Eyes and irises against those that MediaPipe's face mesh has by its network with attention."""

import numpy as np

from tests.helpers.oracle_networks import oracle_finder
from tests.helpers.still_frames import frame_of
from tests.tools.mediapipe_beside.kept_numbers import kept_of
from texelflow.app.tracking.solutions import solution_of

_IRIS = {"right": (468, 33, 133), "left": (473, 362, 263)}  # of a face's 478 points: an iris' middle, an eye's corners


def test_irises_of_both_eyes_lie_where_the_network_with_attention_has_them() -> None:
    clip, (face,) = kept_of("face-landmark-attention")
    of_eyes = solution_of("iris-landmark")
    assert of_eyes
    eyes = oracle_finder(of_eyes, 1).find(frame_of(clip.frames[0]))
    assert [eye.label for eye in eyes] == ["right", "left"]
    for eye in eyes:
        middle, first, second = face.points[list(_IRIS[eye.label]), :2]
        width = np.hypot(*(second - first))
        assert np.hypot(*(eye.points[71, :2] - middle)) < 0.03 * width  # 0.05 without the pixel that mirroring moves
        assert eye.points[:71, 1].min() < middle[1] < eye.points[:71, 1].max()
