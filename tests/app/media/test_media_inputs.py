"""Names of inputs: what they stand for, what their outputs are called, and numbered pictures as one recording."""

import os
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.app.frame.looks.test_background import png
from tests.helpers.clips import number_of, numbered, write_clip
from texelflow.app.media import image_sequence
from texelflow.app.media.image_sequence import ImageRecording, numbered_names
from texelflow.app.media.media_inputs import expand_inputs, natural, open_input
from texelflow.app.media.recording import Position
from texelflow.app.media.seeking import SeekableSource
from texelflow.app.media.sources import FileSource
from texelflow.gpu_delegate.base.errors import MediaError, UsageError

GRAY = numbered(12)


def write_pictures(folder: Path, names: dict[str, int]) -> None:
    """A picture of `numbered` under each name."""
    for name, number in names.items():
        done, data = cv2.imencode(Path(name).suffix, GRAY[number])
        assert done
        (folder / name).write_bytes(bytes(data))


def stems(*names: object) -> list[str]:
    return [each.stem for each in expand_inputs([str(name) for name in names])]


class TestExpansion:
    def test_each_name_is_what_it_holds(self, tmp_path: Path) -> None:
        write_clip(tmp_path / "clip.mp4", GRAY)
        write_pictures(tmp_path, {"a.jpg": 1, "b.webp": 2})
        (tmp_path / "a.jpg").rename(tmp_path / "photo")
        (tmp_path / "bad.png").write_bytes(b"no picture")
        names = [str(tmp_path / name) for name in ("clip.mp4", "photo", "b.webp", "bad.png", "x_%03d.png", "none.mkv")]
        found = expand_inputs([*names, "-"])
        kinds = ["recording", "picture", "picture", "picture", "sequence", "recording", "stream"]
        assert [each.kind for each in found] == kinds
        assert [each.path for each in found] == [*names, "-"]
        assert [each.stem for each in found] == ["clip", "photo", "b", "bad", "x", "none", "stdin"]

    def test_folders_give_their_pictures_in_natural_order(self, tmp_path: Path) -> None:
        write_pictures(tmp_path, {"frame10.png": 3, "frame2.png": 2, "Frame1.JPG": 1})
        os.mkfifo(tmp_path / "pipe.png")
        (tmp_path / "notes.txt").write_text("no picture")
        (tmp_path / "more").mkdir()
        (tmp_path / "gone.png").symlink_to(tmp_path / "nowhere")
        found = expand_inputs([tmp_path])
        assert [Path(each.path).name for each in found] == ["Frame1.JPG", "frame2.png", "frame10.png"]
        assert found[0].left == ("gone.png", "more", "notes.txt", "pipe.png")
        assert not found[1].left
        for each, number in zip(found, (1, 2, 3), strict=True):
            with open_input(each.path) as source:
                (frame,) = source
                assert number_of(frame.rgba) == number

    def test_folders_without_pictures_are_refused_when_opened(self, tmp_path: Path) -> None:
        (tmp_path / "a.mp4").write_bytes(b"")
        (one,) = expand_inputs([tmp_path])
        assert (one.path, one.left) == (str(tmp_path), ("a.mp4",))
        with pytest.raises(MediaError, match="without pictures"):
            open_input(one.path)
        write_pictures(tmp_path, {"a.png": 1})
        with pytest.raises(MediaError, match="inputs of their own"):
            open_input(tmp_path)

    def test_patterns_of_a_shell_work_without_one(self, tmp_path: Path) -> None:
        write_pictures(tmp_path, {"b10.png": 1, "b9.png": 1})
        assert stems(tmp_path / "*.png") == ["b9", "b10"]
        assert stems(tmp_path / "*.mkv") == ["*"]

    def test_stems_are_distinct(self) -> None:
        assert stems("x/A.mp4", "y/a.mov", "A.mkv", "a-2.mkv") == ["A", "a-2", "A-3", "a-2-2"]
        assert stems("A.mp4", "A.mp4") == ["A"]
        assert stems("shots/%04d.png", "shots/b_%d.jpg", "-") == ["shots", "b", "stdin"]

    def test_too_many_names_are_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(image_sequence, "MOST_NAMES", 2)
        write_pictures(tmp_path, {"1.png": 1, "2.png": 1, "3.png": 1})
        with pytest.raises(MediaError, match="more than 2 files"):
            open_input(expand_inputs([tmp_path])[0].path)


@given(st.lists(st.from_regex(r"\A[aB.]{0,2}[0-9]{0,3}(\.png)?\Z").filter(lambda name: name not in ("", ".", ".."))))
def test_all_stems_are_distinct_and_files_of_one_folder(names: list[str]) -> None:
    found = [each.stem for each in expand_inputs(names)]
    assert len({stem.casefold() for stem in found}) == len(found) == len(set(names))
    assert all(stem and "/" not in stem for stem in found)


