"""The test pattern carries its number through scaling, color conversion and H.264, and is never read wrongly."""

from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.clips import Recipe, write_clip
from tests.helpers.time_codes import read_time_code
from texelflow.app.capture.pattern import cells_of, open_pattern, time_code_of
from texelflow.app.capture.source import CapturedFrame, CaptureRequest
from texelflow.app.media.sources import FileSource
from texelflow.app.picture.picture import ImageSize
from texelflow.gpu_delegate.base.errors import UsageError

Rgba = npt.NDArray[np.uint8]


def rgba(shot: CapturedFrame) -> Rgba:
    assert shot.convert is not None
    return shot.convert()


def drawn(code: int, size: ImageSize) -> Rgba:
    """A picture of noise under a strip that carries the code."""
    width, height = size
    picture = np.random.default_rng(code).integers(0, 256, (height, width, 4), np.uint8)
    strip = height // 8
    rows = cells_of(code)[:, np.arange(width) * 16 // width] * 255
    picture[: strip // 2], picture[strip // 2 : strip] = rows[0][:, None], rows[1][:, None]
    return picture


@given(st.integers(0, (1 << 24) - 1))
@settings(max_examples=50, deadline=None)
def test_any_number_is_read_back(code: int) -> None:
    assert read_time_code(drawn(code, (160, 96))) == code


@given(st.integers(0, (1 << 24) - 1), st.integers(0, 1), st.integers(2, 15))
@settings(max_examples=50, deadline=None)
def test_one_wrong_cell_is_noticed(code: int, row: int, column: int) -> None:
    picture = drawn(code, (160, 96))
    cell = picture[row * 6 : row * 6 + 6, column * 10 : column * 10 + 10]
    cell[:] = 255 - cell
    assert read_time_code(picture) is None


@pytest.mark.parametrize("size", [(640, 480), (1280, 720), (321, 241), (64, 48), (1920, 1080)])
def test_pictures_carry_their_numbers(size: ImageSize) -> None:
    source = open_pattern(CaptureRequest(size, fps=1000))
    shots = [source.read() for _ in range(4)]
    codes = [read_time_code(rgba(shot)) for shot in shots]
    made = np.cumsum([shot.skipped + 1 for shot in shots]) - 1
    assert codes == [time_code_of(int(index)) for index in made]
    for shot in shots:
        assert shot.picture.format == source.format
        assert tuple(plane.shape for plane in shot.picture.planes) == source.format.plane_shapes


def test_pictures_move_and_stay_as_they_were() -> None:
    source = open_pattern(CaptureRequest((128, 96), fps=500))
    one = source.read()
    kept = one.picture.planes[0].copy()
    other = source.read()
    below = slice(96 // 8, None)
    assert np.array_equal(one.picture.planes[0], kept)
    assert not np.array_equal(other.picture.planes[0][below], kept[below])


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (5, 3), (16, 2), (3, 200)])
def test_no_size_is_too_small(size: ImageSize) -> None:
    shot = open_pattern(CaptureRequest(size, fps=0)).read()
    assert shot.picture.planes[0].shape == size[::-1]
    assert read_time_code(rgba(shot)) is None


def test_absurd_sizes_are_refused() -> None:
    with pytest.raises(UsageError, match="the test pattern"):
        open_pattern(CaptureRequest((100_000, 100_000)))


@pytest.mark.parametrize("scale", [0.5, 0.75, 2.0])
def test_the_code_survives_scaling(scale: float) -> None:
    shot = open_pattern(CaptureRequest((640, 480))).read()
    scaled = np.asarray(cv2.resize(rgba(shot), None, fx=scale, fy=scale, interpolation=cv2.INTER_LINEAR), np.uint8)
    assert read_time_code(scaled) == 0
    assert read_time_code(np.ascontiguousarray(scaled[:, ::-1])) is None
    assert read_time_code(np.ascontiguousarray(scaled[len(scaled) // 2 :])) is None


def test_the_code_survives_h264_at_half_size(tmp_path: Path) -> None:
    source = open_pattern(CaptureRequest((640, 480), fps=200))
    shots = [source.read() for _ in range(12)]
    numbers = (np.cumsum([shot.skipped + 1 for shot in shots]) - 1).tolist()
    halves = [np.asarray(cv2.resize(rgba(shot)[..., :3], (320, 240)), np.uint8) for shot in shots]
    path = write_clip(tmp_path / "a.mp4", halves, Recipe(codec_options={"crf": "35", "preset": "veryfast"}))
    with FileSource(path) as frames:
        assert [read_time_code(frame.rgba) for frame in frames] == numbers


@given(st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_nothing_is_read_from_noise(seed: int) -> None:
    noise = np.random.default_rng(seed).integers(0, 256, (48, 64, 4), np.uint8)
    assert read_time_code(noise) is None
