"""Regions of frames as a network's input: ramps, whose value at any place is known, OpenCV, and the whole frame."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.picture_formats import FORMATS, ORIENTATIONS
from tests.helpers.picture_formats import noise as noise_picture
from texelflow.app.models.decoders.region import FrameRegion, whole_region
from texelflow.app.picture.convert import Rgba
from texelflow.app.picture.picture import ImageSize, Picture, PictureFormat, rgba_picture
from texelflow.app.picture.preprocess import Preprocessor
from texelflow.app.picture.region_cut import cut_region
from texelflow.gpu_delegate.model.graph import Steps

SIZE = (120, 90)


def ramps() -> Picture:
    """Red is twice a pixel's column, green twice its row."""
    rgba = np.zeros((SIZE[1], SIZE[0], 4), np.uint8)
    rgba[..., 0] = 2 * np.arange(SIZE[0])
    rgba[..., 1] = 2 * np.arange(SIZE[1])[:, None]
    return rgba_picture(rgba)


@given(st.floats(45, 75), st.floats(35, 55), st.floats(2, 50), st.floats(2, 40), st.floats(-7, 7))
def test_a_pixel_shows_what_lies_at_its_place(x: float, y: float, width: float, height: float, angle: float) -> None:
    region = FrameRegion(x, y, width, height, angle)
    shown = cut_region(ramps(), (7, 5), region.to_frame(), (0, 255), repeats_edges=True)[0]
    fractions = np.stack(np.meshgrid(np.arange(7) / 7, np.arange(5) / 5), -1).reshape(-1, 2)
    places = np.clip(region.points_to_frame(fractions.astype(np.float32)), 0, (119, 89))
    np.testing.assert_allclose(shown[..., :2].reshape(-1, 2), 2 * places, rtol=0, atol=0.5 + 2 / 64 + 1e-3)


def by_opencv(rgba: Rgba, region: FrameRegion, size: ImageSize, repeats_edges: bool) -> Rgba:
    """The same as MediaPipe's converter has it made."""
    matrix = np.vstack([region.to_frame() / (*size, 1), (0, 0, 1)])
    border = cv2.BORDER_REPLICATE if repeats_edges else cv2.BORDER_CONSTANT
    how = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    rgb = np.ascontiguousarray(rgba[..., :3])
    return np.asarray(cv2.warpPerspective(rgb, matrix, size, flags=how, borderMode=border), np.uint8)


@pytest.mark.parametrize("repeats_edges", [False, True])
def test_of_places_that_are_whole_numbers_in_binary_it_is_opencvs(repeats_edges: bool) -> None:
    rgba = np.random.default_rng(0).integers(0, 256, (90, 120, 4), np.uint8)
    for x, y, side in ((20.4375, 80.25, 70), (60, 45, 37), (0.96875, 2, 8), (110, 10, 400)):
        region = FrameRegion(x, y, side, side / 2)
        found = cut_region(rgba_picture(rgba), (32, 16), region.to_frame(), (0, 255), repeats_edges)[0]
        np.testing.assert_array_equal(found, by_opencv(rgba, region, (32, 16), repeats_edges))


@given(
    st.floats(-50, 170),
    st.floats(-50, 140),
    st.floats(2, 400),
    st.floats(2, 400),
    st.floats(-7, 7),
    st.booleans(),
)
def test_of_other_places_those_halfway_between_32nds_may_lie_one_beside_opencvs(
    x: float, y: float, width: float, height: float, angle: float, repeats_edges: bool
) -> None:
    rgba = np.random.default_rng(0).integers(0, 256, (90, 120, 4), np.uint8)
    region = FrameRegion(x, y, width, height, angle)
    found = cut_region(rgba_picture(rgba), (64, 48), region.to_frame(), (0, 255), repeats_edges)[0]
    beside = np.abs(found - by_opencv(rgba, region, (64, 48), repeats_edges))
    assert beside.max() <= 16  # a 32nd of 255, along both axes
    fractions = np.stack(np.meshgrid(np.arange(64) / 64, np.arange(48) / 48), -1)
    places = 32 * (fractions @ region.to_frame()[:, :2].T + region.to_frame()[:, 2])
    halfway = (np.abs(places % 1 - 0.5) < 0.01).any(-1)
    assert beside[~halfway].max(initial=0) < 0.01


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_the_whole_frame_is_what_preprocessing_makes_of_it(form: PictureFormat) -> None:
    for orientation in ORIENTATIONS:
        picture = Picture(replace(form, orientation=orientation), noise_picture(form).planes)
        (width, height), size = picture.format.upright_size, (9, 14)
        to_frame = FrameRegion(width / 2, height / 2, width, height).to_frame()
        to_frame[:, 2] += to_frame[:, :2] @ (0.5 / size[0], 0.5 / size[1]) - 0.5  # from center to center
        found = cut_region(picture, size, to_frame, (-1, 1), repeats_edges=True)
        wanted = Preprocessor(picture.format, size, "stretch", (-1, 1)).image_to_tensor(picture)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=0.13)  # 32nds, also of chroma, and whole bytes


def test_bars_are_black_and_white_is_the_ranges_end() -> None:
    picture = rgba_picture(np.full((6, 12, 4), 255, np.uint8))
    shown = cut_region(picture, (8, 8), whole_region((12, 6), (8, 8)).to_frame(), (-1, 1))[0, :, :, 0]
    assert (shown[:2] == -1).all()
    assert (shown[2:6] == 1).all()
    assert (shown[6:] == -1).all()


def test_whole_numbers_are_rounded_and_limited() -> None:
    shown = cut_region(ramps(), (5, 5), FrameRegion(60, 45, 100, 40).to_frame(), (-10, 20), True, Steps(-8, 7))
    assert (shown == np.round(shown)).all()
    assert (shown.min(), shown.max()) == (-8, 7)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e30])
def test_places_are_numbers(wrong: float) -> None:
    for region in (FrameRegion(wrong, 1, 1, 1), FrameRegion(1, 1, wrong, 1)):
        with pytest.raises(ValueError, match="below 1e"):
            cut_region(ramps(), (4, 4), region.to_frame())
