"""Buffers of every format that cameras send become the pictures that they were made of; damaged ones are refused."""

import math

import av
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.helpers.buffers import NAMES, buffer_of, clip_frame, jpeg_of
from tests.helpers.markers import one_in
from texelflow.app.capture.modes import Mode, ModeChoice, choose, guess
from texelflow.app.capture.raw import BadBufferError, JpegDecoder, RawFormat, picture_of, rgba_of, row_bytes
from texelflow.app.frame.textures.resample import ImageToTensor
from texelflow.app.frame.textures.upload import FrameTextures
from texelflow.app.picture.preprocess import Preprocessor
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.gl_buffers import read_buffer
from texelflow.gpu_delegate.targets.gl.opengl import BufferRange

Bytes = npt.NDArray[np.uint8]
SIZES = [(64, 48), (66, 35), (2, 1)]
ANY_SIZE = [*SIZES, (63, 49), (1, 1), (7, 2)]
CASES = [(pixels, size) for pixels in NAMES for size in (SIZES if pixels in ("YUYV", "UYVY") else ANY_SIZE)]


def array(data: bytes) -> Bytes:
    return np.frombuffer(data, np.uint8)


def difference(found: Bytes, rgb: av.VideoFrame) -> tuple[float, float]:
    """The mean and the largest, of red, green and blue."""
    apart = np.abs(found[..., :3].astype(int) - rgb.to_ndarray())
    return float(apart.mean()), float(apart.max())


@pytest.mark.parametrize("padding", [0, 16])
@one_in(3, "pixels", NAMES)
def test_a_buffer_is_the_picture_that_it_was_made_of(pixels: str, padding: int) -> None:
    size = 320, 240
    rgb = clip_frame(60, size)
    stride = row_bytes(pixels, size[0]) + padding if padding else 0
    picture = picture_of(array(buffer_of(rgb, pixels, padding)), RawFormat(pixels, size, stride))
    mean, most = difference(
        rgba_of(picture), rgb if pixels != "GREY" else rgb.reformat(format="gray").reformat(format="rgb24")
    )
    assert mean < 1, "chroma of half the size loses some"
    assert most < 45


def test_nothing_is_copied_of_what_goes_up_as_it_is() -> None:
    for pixels in ("YUYV", "UYVY", "NV12", "NV21", "YU12", "YV12", "GREY"):
        data = array(buffer_of(clip_frame(0, (64, 48)), pixels))
        assert all(np.shares_memory(plane, data) for plane in picture_of(data, RawFormat(pixels, (64, 48))).planes)


@one_in(3, ("pixels", "size"), CASES, ids=str)
def test_the_device_sees_the_same_pixels(context: Context, pixels: str, size: tuple[int, int]) -> None:
    rng = np.random.default_rng(7)
    data = rng.integers(0, 256, 3 * math.prod(size) + 64, np.uint8)
    picture = picture_of(data, RawFormat(pixels, size))
    with FrameTextures(context, picture.format) as frame:
        frame.upload(picture)
        there = ImageToTensor(context, frame, size)
        buffer = context.mgl.buffer(reserve=there.size_bytes)
        tensor = BufferRange(buffer.glo, 0, there.size_bytes)
        there.run(tensor)
        found = read_buffer(context, tensor).view(np.float32).reshape(size[1], size[0], 4)[..., :3]
        there.release()
        buffer.release()
    expected = Preprocessor(picture.format, size).image_to_tensor(picture)[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


@pytest.mark.parametrize("pixels", NAMES)
def test_buffers_of_a_wrong_length_are_refused(pixels: str) -> None:
    size = 64, 48
    whole = array(buffer_of(clip_frame(0, size), pixels))
    picture_of(np.pad(whole, (0, 4096)), RawFormat(pixels, size))
    for data in (whole[:-1], whole[:0], np.tile(whole, 9)):
        with pytest.raises(BadBufferError, match=f"bytes, not a {pixels} picture of 64x48"):
            picture_of(data, RawFormat(pixels, size))


@given(
    st.sampled_from([*NAMES, "H264", ""]),
    st.integers(-2, 1 << 33),
    st.integers(-2, 1 << 33),
    st.integers(0, 1 << 33),
    st.integers(0, 5000),
)
def test_no_claim_reads_beyond_the_buffer(pixels: str, width: int, height: int, stride: int, length: int) -> None:
    data = np.zeros(length, np.uint8)
    try:
        picture = picture_of(data, RawFormat(pixels, (width, height), stride))
    except BadBufferError:
        return
    assert picture.format.size == (width, height)
    for plane in picture.planes:
        assert np.shares_memory(plane, data) or picture.format.layout == "rgba"


def test_an_empty_buffer_does_not_end_the_stream() -> None:
    decode = JpegDecoder()
    with pytest.raises(BadBufferError, match="empty"):
        decode(array(b""))
    assert decode(array(_SMALL_JPEG))[0].format.size == (32, 24)


def test_odd_widths_of_pairs_are_refused() -> None:
    with pytest.raises(BadBufferError, match="even width"):
        picture_of(np.zeros(1000, np.uint8), RawFormat("YUYV", (7, 5)))


@pytest.mark.parametrize(("name", "shift"), [("yuvj420p", (1, 1)), ("yuvj422p", (1, 0)), ("yuvj444p", (0, 0))])
def test_jpeg_becomes_its_own_planes(name: str, shift: tuple[int, int]) -> None:
    rgb = clip_frame(60, (320, 240))
    picture, to_rgba = JpegDecoder()(array(jpeg_of(rgb, name)))
    form = picture.format
    assert (form.layout, form.chroma_shift, form.full_range, form.matrix) == ("yuv", shift, True, "bt601")
    for rgba in (rgba_of(picture), to_rgba()):
        mean, most = difference(rgba, rgb)
        assert mean < 2
        assert most < 60


def test_a_damaged_jpeg_is_refused_and_the_next_one_is_whole() -> None:
    data, decode = jpeg_of(clip_frame(60, (320, 240))), JpegDecoder()
    size_at = data.index(b"\xff\xc0") + 5
    huge = data[:size_at] + b"\xff\xdc\xff\xdc" + data[size_at + 4 :]
    broken = [data[:20], data[: len(data) // 2], data[:-600], b"\x89PNG\r\n\x1a\n" + bytes(500), huge]
    for bad in broken:
        with pytest.raises(BadBufferError, match="damaged JPEG"):
            decode(array(bad))
        assert decode(array(data + bytes(100)))[0].format.size == (320, 240), "cameras pad their buffers"


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(0, 255)), min_size=1, max_size=20))
def test_no_jpeg_does_harm(changes: list[tuple[int, int]]) -> None:
    data = bytearray(_SMALL_JPEG)
    for place, value in changes:
        data[place % len(data)] = value
    try:
        picture, _ = JpegDecoder()(array(bytes(data)))
    except BadBufferError:
        return
    assert tuple(plane.shape for plane in picture.planes) == picture.format.plane_shapes


