"""Several people in drawn clips: each is found, stays the one it is, and keeps its number."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.clips import DEMO_CLIP
from tests.helpers.markers import exhaustive
from tests.helpers.oracle_networks import oracle_finder
from tests.helpers.still_frames import frame_of
from tests.tools.mediapipe_beside.drawn_people import drawn_clips, drawn_stills, photo
from texelflow.app.media.sources import FileSource
from texelflow.app.models.decoders.found import Finding
from texelflow.app.picture.convert import Rgba
from texelflow.app.picture.video_frame import VideoFrame
from texelflow.app.tracking.solutions import Solution, solution_of

_PHOTOS = Path(__file__).parents[2] / "data" / "scenes" / "photos"
_LEFT, _RIGHT = (95, 290), (410, 515)  # where the clip has the middles of two faces, in pixels from the left
_HEAD = 11  # of a body's points


def _solution(name: str) -> Solution:
    solution = solution_of(name)
    assert solution
    return solution


def _photos(*names: str) -> list[Rgba]:
    return [photo(_PHOTOS / f"{name}.jpg") for name in names]


def _heads_in_faces(frames: Sequence[VideoFrame]) -> list[tuple[Finding, ...]]:
    """The people that are found, from left to right, of whom each has its head in a face that is there."""
    finder = oracle_finder(_solution("pose-landmark"))
    faces = oracle_finder(_solution("face-detection-full"))
    found = []
    for frame in frames:
        people = sorted(finder.find(frame), key=lambda finding: float(finding.points[0, 0]))
        boxes = [face.box for face in faces.find(frame)]
        for person in people:
            x, y = person.points[:_HEAD, :2].mean(axis=0)
            assert any(left < x < right and top < y < bottom for left, top, right, bottom in boxes)
        found.append(tuple(people))
    return found


@pytest.mark.parametrize("name", ["face-detection-full", "pose-landmark"])
def test_two_side_by_side_are_two(name: str) -> None:
    hopper, astronaut = _photos("hopper", "astronaut")
    *_, clip = drawn_clips("hopper", hopper, astronaut)
    finder = oracle_finder(_solution(name), most=2)
    numbers = set()
    for index, frame in enumerate(clip.frames[:5]):
        first, second = sorted(finder.find(frame_of(frame, index)), key=lambda finding: float(finding.points[0, 0]))
        assert _LEFT[0] < first.points[0, 0] < _LEFT[1]
        assert _RIGHT[0] < second.points[0, 0] < _RIGHT[1]
        numbers.add((first.track, second.track))
    assert len(numbers) == 1


@pytest.mark.parametrize("names", [("hopper", "astronaut"), ("astronaut", "hopper")])
def test_two_in_a_picture_that_stands_still_stay_two(names: tuple[str, str]) -> None:
    first_photo, second_photo = _photos(*names)
    *_, pair = drawn_stills(names[0], first_photo, second_photo)
    found = _heads_in_faces([frame_of(pair.frames[0], index) for index in range(8)])
    assert len({tuple(person.track for person in people) for people in found}) == 1
    assert len(found[0]) == 2
    first, last = (np.stack([person.points[0, :2] for person in people]) for people in (found[0], found[-1]))
    assert np.abs(last - first).max() < 8


@pytest.mark.parametrize("start", [106, *(pytest.param(start, marks=exhaustive) for start in (90, 101))])
def test_one_beside_somebody_larger_stays_itself(start: int) -> None:
    """The detector sees both in few frames, and the network's own regions go over to the larger one."""
    with FileSource(DEMO_CLIP) as source:
        frames = [frame for frame in islice(source, 117) if frame.index >= start]
    found = _heads_in_faces(frames)
    assert {len(people) for people in found[-6:]} == {2}
    assert len({tuple(person.track for person in people) for people in found[-6:]}) == 1
