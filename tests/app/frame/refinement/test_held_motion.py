"""What moves with hands: drawn rooms, hands and things whose places are known."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.held_things import FRAME, GRID, HAND, THING, Way, above, hand_at, room_texture, shown
from texelflow.app.frame.refinement.held_motion import HeldMotion
from texelflow.app.models.decoders.found import Finding
from texelflow.app.picture.preprocess import Floats

ways = st.builds(Way, st.integers(0, 99), st.floats(0.6, 1.6), st.floats(0, 6.3), st.sampled_from([0.0, 2.0]))


def share_held(held: Floats, place: tuple[float, float], size: tuple[int, int]) -> float:
    left, top = round(place[0]), round(place[1])
    return float(held[top : top + size[1], left : left + size[0]].mean())


def run(motion: HeldMotion, grids: Sequence[Floats], hands: Sequence[Finding | None]) -> Floats:
    for grid, hand in zip(grids, hands, strict=True):
        held = motion.held(grid, () if hand is None else (hand,), FRAME)
    return held


@settings(max_examples=8)
@given(ways)
def test_what_moves_with_a_hand_is_held_and_the_room_is_not(way: Way) -> None:
    places = [way.at(number) for number in range(10)]
    grids = [shown(way.seed, place, above(place), way.grain) for place in places]
    held = run(HeldMotion(), grids, [hand_at(place) for place in places])
    assert held.shape == GRID[::-1]
    assert 0 <= held.min() <= held.max() <= 1
    assert share_held(held, above(places[-1]), THING) > 0.3
    left, top = above(places[-1])
    room = np.ones(held.shape, bool)
    room[int(top) - 5 : int(top) + THING[1] + HAND[1] + 5, int(left) - 5 : int(left) + HAND[0] + 5] = False
    assert held[room].mean() < 0.004


@settings(max_examples=8)
@given(ways, st.sampled_from(["no hand", "still", "another thing"]))
def test_nothing_is_held_without_a_hand_that_moves_so(way: Way, why: str) -> None:
    here = 70.0, 55.0
    motion, places = HeldMotion(), [way.at(number) for number in range(10)]
    if why == "no hand":
        held = run(motion, [shown(way.seed, place, above(place)) for place in places], [None] * 10)
    elif why == "still":
        held = run(motion, [shown(way.seed, here, above(here), way.grain)] * 10, [hand_at(here)] * 10)
    else:  # which moves, and a face does, but no hand
        grids = [shown(way.seed, here, above(place)) for place in places]
        held = run(motion, grids, [hand_at(here, "face")] * 10)
    assert not held.any()


@settings(max_examples=8)
@given(ways)
def test_what_is_learnt_stays_while_all_is_still_and_goes_with_the_hand(way: Way) -> None:
    motion, places = HeldMotion(), [way.at(number) for number in range(10)]
    grids = [shown(way.seed, place, above(place)) for place in places]
    held = run(motion, grids, [hand_at(place) for place in places])
    still = run(motion, [grids[-1]] * 12, [hand_at(places[-1])] * 12)
    assert share_held(still, above(places[-1]), THING) > share_held(held, above(places[-1]), THING) - 0.15
    gone = run(motion, [room_texture(*GRID, way.seed, 100)] * 40, [None] * 40)
    assert not gone.any()


@settings(max_examples=8)
@given(ways)
def test_a_thing_that_is_put_down_is_let_go(way: Way) -> None:
    motion, places = HeldMotion(), [way.at(number) for number in range(10)]
    run(motion, [shown(way.seed, place, above(place)) for place in places], [hand_at(place) for place in places])
    there, later = above(places[-1]), [way.at(number) for number in range(10, 34)]
    after = run(motion, [shown(way.seed, place, there) for place in later], [hand_at(place) for place in later])
    left, top = round(there[0]), round(there[1])
    assert after[top : top + THING[1] // 2, left : left + THING[0]].mean() < 0.3


def test_frames_of_another_place_are_seen_anew() -> None:
    way, motion = Way(3, 1.2, 0.4), HeldMotion()
    places = [way.at(number) for number in range(8)]
    grids = [shown(way.seed, place, above(place)) for place in places]
    hands = [hand_at(place) for place in places]
    first = [run(motion, [grid], [hand]).copy() for grid, hand in zip(grids, hands, strict=True)]
    assert first[-1].any()
    motion.begin_anew()
    assert all(
        np.array_equal(run(motion, [grid], [hand]), before)
        for grid, hand, before in zip(grids, hands, first, strict=True)
    )
    assert not run(motion, [grids[0][::2, ::2].copy()], [hands[0]]).any()
