"""What Linux tells of video devices, read from recorded structures; the list of cameras that a person sees."""

import errno
import json
import struct
import sys
from pathlib import Path

import pytest

from texelflow.app.capture import listing, v4l2
from texelflow.app.capture.listing import CameraInfo, list_cameras, listed_nodes, rows_of, show_cameras
from texelflow.app.capture.modes import Mode
from texelflow.app.console import Console

YUYV, MJPG, NV12 = (int.from_bytes(name, "little") for name in (b"YUYV", b"MJPG", b"NV12"))
IN_USE = 0x85200001  # video capture, extended pixel format, streaming, capabilities of this node
pads = 0 if struct.calcsize("P") == 4 else 4


def capability(driver: bytes, card: bytes, all_nodes: int, this_node: int = 0) -> bytes:
    """struct v4l2_capability of kernel 6.1."""
    return struct.pack("=16s32s32sIII12x", driver, card, b"usb-0000:00:14.0-1", 0x060100, all_nodes, this_node)


def size_entry(kind: int, *numbers: int) -> bytes:
    return struct.pack("=III", 0, YUYV, kind) + struct.pack("=6I", *numbers, *[0] * (6 - len(numbers))) + bytes(8)


def rate_entry(kind: int, *numbers: int) -> bytes:
    head = struct.pack("=IIIII", 0, YUYV, 640, 480, kind)
    return head + struct.pack("=6I", *numbers, *[0] * (6 - len(numbers))) + bytes(8)


def format_entry(pixels: int, stride: int, colorspace: int, encoding: int = 0, quantization: int = 0) -> bytes:
    head = struct.pack("=I", 1) + bytes(pads)
    pix = struct.pack(
        "=12I", 640, 480, pixels, 1, stride, stride * 480, colorspace, 0xFEEDCAFE, 0, encoding, quantization, 0
    )
    return head + pix + bytes(152)


class Recorded:
    """Answers as a camera did: formats in order, their sizes, and the intervals of each."""

    def __init__(self, formats: dict[int, dict[tuple[int, int], list[tuple[int, int]]]]) -> None:
        self.formats = formats

    def __call__(self, request: int, data: bytearray) -> None:
        index, code = struct.unpack_from("=II", data)
        try:
            if request == v4l2.ENUM_FMT:
                struct.pack_into("=I", data, 44, list(self.formats)[index])
            elif request == v4l2.ENUM_FRAMESIZES:
                struct.pack_into("=III", data, 8, 1, *list(self.formats[code])[index])
            elif request == v4l2.ENUM_FRAMEINTERVALS:
                width, height = struct.unpack_from("=II", data, 8)
                struct.pack_into("=III", data, 16, 1, *self.formats[code][width, height][index])
        except IndexError:
            raise OSError(errno.EINVAL, "Invalid argument") from None


def test_questions_have_the_kernels_numbers() -> None:
    asked = v4l2.QUERYCAP, v4l2.ENUM_FMT, v4l2.ENUM_FRAMESIZES, v4l2.ENUM_FRAMEINTERVALS
    assert [hex(number) for number in asked] == ["0x80685600", "0xc0405602", "0xc02c564a", "0xc034564b"]
    if pads:
        assert [hex(number) for number in (v4l2.G_FMT, v4l2.S_FMT)] == ["0xc0d05604", "0xc0d05605"]


def test_a_camera_is_told_from_its_node_for_metadata() -> None:
    camera = v4l2.parse_device("/dev/video0", capability(b"uvcvideo", b"HD Webcam: HD Webcam", 0x84A00001, 0x04200001))
    metadata = v4l2.parse_device(
        "/dev/video1", capability(b"uvcvideo", b"HD Webcam: HD Webcam", 0x84A00001, 0x04A00000)
    )
    assert (camera.name, camera.captures) == ("HD Webcam: HD Webcam", True)
    assert not metadata.captures


@pytest.mark.parametrize(
    ("capabilities", "captures", "buffer_type"),
    [(0x1, True, 1), (0x1000, True, 9), (0x2, False, 9), (0x8000, False, 9), (0x8001, False, 1), (0x5200003, True, 1)],
)
def test_what_captures(capabilities: int, captures: bool, buffer_type: int) -> None:
    device = v4l2.parse_device("/dev/video0", capability(b"v4l2 loopback", b"OBS", capabilities))
    assert (device.captures, device.buffer_type) == (captures, buffer_type)


def test_names_may_be_of_any_bytes() -> None:
    device = v4l2.parse_device("/dev/video0", capability(b"\xff" * 16, b"\x1b[31m\xe9" * 6, IN_USE, IN_USE))
    assert rows_of(CameraInfo(device.path, device.name, "V4L2"))


