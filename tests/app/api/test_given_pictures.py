"""Pictures of every kind come as planes of the right colors, and go back as what they were."""

import sys
from fractions import Fraction
from types import ModuleType
from typing import Any

import av
import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from texelflow.app.capture.raw import rgba_of
from texelflow.frame_arrays import RgbaCopies
from texelflow.given_pictures import GivenPicture, given_picture
from texelflow.gpu_delegate.base.errors import UsageError

Pixels = npt.NDArray[np.uint8]


def scene() -> Pixels:
    """Smooth colors, (H, W, 4), opaque."""
    y, x = np.mgrid[0:48, 0:64]
    return np.asarray(np.stack([40 + 2 * x, 200 - 3 * y, 60 + x + y, np.full_like(x, 255)], -1), np.uint8)


def seen_in(given: GivenPicture) -> Pixels:
    """What a picture shows, RGBA."""
    if given.pixels is not None:
        return RgbaCopies().of(given.pixels, copies=True)
    assert given.picture
    return given.convert() if given.convert else rgba_of(given.picture)


def frame_of(name: str) -> av.VideoFrame:
    frame = av.VideoFrame.from_ndarray(scene(), "rgba").reformat(format=name, dst_colorspace=5, dst_color_range=1)
    frame.pts, frame.time_base = 7, Fraction(1, 25)
    return frame


class Tensor:
    """What speaks DLPack and no other language, as packages do whose arrays may lie elsewhere."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> None:
    package: Any = ModuleType("lattice")
    package.from_dlpack = lambda found: Tensor(np.from_dlpack(found))
    monkeypatch.setitem(sys.modules, "lattice", package)
    monkeypatch.setattr(Tensor, "__module__", "lattice.tensors")


def test_arrays_of_any_layout() -> None:
    rgba = scene()
    for array in (rgba, rgba[..., :3], np.asfortranarray(rgba), rgba[::-1, ::-1][::-1, ::-1], rgba[..., :3].copy()):
        given = given_picture(array)
        assert np.array_equal(seen_in(given), rgba)
        back = given.give(rgba.copy(), False)
        assert np.array_equal(back, array)
        assert back.flags.c_contiguous
        assert given.give(rgba.copy(), True).shape == rgba.shape
    assert given_picture(rgba).pixels is rgba


@pytest.mark.parametrize(
    ("mode", "back"), [("RGB", "RGB"), ("RGBA", "RGBA"), ("L", "RGB"), ("LA", "RGBA"), ("P", "RGB")]
)
def test_pillows_images(mode: str, back: str) -> None:
    image = Image.fromarray(scene()).convert(mode)
    given = given_picture(image)
    wanted = np.asarray(image.convert("RGBA"))
    assert np.array_equal(seen_in(given), wanted)
    made = given.give(wanted.copy(), False)
    assert isinstance(made, Image.Image)
    assert (made.mode, given.give(wanted.copy(), True).mode) == (back, "RGBA")
    assert np.array_equal(np.asarray(made.convert("RGBA")), wanted)


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("first", [False, True])
def test_dlpack_with_channels_last_or_first(first: bool) -> None:
    rgb = scene()[..., :3]
    given = given_picture(Tensor(rgb.transpose(2, 0, 1).copy() if first else rgb.copy()))
    assert np.array_equal(seen_in(given), scene())
    back = given.give(scene(), False)
    assert isinstance(back, Tensor)
    assert np.array_equal(back.array.transpose(1, 2, 0) if first else back.array, rgb)


@pytest.mark.parametrize("name", ["yuv420p", "yuv422p", "yuv444p", "nv12", "yuyv422", "rgb24", "bgr24"])
def test_pyavs_frames(name: str) -> None:
    frame = frame_of(name)
    given = given_picture(frame)
    wanted = np.asarray(frame.to_ndarray(format="rgba"), np.uint8)
    seen = seen_in(given)
    assert np.abs(seen.astype(int) - wanted).max() <= 6
    back = given.give(seen.copy(), False)
    assert (back.format.name, back.width, back.height) == (name, 64, 48)
    assert (back.pts, back.time_base) == (7, Fraction(1, 25))
    assert np.abs(np.asarray(back.to_ndarray(), int) - np.asarray(frame.to_ndarray(), int)).max() <= 6
    assert given.give(seen.copy(), True).format.name == "rgba"


@pytest.mark.parametrize("kind", ["I420", "NV12", "YUYV"])
def test_planes_of_yuv(kind: str) -> None:
    rows = np.asarray(frame_of({"I420": "yuv420p", "NV12": "nv12", "YUYV": "yuyv422"}[kind]).to_ndarray(), np.uint8)
    planes: tuple[Pixels, ...]
    if kind == "YUYV":
        planes = (rows.reshape(48, 64, 2),)
    elif kind == "NV12":
        planes = rows[:48], rows[48:].reshape(24, 32, 2)
    else:
        planes = rows[:48], rows[48:60].reshape(24, 32), rows[60:].reshape(24, 32)
    given = given_picture(planes)
    seen = seen_in(given)
    assert np.abs(seen.astype(int) - scene()).max() <= 6
    back = given.give(seen, False)
    assert [plane.shape for plane in back] == [plane.shape for plane in planes]
    assert max(np.abs(a.astype(int) - b).max() for a, b in zip(back, planes, strict=True)) <= 4
    assert given.give(seen, True).shape == (48, 64, 4)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (np.zeros((4, 4, 3)), "not float64 (4, 4, 3)"),
        (np.zeros((4, 4), np.uint8), "not uint8 (4, 4)"),
        (np.zeros((0, 4, 3), np.uint8), "1 to 16384 pixels a side"),
        (None, "or a texture, not NoneType; cv2.imread and VideoCapture.read give None where"),
        ("frame.png", "not str; cv2.cvtColor(cv2.imread(path), cv2.COLOR_BGR2RGB) reads one from a file"),
        ((), "(Y, UV) of NV12 or (YUYV,) of packed 4:2:2, in their shapes, not nothing"),
        ((np.zeros((4, 4), np.uint8),) * 2, "in their shapes, not uint8 (4, 4), uint8 (4, 4)"),
        (Image.new("F", (4, 4)), "a Pillow image of mode F is no frame; image.convert('RGB') is one"),
    ],
)
def test_what_is_no_picture_is_refused(value: Any, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        given_picture(value)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
