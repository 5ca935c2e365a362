"""Still pictures: what is read of PNG, JPEG, WebP, TIFF and BMP, how it is turned, and what is refused in one line."""

import os
import struct
import zlib
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.app.frame.looks.test_background import chunk, now_bytes
from tests.fuzz.children import in_child
from tests.fuzz.refusals import check_line
from tests.helpers.clips import moving
from texelflow.app.media.image_file import decode_image, image_kind, read_class_map, read_image_file
from texelflow.app.media.image_header import read_header
from texelflow.app.media.sources import FileSource
from texelflow.app.picture.convert import Rgba, ToRgba
from texelflow.gpu_delegate.base.errors import MediaError

RGB: Rgba = np.asarray(cv2.GaussianBlur(moving(1)[0], (9, 9), 0), np.uint8)
LOSSLESS = [cv2.IMWRITE_WEBP_QUALITY, 101]


def encoded(ending: str, rgb: npt.NDArray[Any], options: list[int] | None = None) -> bytes:
    """The picture (H, W), (H, W, 3) or (H, W, 4) as a file."""
    order = [2, 1, 0, 3][: rgb.shape[2]] if rgb.ndim == 3 else slice(None)
    done, data = cv2.imencode(ending, rgb[..., order] if rgb.ndim == 3 else rgb, options or [])
    assert done
    return bytes(data)


def exif(orientation: int, order: str = "<") -> bytes:
    """A TIFF directory of one entry."""
    head = (b"II" if order == "<" else b"MM") + struct.pack(f"{order}HI", 42, 8)
    return head + struct.pack(f"{order}HHHIHHI", 1, 0x112, 3, 1, orientation, 0, 0)


def turned(data: bytes, orientation: int) -> bytes:
    """The file with EXIF that says so."""
    if data.startswith(b"\x89PNG"):
        return data[:33] + chunk(b"eXIf", exif(orientation, ">")) + data[33:]
    if data.startswith(b"RIFF"):
        size = read_header(data)
        assert size is not None
        canvas = b"".join((side - 1).to_bytes(3, "little") for side in size.size)
        body = b"WEBPVP8X" + struct.pack("<IB3x", 10, 8) + canvas + data[12:]
        body += b"EXIF" + struct.pack("<I", len(exif(orientation))) + exif(orientation)
        return b"RIFF" + struct.pack("<I", len(body)) + body
    if data.startswith(b"II*"):
        (start,) = struct.unpack_from("<I", data, 4)
        (count,) = struct.unpack_from("<H", data, start)
        tags = [data[at : at + 12] for at in range(start + 2, start + 2 + 12 * count, 12)]
        tags = [tag for tag in tags if tag[:2] != b"\x12\x01"] + [exif(orientation)[10:22]]
        tags.sort(key=lambda tag: struct.unpack_from("<H", tag))
        directory = struct.pack("<H", len(tags)) + b"".join(tags) + bytes(4)
        return data[:4] + struct.pack("<I", len(data)) + data[8:] + directory
    segment = b"Exif\0\0" + exif(orientation)
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + data[2:]


def pixels(data: bytes) -> Rgba:
    frame = decode_image("it", data)
    return ToRgba(frame.width, frame.height)(frame)


def refusal(path: Path | str) -> str:
    with pytest.raises(MediaError) as caught:
        read_image_file(path)
    message = str(caught.value)
    assert message.isprintable()
    return message


