"""Whether pictures are like those before, by their planes in RAM: noise is still, a hand that waves is not."""

from math import inf

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.markers import one_in
from texelflow.app.picture.picture import Layout, Picture, PictureFormat
from texelflow.app.session.motion import MotionCheck

SIZE = (640, 480)
USUAL_DB = 35.0
Gray = npt.NDArray[np.uint8]


def picture(luma: npt.NDArray[np.generic], layout: Layout = "gray", bits: int = 8, seed: int = 0) -> Picture:
    """A picture with that luma (H, W) in the layout's own place; all else is random."""
    shift = {"yuv": (1, 1), "nv12": (1, 1), "yuyv": (1, 0), "uyvy": (1, 0)}.get(layout, (0, 0))
    form = PictureFormat((luma.shape[1], luma.shape[0]), layout, bits, shift)
    random = np.random.default_rng(seed)
    planes = [random.integers(0, 1 << bits, shape).astype(luma.dtype) for shape in form.plane_shapes]
    if planes[0].ndim == 2:
        planes[0] = luma
    else:
        planes[0][..., {"rgba": 1, "yuyv": 0, "uyvy": 1}[layout]] = luma
    return Picture(form, tuple(planes))


def scene() -> Gray:
    """Something with light and dark places, and room for noise above and below."""
    y, x = np.mgrid[: SIZE[1], : SIZE[0]]
    gray: Gray = (128 + 80 * np.sin(x / 37) * np.cos(y / 23)).astype(np.uint8)
    return gray


def noisy(luma: Gray, deviation: float, seed: int) -> Gray:
    noise = np.random.default_rng(seed).normal(0, deviation, luma.shape)
    gray: Gray = np.clip(np.rint(luma + noise), 0, 255).astype(np.uint8)
    return gray


def similarity(before: Picture, after: Picture) -> float:
    still = MotionCheck()
    still.keep(before)
    found = still.similarity_db(after)
    assert found is not None
    return found


@pytest.mark.parametrize("layout", ["gray", "yuv", "nv12", "yuyv", "uyvy", "rgba"])
def test_luma_counts_wherever_a_layout_has_it(layout: Layout) -> None:
    luma = scene()
    before, same, lighter = (picture(gray, layout, seed=k) for k, gray in enumerate((luma, luma, luma + 10)))
    assert similarity(before, same) == inf
    # A difference of 10 everywhere is 28.1 dB; 1.6 times that much is allowed for as noise.
    assert similarity(before, lighter) == pytest.approx(28.13 + 2.04, abs=0.01)


def test_deep_samples_are_measured_by_their_own_range() -> None:
    luma = scene().astype(np.uint16) << 2
    before, lighter = (picture(gray, "yuv", bits=10) for gray in (luma, luma + 40))
    assert similarity(before, lighter) == pytest.approx(28.13 + 2.04, abs=0.05)


def test_rows_may_be_padded() -> None:
    luma = np.zeros((SIZE[1], SIZE[0] + 64), np.uint8)
    luma[:, : SIZE[0]] = scene()
    luma[:, SIZE[0] :] = np.random.default_rng(1).integers(0, 256, (SIZE[1], 64))
    view = luma[:, : SIZE[0]]
    view.flags.writeable = False
    assert similarity(picture(scene()), picture(view)) == inf


@one_in(3, ("deviation", "expected_db"), [(1.0, 45.1), (2.0, 39.1), (3.0, 35.6)])
def test_noise_of_a_camera_is_what_it_is_over_the_whole_picture(deviation: float, expected_db: float) -> None:
    for seed in range(20):
        first, second = (picture(noisy(scene(), deviation, 2 * seed + k)) for k in (0, 1))
        assert similarity(first, second) == pytest.approx(expected_db, abs=1.2)


@pytest.mark.parametrize("corner", [(0, 0), (608, 0), (0, 448), (608, 448), (301, 217)])
def test_a_small_thing_that_moves_is_motion(corner: tuple[int, int]) -> None:
    """32 x 32 pixels of 640 x 480, which differ by 40 of 255: over the whole picture that is 37 dB, with noise of 2."""
    x, y = corner
    before, after = noisy(scene(), 2, 0), noisy(scene(), 2, 1)
    assert similarity(picture(before), picture(after)) > USUAL_DB
    after[y : y + 32, x : x + 32] += 40
    assert similarity(picture(before), picture(after)) < 30


@pytest.mark.parametrize("size", [(1, 1), (3, 5), (64, 48), (1920, 1080), (2, 4000)])
def test_all_sizes_have_blocks(size: tuple[int, int]) -> None:
    dark = np.zeros((size[1], size[0]), np.uint8)
    assert similarity(picture(dark), picture(dark)) == inf
    assert similarity(picture(dark), picture(dark + 255)) == pytest.approx(2.04, abs=0.01)


def test_only_pictures_of_one_format_are_compared() -> None:
    still, small = MotionCheck(), np.zeros((48, 64), np.uint8)
    assert still.similarity_db(picture(scene())) is None
    still.keep(picture(scene()))
    assert still.similarity_db(picture(small)) is None
    still.keep(picture(small))
    assert still.similarity_db(picture(small)) == inf
    still.forget()
    assert still.similarity_db(picture(small)) is None


def test_slow_motion_adds_up_against_the_picture_that_was_kept() -> None:
    luma, still = scene(), MotionCheck()
    still.keep(picture(luma))
    steps = [still.similarity_db(picture(luma + step)) for step in range(8)]
    assert all(found is not None for found in steps)
    assert steps == sorted(steps, key=lambda found: -(found or 0))
    assert (steps[1] or 0) > USUAL_DB > (steps[7] or 0)
