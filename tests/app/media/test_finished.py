"""Recordings, pictures and folders are finished or not; the tag says which, and what made them."""

import os
import tempfile
from fractions import Fraction
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.app.media.test_recorder_ends import fill
from tests.helpers.clips import Recipe, moving, packets, write_clip
from tests.helpers.running import small_disk, times_of
from texelflow.app.media.container import examine_container
from texelflow.app.media.finished import MOST_CHARACTERS, finished_by, is_finished, payload, tagged_png
from texelflow.app.media.png import encode_png, mark_folder, unmark_folder, write_png
from texelflow.app.media.recorder import Recorder
from texelflow.app.media.sources import FileSource
from texelflow.gpu_delegate.base.errors import MediaError, UsageError

SUFFIXES = ["mp4", "mov", "mkv", "webm"]
MADE_BY = "texelflow 1.0 cutout 0123456789abcdef"


def record(path: Path, made_by: str | None, frames: int = 5, sound: Path | None = None) -> Path:
    with Recorder(path, 64, 48, Fraction(1, 30), Fraction(30), audio_from=sound, made_by=made_by) as recorder:
        for index in range(frames):
            recorder.write(np.full((48, 64, 4), 9 * index, np.uint8), index)
    return path


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clip(tmp_path_factory.mktemp("sound") / "in.mp4", moving(20), Recipe(sound="aac"))


# Videos


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("made_by", ["", MADE_BY, "x" * MOST_CHARACTERS])
def test_a_recording_that_was_closed_says_what_made_it(suffix: str, made_by: str, sound: Path, tmp_path: Path) -> None:
    tagged, bare = record(tmp_path / f"a.{suffix}", made_by, 5, sound), record(tmp_path / f"b.{suffix}", None, 5, sound)
    assert (is_finished(tagged), finished_by(tagged)) == (True, made_by)
    assert (is_finished(bare), finished_by(bare)) == (False, None)
    for kind in ("video", "audio"):  # players pass over it
        assert packets(tagged, kind) == packets(bare, kind)
    assert examine_container(str(tagged)).cut_off is None
    with FileSource(tagged) as source:
        assert len(list(source)) == 5
    assert source.truncated is None
    if suffix in ("mp4", "mov"):
        assert tagged.read_bytes().startswith(bare.read_bytes())


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_recording_that_was_interrupted_plays_and_has_no_tag(suffix: str, tmp_path: Path) -> None:
    def stopped(out: Path) -> None:
        with Recorder(out, 64, 48, Fraction(1, 30), Fraction(30), made_by=MADE_BY) as recorder:
            for index in range(7):
                recorder.write(np.zeros((48, 64, 4), np.uint8), index)
            raise KeyboardInterrupt

    out = tmp_path / f"out.{suffix}"
    with pytest.raises(KeyboardInterrupt):
        stopped(out)
    assert len(times_of(out)) == 7
    assert not is_finished(out)
    recorder = Recorder(out, 64, 48, Fraction(1, 30), Fraction(30), made_by=MADE_BY)
    recorder.write(np.zeros((48, 64, 4), np.uint8), 0)
    recorder.close(complete=False)
    recorder.close()
    assert len(times_of(out)) == 1
    assert not is_finished(out)


@pytest.mark.parametrize("suffix", ["mp4", "webm"])
def test_a_recording_whose_end_is_missing_is_not_finished(suffix: str, tmp_path: Path) -> None:
    data = record(tmp_path / f"whole.{suffix}", MADE_BY).read_bytes()
    cut = tmp_path / f"cut.{suffix}"
    for missing in range(1, 120):
        cut.write_bytes(data[:-missing])
        assert not is_finished(cut), missing
    cut.write_bytes(data + b"\0")
    assert not is_finished(cut)


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_a_full_disk_leaves_no_tag_but_room_is_kept_for_one(suffix: str, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 200_000) as (disk, _):
        out = disk / f"out.{suffix}"
        _, frames, complaint = fill(out, None, MADE_BY)
        assert "disk is full" in complaint
        assert len(times_of(out)) == frames
        assert not is_finished(out)
        out.unlink()
        recorder = Recorder(out, 160, 120, Fraction(1, 30), Fraction(30), made_by=MADE_BY)
        noise = np.random.default_rng(0).integers(0, 255, (frames, 120, 160, 4), np.uint8)
        for index in range(frames - 1):  # as many as leave room for one more
            recorder.write(noise[index], index)
        recorder.close()
        assert finished_by(out) == MADE_BY


