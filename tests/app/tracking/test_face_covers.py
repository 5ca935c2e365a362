"""Faces stay covered: while they are seen, half a second after, ahead of when they were first found, and crossing."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from texelflow.app.models.decoders.found import Finding
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.tracking.face_covers import HELD_MS, FaceCover, FaceCovers, covers_in_frame

FRAME_MS = 1000 / 30


def face(x: float, y: float, size: float = 60.0, track: int = 1) -> Finding:
    return Finding("face", 0.9, FrameRegion(x, y, size, size), track=track)


def covers_whole(covers: tuple[FaceCover, ...], x: float, y: float, size: float = 60.0) -> bool:
    """Whether each corner and edge of a face's box, and its middle, is within some cover."""
    half = size / 2
    places = [(x + i * half, y + j * half) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    return all(any(_within(cover, place) for cover in covers) for place in places)


def _within(cover: FaceCover, place: tuple[float, float]) -> bool:
    across, down = (place[0] - cover.center_x) / cover.half_width, (place[1] - cover.center_y) / cover.half_height
    return abs(across) ** 3 + abs(down) ** 3 <= 1


def test_a_cover_is_larger_than_the_face_that_was_found() -> None:
    covers = FaceCovers()
    covers.see([face(100, 80), Finding("hand", 0.9, FrameRegion(0, 0, 9, 9)), Finding("class", 1.0)], 0)
    assert len(covers.covers()) == 1
    assert covers_whole(covers.covers(), 100, 80)


@pytest.mark.parametrize("frames", [1, 5, 14])
def test_a_face_that_is_lost_stays_covered_where_it_was_and_where_it_goes(frames: int) -> None:
    covers = FaceCovers()
    for number in range(4):
        covers.see([face(100 + 6 * number, 80)], number * FRAME_MS)
    for number in range(4, 4 + frames):
        covers.see([], number * FRAME_MS)
        assert covers_whole(covers.covers(), 100 + 6 * number, 80), "it went on behind something"
        assert covers_whole(covers.covers(), 118, 80), "it stopped"
        assert covers_whole(covers.covers(), 118 + 3 * (number - 3), 80), "it slowed down"


def test_after_half_a_second_it_is_gone() -> None:
    covers = FaceCovers()
    covers.see([face(100, 80)], 0)
    covers.see([], HELD_MS)
    assert covers.covers()
    covers.see([], HELD_MS + 1)
    assert not covers.covers()


def test_a_face_that_comes_in_is_covered_in_the_frames_before_it_was_found() -> None:
    covers = FaceCovers(kept=8)
    for number in range(12):
        x = -40.0 + 12 * number
        covers.see([face(x, 80)] if x > 20 else [], number * FRAME_MS)
    for age in range(8):
        assert covers_whole(covers.covers(age), -40.0 + 12 * (11 - age), 80), age
    assert not covers.covers(8), "that frame is not kept"


def test_frames_between_two_in_which_it_was_found_are_covered_along_its_way() -> None:
    covers = FaceCovers(kept=8)
    for number in range(8):
        covers.see([face(100 + 10 * number, 80)] if number in (0, 1, 6, 7) else [], number * FRAME_MS)
    for age in range(8):
        assert covers_whole(covers.covers(age), 100 + 10 * (7 - age), 80)


def test_a_face_that_comes_beside_a_false_one_is_covered_before_it_was_found() -> None:
    covers = FaceCovers(kept=8)
    for number in range(8):
        covers.see([face(100, 80)] if number < 4 else [face(155, 80)] if number > 5 else [], number * FRAME_MS)
    for age in range(8):
        assert covers_whole(covers.covers(age), 155, 80), age


def test_two_that_cross_are_covered_though_one_is_hidden_behind_the_other() -> None:
    covers = FaceCovers()
    for number in range(30):
        left, right = 100 + 8 * number, 340 - 8 * number
        hidden = abs(left - right) < 70
        covers.see([face(left, 80), *([] if hidden else [face(right, 84, track=2)])], number * FRAME_MS)
        assert covers_whole(covers.covers(), left, 80), number
        assert covers_whole(covers.covers(), right, 84), number


def test_chosen_faces_are_left_open_and_each_has_a_number() -> None:
    covers = FaceCovers()
    for time_ms in (0, FRAME_MS):
        seen = covers.see([face(100, 80), face(300, 80), face(500, 80)], time_ms)
        assert [each.track for each in seen] == [1, 2, 3]
        assert {cover.track for cover in covers.covers()} == {1, 2, 3}
        assert {cover.track for cover in covers.covers(0, {1, 3})} == {2}


@pytest.mark.parametrize(
    "then",
    [
        pytest.param([[]] * 8 + [[face(100, 80)]], id="lost for a while"),
        pytest.param([[], [face(160, 80)]], id="elsewhere"),
        pytest.param([[face(100, 80), face(130, 80)]], id="another one comes near"),
    ],
)
def test_a_face_that_may_be_another_has_another_number_and_is_covered(then: list[list[Finding]]) -> None:
    covers = FaceCovers()
    for number, faces in enumerate([[face(100, 80)], [face(100, 80)], *then, then[-1]]):
        covers.see(faces, number * FRAME_MS)
    for shown in then[-1]:
        middle = shown.region
        assert middle
        assert covers_whole(covers.covers(0, {1}), middle.center_x, middle.center_y)


def test_a_face_that_is_left_open_is_covered_once_it_is_lost_for_long() -> None:
    covers = FaceCovers()
    covers.see([face(100, 80)], 0)
    covers.see([], 3 * FRAME_MS)
    assert not covers.covers(0, {1})
    covers.see([], 9 * FRAME_MS)
    assert covers_whole(covers.covers(0, {1}), 100, 80)


def test_a_cut_forgets_all_and_a_clock_that_stands_still_does_not() -> None:
    covers = FaceCovers(2)
    covers.see([face(100, 80)], 5)
    covers.see([face(102, 80)], 5)
    assert covers_whole(covers.covers(), 102, 80)
    assert covers_whole(covers.covers(1), 100, 80)
    covers.begin_anew()
    assert not covers.covers()


@given(
    st.tuples(st.floats(-15, 15), st.floats(-15, 15)),
    st.lists(st.booleans(), min_size=6, max_size=40),
    st.floats(20, 200),
    st.integers(0, 5),
)
def test_whichever_frames_a_detector_misses(
    step: tuple[float, float], seen: list[bool], size: float, age: int
) -> None:  # fmt: skip
    """Of a face that moves evenly, at most half its size a frame, no frame after the first two shows anything."""
    covers, places = FaceCovers(kept=6), []
    steps = [max(-size / 4, min(size / 4, each)) for each in step]
    for number, found in enumerate([True, True, *seen]):
        x, y = (300 + number * each for each in steps)
        places.append((x, y))
        missed = max((len(run) for run in "".join("x" if s else " " for s in seen[:number]).split("x")), default=0)
        covers.see([face(x, y, size)] if found else [], number * FRAME_MS)
        if missed * FRAME_MS < HELD_MS - FRAME_MS and number >= age + 1:
            assert covers_whole(covers.covers(age), *places[number - age], size)


def test_more_faces_than_can_be_drawn_cover_all() -> None:
    many = [FaceCover(10.0 * nth, 50, 5, 5) for nth in range(65)]
    (whole,) = covers_in_frame(many, (640, 480), 64)
    assert covers_whole((whole,), 320, 240, 480)
    assert all(_within(whole, corner) for corner in ((0, 0), (640, 480), (0, 480), (640, 0)))
    assert covers_in_frame([FaceCover(-100, 0, 5, 5)], (640, 480), 64) == ()
    assert not math.isnan(whole.center_x)


def test_a_cover_that_is_far_larger_than_the_frame_covers_all() -> None:
    for senseless in (FaceCover(3e9, 0, 3.0001e9, 3e9), FaceCover(100, 100, 20, 1e10)):
        assert covers_in_frame([senseless], (640, 480), 64) == (FaceCover(320, 240, 640, 480),)


@pytest.mark.parametrize(("scores", "frames"), [((0.2,), 6), ((0.2, 0.4), 7), ((0.5,), 7)])
def test_what_is_hardly_a_face_is_covered_ahead_for_less_long(scores: tuple[float, ...], frames: int) -> None:
    covers = FaceCovers(kept=8)
    for number in range(8):
        nth = number - 8 + len(scores)
        found = [replace(face(100, 80), score=scores[nth])] if nth >= 0 else []
        covers.see(found, number * FRAME_MS)
    assert sum(bool(covers.covers(age)) for age in range(1, 8)) == frames
