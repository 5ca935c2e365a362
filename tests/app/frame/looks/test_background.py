"""Background images: what is read, what is cut to cover the frame, and what is refused in one line."""

import os
import resource
import zlib
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from tests.fuzz.children import in_child
from texelflow.app.frame.looks.background import cover, read_image
from texelflow.gpu_delegate.base.errors import MediaError


def png(bgr: npt.NDArray[np.uint8]) -> bytes:
    """The picture (H, W, 3) as a PNG file."""
    done, data = cv2.imencode(".png", bgr)
    assert done
    return bytes(data)


def chunk(kind: bytes, content: bytes) -> bytes:
    """A chunk of a PNG file."""
    return len(content).to_bytes(4, "big") + kind + content + zlib.crc32(kind + content).to_bytes(4, "big")


def now_bytes() -> int:
    """The most memory that this process had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


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
            (b"\xff\xd8\xff\xe0\x00\x00", "damaged"),
        ],
    )
    def test_says_in_one_line_what_is_wrong(self, tmp_path: Path, content: bytes | None, expected: str) -> None:
        path = tmp_path / "bad.png"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(MediaError, match=expected) as caught:
            read_image(path)
        assert "\n" not in str(caught.value)

    def test_png_chunks_take_no_memory_for_what_is_not_there(self, tmp_path: Path) -> None:
        """OpenCV would take 2 GB for the first, and gigabytes more for the second's size of an animation."""
        sound = png(np.full((6, 9, 3), 77, np.uint8))
        wild = sound[:33] + chunk(b"acTL", b"\0\0\0\2\0\0\0\0") + b"\x7f\xff\xff\xffIDAT" + sound[33:]
        frame = (0).to_bytes(4, "big") + (65535).to_bytes(4, "big") * 2 + bytes(14)
        animated = sound[:33] + chunk(b"acTL", b"\0\0\0\2\0\0\0\0") + chunk(b"fcTL", frame) + sound[33:]
        path = tmp_path / "picture.png"
        for content, outcome in ((wild, "raised"), (animated, "text")):
            path.write_bytes(content)
            ending = in_child(lambda: str(read_image(path).shape))
            assert ending.how == outcome, ending
            assert ending.most_bytes < now_bytes() + (1 << 28)
        assert (read_image(path) == (77, 77, 77, 255)).all()

    def test_damage_that_does_not_matter_is_passed_over(self, tmp_path: Path) -> None:
        sound = png(np.full((6, 9, 3), 77, np.uint8))
        path = tmp_path / "picture.png"
        text = chunk(b"tEXt", b"Comment\0words")
        path.write_bytes(sound[:33] + text[:-1] + b"\0" + sound[33:])
        assert (read_image(path) == (77, 77, 77, 255)).all()
        path.write_bytes(sound[:29] + b"\0\0\0\0" + sound[33:])
        with pytest.raises(MediaError, match="damaged"):
            read_image(path)

    def test_folders_pipes_and_devices_are_no_images(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.png")
        for path in (tmp_path, tmp_path / "pipe.png", Path("/dev/zero")):
            with pytest.raises(MediaError, match=r"cannot read image .*not a regular file"):
                read_image(path)
