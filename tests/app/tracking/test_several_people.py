"""Several people in a drawn clip: each is found, and keeps its number."""

from pathlib import Path

import pytest

from tests.helpers.oracle_networks import oracle_finder
from tests.helpers.still_frames import frame_of
from tests.tools.mediapipe_beside.drawn_people import drawn_clips, photo
from texelflow.app.tracking.solutions import solution_of

_PHOTOS = Path(__file__).parents[2] / "data" / "scenes" / "photos"
_LEFT, _RIGHT = (95, 290), (410, 515)  # where the clip has the middles of two faces, in pixels from the left


@pytest.mark.parametrize("name", ["face-detection-full", "pose-landmark"])
def test_two_side_by_side_are_two(name: str) -> None:
    hopper, astronaut = (photo(_PHOTOS / f"{name}.jpg") for name in ("hopper", "astronaut"))
    *_, clip = drawn_clips("hopper", hopper, astronaut)
    solution = solution_of(name)
    assert solution
    finder = oracle_finder(solution, most=2)
    numbers = set()
    for index, frame in enumerate(clip.frames[:5]):
        first, second = sorted(finder.find(frame_of(frame, index)), key=lambda finding: float(finding.points[0, 0]))
        assert _LEFT[0] < first.points[0, 0] < _LEFT[1]
        assert _RIGHT[0] < second.points[0, 0] < _RIGHT[1]
        numbers.add((first.track, second.track))
    assert len(numbers) == 1
