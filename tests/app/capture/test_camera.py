"""Cameras through OpenCV: V4L2 with a device of recorded buffers, and captures of files; what goes wrong is told."""

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import pytest

from tests.helpers.buffers import NAMES, buffer_of, clip_frame, jpeg_of
from tests.helpers.clips import Recipe, moving, write_clip
from tests.helpers.fake_camera import FakeCamera, compiler
from tests.helpers.waiting import until
from texelflow.app.capture.camera import camera_apis, node_path, open_camera, why_not
from texelflow.app.capture.capture_device import DriverClock, OpenCvCamera
from texelflow.app.capture.raw import JpegDecoder, RawFormat, picture_of, rgba_of
from texelflow.app.capture.source import CaptureRequest, SourceError, SourceLostError

SIZE = (320, 240)
MS = 1_000_000
needs_compiler = pytest.mark.skipif(compiler() is None, reason="the device is made of C, on Linux")


@pytest.fixture(scope="module")
def rgb() -> av.VideoFrame:
    return clip_frame(60, SIZE)


@pytest.fixture(scope="module")
def fake(rgb: av.VideoFrame, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCamera]:
    modes = [(pixels, *SIZE, 30) for pixels in NAMES] + [("MJPG", *SIZE, 60), ("MJPG", 640, 480, 30)]
    buffers = {pixels: buffer_of(rgb, pixels) for pixels in NAMES} | {"MJPG": jpeg_of(rgb)}
    with FakeCamera(tmp_path_factory.mktemp("camera"), modes, buffers) as camera:
        yield camera


@pytest.fixture
def device(fake: FakeCamera) -> Iterator[FakeCamera]:
    """The camera, whole again after the test."""
    buffers = {path: path.read_bytes() for path in (fake.folder / "MJPG", fake.folder / "YUYV")}
    yield fake
    fake.node.touch()
    for path, data in buffers.items():
        path.write_bytes(data)
    for trouble in ("busy", "still", "padded"):
        (fake.folder / trouble).unlink(missing_ok=True)


@needs_compiler
@pytest.mark.parametrize("pixels", NAMES)
def test_buffers_come_through_opencv_as_the_camera_made_them(device: FakeCamera, pixels: str) -> None:
    told = device.open(size=SIZE, pixels=pixels.lower())
    assert told["description"] == f"V4L2 {device.node}, {pixels} 320x240, 30 fps"
    device.read()
    raw = RawFormat(pixels, SIZE)
    expected = rgba_of(picture_of(np.frombuffer((device.folder / pixels).read_bytes(), np.uint8), raw))
    assert np.array_equal(device.picture(), expected)


@needs_compiler
def test_jpeg_is_decoded_to_its_own_planes(device: FakeCamera) -> None:
    assert device.open(size=SIZE, pixels="mjpg")["layout"] == "yuv"
    device.read()
    picture, _ = JpegDecoder()(np.frombuffer((device.folder / "MJPG").read_bytes(), np.uint8))
    assert np.array_equal(device.picture(), rgba_of(picture))


@needs_compiler
def test_frames_per_second_come_before_raw_pixels(device: FakeCamera) -> None:
    assert "YUYV 320x240, 30 fps" in device.open(size=SIZE, fps=30)["description"]
    told = device.open(size=SIZE, fps=60)
    assert told["description"].endswith("MJPG 320x240, 60 fps")
    assert told["fps"] == 60
    assert device.open(size=(1920, 1080))["description"].endswith("MJPG 320x240, 30 fps (asked for 1920x1080, 30 fps)")


@needs_compiler
def test_pictures_bear_the_drivers_time_stamps(device: FakeCamera) -> None:
    device.open(size=SIZE)
    for _ in range(3):
        told = device.read()
        assert told["stamps"] == "driver"
        assert 0 <= told["age_ns"] < 1000 * MS


@needs_compiler
def test_every_picture_is_a_new_one(device: FakeCamera, rgb: av.VideoFrame) -> None:
    second = device.folder / "YUYV.1"
    second.write_bytes(bytes(len(buffer_of(rgb, "YUYV"))))
    device.open(size=SIZE)
    darkness = []
    for _ in range(4):
        device.read()
        darkness.append(bool(device.picture()[..., 0].max() == 0))
    second.unlink()
    assert darkness in ([True, False, True, False], [False, True, False, True])


@needs_compiler
def test_modes_are_listed_without_a_stream(device: FakeCamera) -> None:
    told = device.ask("list")
    assert (told["name"], told["camera"], told["trouble"]) == ("Fake camera", str(device.node), "")
    assert told["modes"][0] == ["YUYV", list(SIZE), [30.0]]
    assert told["modes"][-2:] == [["MJPG", list(SIZE), [60.0]], ["MJPG", [640, 480], [30.0]]]


