"""Pictures side by side: whatever their sizes, each whole in a place of its own, as large as its cell allows."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from texelflow.app.picture.grid import columns_of, picture_grid
from texelflow.app.picture.grid_frame import CameraFrame, grid_frame
from texelflow.app.picture.picture import rgba_picture
from texelflow.app.picture.video_frame import VideoFrame

sizes = st.lists(st.tuples(st.integers(16, 8000), st.integers(16, 8000)), min_size=1, max_size=9)


@given(sizes)
def test_pictures_lie_within_the_grid_and_apart(sizes: list[tuple[int, int]]) -> None:
    grid = picture_grid(sizes)
    assert len(grid.places) == len(sizes)
    for (width, height), place in zip(sizes, grid.places, strict=True):
        assert 0 <= place.left < place.left + place.width <= grid.size[0] <= 3840 + 4 * 8
        assert 0 <= place.top < place.top + place.height <= grid.size[1] <= 2160 + 4 * 8
        assert abs(place.width * height - place.height * width) <= (width + height) / 2, "its aspect, rounded"
    for one, other in combinations(grid.places, 2):
        across = min(one.left + one.width, other.left + other.width) - max(one.left, other.left)
        down = min(one.top + one.height, other.top + other.height) - max(one.top, other.top)
        assert min(across, down) <= 0


@pytest.mark.parametrize(
    ("size", "columns"),
    [((640, 480), (1, 2, 2, 2, 3, 3, 4, 4, 3)), ((1280, 720), (1, 2, 2, 2, 3, 3, 3, 3, 3)), ((480, 640), (1, 2, 3, 4))],
)
def test_how_many_are_beside_each_other(size: tuple[int, int], columns: tuple[int, ...]) -> None:
    assert tuple(columns_of(count, size) for count in range(1, len(columns) + 1)) == columns


def test_a_row_that_is_not_full_is_in_the_middle() -> None:
    grid = picture_grid([(640, 480)] * 3)
    assert grid.size == (1284, 964)
    assert [(place.left, place.top) for place in grid.places] == [(0, 0), (644, 0), (322, 484)]


def test_a_frame_of_several_is_seen_as_a_whole() -> None:
    pictures = [np.full((height, 8, 4), gray, np.uint8) for height, gray in ((6, 50), (6, 100), (12, 150))]
    frames = [VideoFrame(0, 0, 0.0, rgba_picture(each), captured_ns=9 - n) for n, each in enumerate(pictures)]
    grid = picture_grid([frame.size for frame in frames])
    frame = grid_frame(7, 5000, tuple(map(CameraFrame, frames)), frames[:2], grid)
    assert (frame.index, frame.time_ms, frame.captured_ns, frame.size) == (7, 5.0, 8, grid.size)
    assert [*frame.pictures] == [each.picture for each in frames]
    for gray, place in zip((50, 100, 150), grid.places, strict=True):
        shown = frame.rgba[place.top : place.top + place.height, place.left : place.left + place.width]
        assert (shown == gray).all()
