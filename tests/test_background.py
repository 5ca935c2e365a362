"""Background images: what is read, what is cut to cover the frame, and what is refused in one line."""

import os
from pathlib import Path

import cv2
import numpy as np
import pytest

from app.media.background import cover, read_image
from gpu_delegate.errors import MediaError


class TestBackground:
    @pytest.mark.parametrize("suffix", [".png", ".jpg"])
    def test_reads_what_was_written(self, tmp_path: Path, suffix: str) -> None:
        path = tmp_path / ("picture" + suffix)
        assert cv2.imwrite(str(path), np.full((6, 9, 3), (10, 120, 240), np.uint8))
        rgba = read_image(path)
        assert rgba.shape == (6, 9, 4)
        assert np.abs(rgba.reshape(-1, 4) - np.array([240, 120, 10, 255.0])).max() <= 2

    def test_covers_the_frame_from_the_middle(self) -> None:
        wide = np.zeros((10, 40, 4), np.uint8)
        wide[:, 15:25] = 255
        assert cover(wide, (5, 5)).min() == 255
        assert cover(wide, (7, 300)).shape == (300, 7, 4)

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            (None, "cannot read image"),
            (b"", "not an image"),
            (b"GIF89a nothing", "not an image"),
            (b"\x89PNG\r\n\x1a\n" + bytes(8) + b"\x00\x00\x00\x05\x00\x00\x00\x05" + bytes(20), "damaged"),
            (b"\x89PNG\r\n\x1a\n" + bytes(8) + b"\x00\x01\x00\x00\x00\x01\x00\x00" + bytes(20), "65536x65536"),
            (b"\xff\xd8\xff\xe0\x00\x04\x00\x00\xff\xc0\x00\x11\x08\xff\xff\xff\xff", "65535x65535"),
            (b"\xff\xd8\xff\xe0\x00\x00", "not an image"),
        ],
    )
    def test_says_in_one_line_what_is_wrong(self, tmp_path: Path, content: bytes | None, expected: str) -> None:
        path = tmp_path / "bad.png"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(MediaError, match=expected) as caught:
            read_image(path)
        assert "\n" not in str(caught.value)

    def test_folders_pipes_and_devices_are_no_images(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.png")
        for path in (tmp_path, tmp_path / "pipe.png", Path("/dev/zero")):
            with pytest.raises(MediaError, match=r"cannot read image .*not a regular file"):
                read_image(path)
