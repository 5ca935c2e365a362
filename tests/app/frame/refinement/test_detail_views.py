"""Which parts of a frame are looked at once more: by profiles of drawn masks, and from frame to frame."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from texelflow.app.frame.refinement.detail_views import (
    COLUMNS,
    MOST_VIEWS,
    DetailView,
    Profile,
    steady_views,
    wanted_views,
)

ROWS = 100


def profile_of(*boxes: tuple[int, int, int, int]) -> Profile:
    """Of people who are boxes, (first column, end, first row, end) of COLUMNS by ROWS."""
    seen = np.zeros((ROWS, COLUMNS), bool)
    for left, right, top, bottom in boxes:
        seen[top:bottom, left:right] = True
    some = seen.any(0)
    first, end = np.where(some, seen.argmax(0), ROWS), np.where(some, ROWS - seen[::-1].argmax(0), 0)
    return np.asarray(np.stack([first, end, seen.sum(0)], 1) / ROWS, np.float64)


def test_one_person_is_looked_at_whole_and_above() -> None:
    head, body = (28, 36, 30, 60), (20, 44, 60, 100)
    whole, upper = wanted_views(profile_of(head, body), 1.0)
    assert (whole.left, whole.right) == pytest.approx((20 / 64 - 0.084, 44 / 64 + 0.084))
    assert whole.top == pytest.approx(0.3 - 0.084)
    assert whole.bottom == 1
    assert (upper.left, upper.right) == pytest.approx((whole.left + 0.039, whole.right - 0.039), abs=0.04)
    assert upper.bottom == pytest.approx(0.3 + 0.42 + 0.12 * 24 / 64, abs=0.01)
    assert upper.zoom > whole.zoom > 1


def test_two_people_are_looked_at_each_from_left_to_right_and_specks_are_not() -> None:
    people = (40, 60, 20, 100), (3, 20, 40, 100)
    views = wanted_views(profile_of(*people, (30, 32, 0, 10)), 4 / 3)
    assert len(views) == 2
    assert views[0].right < views[1].left
    assert views[0].left == 0
    assert wanted_views(profile_of((30, 32, 0, 10)), 1.0) == ()
    assert wanted_views(profile_of(), 1.0) == ()


def test_a_gap_of_one_column_parts_nobody() -> None:
    assert len(wanted_views(profile_of((10, 20, 20, 100), (21, 30, 20, 100)), 1.0)) == 2  # all and above, of one
    left, right = wanted_views(profile_of((10, 20, 20, 100), (22, 30, 20, 100)), 1.0)
    assert (left.left, right.right) == pytest.approx((10 / 64 - 0.096, 30 / 64 + 0.096))


def test_views_stay_go_on_and_jump() -> None:
    still = DetailView(0.2, 0.2, 0.6, 0.8)
    assert steady_views([still], [DetailView(0.22, 0.19, 0.61, 0.82)]) == (still,)
    (moved,) = steady_views([still], [DetailView(0.3, 0.2, 0.7, 0.8)])
    assert (moved.left, moved.right) == pytest.approx((0.235, 0.635))
    assert (moved.top, moved.bottom) == (0.2, 0.8)
    assert steady_views([still], [DetailView(0.2, 0.0, 0.6, 1.0)])[0].sides == (0.2, 0.0, 0.6, 1.0)
    far = DetailView(0.5, 0.2, 0.9, 0.8)
    assert steady_views([still], [far]) == (far,)
    assert steady_views([still], [still, far]) == (still, far)


boxes = st.tuples(st.integers(0, COLUMNS - 1), st.integers(1, COLUMNS), st.integers(0, ROWS - 1), st.integers(1, ROWS))


@given(st.lists(boxes, max_size=4), st.floats(0.3, 3))
def test_views_lie_in_the_picture_and_no_more_than_two(people: list[tuple[int, int, int, int]], aspect: float) -> None:
    views = wanted_views(profile_of(*people), aspect)
    assert len(views) in (0, MOST_VIEWS)
    for view in views:
        assert 0 <= view.left < view.right <= 1
        assert 0 <= view.top < view.bottom <= 1
    assert steady_views(views, views) == views
