"""OpenCV's way of stretching pictures against NumPy's, and where it is taken; traces of masks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from texelflow.app.picture.color_planes import PixelsToRgb
from texelflow.app.picture.picture import ImageSize, Orientation, PictureFormat, rgba_format, rgba_picture
from texelflow.app.picture.preprocess import Fit, Preprocessor, sampling
from texelflow.app.picture.stretch import StretchedToRgb, is_stretched


@settings(max_examples=40, deadline=None)
@given(st.tuples(*[st.integers(2, 300)] * 2), st.tuples(*[st.integers(1, 80)] * 2))
def test_is_what_the_map_says(size: ImageSize, grid_size: ImageSize) -> None:
    form = rgba_format(size)
    picture = rgba_picture(np.random.default_rng(0).integers(0, 256, (size[1], size[0], 4), np.uint8))
    wanted = PixelsToRgb(form, sampling(size, grid_size).taps())(picture)
    np.testing.assert_allclose(StretchedToRgb(form, grid_size)(picture), wanted, rtol=0, atol=5e-7)


@pytest.mark.parametrize(
    ("form", "fit", "area", "taken"),
    [
        (rgba_format((640, 480)), "stretch", False, True),
        (rgba_format((640, 480)), "crop", False, False),
        (rgba_format((640, 480)), "letterbox", False, False),
        (rgba_format((640, 480)), "stretch", True, False),
        (rgba_format((200, 480)), "stretch", True, False),
        (rgba_format((200, 100)), "stretch", True, True),
        (rgba_format((1920, 1080)), "stretch", False, False),
        (rgba_format((640, 1)), "stretch", False, False),
        (PictureFormat((640, 480), orientation=Orientation(flip_x=True)), "stretch", False, False),
        (PictureFormat((640, 480), "gray"), "stretch", False, False),
    ],
)
def test_is_taken_where_it_means_the_same_and_is_faster(form: PictureFormat, fit: Fit, area: bool, taken: bool) -> None:
    assert is_stretched(form, fit, sampling(form.upright_size, (256, 256), fit, area)) == taken


@pytest.mark.parametrize("fit", ["stretch", "crop"])
def test_traces_in_a_mask_never_become_subnormal(fit: Fit) -> None:
    work = Preprocessor(rgba_format((64, 48)), (16, 16), fit)
    traces = np.full((16, 16), 3e-38, np.float32) * np.linspace(0.01, 1, 16, dtype=np.float32)
    assert not work.mask_to_frame(traces).any()
    traces[5, 5], traces[9, 9] = 1e-19, -1
    assert work.mask_to_frame(np.abs(traces)).max() > 0.5
    assert work.mask_to_frame(traces).min() < -0.5
