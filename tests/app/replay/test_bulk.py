"""Many inputs with one command: each gets its file, what fails does not stop the rest, what is finished is skipped."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from tests.helpers.clips import Recipe, moving, write_clip
from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive
from texelflow.app.media.finished import finished_by
from texelflow.app.media.sources import FileSource

pytestmark = pytest.mark.gl

SIZE = (64, 48)
FRAMES = 5


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with recordings, pictures and what is neither; it is the current one's."""
    folder = tmp_path / "in"
    folder.mkdir()
    write_clip(folder / "one.mp4", moving(FRAMES, *SIZE), Recipe(sound="aac"))
    write_clip(folder / "two.mkv", moving(FRAMES, *SIZE))
    (folder / "bad.mp4").write_bytes(b"no video")
    (folder / "notes.txt").write_text("no picture")
    for name in ("a.png", "b.jpg"):
        cv2.imwrite(str(folder / name), moving(1, *SIZE)[0])
    monkeypatch.chdir(tmp_path)
    return folder


def frames_of(path: Path) -> int:
    with FileSource(path) as source:
        return len(list(source))


def test_what_fails_does_not_stop_the_others(inputs: Path, texelflow: Command) -> None:
    result = texelflow("replay", "in/one.mp4", "in/bad.mp4", "in/two.mkv", "in/a.png", "--out", "done", "--json")
    assert result.code == 2
    summary = json.loads(result.out)
    assert (summary["inputs"], summary["frames"], summary["failed"]) == (4, 2 * FRAMES + 1, ["in/bad.mp4"])
    assert "bad.mp4" in result.err
    assert summary["seconds"] > sum(run.get("seconds", 0) for run in summary["runs"]), "with opening and compiling"
    assert sorted(os.listdir("done")) == ["a.png", "one.mp4", "two.mp4"]
    assert frames_of(Path("done/two.mp4")) == FRAMES
    with av.open("done/one.mp4") as written:
        assert written.streams.audio, "with its sound"


def test_a_point_in_a_name_is_no_ending_of_a_folder(inputs: Path, texelflow: Command) -> None:
    (inputs / "two.mkv").rename(inputs / "two 1.5 32.mkv")
    result = texelflow("replay", "in/one.mp4", "in/two 1.5 32.mkv", "--out", "done", "--masks", "masks")
    assert result.code == 0, result.err
    assert sorted(os.listdir("done")) == ["one.mp4", "two 1.5 32.mp4"]
    assert len(os.listdir("masks/two 1.5 32")) == len(os.listdir("masks/one")) == FRAMES


@exhaustive
def test_a_recording_that_was_cut_off(inputs: Path, texelflow: Command) -> None:
    whole = write_clip(inputs / "whole.mkv", moving(60, *SIZE)).read_bytes()
    (inputs / "cut.mkv").write_bytes(whole[: len(whole) // 2])
    result = texelflow("replay", "in/cut.mkv", "in/two.mkv", "--out", "done")
    assert result.code == 3
    assert "written: done/cut.mp4" in result.out
    assert "(cut off)" in result.out


def test_a_folder_of_pictures(inputs: Path, texelflow: Command) -> None:
    result = texelflow("replay", "in", "--out", "done", "--masks", "masks")
    assert result.code == 0, result.err
    assert "4 names left, no picture: bad.mp4, notes.txt, one.mp4, two.mkv" in result.err
    assert sorted(os.listdir("done")) == sorted(os.listdir("masks")) == ["a.png", "b.png"]
    picture = cv2.imread("done/a.png", cv2.IMREAD_UNCHANGED)
    mask = cv2.imread("masks/a.png", cv2.IMREAD_UNCHANGED)
    assert picture is not None
    assert mask is not None
    assert (picture.shape, mask.shape) == ((*SIZE[::-1], 3), SIZE[::-1])


def test_what_is_finished_is_skipped(inputs: Path, texelflow: Command) -> None:
    command = "replay", "in/one.mp4", "in/two.mkv", "in/a.png", "--out", "done", "--skip-existing", "--json"
    assert texelflow(*command).code == 0
    made = {path.name: path.stat().st_mtime_ns for path in Path("done").iterdir()}
    Path("done/two.mp4").write_bytes(Path("done/two.mp4").read_bytes()[:-600])  # as after a kill: without its tag
    again = json.loads(texelflow(*command).out)
    assert again["skipped"] == ["in/one.mp4", "in/a.png"]
    assert again["frames"] == FRAMES
    assert Path("done/one.mp4").stat().st_mtime_ns == made["one.mp4"]
    assert frames_of(Path("done/two.mp4")) == FRAMES
    other = json.loads(texelflow(*command, "--effect", "mask").out)
    assert other["skipped"] == [], "other settings make other pictures"


def test_one_that_is_finished_is_skipped(inputs: Path, texelflow: Command) -> None:
    command = "replay", "in/two.mkv", "--out", "x.mkv", "--skip-existing"
    assert texelflow(*command).code == 0
    assert (finished_by("x.mkv") or "").startswith("texelflow ")
    result = texelflow(*command)
    assert (result.code, result.out) == (0, "nothing was left to do\n")


def test_one_that_is_not_finished_is_made_anew(inputs: Path, texelflow: Command) -> None:
    Path("x.mkv").write_bytes(b"cut off by a kill")
    assert texelflow("replay", "in/two.mkv", "--out", "x.mkv", "--skip-existing").code == 0
    assert frames_of(Path("x.mkv")) == FRAMES


@exhaustive
def test_what_a_pattern_or_a_background_holds_now_decides(inputs: Path, texelflow: Command) -> None:
    picture = Path("in/a.png").read_bytes()
    for number in (1, 2):
        Path(f"{number}.png").write_bytes(picture)
    command = "replay", "%d.png", "--out", "x.mkv", "--skip-existing", "--background", "2.png", "--json"
    assert json.loads(texelflow(*command).out)["frames"] == 2
    assert json.loads(texelflow(*command).out)["frames"] == 0
    Path("3.png").write_bytes(picture)
    assert json.loads(texelflow(*command).out)["frames"] == 3
    os.utime("2.png", ns=(1, 1))
    assert json.loads(texelflow(*command).out)["frames"] == 3


def test_the_machine_is_told_of_once(inputs: Path, texelflow: Command) -> None:
    lines = texelflow("replay", "in/a.png", "in/b.jpg", "--out", "done").err.splitlines()
    assert len(lines) == len(set(lines))


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("--out", "-", "--masks", "-"), "--masks -: only --out goes into a pipe; name a file or a folder"),
        (("--cutouts", "-"), "--cutouts -: only --out goes into a pipe; name a folder"),
        (("--out", "-", "--effect", "cutout"), "--out -: a video in a pipe has no transparency; --format png has it"),
    ],
)
def test_what_a_pipe_does_not_take_is_refused(
    options: tuple[str, ...], line: str, inputs: Path, texelflow: Command
) -> None:
    result = texelflow("replay", "in/one.mp4", *options)
    assert (result.code, result.out, result.err) == (2, "", f"texelflow: {line}\n")


