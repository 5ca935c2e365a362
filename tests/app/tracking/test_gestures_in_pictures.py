"""Gestures of drawn hands, as MediaPipe's networks find their points: turned a little, left and right."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.helpers.hands import drawn_hand
from tests.helpers.markers import one_in
from tests.helpers.still_frames import frame_of
from texelflow.app.frame.finding.region_networks import open_cpu_regions
from texelflow.app.frame.inference.backends import CpuChoice
from texelflow.app.models.finding_loading import load_finding_model
from texelflow.app.picture.picture import rgba_format
from texelflow.app.tracking.finder import FrameFinder
from texelflow.app.tracking.gestures import gestures_in
from texelflow.app.tracking.solutions import solution_of
from texelflow.app.tracking.tracking_finder import make_finder


@pytest.fixture(scope="module")
def finder() -> Iterator[FrameFinder]:
    """Of hands, by TensorFlow Lite: no code is made for it."""
    solution = solution_of("hand-landmark-full")
    assert solution
    choice, format = CpuChoice("tflite", 1), rgba_format((640, 480))
    networks = [open_cpu_regions(load_finding_model(name), format, choice) for name in solution.models]
    yield make_finder(solution, networks)
    for network in networks:
        network.release()


@one_in(
    9,
    ("shows", "turn", "mirrored"),
    [
        (shows, turn, mirrored)
        for shows in ("open-palm", "fist", "victory", "thumb-up", "thumb-down", "pointing")
        for turn, mirrored in ((0.0, False), (25.0, True), (-20.0, False))
    ],
)
def test_networks_points_show_what_was_drawn(finder: FrameFinder, shows: str, turn: float, mirrored: bool) -> None:
    picture = drawn_hand(shows, turn=turn)
    finder.begin_anew()
    for number in range(2):
        found = finder.find(frame_of(np.ascontiguousarray(picture[:, ::-1] if mirrored else picture), number))
        assert len(found) == 1
        assert gestures_in(found) == (frozenset() if shows == "pointing" else {shows})