class TestPictures:
    @pytest.mark.parametrize(
        ("ending", "options", "tolerance"),
        [
            (".png", None, 0),
            (".jpg", None, 20),
            (".webp", LOSSLESS, 0),
            (".webp", None, 20),
            (".bmp", None, 0),
            (".tiff", None, 0),
            (".tif", [cv2.IMWRITE_TIFF_COMPRESSION, 1], 0),
            (".tiff", [cv2.IMWRITE_TIFF_COMPRESSION, 8], 0),
        ],
    )
    def test_all_kinds_come_out_as_they_went_in(
        self, tmp_path: Path, ending: str, options: list[int] | None, tolerance: int
    ) -> None:
        path = tmp_path / f"a{ending}"
        path.write_bytes(encoded(ending, RGB, options))
        assert image_kind(path) == "picture"
        frame = read_image_file(path)
        rgba = ToRgba(frame.width, frame.height)(frame)
        assert rgba.shape == (48, 64, 4)
        assert (rgba[..., 3] == 255).all()
        assert np.abs(rgba[..., :3].astype(int) - RGB).max() <= tolerance

    def test_alpha_is_dropped_and_colors_stay(self) -> None:
        rgba = np.dstack([RGB, np.linspace(0, 255, 64, dtype=np.uint8)[None].repeat(48, 0)])
        assert (pixels(encoded(".png", rgba))[..., :3] == RGB).all()

    def test_sixteen_bits_become_eight(self) -> None:
        deep = RGB.astype(np.uint16) * 257
        for picture, expected in ((deep, RGB), (deep[..., 0], RGB[..., :1].repeat(3, -1))):
            for ending in (".png", ".tiff"):
                assert np.abs(pixels(encoded(ending, picture))[..., :3].astype(int) - expected).max() <= 1

    @pytest.mark.parametrize("ending", [".png", ".jpg", ".webp", ".tiff"])
    @pytest.mark.parametrize("orientation", range(1, 9))
    def test_orientation_is_honoured(self, ending: str, orientation: int) -> None:
        data = encoded(ending, RGB, LOSSLESS if ending == ".webp" else None)
        turns = {
            1: RGB, 2: RGB[:, ::-1], 3: RGB[::-1, ::-1], 4: RGB[::-1], 5: RGB.swapaxes(0, 1),
            6: np.rot90(RGB, -1), 7: RGB[::-1, ::-1].swapaxes(0, 1), 8: np.rot90(RGB, 1),
        }  # fmt: skip
        found = pixels(turned(data, orientation))[..., :3].astype(int)
        assert found.shape == turns[orientation].shape
        assert np.abs(found - turns[orientation]).max() <= (20 if ending == ".jpg" else 0)

    def test_absurd_exif_counts_as_none(self) -> None:
        data = encoded(".png", RGB)
        for content in (b"", b"II*\0", exif(0), exif(9), b"II*\0\xff\xff\xff\xff", b"MM\0*\0\0\0\x08\xff\xff"):
            assert (pixels(data[:33] + chunk(b"eXIf", content) + data[33:])[..., :3] == RGB).all()

    def test_recordings_of_jpeg_with_exif_play(self, tmp_path: Path) -> None:
        path = tmp_path / "a.mjpeg"
        path.write_bytes(turned(encoded(".jpg", RGB), 1) * 3)
        with FileSource(path) as source:
            assert len(list(source)) == 3


