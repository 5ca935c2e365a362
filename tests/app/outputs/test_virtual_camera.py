"""The virtual camera, with pyvirtualcam itself but for the device, which few machines have.

pyvirtualcam lets programs add backends of their own. One that keeps what it is sent takes the place of v4l2loopback's,
so that all in front of the device is what users run: the choice of a format, the checks of frames, the thread.
"""

import sys
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.on_device import Easel
from tests.helpers.waiting import PATIENCE_S
from texelflow.app.capture.capture import TIME_BASE
from texelflow.app.frame.textures.readback import ReadbackRing
from texelflow.app.frame.textures.yuv import YuvPicture, i420, nv12
from texelflow.app.outputs.file_sinks import Timing
from texelflow.app.outputs.frame_outputs import Outputs
from texelflow.app.outputs.loopback import Loopback, is_exclusive, kept_size, loopback_advice, loopback_devices
from texelflow.app.outputs.virtual_camera import CameraSink
from texelflow.app.picture.picture import PictureFormat, rgba_picture
from texelflow.app.picture.video_frame import VideoFrame
from texelflow.app.verbs.doctor.diagnoses import virtual_camera
from texelflow.gpu_delegate.base.errors import DeviceError, UsageError
from texelflow.gpu_delegate.targets.gl.context import Context

SIZE = (64, 48)
NOTHING = rgba_picture(np.zeros((1, 1, 4), np.uint8))


class Sink:
    """What is sent, instead of a device; `takes` are the four letters of the formats that it is held to."""

    def __init__(self, *takes: str) -> None:
        self.takes = takes
        self.sent: list[npt.NDArray[np.uint8]] = []
        self.open = self.fails = False
        self.gate = threading.Event()
        self.gate.set()
        self.held = threading.Event()  # whether a frame has come to the gate
        self._came = threading.Condition()

    def await_frames(self, count: int) -> None:
        with self._came:
            assert self._came.wait_for(lambda: len(self.sent) >= count, PATIENCE_S)

    def backend(self, *, width: int, height: int, fps: float, fourcc: int, device: str | None) -> Any:
        """As pyvirtualcam makes its backends."""
        sink, letters = self, fourcc.to_bytes(4, "little").decode()
        if letters not in self.takes:
            raise ValueError(f"{letters} is not taken")

        class Backend:
            def send(self, frame: npt.NDArray[np.uint8]) -> None:
                if sink.fails:
                    raise RuntimeError("the device\nis gone")
                sink.held.set()
                sink.gate.wait()
                with sink._came:
                    sink.sent.append(frame.copy())
                    sink._came.notify()

            def device(self) -> str:
                return "/dev/video77"

            def native_fourcc(self) -> int:
                return fourcc

            def close(self) -> None:
                sink.open = False

        sink.open = True
        return Backend()


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> Sink:
    """The only device that there is."""
    pyvirtualcam = pytest.importorskip("pyvirtualcam")
    sink = Sink("I420", "NV12")
    monkeypatch.setattr(pyvirtualcam.camera, "BACKENDS", {"kept": sink.backend})
    return sink


@pytest.fixture
def easel(context: Context) -> Iterator[Easel]:
    easel = Easel(context, SIZE)
    yield easel
    easel.release()


@pytest.fixture
def outputs(context: Context, easel: Easel) -> Iterator[Outputs]:
    outputs = Outputs(context, easel, Timing(TIME_BASE, Fraction(25)))
    yield outputs
    outputs.release()


def pass_by(outputs: Outputs, index: int) -> None:
    outputs.stage.run(VideoFrame(index, index * 40_000, index * 40.0, NOTHING))


