"""texelflow.VirtualCamera: what other programs see of a Python program's pictures; the device is a stand-in."""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import texelflow
from tests.helpers.clips import DEMO_CLIP, Recipe, moving, write_clip
from tests.helpers.markers import exhaustive
from texelflow.app.frame.textures.yuv import split
from texelflow.app.picture.picture import Matrix, PictureFormat

SIZE = (64, 48)


class Device:
    """Keeps what it is sent, in the place of v4l2loopback's; `takes` are the letters of its format."""

    def __init__(self, takes: str) -> None:
        self.takes, self.sent, self.is_open, self.fails = takes, list[npt.NDArray[np.uint8]](), False, False

    def backend(self, *, width: int, height: int, fps: float, fourcc: int, device: str | None) -> Any:
        """As pyvirtualcam makes its backends."""
        if fourcc.to_bytes(4, "little").decode() != self.takes:
            raise ValueError("not taken")
        self.is_open, kept = True, self

        class Backend:
            def send(self, frame: npt.NDArray[np.uint8]) -> None:
                if kept.fails:
                    raise RuntimeError("gone")
                kept.sent.append(frame.copy())

            def device(self) -> str:
                return "/dev/video77"

            def native_fourcc(self) -> int:
                return fourcc

            def close(self) -> None:
                kept.is_open = False

        return Backend()


@pytest.fixture(params=["I420", "NV12"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Device:
    pyvirtualcam = pytest.importorskip("pyvirtualcam")
    device = Device(request.param)
    monkeypatch.setattr(pyvirtualcam.camera, "BACKENDS", {"kept": device.backend})
    return device


def seen(device: Device, matrix: Matrix = "bt601") -> list[npt.NDArray[np.float64]]:
    """The color of each picture's middle, read as programs read what cameras send."""
    found = []
    for data in device.sent:
        layout: Any = "yuv" if device.takes == "I420" else "nv12"
        format = PictureFormat(SIZE, layout, 8, (1, 1), matrix, False, "center")
        luma, *chroma = split(data, format).planes
        middle = [plane[12, 16] for plane in chroma] if layout == "yuv" else chroma[0][12, 16].tolist()
        to_rgb, offset = format.to_rgb()
        found.append((to_rgb @ (np.array([luma[24, 32], *middle]) / 255) + offset) * 255)
    return found


def test_programs_see_the_colors_that_are_sent(device: Device) -> None:
    orange = np.full((48, 64, 3), (230, 120, 30), np.uint8)
    half = np.dstack([orange, np.full((48, 64), 128, np.uint8)])
    with texelflow.VirtualCamera(SIZE) as camera:
        assert (camera.device, camera.size) == ("/dev/video77", SIZE)
        for picture in (orange, half, orange[..., 0], np.asfortranarray(orange)):
            camera.send(picture)
    wanted = (230, 120, 30), (115, 60, 15), (230, 230, 230), (230, 120, 30)
    assert np.abs(np.array(seen(device)) - wanted).max() <= 3
    assert not device.is_open
    with pytest.raises(texelflow.UsageError, match="this VirtualCamera is closed"):
        camera.send(orange)
    assert repr(camera) == "<texelflow.VirtualCamera /dev/video77: closed>"


def test_a_recording_is_shown_at_its_times(device: Device, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe(time_base=Fraction(1, 1000), pts=(0, 500, 600, 5000))
    clip = write_clip(tmp_path / "clip.mkv", moving(4, *SIZE), recipe)
    now, slept = [100.0], list[float]()

    def sleep(wait_s: float) -> None:
        slept.append(round(wait_s, 3))
        now[0] += wait_s

    monkeypatch.setattr("texelflow.picture_writing.perf_counter", lambda: now[0])
    monkeypatch.setattr("texelflow.picture_writing.sleep", sleep)
    with texelflow.VirtualCamera(SIZE) as camera:
        video = texelflow.video(clip, effect="none", backend="cpu")
        assert texelflow.write(camera, video) == 4
    assert slept == [0.0, 0.5, 0.1, 4.4]
    assert len(device.sent) == 4


def test_a_device_that_goes_is_told(device: Device) -> None:
    device.fails = True
    with pytest.raises(texelflow.DeviceError, match="/dev/video77 takes no more pictures: gone"):
        texelflow.VirtualCamera(SIZE).send(np.zeros((48, 64), np.uint8))


@pytest.mark.parametrize(
    ("size", "rate", "said"),
    [
        ((641, 480), 30, "no virtual camera of 641x480 pixels: both sides must be even"),
        ((0, 480), 30, "1 to 16384 pixels a side"),
        (640, 30, "size=640: (width, height) in pixels is needed"),
        (SIZE, 0, "rate=0: pictures a second are needed"),
    ],
)
def test_what_no_camera_has_is_refused(size: Any, rate: Any, said: str) -> None:
    with pytest.raises(texelflow.UsageError) as refused:
        texelflow.VirtualCamera(size, rate)
    assert said in str(refused.value)


@exhaustive
def test_pictures_of_another_size_are_refused(device: Device) -> None:
    with texelflow.VirtualCamera(SIZE) as camera, pytest.raises(texelflow.UsageError, match="shows 64x48, not 640x480"):
        texelflow.write(camera, texelflow.video(DEMO_CLIP, effect="none", backend="cpu"))
    assert not device.sent