@needs_compiler
def test_what_keeps_a_camera_from_opening_is_one_plain_line(device: FakeCamera) -> None:
    device.turn("busy", True)
    assert "used by another program; close that" in device.open(size=SIZE)["error"]
    device.turn("busy", False)
    device.turn("padded", True)
    assert "pads its rows of YUYV to 704 bytes" in device.open(size=SIZE, pixels="yuyv")["error"]
    assert "MJPG 320x240" in device.open(size=SIZE)["description"], "another way in, where the person leaves it open"
    device.turn("padded", False)
    assert "--pixels is auto, yuyv, uyvy" in device.open(size=SIZE, pixels="nonsense")["error"]
    device.node.unlink()
    told = device.open(size=SIZE)
    assert told["kind"] == "SourceError"
    assert f"there is no camera {device.node}" in told["error"]


@needs_compiler
@pytest.mark.parametrize(
    ("modes", "told"),
    [
        ("YUYV 60000 60000 30", "claims pictures of 60000x60000 pixels"),
        ("H264 320 240 30", "has pictures of H264, none of YUYV"),
    ],
)
def test_cameras_that_cannot_be_are_refused(device: FakeCamera, modes: str, told: str) -> None:
    path = device.folder / "modes"
    kept = path.read_text()
    path.write_text(modes)
    found = device.open()
    path.write_text(kept)
    assert told in found["error"]


@needs_compiler
def test_pixels_that_a_camera_has_not_are_refused_with_what_it_has(device: FakeCamera) -> None:
    modes = device.folder / "modes"
    told = modes.read_text()
    modes.write_text("YUYV 320 240 30\nH264 320 240 30\n")
    assert f"{device.node} has pictures of YUYV, H264, none of NV12" in device.open(pixels="nv12")["error"]
    modes.write_text(told)