class TestRefusals:
    def test_profiles_take_no_memory(self) -> None:
        """FFmpeg would take a gigabyte for it, and ten seconds."""
        profile = chunk(b"iCCP", b"x\0\0" + zlib.compress(bytes(1 << 26), 9))
        data = encoded(".png", RGB)
        ending = in_child(lambda: str(pixels(data[:33] + profile + data[33:]).shape))
        assert (ending.how, ending.text) == ("text", "(48, 64, 4)")
        assert ending.most_bytes < now_bytes() + (1 << 25)

    @pytest.mark.parametrize("ending", [".png", ".jpg", ".webp", ".tiff", ".bmp"])
    def test_what_is_cut_off_is_damaged(self, tmp_path: Path, ending: str) -> None:
        data, path = encoded(ending, RGB), tmp_path / f"a{ending}"
        path.write_bytes(data[: len(data) * 2 // 3])
        assert "is damaged" in refusal(path)

    def test_what_is_no_picture_is_named(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.png")
        for path in (tmp_path, tmp_path / "pipe.png", Path("/dev/zero")):
            assert "not a regular file" in refusal(path)
            assert image_kind(path) is None
        (tmp_path / "a.jpg").write_bytes(b"GIF89a")
        assert "not an image" in refusal(tmp_path / "a.jpg")
        assert "No such file" in refusal(tmp_path / "none.png")
        with pytest.raises(MediaError, match="No such file"):
            read_image_file("nul\0.png")

    def test_sizes_are_bounded_before_memory_is_taken(self, tmp_path: Path) -> None:
        picture = struct.pack("<IHBHBHHH", 0, 0, 0, 0x9D, 0, 0, 0, 0)
        sides = struct.pack("<HHII", 0x100, 4, 1, 1 << 16) + struct.pack("<HHII", 0x101, 4, 1, 1 << 16) + bytes(4)
        bombs = {
            "a.png": b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1 << 16, 1 << 16, 8, 2, 0, 0, 0)),
            "a.jpg": b"\xff\xd8\xff\xc0\x00\x11\x08\xff\xff\xff\xff" + bytes(20),
            "a.bmp": b"BM" + struct.pack("<IIIIii", 0, 0, 54, 40, 1 << 16, -(1 << 16)) + bytes(30),
            "a.tiff": b"II*\0\x08\0\0\0" + struct.pack("<H", 2) + sides,
            "a.webp": b"RIFF\0\0\0\0WEBPVP8X" + struct.pack("<IB3x", 10, 0) + b"\xff" * 6 + picture,
        }
        for name, data in bombs.items():
            (tmp_path / name).write_bytes(data)
            assert "the limit is 16384 a side" in refusal(tmp_path / name)

    def test_animations_are_told_apart(self, tmp_path: Path) -> None:
        data, path = encoded(".png", RGB), tmp_path / "a.png"
        path.write_bytes(data[:33] + chunk(b"acTL", b"\0\0\0\2\0\0\0\0") + data[33:])
        assert image_kind(path) == "animation"
        path.write_bytes(data[:33] + chunk(b"tEXt", b"acTL") + data[33:])
        assert image_kind(path) == "picture"
        path.write_bytes(b"RIFF\0\0\0\0WEBPVP8X" + struct.pack("<IB3x", 10, 2) + b"\x05\0\0" * 2)
        assert "animated WebP" in refusal(path)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(
        [encoded(".png", RGB), encoded(".bmp", RGB), turned(encoded(".tiff", RGB), 6)]
        + [turned(encoded(ending, RGB), 6) for ending in (".jpg", ".webp")]
    ),
    st.integers(0, 400),
    st.binary(max_size=12),
    st.booleans(),
)
def test_headers_never_fail(data: bytes, at: int, change: bytes, cut: bool) -> None:
    changed = data[:at] + change + (b"" if cut else data[at + len(change) :])
    header = read_header(changed)
    assert header is None or len(header.plain) <= len(changed) + 20
    try:
        frame = decode_image("it", changed)
    except MediaError as error:
        check_line(error)
    else:
        assert header is not None
        assert {frame.width, frame.height} == set(header.size)


def numbered_png(bits: int, color: int, numbers: npt.NDArray[np.uint8]) -> bytes:
    """A PNG whose samples are numbers of so many bits, of a palette if the color type is 3."""
    height, width = numbers.shape
    each = np.unpackbits(numbers[..., None], axis=2)[..., 8 - bits :].reshape(height, -1)
    rows = b"".join(b"\0" + np.packbits(row).tobytes() for row in each)
    palette = chunk(b"PLTE", bytes(range(3 << bits)[::-1] if bits < 8 else [7] * 768)) if color == 3 else b""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + palette + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("bits", "color"), [(8, 0), (8, 3), (4, 3), (2, 3), (1, 3)])
def test_the_numbers_of_a_png_are_read_not_its_colors(bits: int, color: int, tmp_path: Path) -> None:
    numbers = np.random.default_rng(bits).integers(0, 1 << bits, (5, 37), np.uint8)
    (tmp_path / "a.png").write_bytes(numbered_png(bits, color, numbers))
    assert np.array_equal(read_class_map(tmp_path / "a.png"), numbers)


@pytest.mark.parametrize(
    "data", [b"", numbered_png(4, 0, np.zeros((2, 2), np.uint8)), encoded(".png", RGB), encoded(".jpg", RGB)]
)
def test_other_pictures_are_no_class_numbers(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(data)
    with pytest.raises(MediaError, match="is no PNG of class numbers"):
        read_class_map(tmp_path / "a.png")
    with pytest.raises(MediaError, match="cannot read image"):
        read_class_map(tmp_path / "nowhere.png")