@pytest.mark.parametrize("made_by", ["ä", "two\nlines", "\0", "x" * (MOST_CHARACTERS + 1)])
def test_what_no_tag_holds_is_refused(made_by: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="printable ASCII"):
        payload(made_by)
    with pytest.raises(UsageError, match="printable ASCII"):
        Recorder(tmp_path / "a.mp4", 64, 48, Fraction(1, 30), Fraction(30), made_by=made_by)
    assert list(tmp_path.iterdir()) == []


# Pictures


def test_a_whole_picture_is_finished_and_may_tell_what_made_it(tmp_path: Path) -> None:
    image = np.random.default_rng(0).integers(0, 255, (40, 50, 4), np.uint8)
    bare, tagged = tmp_path / "a.png", tmp_path / "b.png"
    write_png(bare, image)
    write_png(tagged, image, MADE_BY)
    assert (is_finished(bare), finished_by(bare)) == (True, None)
    assert (is_finished(tagged), finished_by(tagged)) == (True, MADE_BY)
    first, second = (cv2.imread(str(path), cv2.IMREAD_UNCHANGED) for path in (bare, tagged))
    assert first is not None
    assert second is not None
    assert np.array_equal(first, second)
    for missing in (1, 12, 50, 200):
        (tmp_path / "cut.png").write_bytes(tagged.read_bytes()[:-missing])
        assert not is_finished(tmp_path / "cut.png")


def test_tags_of_pictures_are_put_in_and_taken_out() -> None:
    bare = encode_png(np.zeros((4, 4, 3), np.uint8))
    assert tagged_png(bare, None) == bare
    tagged = tagged_png(bare, "one")
    assert tagged_png(tagged_png(tagged, "two"), "one") == tagged != bare
    assert tagged_png(tagged, None) == bare
    assert tagged_png(b"no picture", "one") == b"no picture"


def test_a_folder_is_finished_by_its_last_picture(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    assert not is_finished(folder)
    for index in (0, 7, 10, 999_999, 1_000_000):
        write_png(folder / f"{index:06d}.png", np.full((4, 5, 3), index % 200, np.uint8))
        assert not is_finished(folder)
    mark_folder(folder / "1000000.png", MADE_BY)
    (folder / "notes.txt").write_text("others")
    (folder / "2000000.png.part").write_bytes(b"")
    assert (is_finished(folder), finished_by(folder)) == (True, MADE_BY)
    assert sorted(os.listdir(folder))[-2:] == ["999999.png", "notes.txt"]
    unmark_folder(folder)  # another run begins
    assert not is_finished(folder)
    mark_folder(folder / "000010.png", MADE_BY)  # and ends before the first one's last picture: they are mixed
    assert not is_finished(folder)


def test_folders_that_cannot_be_tagged_are_one_line(tmp_path: Path) -> None:
    unmark_folder(tmp_path)
    with pytest.raises(MediaError, match="choose another place"):
        mark_folder(tmp_path / "000000.png", "")
    with pytest.raises(MediaError, match="choose another place"):
        unmark_folder(tmp_path / "missing")


# Strangers' files


@given(st.binary(max_size=700), st.sampled_from(["free", "void", "png", ""]), st.text("ab\n\0 ", max_size=300))
def test_strange_files_are_not_finished_and_raise_nothing(data: bytes, kind: str, text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.mp4"
        path.write_bytes(data + kind.encode() + b"texelflow finished\0" + text.encode())
        assert not is_finished(path)
        assert finished_by(path) is None


def test_what_is_no_file_is_not_finished(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "circle.mp4").symlink_to(tmp_path / "circle.mp4")
    (tmp_path / "empty.mp4").touch()
    for path in ("missing.mp4", "pipe.png", "circle.mp4", "empty.mp4", "x" * 300 + ".mp4", "nul\0.mp4", "."):
        assert not is_finished(tmp_path / path)
        assert finished_by(tmp_path / path) is None
    assert not is_finished("/dev/zero")


def test_little_is_read_of_large_files(tmp_path: Path) -> None:
    path = record(tmp_path / "large.mp4", MADE_BY)
    tag = path.read_bytes()[-len(payload(MADE_BY)) - 8 :]
    with path.open("r+b") as file:  # with a hole that takes no room
        file.truncate(1 << 40)
        file.seek(0, os.SEEK_END)
        file.write(tag)
    assert finished_by(path) == MADE_BY
