"""Which part of the frame follows people: within it, of its aspect, smooth at any frame rate, the same person."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texelflow.app.models.decoders.found import Finding
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.tracking.auto_framing import GONE_S, MOST_ZOOM, AutoFraming, FramingMode, part_within

SIZE = (640, 480)
EDGE = 1e-6


def face(x: float, y: float, side: float = 60, track: int = 0) -> Finding:
    return Finding("face", 0.9, FrameRegion(x, y, side, side), track=track)


def framed(
    framing: AutoFraming,
    scene: Callable[[float], Sequence[Finding]],
    seconds: float,
    rate: float = 30,
    start: float = 0,
) -> list[FrameRegion]:
    return [framing.follow(scene(start + n / rate), start + n / rate) for n in range(round(seconds * rate))]


def apart(one: FrameRegion, other: FrameRegion) -> float:
    """In pixels, of the corners."""
    return float(np.abs(corners(one) - corners(other)).max())


def corners(region: FrameRegion) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    x, y, w, h = region.center_x, region.center_y, region.width / 2, region.height / 2
    return np.array([x - w, y - h, x + w, y + h])


places = st.tuples(st.floats(-100, 740), st.floats(-100, 580), st.floats(4, 700), st.integers(0, 2))
scenes = st.lists(
    st.tuples(st.floats(0, 1.5), st.lists(places, max_size=3)), min_size=1, max_size=30
)  # seconds since the frame before, faces


@settings(max_examples=40, deadline=None)
@given(scenes, st.sampled_from(["person", "group", "off"]), st.sampled_from([(640, 480), (1920, 1080), (33, 97)]))
def test_what_is_shown_is_within_the_frame_and_has_its_aspect(
    scene: list[tuple[float, list[tuple[float, float, float, int]]]], mode: FramingMode, size: tuple[int, int]
) -> None:
    framing, now = AutoFraming(size, mode), 0.0
    for passed, faces in scene:
        now += passed
        region = framing.follow([face(*each) for each in faces], now)
        left, top, right, bottom = corners(region)
        assert left >= -EDGE
        assert top >= -EDGE
        assert right <= size[0] + EDGE
        assert bottom <= size[1] + EDGE
        assert region.width / region.height == pytest.approx(size[0] / size[1])
        assert size[0] / MOST_ZOOM <= region.width + EDGE
        assert region.angle == 0


@settings(max_examples=12, deadline=None)
@given(st.floats(50, 590), st.floats(50, 430), st.floats(30, 200), st.floats(50, 590), st.floats(30, 200))
def test_a_new_place_is_reached_without_going_past_it(x: float, y: float, side: float, x2: float, side2: float) -> None:
    framing = AutoFraming(SIZE)
    framed(framing, lambda _: [face(x, y, side)], 0.2)
    moved = framed(framing, lambda _: [face(x2, y, side2)], 12, start=0.2)
    for values in ([part.center_x for part in moved], [part.width for part in moved]):
        steps = [after - before for before, after in pairwise(values)]
        assert min(steps) >= -EDGE or max(steps) <= EDGE, "one way only"
    assert apart(moved[-1], moved[-2]) < 0.01, "it has arrived"


@settings(max_examples=12, deadline=None)
@given(st.floats(0, 6.28), st.floats(0.1, 0.5), st.floats(30, 120))
def test_frame_rates_do_not_matter(phase: float, hertz: float, side: float) -> None:
    def scene(now: float) -> list[Finding]:
        return [face(320 + 220 * math.sin(phase + 6.28 * hertz * now), 200, side, track=1)]

    slow, fast = framed(AutoFraming(SIZE), scene, 6, 30), framed(AutoFraming(SIZE), scene, 6, 60)
    assert max(apart(one, other) for one, other in zip(slow, fast[::2], strict=True)) < 6, "of 640 pixels"


@pytest.mark.parametrize("rate", [7, 25, 120])
def test_one_step_is_the_same_at_any_frame_rate(rate: float) -> None:
    def arrived(rate: float) -> FrameRegion:
        framing = AutoFraming(SIZE)
        framing.follow([face(100, 200, track=1)], 0.0)
        return [framing.follow([face(500, 260, 90, 1)], (n + 1) / rate) for n in range(round(rate))][-1]

    seen_later_s = abs(1 / rate - 1 / 60) / 2
    assert apart(arrived(rate), arrived(60)) < 0.5 + 1.5 * 0.7 * SIZE[0] * seen_later_s


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(-5, 5), st.floats(-3, 3)), min_size=5, max_size=60))
def test_small_movements_move_nothing(shaken: list[tuple[float, float, float]]) -> None:
    framing = AutoFraming(SIZE)
    first = framing.follow([face(320, 240, 60)], 0.0)
    for n, (x, y, side) in enumerate(shaken, 1):
        assert framing.follow([face(320 + x, 240 + y, 60 + side)], n / 30) == first


def test_nothing_is_faster_than_the_limit() -> None:
    framing = AutoFraming(SIZE)
    framing.follow([face(60, 200)], 0.0)
    regions = framed(framing, lambda _: [face(580, 300)], 5, 60)
    steps = [after.center_x - before.center_x for before, after in pairwise(regions)]
    assert max(steps) * 60 <= 0.7001 * SIZE[0]
    assert max(steps) * 60 > 0.4 * SIZE[0], "and far ways are gone fast"
    sudden = [second - first for first, second in pairwise(steps)]
    assert max(map(abs, sudden)) * 60**2 < 6 * SIZE[0], "nothing jerks"


def test_heads_have_room_above_and_shoulders_below() -> None:
    region = AutoFraming(SIZE).follow([face(320, 240, 60)], 0.0)
    left, top, right, _bottom = corners(region)
    assert left < 290
    assert right > 350
    assert 0.3 < (240 - top) / region.height < 0.45


def test_a_group_holds_everybody_and_a_person_one() -> None:
    pair = [face(150, 200, 60, 1), face(480, 220, 50, 2)]
    left, _, right, _ = corners(AutoFraming(SIZE, "group").follow(pair, 0.0))
    assert left < 120
    assert right > 505
    left, _, right, _ = corners(AutoFraming(SIZE, "person").follow(pair, 0.0))
    assert left < 120
    assert right < 455


def test_the_same_person_stays_until_another_is_clearly_better() -> None:
    framing = AutoFraming(SIZE)
    framed(framing, lambda _: [face(200, 200, 80, 1), face(450, 200, 75, 2)], 1)
    alike = framed(framing, lambda _: [face(200, 200, 75, 1), face(450, 200, 85, 2)], 3, start=1)
    assert alike[-1].center_x < 260
    passing = framed(framing, lambda _: [face(200, 200, 75, 1), face(450, 200, 200, 3)], 0.8, start=4)
    assert passing[-1].center_x < 260, "somebody who passes by for less than a second"
    framed(framing, lambda _: [face(200, 200, 75, 1), face(450, 200, 85, 2)], 1, start=4.8)
    better = framed(framing, lambda _: [face(200, 200, 60, 1), face(450, 200, 110, 2)], 6, start=5.8)
    assert better[-1].center_x > 365


def test_who_is_not_tracked_is_known_by_the_place() -> None:
    framing = AutoFraming(SIZE)
    framed(framing, lambda _: [face(200, 200, 80)], 1)
    walking = framed(framing, lambda now: [face(200 + 30 * (now - 1), 200, 80), face(560, 220, 95)], 4, start=1)
    assert walking[-1].center_x < 400


def test_somebody_lost_for_a_moment_is_waited_for() -> None:
    framing = AutoFraming(SIZE)
    before = framed(framing, lambda _: [face(200, 200, 80, 1), face(500, 240, 70, 2)], 2)[-1]
    assert framed(framing, lambda _: [face(500, 240, 70, 2)], 0.6, start=2)[-1] == before
    assert framed(framing, lambda _: [face(500, 240, 70, 2)], 6, start=2.6)[-1].center_x > 380


def test_without_anybody_it_holds_and_then_goes_back_slowly() -> None:
    framing = AutoFraming(SIZE)
    before = framed(framing, lambda _: [face(200, 200)], 1)[-1]
    held = framed(framing, lambda _: [], GONE_S - 0.2, start=1)
    assert {*held} == {before}
    back = framed(framing, lambda _: [], 8, start=1 + GONE_S - 0.2)
    assert 0.4 < (back[60].width - before.width) / (SIZE[0] - before.width) < 0.9, "on its way after some 1.8 s"
    assert back[-1].width == pytest.approx(SIZE[0], abs=0.5)


def test_the_first_person_is_shown_at_once_a_later_one_slowly() -> None:
    person = [face(200, 200)]
    at_once = AutoFraming(SIZE).follow(person, 5.0)
    late = AutoFraming(SIZE)
    framed(late, lambda _: [], 2)
    arriving = framed(late, lambda _: person, 5, start=2)
    assert arriving[0].width > 600
    assert apart(arriving[-1], at_once) < 0.02 * at_once.width
    late.begin_anew()
    assert late.follow(person, 9.0) == at_once, "behind a cut"


def test_people_count_where_there_are_no_faces() -> None:
    body = Finding("person", 0.9, FrameRegion(320, 300, 100, 300))
    region = AutoFraming(SIZE, "group").follow([body], 0.0)
    _, top, _, bottom = corners(region)
    assert top < 130
    assert bottom > 450
    points = np.array([[300, 100, 0], [340, 100, 0], [320, 400, 0], [0, 0, 0]], np.float32)
    seen = Finding("person", 0.9, FrameRegion(9, 9, 1, 1), points=points, certainty=np.array([1, 1, 1, 0], np.float32))
    left, top, _, bottom = corners(AutoFraming(SIZE, "group").follow([seen], 0.0))
    assert left > 60
    assert top < 60
    assert bottom > 400
    assert AutoFraming(SIZE).follow([Finding("class", 1.0), Finding("hand", 1.0, body.region)], 0.0).width == SIZE[0]


@pytest.mark.parametrize(
    ("zoom", "center"), [(1.0, (0.5, 0.5)), (1.5, (0.3, 0.5)), (4.0, (0.0, 1.0)), (2.0, (0.9, 0.1))]
)
def test_a_part_by_hand_is_within_what_is_framed(zoom: float, center: tuple[float, float]) -> None:
    outer = FrameRegion(300, 200, 320, 240)
    inner = part_within(outer, zoom, center)
    assert inner.width == pytest.approx(320 / zoom)
    assert inner.width / inner.height == pytest.approx(4 / 3)
    assert (corners(inner)[:2] >= corners(outer)[:2] - EDGE).all()
    assert (corners(inner)[2:] <= corners(outer)[2:] + EDGE).all()
    assert part_within(outer, 1.5, (0.5, 0.5)).center_x == 300
