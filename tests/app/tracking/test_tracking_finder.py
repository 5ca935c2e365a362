"""Tracks: when the detector sleeps, what ends one, that nothing is followed twice; by networks that know the truth."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.still_frames import still_frame
from texelflow.app.models.decoders.found import Finding
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.models.entries import CATALOGUE, COMBINED, SEGMENTATION
from texelflow.app.picture.video_frame import VideoFrame
from texelflow.app.tracking.finder import FrameFinder
from texelflow.app.tracking.region_rules import around_box, around_points, grown, overlap
from texelflow.app.tracking.solutions import SOLUTIONS, Followed, PartLook, PartRegion, Solution, solution_of
from texelflow.app.tracking.tracking_finder import make_finder
from texelflow.gpu_delegate.base.errors import UsageError

_SIZE = (640, 480)
_PLAIN = Solution(
    "things",
    "squares",
    ("detector", "points"),
    Followed(
        starts_at=lambda finding: grown(around_box(finding.box), 1.5),
        goes_on_at=lambda finding: grown(around_points(finding.points), 1.5),
        filter=None,
    ),
)
_Places = Sequence[tuple[float, float]]


@dataclass
class _World:
    """Squares of 60 pixels whose middles are known; what is asked is counted."""

    places: _Places = ()
    detections: int = 0
    looks: list[FrameRegion] = field(default_factory=list)
    score: float = 0.9
    is_broken: bool = False

    def seen(self, place: tuple[float, float], score: float) -> Finding:
        x, y = place
        corners = np.array([[x - 30, y - 30], [x + 30, y - 30], [x + 30, y + 30], [x - 30, y + 30]], np.float32)
        if self.is_broken:
            corners[2, 0] = np.nan
        return Finding("thing", score, around_box((x - 30, y - 30, x + 30, y + 30)), points=corners)


@dataclass
class _Detector:
    world: _World
    input_size: tuple[int, int] = (128, 128)

    def find(self, frame: VideoFrame, region: FrameRegion) -> tuple[Finding, ...]:
        self.world.detections += 1
        assert (region.width, region.height) == (640, 640)  # letterboxed
        return tuple(self.world.seen(place, 0.8) for place in self.world.places)


@dataclass
class _PointNetwork:
    """Finds what is nearest to the middle of its region."""

    world: _World
    input_size: tuple[int, int] = (192, 192)

    def find(self, frame: VideoFrame, region: FrameRegion) -> tuple[Finding, ...]:
        self.world.looks.append(region)
        inside = [
            (abs(x - region.center_x) + abs(y - region.center_y), (x, y))
            for x, y in self.world.places
            if abs(x - region.center_x) < region.width / 2 and abs(y - region.center_y) < region.height / 2
        ]
        return (self.world.seen(min(inside)[1], self.world.score),) if inside else ()


@dataclass
class _Fixed:
    """A detector that finds the same in each frame, or a network that finds what it looks at, without the margin."""

    regions: tuple[FrameRegion, ...] = ()
    input_size: tuple[int, int] = (64, 64)

    def find(self, frame: VideoFrame, region: FrameRegion) -> tuple[Finding, ...]:
        places = self.regions or (replace(region, width=region.width / 1.5, height=region.height / 1.5),)
        corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float32)
        return tuple(Finding("thing", 0.9, place, points=place.points_to_frame(corners)) for place in places)


def _finder(world: _World, most: int = 2) -> FrameFinder:
    return make_finder(_PLAIN, (_Detector(world), _PointNetwork(world)), most)


def _numbers(findings: Sequence[Finding]) -> list[int]:
    return sorted(finding.track for finding in findings)


def test_the_detector_sleeps_while_all_are_followed_and_numbers_stay() -> None:
    world = _World([(100, 100), (400, 300)])
    finder = _finder(world)
    for k in range(10):
        world.places = [(100 + 5 * k, 100), (400, 300 - 5 * k)]
        found = finder.find(still_frame(_SIZE, k))
        assert _numbers(found) == [1, 2]
        assert {f.track: f.box[0] + 30 for f in found} == pytest.approx({1: 100 + 5 * k, 2: 400})
    assert world.detections == 1


def test_with_one_too_few_the_detector_looks_ten_times_a_second_and_adds_no_track_of_what_is_followed() -> None:
    world = _World([(100, 100)])
    finder = _finder(world)
    for k in range(12):
        assert _numbers(finder.find(still_frame(_SIZE, k))) == [1]
    assert world.detections == 5  # frame 0, where it found one; then 1, 4, 7 and 10
    world.places = [(100, 100), (400, 300)]
    assert _numbers(finder.find(still_frame(_SIZE, 13))) == [1, 2]
    world.places = []
    for k in range(14, 18):
        finder.find(still_frame(_SIZE, k))
    assert world.detections == 9  # all asleep are lost in frame 14; from then on each time


def test_as_mediapipe_the_detector_looks_each_time() -> None:
    world = _World([(100, 100)])
    finder = make_finder(replace(_PLAIN, looks_again_s=0), (_Detector(world), _PointNetwork(world)), most=2)
    for k in range(4):
        assert _numbers(finder.find(still_frame(_SIZE, k))) == [1]
    assert world.detections == 4


@pytest.mark.parametrize("is_followed", [True, False])
def test_what_is_lost_has_its_number_again_within_half_a_second_where_it_was(is_followed: bool) -> None:
    world = _World([(100, 100)])
    alone = make_finder(Solution("alone", "squares", ("detector",)), [_Detector(world)], most=2)
    finder = _finder(world, most=2) if is_followed else alone
    finder.find(still_frame(_SIZE, 0))
    world.places = []
    assert finder.find(still_frame(_SIZE, 1)) == ()
    assert finder.find(still_frame(_SIZE, 15)) == ()
    world.places = [(105, 100), (400, 100)]
    assert _numbers(finder.find(still_frame(_SIZE, 16))) == [1, 2]
    world.places = []
    assert finder.find(still_frame(_SIZE, 17)) == ()
    world.places = [(105, 100), (400, 300)]
    assert _numbers(finder.find(still_frame(_SIZE, 33))) == [3, 4]
    finder.begin_anew()
    assert _numbers(finder.find(still_frame(_SIZE, 34))) == [5, 6]


def test_a_score_that_is_not_above_the_threshold_ends_a_track() -> None:
    world = _World([(100, 100)])
    finder = _finder(world, most=1)
    finder.find(still_frame(_SIZE, 0))
    world.score = 0.5
    assert finder.find(still_frame(_SIZE, 1)) == ()


def test_what_is_no_number_ends_a_track() -> None:
    world = _World([(100, 100)])
    finder = _finder(world, most=1)
    finder.find(still_frame(_SIZE, 0))
    world.is_broken = True
    assert finder.find(still_frame(_SIZE, 1)) == ()
    assert finder.find(still_frame(_SIZE, 2)) == ()  # nor is the detector's taken
    world.is_broken = False
    assert len(finder.find(still_frame(_SIZE, 3))) == 1


def test_two_that_become_one_are_merged_into_the_older() -> None:
    world = _World([(100, 100), (300, 100)])
    finder = _finder(world)
    finder.find(still_frame(_SIZE, 0))
    for k in range(1, 21):
        world.places = [(100 + 10 * k, 100), (300, 100)]
        found = finder.find(still_frame(_SIZE, k))
        assert _numbers(found) == ([1, 2] if k < 18 else [1])


def test_what_lies_in_another_is_a_part_of_it() -> None:
    large, small = FrameRegion(100, 100, 300, 300), FrameRegion(110, 90, 150, 150)
    finder = make_finder(_PLAIN, (_Fixed((large, small)), _Fixed()), most=4)
    (finding,) = finder.find(still_frame(_SIZE))
    assert finding.region == large
    apart = FrameRegion(300, 100, 150, 150)  # their margins overlap, they do not
    finder = make_finder(_PLAIN, (_Fixed((large, apart)), _Fixed()), most=4)
    assert len(finder.find(still_frame(_SIZE))) == 2


def test_pictures_one_by_one_have_no_past() -> None:
    world = _World([(100, 100), (400, 300)])
    finder = _finder(world)
    for k in range(3):
        world.places = [(100 + 5 * k, 100), (400, 300 - 5 * k)]
        finder.begin_anew()
        found = finder.find(still_frame(_SIZE, k))
        assert sorted(each.box[0] + 30 for each in found) == [100 + 5 * k, 400], "points are not filtered"
    assert world.detections == 3


def test_another_size_and_a_cut_begin_anew() -> None:
    world = _World([(100, 100), (400, 300)])
    finder = _finder(world)
    finder.find(still_frame(_SIZE, 0))
    finder.begin_anew()
    assert _numbers(finder.find(still_frame(_SIZE, 1))) == [3, 4]
    assert world.detections == 2


places = st.lists(st.tuples(st.floats(-50, 700), st.floats(-50, 530)), max_size=6)


@given(st.lists(places, min_size=1, max_size=8), st.integers(1, 4))
def test_whatever_happens_tracks_are_few_and_apart(frames: list[_Places], most: int) -> None:
    world = _World()
    finder = _finder(world, most)
    numbers: set[int] = set()
    for k, seen in enumerate(frames):
        world.places = seen
        world.looks.clear()
        found = finder.find(still_frame(_SIZE, k))
        assert len(found) <= most
        assert len(world.looks) <= most
        assert all(finding.track > 0 for finding in found)
        assert len({finding.track for finding in found}) == len(found)
        squares = [grown(around_points(finding.points), 1.5) for finding in found]
        assert all(overlap(a, b) <= 0.5 for i, a in enumerate(squares) for b in squares[:i])
        new = {finding.track for finding in found} - numbers
        assert all(number > max(numbers, default=0) for number in new)
        numbers |= new


@given(st.lists(places, min_size=1, max_size=8))
def test_detectors_alone_number_what_they_find(frames: list[_Places]) -> None:
    world = _World()
    finder = make_finder(Solution("alone", "squares", ("detector",)), [_Detector(world)], most=6)
    for k, seen in enumerate(frames):
        world.places = seen
        found = finder.find(still_frame(_SIZE, k))
        assert len(found) == len(seen)
        assert len({finding.track for finding in found}) == len(found)
        world.places = [(x + 5, y - 5) for x, y in seen]
        again = finder.find(still_frame(_SIZE, k))
        if all(abs(a[0] - b[0]) + abs(a[1] - b[1]) > 80 for i, a in enumerate(seen) for b in seen[:i]):
            assert _numbers(again) == _numbers(found)


def test_every_model_of_the_catalogue_that_finds_something_has_a_solution_of_models_of_the_catalogue() -> None:
    wanted = {name for name, entry in CATALOGUE.items() if entry.task != SEGMENTATION}
    assert wanted <= {solution.name for solution in SOLUTIONS}
    assert len({solution.name for solution in SOLUTIONS}) == len(SOLUTIONS)
    for solution in SOLUTIONS:
        assert set(solution.models) <= wanted
        assert len(solution.models) == 1 + bool(solution.followed) + len(solution.parts)
        if solution.name in wanted:
            assert solution.models[-1] == solution.name
    assert solution_of("selfie") is None
    for name, (last, _) in COMBINED.items():
        combined = solution_of(name)
        assert combined
        assert combined.models[-1] == last


def test_parts_are_shown_behind_what_they_are_parts_of_where_that_is_shown_too() -> None:
    world = _World([(100, 100), (400, 300)])
    corner = PartLook(lambda finding: (PartRegion("corner", around_box((*finding.points[0], *finding.points[2]))),))
    solution = replace(_PLAIN, models=("detector", "points", "corners"), parts=(corner,))
    labels = []
    for shows_whole in (False, True):
        finder = make_finder(
            replace(solution, shows_whole=shows_whole), (_Detector(world), _PointNetwork(world), _Fixed())
        )
        found = finder.find(still_frame(_SIZE, 0))
        labels.append([(each.label, each.track) for each in found])
    assert labels == [[("corner", 1), ("corner", 2)], [("", 1), ("", 2), ("corner", 1), ("corner", 2)]]


@pytest.mark.parametrize("most", [0, 65, -1])
def test_numbers_that_make_no_sense_are_refused(most: int) -> None:
    world = _World()
    with pytest.raises(UsageError, match="1 to 64"):
        _finder(world, most)
    with pytest.raises(UsageError, match="takes 2 networks"):
        make_finder(replace(_PLAIN), [_Detector(world)])
