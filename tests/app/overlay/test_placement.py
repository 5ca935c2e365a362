"""Where there is room beside something: always beside it, inside of the whole, and never less than elsewhere."""

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from texelflow.app.overlay.overlay_placement import ScreenArea, in_corner, largest_beside
from texelflow.app.settings.settings import Corner

WHOLE = ScreenArea(0, 0, 100, 60)


def areas(low: int, high: int) -> st.SearchStrategy[ScreenArea]:
    sides = st.tuples(st.integers(low, high), st.integers(low, high)).map(sorted)
    return st.tuples(sides, sides).map(lambda both: ScreenArea(both[0][0], both[1][0], both[0][1], both[1][1]))


@given(areas(-30, 130))
def test_what_is_left_is_beside_what_is_taken(taken: ScreenArea) -> None:
    left = largest_beside(WHOLE, taken)
    across = min(left.right, taken.right) - max(left.left, taken.left)
    down = min(left.bottom, taken.bottom) - max(left.top, taken.top)
    assert left.width * left.height == 0 or min(across, down) <= 0
    assert left.width * left.height == 0 or (left.left >= 0 and left.right <= 100 and left.bottom <= 60)
    beside = max(taken.left, 100 - taken.right, 0) * 60, max(taken.top, 60 - taken.bottom, 0) * 100
    assert left.width * left.height >= min(6000, *map(max, zip(beside, beside, strict=True)))
    assert largest_beside(WHOLE, None) == WHOLE


@given(areas(0, 100), st.sampled_from(get_args(Corner)), st.floats(0, 1), st.floats(0, 1))
def test_what_fits_lies_inside_in_its_corner(area: ScreenArea, corner: Corner, across: float, down: float) -> None:
    wide, high = area.width * across, area.height * down
    x, y = in_corner(area, corner, wide, high)
    assert x == area.left if corner.endswith("left") else x + wide == area.right
    assert y == area.top if corner.startswith("top") else y + high == area.bottom
