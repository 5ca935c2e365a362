"""Findings and their skeletons: what is equal, numbers of points, names."""

from typing import get_args

import numpy as np
import pytest

from texelflow.app.models.decoders.found import Finding, SkeletonName
from texelflow.app.models.decoders.skeletons import SKELETONS

POINTS = {
    "": 0, "face-keypoints": 6, "face-mesh": 468, "face-mesh-attention": 478, "iris": 76, "palm": 7, "hand": 21,
    "body": 33, "body-keypoints": 4, "coco": 17,
    "body-14": 14,
}  # fmt: skip
LINES = {"hand": 21, "body": 35, "coco": 16, "face-mesh": 40 + 32 + 16 + 36}  # as MediaPipe's connections and COCO's


@pytest.mark.parametrize("name", get_args(SkeletonName))
def test_lines_join_points_that_there_are(name: SkeletonName) -> None:
    skeleton, count = SKELETONS[name], POINTS[name]
    pairs = [frozenset(pair) for pair in skeleton.pairs]
    assert all(0 <= point < count for pair in pairs for point in pair)
    assert len({*pairs}) == len(pairs)
    assert all(len(pair) == 2 for pair in pairs)
    assert len(pairs) == LINES.get(name, len(pairs))
    assert len({*skeleton.names}) == len(skeleton.names)
    assert len(skeleton.names) in (0, count)


def test_names_are_where_networks_have_them() -> None:
    assert SKELETONS["body"].names[23:25] == ("left hip", "right hip")
    assert SKELETONS["hand"].names[8] == "index tip"
    assert SKELETONS["coco"].names[9:11] == ("left wrist", "right wrist")


def test_findings_are_compared_and_kept_in_sets() -> None:
    first, second = (Finding("face", 1.0, points=np.zeros((2, 3), np.float32)) for _ in range(2))
    assert first in (second, first)
    assert first != second
    assert len({first, second, first}) == 2