def test_modes_of_a_webcam() -> None:
    camera = Recorded(
        {
            YUYV: {(640, 480): [(1, 30), (1, 15)], (1280, 720): [(1, 10)]},
            MJPG: {(1920, 1080): [(333333, 10000000), (1001, 24000)]},
            NV12: {},
        }
    )
    assert v4l2.modes_of(camera) == (
        Mode("YUYV", (640, 480), (30.0, 15.0)),
        Mode("YUYV", (1280, 720), (10.0,)),
        Mode("MJPG", (1920, 1080), (30.0, 23.976)),
    )


def test_a_list_without_end_is_cut() -> None:
    def endless(request: int, data: bytearray) -> None:
        if request == v4l2.ENUM_FRAMESIZES:
            index = struct.unpack_from("=I", data)[0]
            struct.pack_into("=III", data, 8, 1, 16 + index, 16)

    assert len(v4l2.modes_of(endless)) == 256


def test_sizes_and_rates_of_a_range_are_the_common_ones() -> None:
    assert v4l2.parse_sizes(size_entry(1, 800, 600)) == ((800, 600),)
    assert v4l2.parse_sizes(size_entry(3, 32, 1296, 16, 32, 736, 16)) == (
        (32, 32), (320, 240), (640, 480), (1280, 720), (1296, 736),
    )  # fmt: skip
    assert (1919, 1079) not in v4l2.parse_sizes(size_entry(2, 2, 8192, 1, 1, 8192, 1))
    assert v4l2.parse_sizes(size_entry(3, 64, 32, 0, 64, 32, 0)) == ((64, 64), (32, 32)), "nonsense does no harm"
    assert v4l2.parse_rates(rate_entry(3, 1, 60, 1, 10, 0, 1)) == (60.0, 50.0, 30.0, 25.0, 24.0, 20.0, 15.0, 10.0)
    assert v4l2.parse_rates(rate_entry(1, 0, 30)) == v4l2.parse_rates(rate_entry(1, 1, 0)) == ()
    assert v4l2.parse_rates(rate_entry(2, 0, 0, 0, 0)) == ()


@pytest.mark.parametrize(
    ("entry", "matrix", "full"),
    [
        (format_entry(YUYV, 1280, 8), "bt601", False),
        (format_entry(YUYV, 1280, 3), "bt709", False),
        (format_entry(YUYV, 1280, 3, encoding=1), "bt601", False),
        (format_entry(YUYV, 1280, 8, encoding=2, quantization=1), "bt709", True),
        (format_entry(MJPG, 0, 7), "bt601", True),
        (format_entry(NV12, 640, 10, quantization=2), "bt2020", False),
    ],
)
def test_colors_are_what_the_driver_says(entry: bytes, matrix: str, full: bool) -> None:
    current = v4l2.parse_v4l2_format(entry)
    assert (current.size, current.matrix, current.full_range) == ((640, 480), matrix, full)
    assert current.size_bytes == current.stride_bytes * 480


def test_nodes_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for name in ("video10", "video2", "video0", "videoX", "vbi0"):
        (tmp_path / name).touch()
    assert [Path(path).name for path in v4l2.nodes(str(tmp_path))] == ["video0", "video2", "video10"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has nodes")
def test_what_cannot_be_asked_is_listed_with_its_trouble(tmp_path: Path) -> None:
    (tmp_path / "video0").touch()
    (found,) = listed_nodes([str(tmp_path / "video0")])
    assert "is not a camera" in found.trouble
    assert rows_of(found) == []


def test_a_row_for_all_sizes_at_the_same_rates() -> None:
    camera = CameraInfo(
        "/dev/video0",
        "Webcam",
        "V4L2",
        (
            Mode("YUYV", (320, 240), (30.0,)),
            Mode("YUYV", (640, 480), (30.0,)),
            Mode("YUYV", (1280, 720), (10.0, 5.0)),
            Mode("MJPG", (640, 480)),
        ),
    )
    assert rows_of(camera) == [
        ("/dev/video0", "Webcam", "YUYV", "30", "320x240, 640x480"),
        ("", "", "YUYV", "10, 5", "1280x720"),
        ("", "", "MJPG", "not told", "640x480"),
    ]
    assert rows_of(CameraInfo("0", "camera 0", "AVFoundation")) == [("0", "camera 0", "not told", "", "")]


def test_without_a_camera_one_line_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(listing, "list_cameras", tuple)
    assert show_cameras(Console(), json=False) == 0
    assert "try --camera pattern" in capsys.readouterr().out
    assert show_cameras(Console(), json=True) == 0
    assert json.loads(capsys.readouterr().out)["cameras"] == []


def test_this_machine_can_be_listed() -> None:
    for camera in list_cameras():
        assert camera.name or camera.trouble
