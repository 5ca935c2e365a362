"""Regions of boxes and points: MediaPipe's own numbers, round trips, and what is no region."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from texelflow.app.models.decoders.region import FrameRegion, angle_between, normalized_angle
from texelflow.app.tracking.region_rules import (
    around_hand,
    around_points,
    by_alignment,
    by_body_hand,
    grown,
    is_usable,
    mirrored,
    overlap,
)

pixels = st.floats(-2000, 2000, allow_nan=False)
sizes = st.floats(1, 2000)
angles = st.floats(-math.pi, math.pi)
regions = st.builds(FrameRegion, pixels, pixels, sizes, sizes, angles)


@given(angles, st.floats(2, 1000), pixels, pixels)
def test_points_that_are_turned_turn_the_square_by_them(angle: float, reach: float, x: float, y: float) -> None:
    upright = np.array([[x, y], [x, y - reach]], np.float32)
    cosine, sine = math.cos(angle), math.sin(angle)
    turned = (upright - upright[0]) @ np.array([[cosine, sine], [-sine, cosine]]) + upright[0]
    square = by_alignment(np.asarray(turned, np.float32), 90)
    assert abs(normalized_angle(square.angle - angle)) < 2e-3
    assert square.width == square.height == pytest.approx(2 * reach, rel=2e-3, abs=2e-3)
    assert (square.center_x, square.center_y) == pytest.approx((x, y), abs=1e-3)


@given(st.floats(-1e6, 1e6))
def test_an_angle_is_the_same_direction_within_half_a_turn(angle: float) -> None:
    same = normalized_angle(angle)
    assert -math.pi <= same <= math.pi
    assert math.cos(same) == pytest.approx(math.cos(angle), abs=1e-6)


def test_level_eyes_turn_nothing_and_an_upright_hand_neither() -> None:
    assert angle_between(np.array([10, 50.0]), np.array([90, 50.0]), 0) == 0
    assert angle_between(np.array([50, 90.0]), np.array([50, 10.0]), 90) == pytest.approx(0)
    # The right eye's side of the face hangs: clockwise.
    assert angle_between(np.array([10, 50.0]), np.array([90, 130.0]), 0) == pytest.approx(math.pi / 4)


@given(regions, st.floats(0.1, 4), st.floats(-1, 1))
def test_a_grown_region_is_a_square_that_moved_along_its_own_height(
    region: FrameRegion, scale: float, shift: float
) -> None:
    square = grown(region, scale, shift)
    assert square.width == square.height == pytest.approx(scale * max(region.width, region.height))
    middle = region.to_frame() @ (0.5, 0.5 + shift, 1)
    assert (square.center_x, square.center_y) == pytest.approx(tuple(middle), abs=1e-6 * 2000)
    assert square.angle == region.angle


@given(regions, st.lists(st.tuples(st.floats(-1, 2), st.floats(-1, 2)), min_size=1, max_size=9))
def test_points_go_to_the_frame_and_back(region: FrameRegion, fractions: list[tuple[float, float]]) -> None:
    for looked_at in (region, mirrored(region)):
        points = looked_at.points_to_frame(np.array(fractions, np.float32)).astype(np.float64)
        matrix = looked_at.to_frame()
        back = np.linalg.solve(matrix[:, :2], (points - matrix[:, 2]).T).T
        assert np.abs(back - fractions).max() < 1e-2 * max(1, 50 / min(region.width, region.height))


@given(regions, regions)
def test_overlap_is_symmetric_and_whole_only_with_itself(first: FrameRegion, second: FrameRegion) -> None:
    assert 0 <= overlap(first, second) <= 1
    assert overlap(first, second) == pytest.approx(overlap(second, first), abs=1e-12)
    assert overlap(first, first) == pytest.approx(1)
    assert overlap(first, mirrored(first)) == pytest.approx(1)


@given(angles)
def test_a_hand_that_is_turned_has_the_same_rectangle_turned(angle: float) -> None:
    generator = np.random.default_rng(5)
    hand = generator.uniform(-100, 100, (21, 2))
    hand[0], hand[[5, 9, 13]] = (0, 120), ((-20, -60), (0, -80), (20, -60))
    upright = around_hand(np.asarray(hand, np.float32))
    cosine, sine = math.cos(angle), math.sin(angle)
    turned = around_hand(np.asarray(hand @ np.array([[cosine, sine], [-sine, cosine]]), np.float32))
    assert upright.angle == pytest.approx(0, abs=1e-6)
    assert abs(normalized_angle(turned.angle - angle)) < 1e-5
    assert (turned.width, turned.height) == pytest.approx((upright.width, upright.height), rel=1e-4)
    # Nothing that is steady lies outside: corners of the region in its own axes are the extremes.
    matrix = upright.to_frame()
    inside = np.linalg.solve(matrix[:, :2], (hand[[0, 1, 2, 3, 5, 6, 9, 10, 13, 14, 17, 18]] - matrix[:, 2]).T)
    assert inside.min() == pytest.approx(0, abs=1e-5)
    assert inside.max() == pytest.approx(1, abs=1e-5)


def test_a_bodys_hand_is_looked_for_beyond_its_wrist() -> None:
    region = by_body_hand(np.array([100, 200.0]), np.array([90, 140.0]), np.array([120, 140.0]))
    assert (region.center_x, region.center_y) == (110, 140)
    assert region.width == pytest.approx(2 * math.hypot(10, 60))
    assert region.angle == pytest.approx(math.atan2(10, 60))  # leans to the right


def test_points_alone_make_an_upright_box() -> None:
    region = around_points(np.array([[10, 20], [30, 80.0]], np.float32))
    assert region == FrameRegion(20, 50, 20, 60)


@pytest.mark.parametrize(
    "region",
    [
        FrameRegion(math.nan, 0, 10, 10),
        FrameRegion(50, 50, math.inf, 10),
        FrameRegion(50, 50, 0.0, 10),
        FrameRegion(50, 50, 10, 1e6),
        FrameRegion(-500, 50, 100, 100),
        FrameRegion(50, 50, 10, 10, math.nan),
    ],
)
def test_what_cannot_be_looked_at_is_no_region(region: FrameRegion) -> None:
    assert not is_usable(region, (640, 480))


def test_regions_past_the_edge_can_be_looked_at() -> None:
    assert is_usable(FrameRegion(-20, 50, 100, 100, 1.0), (640, 480))
    assert is_usable(mirrored(FrameRegion(320, 240, 900, 900)), (640, 480))
