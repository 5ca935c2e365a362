"""Pictures on the device become I420, NV12 and gray, and are compared with a definition in NumPy, code by code."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.markers import exhaustive, on_both_apis, one_in
from tests.helpers.on_device import target_of
from tests.helpers.portable import assert_runs_with_opengl_3_3, assert_valid_glsl, needs_validator
from texelflow.app.frame.textures.readback import ReadbackRing
from texelflow.app.frame.textures.yuv import YuvPicture, gray, i420, nv12, size_bytes, split
from texelflow.app.picture.picture import Matrix, PictureFormat
from texelflow.app.picture.preprocess import Preprocessor
from texelflow.gpu_delegate.targets.gl.context import DRAWING, Context, open_context
from texelflow.gpu_delegate.targets.glsl.shader import load

Bytes = npt.NDArray[np.uint8]

SHARES: dict[Matrix, tuple[float, float]] = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722)}
SIZES = [(64, 48), (640, 480), (2, 2), (6, 6), (10, 14), (18, 2), (641, 479), (1, 1), (3, 7), (5, 64)]
BLACK, WHITE = (16, 128, 128), (235, 128, 128)


def by_definition(rgba: Bytes, format: PictureFormat) -> tuple[Bytes, Bytes, Bytes]:
    """Luma (H, W), Cb and Cr (H/2, W/2) of a picture (h, w, 4), after ITU-R BT.601 and BT.709, section 3."""
    width, height = format.size
    whole = np.pad(rgba, ((0, height - rgba.shape[0]), (0, width - rgba.shape[1]), (0, 0)), "edge") / 255.0
    red, green, blue = np.moveaxis(whole[..., :3] * whole[..., 3:], 2, 0)
    red_share, blue_share = SHARES[format.matrix]
    luma = red_share * red + (1 - red_share - blue_share) * green + blue_share * blue
    cb, cr = (blue - luma) / (2 - 2 * blue_share), (red - luma) / (2 - 2 * red_share)
    cb, cr = (plane.reshape(height // 2, 2, width // 2, 2).mean((1, 3)) for plane in (cb, cr))
    gain, black, swing = (255, 0, 255) if format.full_range else (219, 16, 224)
    exact = black + gain * luma, 128 + swing * cb, 128 + swing * cr
    y, u, v = (np.floor(np.clip(codes, 0, 255) + 0.5).astype(np.uint8) for codes in exact)
    return y, u, v


def convert(context: Context, rgba: Bytes, format: PictureFormat) -> Bytes:
    """What is read back, as bytes in the order of memory."""
    picture, yuv = target_of(context, rgba), YuvPicture(context, format)
    ring: ReadbackRing[int] = ReadbackRing(context, size_bytes(format), depth=2)
    yuv.draw(picture)
    ring.request_codes(7, yuv.framebuffer, yuv.size)
    ((tag, data),) = ring.drain()
    for part in (ring, yuv, picture):
        part.release()
    assert tag == 7
    return data


def noise(size: tuple[int, int]) -> Bytes:
    """Colors at random, a part of them transparent."""
    rgba = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 4), np.uint8)
    rgba[::2, :, 3] = 255
    return rgba


def off_by(found: npt.NDArray[np.uint8], wanted: npt.NDArray[np.uint8]) -> int:
    assert found.shape == wanted.shape
    return int(np.abs(found.astype(int) - wanted).max())


@one_in(4, "size", SIZES, ids=lambda size: "x".join(map(str, size)))
@pytest.mark.parametrize("matrix", ["bt601", "bt709"])
@on_both_apis
def test_i420_and_nv12_are_within_a_code_of_their_definition(
    context: Context, size: tuple[int, int], matrix: Matrix
) -> None:
    rgba = noise(size)
    luma, cb, cr = by_definition(rgba, i420(size, matrix))
    planar = split(convert(context, rgba, i420(size, matrix)), i420(size, matrix)).planes
    assert max(map(off_by, planar, (luma, cb, cr))) <= 1
    paired = split(convert(context, rgba, nv12(size, matrix)), nv12(size, matrix)).planes
    assert max(map(off_by, paired, (luma, np.stack([cb, cr], 2)))) <= 1


def test_full_range_uses_all_codes(context: Context) -> None:
    rgba = noise((66, 34))
    format = PictureFormat((66, 34), "yuv", 8, (1, 1), "bt709", True, "center")
    planes = split(convert(context, rgba, format), format).planes
    assert max(map(off_by, planes, by_definition(rgba, format))) <= 1
    assert planes[0].max() > 240


@pytest.mark.parametrize("size", [(64, 48), (7, 5), (1, 3), (641, 479)])
def test_gray_is_the_same_bytes(context: Context, size: tuple[int, int]) -> None:
    rgba = noise(size)
    rgba[..., 1:3], rgba[..., 3] = rgba[..., :1], 255
    assert np.array_equal(convert(context, rgba, gray(size)).reshape(size[1], size[0]), rgba[..., 0])


@pytest.mark.parametrize(
    ("pixel", "codes"),
    [
        ((0, 0, 0, 255), BLACK),
        ((255, 255, 255, 255), WHITE),
        ((255, 255, 255, 0), BLACK),
        ((255, 0, 0, 255), (63, 102, 240)),
    ],
)
def test_known_colors_have_their_codes(context: Context, pixel: tuple[int, ...], codes: tuple[int, int, int]) -> None:
    rgba = np.full((4, 6, 4), pixel, np.uint8)
    planes = split(convert(context, rgba, i420((6, 4))), i420((6, 4))).planes
    assert [set(plane.ravel().tolist()) for plane in planes] == [{code} for code in codes]


def test_the_reader_of_cameras_sees_the_same_picture(context: Context) -> None:
    steep = np.linspace(0, 255, 96)[None, :, None] * np.linspace(0.2, 1, 64)[:, None, None] * [1, 0.7, 0.4]
    rgba = np.dstack([np.rint(steep).astype(np.uint8), np.full((64, 96), 255, np.uint8)])
    for format in (i420((96, 64)), nv12((96, 64), "bt601")):
        seen = Preprocessor(format, (96, 64), value_range=(0, 255)).image_to_tensor(
            split(convert(context, rgba, format), format)
        )
        assert np.abs(seen[0] - rgba[..., :3]).max() <= 6


@on_both_apis
def test_no_more_than_one_and_a_half_bytes_a_pixel_are_read_back(context: Context) -> None:
    for format, wanted in ((i420((640, 480)), 460_800), (nv12((642, 482)), 642 * 482 * 3 // 2), (gray((641, 3)), 1923)):
        rgba, before = noise(format.size), context.readback.bytes
        convert(context, rgba, format)
        assert context.readback.bytes - before == wanted


def test_a_row_that_is_no_multiple_of_four_bytes_does_not_shift_the_next(context: Context) -> None:
    picture = target_of(context, noise((9, 5)))
    ring: ReadbackRing[str] = ReadbackRing(context, 9 * 5 * 4, depth=2)
    ring.request_picture("rgba", picture.framebuffer, picture.size)
    (found,) = ring.drain()
    assert found[0] == "rgba"
    assert np.array_equal(found[1].reshape(5, 9, 4), noise((9, 5)))
    ring.release()
    picture.release()


def convert_with_opengl_3_3() -> None:
    """In a process whose OpenGL is that old."""
    with open_context(DRAWING) as context:
        assert not context.can_compute
        for format in (i420((10, 6)), nv12((10, 6))):
            luma, cb, cr = by_definition(noise((10, 6)), format)
            first, *rest = split(convert(context, noise((10, 6)), format), format).planes
            chroma = np.stack(rest, 2) if len(rest) == 2 else rest[0]
            assert max(off_by(first, luma), off_by(chroma, np.stack([cb, cr], 2))) <= 1
        context.check_errors("converting with OpenGL 3.3")


@exhaustive
@pytest.mark.gl
def test_opengl_3_3_converts_as_well() -> None:
    assert_runs_with_opengl_3_3(convert_with_opengl_3_3)


@needs_validator
def test_all_parts_are_valid_glsl(tmp_path: Path) -> None:
    assert_valid_glsl({f"part{part}": load("to_yuv.frag", {"PART": part}) for part in range(3)}, tmp_path)
