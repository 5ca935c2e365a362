"""`replay --window` and the demo's window as commands, on a real screen (Xvfb), with real keys."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.helpers.clips import Recipe, moving, packets, write_clip
from tests.helpers.commands import Command
from tests.helpers.display import Display
from tests.helpers.markers import exhaustive, one_in
from tests.helpers.waiting import PATIENCE_S
from texelflow.app.console import Console
from texelflow.app.displays import has_display
from texelflow.app.media.sources import FileSource
from texelflow.app.replay.replay import replay
from texelflow.app.replay.replay_options import ReplayOptions

FRAMES, RATE = 12, 20


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clip(tmp_path_factory.mktemp("clip") / "watched.mp4", moving(FRAMES, 160, 120), Recipe(rate=RATE))


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def count_frames(path: Path) -> int:
    with FileSource(path) as source:
        return len(list(source))


@one_in(2, "backend", ["gl", "cpu"])
def test_a_window_plays_until_q(clip: Path, display: Display, backend: str) -> None:
    command = [
        sys.executable,
        "-m",
        "texelflow.app",
        "replay",
        str(clip),
        "--window",
        "--loop",
        "--json",
        "--backend",
        backend,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        display.window(clip.name)
        display.press("q")
        out, complaint = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, complaint
    if out:  # nothing, if the key came before the first frame
        summary = json.loads(out)
        assert summary["readback_bytes"] == 0
        assert not summary["interrupted"]


@exhaustive
def test_what_is_recorded_in_a_window_has_every_frame(clip: Path, display: Display, tmp_path: Path) -> None:
    flags = {"out": str(tmp_path / "out.mp4"), "backend": "gl"}
    options = ReplayOptions(clip, flags, log=tmp_path / "x.json", window=True, closes=True)
    summary, code = replay(options, Console())
    assert (code, summary["frames"], summary["dropped"]) == (0, FRAMES, 0)
    assert [*summary["stages"]][-4:] == ["blit", "overlay", "swap", "total"]
    assert count_frames(tmp_path / "out.mp4") == FRAMES
    assert len(json.loads((tmp_path / "x.json").read_text())["frames"]) == FRAMES


def test_a_window_says_that_its_recording_was_cut_off(display: Display, tmp_path: Path) -> None:
    data = write_clip(tmp_path / "whole.mkv", moving(FRAMES, 160, 120), Recipe(rate=RATE)).read_bytes()
    (tmp_path / "cut.mkv").write_bytes(data[: len(data) * 7 // 10])
    flags = {"out": str(tmp_path / "out.mp4"), "backend": "cpu"}
    options = ReplayOptions(tmp_path / "cut.mkv", flags, window=True, closes=True)
    summary, code = replay(options, Console())
    assert (code, summary["cut_off"]) == (3, True)
    assert "is cut off" in summary["warnings"][-1]
    assert 0 < summary["frames"] == count_frames(tmp_path / "out.mp4") < FRAMES


@exhaustive
def test_sound_ends_where_the_window_was_closed(display: Display, tmp_path: Path) -> None:
    seconds, out = 30, tmp_path / "out.mp4"
    clip = write_clip(tmp_path / "heard.mp4", moving(seconds * RATE, 160, 120), Recipe(rate=RATE, sound="aac"))
    command = [
        sys.executable,
        "-m",
        "texelflow.app",
        "replay",
        str(clip),
        "--window",
        "--out",
        str(out),
        "--backend",
        "cpu",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        display.window(clip.name)
        deadline = time.monotonic() + 60
        while not (out.exists() and out.stat().st_size > 10_000) and time.monotonic() < deadline:
            time.sleep(0.05)
        display.press("q")
        _, complaint = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, complaint
    shown_s = count_frames(out) / RATE
    assert 0 < shown_s < seconds / 2
    assert packets(out, "audio")[-1][0] <= shown_s + 0.1


def test_frames_in_a_window_are_read_back_by_nobody(clip: Path, display: Display) -> None:
    options = ReplayOptions(clip, {"effect": "blur", "backend": "gl"}, window=True, closes=True)
    summary, code = replay(options, Console())
    assert code == 0
    assert summary["frames"] + summary["dropped"] == FRAMES
    assert summary["readback_bytes"] == 0


@pytest.mark.window
def test_without_a_display_there_is_one_line(clip: Path, texelflow: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    result = texelflow("replay", clip, "--window")
    assert result.code == 2
    assert len(result.err.splitlines()) == 1
    assert "display" in result.err
    assert not has_display({})
    assert has_display({"DISPLAY": ":0"})
    assert has_display({"WAYLAND_DISPLAY": "wayland-0"})


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--speed", "2"], "--speed needs --window"),
        (["--backend", "cpu", "--precision", "fp16"], "--precision fp16 is for the GPU"),
        (
            ["--backend", "cpu", "--cpu", "tflite", "--hybrid", "reference"],
            "--hybrid reference: TensorFlow Lite has its",
        ),
        (["--loop"], "--loop needs --window"),
        (["--overlay"], "--overlay needs --out or --window"),
        (["--overlay-style", "full"], "--overlay-style needs --out or --window"),
        (["--window", "--speed", "0"], "--speed 0"),
        (["--window", "--speed", "nan"], "--speed nan"),
        (["--window", "--loop", "--out", "x.mp4"], "--loop does not go with --out"),
        (["--window", "--loop", "--masks", "masks"], "--loop does not go with --out, --masks"),
        (["--trace", "x.txt"], "must end in .json"),
    ],
)
def test_options_that_do_not_go_together(
    clip: Path, texelflow: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], complaint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = texelflow("replay", clip, *options)
    assert result.code == 2
    assert complaint in result.err
    assert list(tmp_path.iterdir()) == []