_SMALL_JPEG = jpeg_of(clip_frame(0, (32, 24)))


MODES = [
    Mode("YUYV", (640, 480), (30.0, 15.0)),
    Mode("YUYV", (1280, 720), (10.0,)),
    Mode("YUYV", (1920, 1080), (5.0,)),
    Mode("MJPG", (640, 480), (60.0, 30.0)),
    Mode("MJPG", (1280, 720), (30.0,)),
    Mode("MJPG", (1920, 1080), (30.0,)),
    Mode("GREY", (640, 480), (90.0,)),
    Mode("H264", (1280, 720), (60.0,)),
]


@pytest.mark.parametrize(
    ("size", "fps", "pixels", "chosen"),
    [
        ((640, 480), 30, "auto", ModeChoice("YUYV", (640, 480), 30)),
        ((640, 480), 60, "auto", ModeChoice("MJPG", (640, 480), 60)),
        ((640, 480), 20, "auto", ModeChoice("YUYV", (640, 480), 30)),
        ((640, 480), 15, "auto", ModeChoice("YUYV", (640, 480), 15)),
        ((1280, 720), 30, "auto", ModeChoice("MJPG", (1280, 720), 30)),
        ((1280, 720), 10, "auto", ModeChoice("YUYV", (1280, 720), 10)),
        ((1920, 1080), 30, "auto", ModeChoice("MJPG", (1920, 1080), 30)),
        ((1920, 1080), 30, "yuy2", ModeChoice("YUYV", (1920, 1080), 5)),
        ((1280, 800), 30, "auto", ModeChoice("MJPG", (1280, 720), 30)),
        ((640, 480), 30, "mjpg", ModeChoice("MJPG", (640, 480), 30)),
        ((640, 480), 30, "nv12", None),
    ],
)
def test_the_mode_is_chosen_for_frames_per_second(
    size: tuple[int, int], fps: float, pixels: str, chosen: ModeChoice | None
) -> None:
    assert choose(MODES, size, fps, pixels) == chosen


def test_modes_without_rates_are_taken_raw() -> None:
    unknown = [Mode("MJPG", (640, 480)), Mode("NV12", (640, 480)), Mode("YUYV", (640, 480))]
    assert choose(unknown, (640, 480), 30) == ModeChoice("YUYV", (640, 480), 30)
    assert choose([], (640, 480), 30) is None


def test_cameras_that_do_not_tell_are_asked_for_what_usb_carries() -> None:
    assert guess((640, 480), 30) == ModeChoice("YUYV", (640, 480), 30)
    assert guess((1280, 720), 30) == ModeChoice("MJPG", (1280, 720), 30)
    assert guess((1280, 720), 30, "i420") == ModeChoice("YU12", (1280, 720), 30)