@given(st.lists(st.integers(0, 10**6), unique=True))
def test_numbers_in_names_count_as_numbers(numbers: list[int]) -> None:
    names = sorted((f"Frame{number}.png" for number in numbers), key=natural)
    assert names == [f"Frame{number}.png" for number in sorted(numbers)]


class TestSequences:
    @staticmethod
    def read(
        path: Path, first: Position = 0, last: Position | None = None
    ) -> tuple[ImageRecording, list[int], list[float]]:
        with open_input(path, first, last, Fraction(10)) as source:
            assert isinstance(source, ImageRecording)
            frames = list(source)
        return source, [number_of(frame.rgba) for frame in frames], [frame.time_ms for frame in frames]

    def test_numbers_are_frames(self, tmp_path: Path) -> None:
        write_pictures(tmp_path, {f"s_{number:03d}.png": number for number in range(3, 9)})
        (tmp_path / "s_4.png").write_bytes(b"another one")
        source, numbers, times = self.read(tmp_path / "s_%03d.png")
        assert numbers == [3, 4, 5, 6, 7, 8]
        assert times == [0, 100, 200, 300, 400, 500]
        info = source.info
        assert (info.width, info.height, info.frame_count, info.average_rate) == (64, 48, 6, Fraction(10))
        assert (source.truncated, source.damaged_frames, info.duration_s) == (None, 0, 0.6)
        assert self.read(tmp_path / "s_%03d.png", 2, Fraction(4, 10))[1] == [5, 6, 7]

    def test_a_gap_is_the_end_and_said(self, tmp_path: Path) -> None:
        write_pictures(tmp_path, {f"{number}.png": number for number in (1, 2, 3, 5, 6, 10)})
        source, numbers, _ = self.read(tmp_path / "%d.png")
        assert numbers == [1, 2, 3]
        assert source.truncated == "'4.png' is missing; 3 behind it are left out"

    def test_damage_is_counted_and_times_stay(self, tmp_path: Path) -> None:
        write_pictures(tmp_path, {f"{number}.png": number for number in range(4)})
        (tmp_path / "1.png").write_bytes(png(GRAY[1])[:-30])
        (tmp_path / "2.png").unlink()
        os.mkfifo(tmp_path / "2.png")
        source, numbers, times = self.read(tmp_path / "%d.png")
        assert (numbers, times, source.damaged_frames) == ([0, 3], [0, 300], 2)

    def test_other_sizes_and_colors_are_made_like_the_first(self, tmp_path: Path) -> None:
        (tmp_path / "1.png").write_bytes(png(GRAY[1][..., 0]))
        (tmp_path / "2.png").write_bytes(png(np.full((24, 32, 3), (10, 120, 240), np.uint8)))
        with open_input(tmp_path / "%d.png") as source:
            _, second = source
        assert second.rgba.shape == (48, 64, 4)
        assert np.abs(second.rgba[24, 32].astype(int) - (240, 120, 10, 255)).max() <= 1
        assert source.rescaled_frames == 1

    def test_what_cannot_be_a_sequence_is_refused(self, tmp_path: Path) -> None:
        for path, line in ((tmp_path / "%04d.png", "no file fits"), (tmp_path / "none" / "%d.png", "cannot be listed")):
            with pytest.raises(MediaError, match=line):
                open_input(path)
        write_pictures(tmp_path, {"1.png": 1})
        for rate in (Fraction(0), Fraction(-1), Fraction(1001)):
            with pytest.raises(UsageError, match="frames per second"):
                open_input(tmp_path / "%d.png", rate=rate)
        with pytest.raises(MediaError, match="its frames are 0 to 0"), open_input(tmp_path / "%d.png", 1) as source:
            list(source)

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("a_%04d.png", "a_0012.png"), ("%d", "12"), ("100%%_%d%%.png", "100%_12%.png"), ("%3d.png", "012.png"),
            ("%d/a.png", None), ("a.png", None), ("%d_%d.png", None), ("%s.png", None), ("%%d.png", None),
        ],
    )  # fmt: skip
    def test_patterns_are_those_of_ffmpeg(self, name: str, expected: str | None) -> None:
        names = numbered_names(name)
        assert (names and names.name(12)) == expected

    def test_a_file_of_that_name_comes_first(self, tmp_path: Path) -> None:
        write_clip(tmp_path / "a%d.mp4", GRAY[:3])
        with open_input(tmp_path / "a%d.mp4") as source:
            assert isinstance(source, FileSource)
            assert len(list(source)) == 3


def test_windows_say_what_they_do_not_show(tmp_path: Path) -> None:
    write_pictures(tmp_path, {"1.png": 1})
    for path in ("-", tmp_path / "1.png", tmp_path / "%d.png"):
        with pytest.raises(MediaError, match="cannot be watched in a window"):
            SeekableSource(path)