def shades(index: int) -> npt.NDArray[np.uint8]:
    """A picture that tells which one it is, and where its corners are."""
    rgba = np.full((SIZE[1], SIZE[0], 4), 255, np.uint8)
    rgba[..., 0], rgba[..., 1] = 10 * index, np.arange(SIZE[0])
    rgba[: SIZE[1] // 2, :, 2] = 40
    return rgba


def bytes_of(context: Context, easel: Easel, format: PictureFormat) -> npt.NDArray[np.uint8]:
    """The conversion by itself, which test_yuv.py compares with its definition."""
    yuv = YuvPicture(context, format)
    ring: ReadbackRing[None] = ReadbackRing(context, yuv.size[0] * yuv.size[1])
    yuv.draw(easel.target)
    ring.request_codes(None, yuv.framebuffer, yuv.size)
    ((_, data),) = ring.drain()
    yuv.release()
    ring.release()
    return data


@pytest.mark.parametrize(("takes", "format"), [("I420", i420(SIZE, "bt601")), ("NV12", nv12(SIZE, "bt601"))])
def test_programs_see_the_picture_in_the_format_that_the_device_takes(
    context: Context, easel: Easel, outputs: Outputs, sink: Sink, takes: str, format: PictureFormat
) -> None:
    sink.takes = (takes,)
    outputs.begin_virtual_camera()
    before, wanted = context.readback.bytes, []
    for index in range(5):
        easel.paint(shades(index))
        pass_by(outputs, index)
        context.gl.glFinish()
        sink.await_frames(index)  # the ring keeps the newest
    read = context.readback.bytes - before
    outputs.end("virtual camera")
    outputs.finish()
    for index in range(5):
        easel.paint(shades(index))
        wanted.append(bytes_of(context, easel, format))
    assert read == 4 * SIZE[0] * SIZE[1] * 3 // 2
    assert [frame.tolist() for frame in sink.sent] == [frame.tolist() for frame in wanted]
    assert outputs.lines() == [
        f"virtual camera /dev/video77: 64x48 {takes}",
        "virtual camera /dev/video77 is off after 5 frames",
    ]
    assert not sink.open


def test_the_newest_frame_wins(context: Context, easel: Easel, outputs: Outputs, sink: Sink) -> None:
    sink.gate.clear()
    outputs.begin_virtual_camera()
    for index in range(20):
        easel.paint(shades(index))
        pass_by(outputs, index)
        if index == 2:
            assert sink.held.wait(PATIENCE_S)
    counts = outputs.counts["virtual camera"]
    sink.gate.set()
    outputs.finish()
    lumas = [int(frame[0]) for frame in sink.sent]
    assert lumas == sorted(lumas)
    assert len(sink.sent) <= 4
    easel.paint(shades(19))
    assert sink.sent[-1].tolist() == bytes_of(context, easel, i420(SIZE, "bt601")).tolist()
    assert counts.dropped >= 14
    assert not any("dropped" in line for line in outputs.lines())


def test_a_device_that_goes_ends_the_camera_alone(easel: Easel, outputs: Outputs, sink: Sink) -> None:
    outputs.begin_virtual_camera()
    sink.fails = True
    for index in range(100_000):
        pass_by(outputs, index)
        if not outputs.active:
            break
    outputs.finish()
    assert outputs.lines()[-1] == ("virtual camera ended: /dev/video77 takes no more pictures: the device is gone")
    assert not sink.open


def test_it_can_be_begun_again(easel: Easel, outputs: Outputs, sink: Sink) -> None:
    for index in range(3):
        outputs.begin_virtual_camera()
        pass_by(outputs, index)
    assert outputs.active == ("virtual camera",)
    outputs.finish()
    assert len(sink.sent) == 3


# What is said where it cannot be


@pytest.mark.parametrize("size", [(641, 480), (640, 479)])
def test_odd_sizes_are_refused(size: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match=r"both sides must be even"):
        CameraSink(size, 30.0)


def test_without_the_extra_one_line_says_what_to_install(outputs: Outputs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyvirtualcam", None)  # as where it is not installed
    with pytest.raises(DeviceError) as caught:
        outputs.begin_virtual_camera()
    assert str(caught.value) == ("no virtual camera: pyvirtualcam is not installed; pip install pyvirtualcam")
    assert outputs.active == ()


@pytest.mark.skipif(sys.platform != "linux" or bool(loopback_devices()), reason="needs a Linux without v4l2loopback")
def test_without_a_device_one_line_says_what_to_load(outputs: Outputs) -> None:
    pytest.importorskip("pyvirtualcam")
    with pytest.raises(DeviceError) as caught:
        outputs.begin_virtual_camera()
    message = str(caught.value)
    assert "\n" not in message
    assert "sudo modprobe v4l2loopback exclusive_caps=1" in message


# What Linux tells of its devices


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """A part of /sys, as kernels with v4l2loopback have it, and with another virtual driver."""
    devices = tmp_path / "devices/virtual/video4linux"
    for name, label, format in (("video10", "texelflow\n", ""), ("video2", "cam \x1b[31m\n", "YU12:640x480@30/1\n")):
        (devices / name).mkdir(parents=True)
        (devices / name / "name").write_text(label)
        (devices / name / "format").write_text(format)
    (devices / "video3").mkdir()
    (devices / "video3" / "name").write_text("something else\n")
    (tmp_path / "module/v4l2loopback/parameters").mkdir(parents=True)
    return tmp_path


def test_devices_are_found_in_their_order(system: Path) -> None:
    found = loopback_devices(system)
    assert [device.device for device in found] == ["/dev/video2", "/dev/video10"]
    assert found[1] == Loopback("/dev/video10", "texelflow")
    assert found[0].label.isprintable()
    assert loopback_devices(system / "module") == []
    assert [kept_size(f"/dev/video{number}", system) for number in (2, 10, 99)] == [(640, 480), None, None]


@pytest.mark.parametrize(("stated", "exclusive", "lines"), [("Y,N,N\n", True, 0), ("N,N\n", False, 1), (None, None, 0)])
def test_missing_exclusive_caps_are_told(system: Path, stated: str | None, exclusive: bool | None, lines: int) -> None:
    if stated is not None:
        (system / "module/v4l2loopback/parameters/exclusive_caps").write_text(stated)
    assert is_exclusive(system) is exclusive
    assert len(loopback_advice(system)) == lines


def test_the_doctor_tells_of_it(system: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (system / "module/v4l2loopback/parameters/exclusive_caps").write_text("N,N\n")
    named = {finding.name: finding for finding in virtual_camera(system)}
    if sys.platform == "linux":
        assert named["v4l2loopback"].found.startswith("/dev/video2")
        assert named["v4l2loopback"].state == "warn"
        assert "exclusive_caps=1" in named["v4l2loopback"].advice
        named = {finding.name: finding for finding in virtual_camera(tmp_path / "module")}
        assert named["v4l2loopback"].found == "not loaded"
    assert not any(finding.stops for finding in named.values())