def test_what_is_there_is_not_written_over(inputs: Path, texelflow: Command) -> None:
    Path("done").mkdir()
    Path("done/two.mp4").write_text("precious")
    result = texelflow("replay", "in/one.mp4", "in/two.mkv", "--out", "done")
    assert result.code == 2
    assert "done/two.mp4: exists already" in result.err
    assert os.listdir("done") == ["two.mp4"], "before anything else was made"
    assert texelflow("replay", "in/one.mp4", "in/two.mkv", "--out", "done", "--force").code == 0


@pytest.mark.parametrize("option", ["--window", "--log=x.json", "--trace=x.json"])
def test_some_options_are_for_one_input(inputs: Path, texelflow: Command, option: str) -> None:
    line = texelflow("replay", "in/one.mp4", "in/two.mkv", "--out", "done", option).complaint
    assert f"{option.partition('=')[0]} goes with one input, not with 2" in line


def test_quality_and_codec(inputs: Path, texelflow: Command) -> None:
    for quality in (10, 90):
        assert texelflow("replay", "in/two.mkv", "--out", f"{quality}.webm", "--quality", quality).code == 0
    assert Path("10.webm").stat().st_size < Path("90.webm").stat().st_size
    line = texelflow("replay", "in/two.mkv", "--out", "x.mp4", "--codec", "prores").complaint
    assert "--out x.mp4: --codec prores does not go into .mp4" in line


def test_a_cutout_is_transparent_where_a_video_can_be(inputs: Path, texelflow: Command) -> None:
    assert texelflow("replay", "in/one.mp4", "--out", "x.mov", "--effect", "cutout").code == 0
    with av.open("x.mov") as written:
        assert written.streams.audio
        frame = next(written.decode(written.streams.video[0]))
        assert frame.format.name.startswith("yuva444p1")
        alpha = frame.to_ndarray(format="rgba")[..., 3]
    assert alpha.min() < 32, "there is nobody in the clip"
    assert "--out x.mp4: a video in .mp4 has no transparency" in (
        texelflow("replay", "in/one.mp4", "--out", "x.mp4", "--effect", "cutout").complaint
    )


@exhaustive
def test_pipes(inputs: Path) -> None:
    """Matroska in, Matroska out, and pictures out of that; nothing but bytes comes on stdout."""
    program = [sys.executable, "-m", "texelflow.app", "replay", "-", "--backend", "cpu", "--effect", "none"]
    data = (inputs / "two.mkv").read_bytes()
    first = subprocess.run([*program, "--out", "-"], input=data, capture_output=True, check=True)
    with av.open(io.BytesIO(first.stdout)) as piped:
        assert sum(1 for _ in piped.decode(video=0)) == FRAMES
    second = subprocess.run(
        [*program, "--out", "-", "--format", "png"], input=first.stdout, capture_output=True, check=True
    )
    pictures = second.stdout.split(b"\x89PNG\r\n\x1a\n")[1:]
    assert len(pictures) == FRAMES
    last = cv2.imdecode(np.frombuffer(b"\x89PNG\r\n\x1a\n" + pictures[-1], np.uint8), cv2.IMREAD_COLOR)
    assert last is not None
    assert last.shape == (*SIZE[::-1], 3)
    cutouts = subprocess.run(
        [*program, "--effect", "cutout", "--to", "0", "--out", "-", "--format", "png"],
        input=first.stdout, capture_output=True, check=True,
    )  # fmt: skip
    alone = cv2.imdecode(np.frombuffer(cutouts.stdout, np.uint8), cv2.IMREAD_UNCHANGED)
    assert alone is not None
    assert alone.shape == (*SIZE[::-1], 4)


def test_measuring_is_said(inputs: Path, texelflow: Command) -> None:
    result = texelflow("replay", "in/two.mkv")
    assert result.code == 0
    assert "nothing was written, this only measured" in result.out
