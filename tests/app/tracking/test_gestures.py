"""What hands show, however they are turned and large, and when it counts: held, once, and not again at once."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.hands import Points, found_hand, hand_points
from texelflow.app.models.decoders.found import Finding
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.tracking.gesture_names import GESTURES, Gesture
from texelflow.app.tracking.gestures import GestureTrigger, gestures_in

OF_HANDS: tuple[Gesture, ...] = ("thumb-up", "thumb-down", "open-palm", "fist", "victory")
TURNING: tuple[Gesture, ...] = ("open-palm", "fist", "victory")
tilts = st.tuples(st.floats(-25, 25), st.floats(-25, 25))
thumb_tilts = st.tuples(st.floats(-17, 17), st.floats(-17, 17))  # turned further, a thumb no longer sticks out


def shown(points: Points, size: float = 80) -> set[Gesture]:
    return {*gestures_in([found_hand(points, size=size)])}


@given(st.sampled_from(TURNING), st.floats(-180, 180), tilts, st.booleans(), st.floats(3, 600))
def test_hands_may_be_turned_and_of_any_size(
    gesture: Gesture, turn: float, tilt: tuple[float, float], left: bool, size: float
) -> None:
    assert shown(hand_points(gesture, turn, tilt, left), size) == {gesture}


@given(st.sampled_from(["thumb-up", "thumb-down"]), st.floats(-30, 30), thumb_tilts, st.booleans())
def test_thumbs_point_up_or_down_in_the_picture(
    gesture: Gesture, turn: float, tilt: tuple[float, float], left: bool
) -> None:
    assert shown(hand_points(gesture, turn, tilt, left)) == {gesture}


@given(st.sampled_from(["pointing", "relaxed"]), st.floats(-20, 20), tilts, st.booleans())
def test_other_hands_show_nothing(shows: str, turn: float, tilt: tuple[float, float], left: bool) -> None:
    assert not shown(hand_points(shows, turn, tilt, left))


@given(st.floats(-20, 20), thumb_tilts, st.booleans())
def test_a_thumb_that_points_sideways_shows_nothing(turn: float, tilt: tuple[float, float], left: bool) -> None:
    assert not shown(hand_points("sideways", turn, tilt, left))


@given(st.sampled_from(OF_HANDS), st.integers(0, 1 << 30))
def test_inexact_points_show_the_same(gesture: Gesture, seed: int) -> None:
    noise = np.random.default_rng(seed).normal(0, 0.012, (21, 3))  # of the palm's length
    assert shown(hand_points(gesture) + noise) == {gesture}


def test_what_is_no_hand_for_certain_shows_nothing() -> None:
    points = hand_points("open-palm")
    assert not gestures_in([found_hand(points, score=0.5)])
    assert not gestures_in([found_hand(points * np.nan)])
    assert not gestures_in([found_hand(points * 0)])
    assert not gestures_in([Finding("palm", 0.9, points=found_hand(points).points)])
    assert gestures_in([found_hand(hand_points("pointing")), found_hand(points)]) == {"open-palm"}


def test_a_raised_hand_is_beside_a_face() -> None:
    face, hand = Finding("face", 0.9, FrameRegion(300, 200, 100, 100)), hand_points("pointing")
    assert gestures_in([found_hand(hand, (430, 190)), face]) == {"hand-raised"}
    assert not gestures_in([found_hand(hand, (430, 320)), face])
    assert not gestures_in([found_hand(hand, (430, 190))]), "nobody knows whose"
    assert not gestures_in([found_hand(hand, (900, 190)), face]), "somebody else's"
    lower = Finding("face", 0.9, FrameRegion(480, 100, 100, 100))
    assert not gestures_in([found_hand(hand, (430, 190)), face, lower]), "that of the nearest face"


def test_a_raised_hand_is_above_its_own_head() -> None:
    points = np.full((33, 3), (300, 200, 0), np.float32)
    certainty = np.ones(33, np.float32)
    for height, certain, raised in ((150, 1, True), (150, 0.2, False), (300, 1, False)):
        points[[15, 16]] = (200, height, 0), (400, 300, 0)
        certainty[15] = certain
        body = Finding("person", 0.9, points=points.copy(), certainty=certainty.copy(), skeleton="body")
        assert gestures_in([body]) == ({"hand-raised"} if raised else set())


def counted(trigger: GestureTrigger, scenes: list[tuple[float, str]], rate: float = 30) -> list[tuple[float, Gesture]]:
    """When something counts, of what is shown for so many seconds each; '' is nothing."""
    found, frame = list[tuple[float, Gesture]](), 0
    for seconds, shows in scenes:
        findings = [found_hand(hand_points(shows))] if shows else []
        for _ in range(round(seconds * rate)):
            if gesture := trigger.see(findings, frame / rate):
                found.append((frame / rate, gesture))
            frame += 1
    return found


@pytest.mark.parametrize("rate", [10, 30, 60])
def test_a_gesture_counts_once_it_is_held_and_once(rate: float) -> None:
    trigger = GestureTrigger()
    ((time_s, gesture),) = counted(trigger, [(0.5, ""), (5, "fist")], rate)
    assert gesture == "fist"
    assert 0.9 <= time_s <= 0.9 + 1 / rate


def test_what_is_short_counts_not_and_gaps_do_not_matter() -> None:
    assert not counted(GestureTrigger(), [(0.3, "fist"), (0.5, ""), (0.3, "fist"), (0.3, "victory")])
    ((time_s, _),) = counted(GestureTrigger(), [(0.3, "fist"), (0.1, ""), (1, "fist"), (0.1, "relaxed"), (2, "fist")])
    assert time_s == pytest.approx(0.4, abs=0.04)


def test_another_one_counts_after_a_while_and_the_same_after_it_ended() -> None:
    found = counted(GestureTrigger(), [(0.6, "fist"), (3, "open-palm"), (0.5, ""), (0.6, "open-palm")])
    assert [gesture for _, gesture in found] == ["fist", "open-palm", "open-palm"]
    assert found[1][0] - found[0][0] == pytest.approx(1.0, abs=0.04), "not sooner, though it was held"


def test_only_what_is_wanted_is_told() -> None:
    wanted: tuple[Gesture, ...] = ("victory",)
    trigger = GestureTrigger(wanted)
    assert [gesture for _, gesture in counted(trigger, [(2, "fist"), (2, "victory")])] == ["victory"]
    trigger.begin_anew()
    assert [gesture for _, gesture in counted(trigger, [(2, "victory")])] == ["victory"]


@given(st.lists(st.tuples(st.floats(0, 1.5), st.sampled_from(["", *OF_HANDS])), max_size=12))
def test_nothing_counts_twice_within_a_second(scenes: list[tuple[float, str]]) -> None:
    times = [time_s for time_s, _ in counted(GestureTrigger(GESTURES), scenes, 20)]
    assert all(after - before >= 1 - 1e-6 for before, after in pairwise(times))
