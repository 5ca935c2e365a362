"""Pictures of any size and format become pictures of another, upright and undistorted, with black beside them."""

import numpy as np
import pytest

from texelflow.app.capture.conversion import convert_like, pixel_format_name
from texelflow.app.capture.raw import rgba_of
from texelflow.app.capture.source import CapturedFrame
from texelflow.app.picture.convert import Rgba
from texelflow.app.picture.picture import ImageSize, Orientation, PictureFormat, rgba_picture

FORMATS = [
    PictureFormat((64, 48)),
    PictureFormat((64, 48), "gray"),
    PictureFormat((63, 47), "yuv", 8, (1, 1), "bt601", False, "left"),
    PictureFormat((64, 48), "yuv", 8, (1, 0), "bt709", True),
    PictureFormat((64, 48), "yuv", 10, (0, 0), "bt709", False),
    PictureFormat((64, 48), "nv12", 8, (1, 1), "bt709", False, "left"),
    PictureFormat((64, 48), "yuyv", 8, (1, 0), "bt601", False, "left"),
    PictureFormat((64, 48), "uyvy", 8, (1, 0), "bt601", True, "left"),
    PictureFormat((48, 64), "yuv", 8, (1, 1), "bt709", False, "left", Orientation(True, False, True)),
]


def scene(size: ImageSize) -> Rgba:
    """Gray that grows brighter to the right and down, all but linearly, so that turning it is noticed."""
    x, y = np.meshgrid(np.linspace(0, 1, size[0]), np.linspace(0, 1, size[1]))
    gray = (40 + 120 * x + 60 * y).astype(np.uint8)
    return np.dstack([gray, gray, gray, np.full_like(gray, 255)])


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: f"{pixel_format_name(format)} {format.orientation}")
def test_every_format_can_be_had(format: PictureFormat) -> None:
    shot = convert_like(CapturedFrame(rgba_picture(scene((64, 48)))), format)
    assert shot.picture.format == format
    assert tuple(plane.shape for plane in shot.picture.planes) == format.plane_shapes
    assert shot.convert is not None
    for seen in (rgba_of(shot.picture), shot.convert()):
        difference = np.abs(seen.astype(int) - scene(format.upright_size).astype(int))
        assert difference.max() <= 8


@pytest.mark.parametrize(
    ("size", "into", "inner"),
    [
        ((64, 48), (64, 48), (0, 0, 64, 48)),
        ((320, 240), (64, 48), (0, 0, 64, 48)),
        ((64, 64), (64, 48), (8, 0, 48, 48)),
        ((128, 48), (64, 48), (0, 12, 64, 24)),
        ((1, 1000), (64, 48), (31, 0, 1, 48)),
        ((1000, 1), (3, 3), (0, 1, 3, 1)),
    ],
)
def test_the_aspect_is_kept(size: ImageSize, into: ImageSize, inner: tuple[int, int, int, int]) -> None:
    white = CapturedFrame(rgba_picture(np.full((size[1], size[0], 4), 255, np.uint8)))
    fitted = convert_like(white, PictureFormat(into)).picture.planes[0]
    left, top, width, height = inner
    expected = np.zeros((into[1], into[0], 4), np.uint8)
    expected[..., 3] = 255
    expected[top : top + height, left : left + width] = 255
    assert np.array_equal(fitted, expected)


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: f"{pixel_format_name(format)} {format.orientation}")
def test_every_format_can_be_converted(format: PictureFormat) -> None:
    stored = convert_like(CapturedFrame(rgba_picture(scene((64, 48)))), format).picture
    double = 2 * format.upright_size[0], 2 * format.upright_size[1]
    seen = convert_like(CapturedFrame(stored), PictureFormat(double)).picture.planes[0]
    assert np.abs(seen.astype(int) - scene(double).astype(int)).max() <= 10


def test_colors_stay() -> None:
    colors = np.array([[[200, 40, 60, 255], [30, 180, 50, 255], [40, 60, 210, 255]]], np.uint8)
    rgba = np.ascontiguousarray(colors.repeat(48, 0).repeat(16, 1))
    for format in FORMATS[2:8]:
        if format.size == (64, 48):
            wide = convert_like(CapturedFrame(rgba_picture(rgba)), format).picture
            assert np.abs(rgba_of(wide)[24, [16, 32, 48], :3].astype(int) - colors[0, :, :3]).max() <= 6