@needs_compiler
def test_damaged_pictures_are_skipped_and_counted(device: FakeCamera) -> None:
    device.open(size=SIZE, pixels="mjpg", fps=60)
    assert device.read()["damaged"] == 0
    whole = (device.folder / "MJPG").read_bytes()
    (device.folder / "MJPG").write_bytes(whole[: len(whole) // 2])
    told = device.read()
    assert told["kind"] == "SourceLostError"
    assert "sends nothing that can be read: the camera sent a damaged JPEG" in told["error"]
    (device.folder / "MJPG").write_bytes(whole)
    assert device.read()["damaged"] > 3


@needs_compiler
def test_a_stall_ends_the_wait_and_unplugging_is_told_apart(device: FakeCamera) -> None:
    device.open(size=SIZE)
    device.read()
    device.turn("still", True)
    assert device.read()["error"].endswith("gives no more pictures")
    device.turn("still", False)
    assert device.read()["stamps"] == "driver", "it goes on by itself"
    device.node.unlink()
    assert device.read()["error"].endswith("was unplugged")
    device.node.touch()
    assert "YUYV" in device.open(size=SIZE)["description"], "plugged in again"


@needs_compiler
def test_a_camera_that_is_lost_and_comes_back_goes_on_by_itself(device: FakeCamera, rgb: av.VideoFrame) -> None:
    (device.folder / "MJPG.1").write_bytes(jpeg_of(clip_frame(0, SIZE)))
    (device.folder / "YUYV.1").write_bytes(buffer_of(clip_frame(0, SIZE), "YUYV"))

    def message_has(part: str) -> bool:
        return part in device.ask("state")["message"]

    device.ask("watch")
    until(lambda: device.ask("state")["phase"] == "live")
    device.node.unlink()
    until(lambda: message_has("was unplugged"))
    until(lambda: message_has("there is no camera"))
    device.turn("busy", True)
    device.node.touch()
    until(lambda: message_has("used by another program"))
    assert device.ask("state")["phase"] == "lost"
    device.turn("busy", False)
    until(lambda: device.ask("state")["new"])
    until(lambda: device.ask("state")["phase"] == "live")
    for pixels in ("MJPG.1", "YUYV.1"):
        (device.folder / pixels).unlink()


def capture_of(path: Path, *settings: int) -> Any:
    capture = cv2.VideoCapture(str(path), cv2.CAP_FFMPEG, settings)
    assert capture.isOpened()
    return capture


def test_what_opencv_converted_is_taken_as_bgr(tmp_path: Path) -> None:
    frames = moving(3)
    clip = write_clip(tmp_path / "clip.mkv", frames, Recipe("ffv1", "bgr0", codec_options={}))
    camera = OpenCvCamera(capture_of(clip), "FFmpeg clip", CaptureRequest((64, 48), 30.0))
    assert camera.description == "FFmpeg clip, as BGR 64x48, 30 fps"
    for frame in frames:
        shot = camera.read()
        assert np.array_equal(shot.picture.planes[0][..., :3], frame)
        assert (shot.captured_ns, camera.stamps) == (None, "arrival"), "a file's times are no clock's"
    with pytest.raises(SourceLostError, match="FFmpeg clip gives no more pictures"):
        camera.read()
    camera.close()
    camera.close()


def test_pictures_may_change_their_size(tmp_path: Path) -> None:
    small, large = jpeg_of(clip_frame(0, (64, 48))), jpeg_of(clip_frame(0, (160, 120)), "yuvj420p")
    stream = tmp_path / "stream.mjpeg"
    stream.write_bytes(small + large)
    raw = RawFormat("MJPG", (64, 48))
    camera = OpenCvCamera(capture_of(stream, cv2.CAP_PROP_FORMAT, -1), "FFmpeg stream", CaptureRequest((64, 48)), raw)
    assert [camera.read().picture.format.size for _ in range(2)] == [(64, 48), (160, 120)]
    assert camera.format.size == (64, 48)
    camera.close()


def test_a_camera_without_a_picture_does_not_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clip = write_clip(tmp_path / "clip.mkv", moving(1), Recipe("ffv1", "bgr0", codec_options={}))
    monkeypatch.setattr("texelflow.app.capture.capture_device.FIRST_PICTURE_NS", 200 * MS)
    with pytest.raises(SourceError, match=r"opened, but gave no picture: the camera sent .* not a YUYV picture"):
        OpenCvCamera(capture_of(clip), "FFmpeg clip", CaptureRequest(), RawFormat("YUYV", (640, 480)))


@pytest.mark.parametrize("camera", ["no such path", "/", "/dev/null", "x\0y", "9" * 5000])
def test_what_is_no_camera_is_said_at_once(camera: str) -> None:
    with pytest.raises(SourceError, match=r"no camera|not a camera|cannot be opened"):
        open_camera(camera, CaptureRequest(api="v4l2"))


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (errno.EACCES, "join the group video"),
        (errno.EBUSY, "used by another program"),
        (errno.ENOENT, "there is no camera /dev/video7: there are /dev/video0"),
        (errno.ENOTTY, "is not a camera"),
        (errno.EIO, "Input/output error; plug it in again"),
    ],
)
def test_each_reason_has_its_own_line(number: int, told: str) -> None:
    line = why_not("/dev/video7", OSError(number, "Input/output error"), ("/dev/video0",))
    assert told in line
    assert "\n" not in line


def test_backends_are_named_never_left_to_chance() -> None:
    assert [backend.name for backend in camera_apis("auto", "linux")] == ["V4L2"]
    assert [backend.name for backend in camera_apis("auto", "win32")] == ["DirectShow", "Media Foundation"]
    assert [backend.name for backend in camera_apis("auto", "darwin")] == ["AVFoundation"]
    assert [backend.name for backend in camera_apis("msmf", "win32")] == ["Media Foundation"]
    for api in ("nonsense", "msmf"):
        with pytest.raises(SourceError, match=f"through '{api}' here; --api is auto, v4l2$"):
            camera_apis(api, "linux")
    assert (node_path("2"), node_path("/dev/v4l/by-id/x")) == ("/dev/video2", "/dev/v4l/by-id/x")


def test_stamps_are_believed_only_while_they_make_sense() -> None:
    clock, now_ns = DriverClock(), 5_000_000 * MS
    assert clock.stamp(4_999_990, now_ns) == 4_999_990 * MS
    assert clock.sane
    assert clock.stamp(4_999_990, now_ns + 33 * MS) is None, "it stands still"
    assert clock.stamp(4_999_980, now_ns + 33 * MS) is None, "it goes back"
    assert not clock.sane
    assert clock.stamp(5_000_060, now_ns + 66 * MS) == now_ns + 60 * MS, "it makes sense again"
    assert clock.stamp(5_000_200, now_ns + 99 * MS) == now_ns + 99 * MS, "nothing is taken later than now"
    for senseless in (0.0, -1.0, 40.0, 4_998_000.0, 5_002_000.0, float("nan"), float("inf")):
        assert clock.stamp(senseless, now_ns + 133 * MS) is None
