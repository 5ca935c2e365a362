"""The tool that measures whole frames: what a command takes without its start, and that a script does the same work."""

import json
import sys
from pathlib import Path

import av
import numpy as np
import pytest

from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive
from tests.tools.whole_frame.__main__ import main
from tests.tools.whole_frame.cases import CASES, SCRIPT_PYTHON, Case
from tests.tools.whole_frame.clips import count_frames, write_clip
from tests.tools.whole_frame.costs import FrameCost, RunCost, frame_cost, run_seconds
from tests.tools.whole_frame.script import THREADS, X264, parse, replaced
from tests.tools.whole_frame.whole_frame import (
    SHORT_FRAMES,
    WholeFrameBench,
    bench_whole_frame,
    choose_cases,
    cost_figures,
    lacking_lines,
)
from texelflow.app.console import Console
from texelflow.app.media.codecs import choose_encoding
from texelflow.app.media.video_encoder import ENCODER_THREADS
from texelflow.gpu_delegate.base.errors import UnsupportedError, UsageError

# 0.2 s of the CPU at the start, then 5 ms for each frame, of which as many are written
BUSY = """
import shutil, sys, time
from pathlib import Path
from tests.tools.whole_frame.clips import count_frames
clip, out = map(Path, sys.argv[1:])
end_s = time.process_time() + 0.2 + 5e-3 * count_frames(clip)
while time.process_time() < end_s:
    pass
shutil.copyfile(clip, out)
"""
# Writes the short clip whatever it is given
CUT = """
import shutil, sys
from pathlib import Path
shutil.copyfile(Path(sys.argv[1]).with_name("short.mp4"), sys.argv[2])
"""
SMALL = WholeFrameBench(("32x24",), rounds=1, frames=60)


def python_case(text: str) -> Case:
    return Case("busy", (sys.executable, "-c", text, "{clip}", "{out}.mp4"))


def test_a_frame_costs_what_a_longer_run_costs_more() -> None:
    short = RunCost(30, 3.0, 2.0)
    assert frame_cost(short, RunCost(130, 4.0, 3.5)) == FrameCost(10.0, 15.0)
    with pytest.raises(UnsupportedError, match="a run of 30 frames is not longer"):
        frame_cost(short, short)


def test_figures_are_medians() -> None:
    figures = cost_figures([FrameCost(10, 20), FrameCost(90, 5), FrameCost(11, 25)])
    assert figures["cpu_ms"] == 11
    assert (figures["cpu_ms_least"], figures["cpu_ms_most"]) == (10, 90)
    assert figures["frames_per_s"] == 50
    assert figures["percent_of_a_core"] == 55
    assert figures["cpu_s_a_minute"] == pytest.approx(11e-3 * 1800)


def test_the_start_does_not_count() -> None:
    (row,) = bench_whole_frame(SMALL, Console(silent=True), [python_case(BUSY)])["sizes"]["32x24"]
    assert 3 < row["cpu_ms"] < 7


def test_frames_that_are_missing_are_told() -> None:
    with pytest.raises(UnsupportedError, match=f"^busy has written {SHORT_FRAMES} of {SHORT_FRAMES + 60} frames$"):
        bench_whole_frame(SMALL, Console(silent=True), [python_case(CUT)])


def test_processes_of_a_command_count(tmp_path: Path) -> None:
    burn = "import time\nwhile time.process_time() < 0.4: pass"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
    cpu_s, wall_s = run_seconds([sys.executable, "-c", nested], tmp_path)
    assert cpu_s >= 0.4
    assert wall_s >= 0.4


def test_a_command_that_fails_is_told(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"ended with exit code 3: second$"):
        run_seconds([sys.executable, "-c", "print('first\\nsecond'); raise SystemExit(3)"], tmp_path)


def test_a_command_is_told_to_end(tmp_path: Path) -> None:
    heard = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(143)); time.sleep(60)"
    _, wall_s = run_seconds([sys.executable, "-c", heard], tmp_path, 0.7)
    assert 0.7 <= wall_s < 30
    with pytest.raises(UnsupportedError, match="exit code 0"):
        run_seconds([sys.executable, "-c", ""], tmp_path, 0.5)


def test_a_clip_goes_on_as_long_as_is_wanted(tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    write_clip(path, (32, 24), 250)
    assert count_frames(path) == 250
    with av.open(path) as file:
        pictures = [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]
        assert file.streams.video[0].average_rate == 30
    assert pictures[0].shape == (24, 32, 3)
    assert len(pictures) == 250
    assert np.abs(pictures[245].astype(int) - pictures[5]).mean() < 4


def test_the_script_encodes_as_the_program_does() -> None:
    assert choose_encoding(".mp4", "auto", None, False).options == X264
    assert THREADS == ENCODER_THREADS


def test_the_scripts_picture() -> None:
    rgb, background = np.full((1, 2, 3), 200, np.uint8), np.full((1, 2, 3), 100, np.float32)
    picture = replaced(rgb, np.array([[1, 0.25]], np.float32), background)
    assert picture[0, :, 0].tolist() == [200, 125]


def test_the_scripts_options(capsys: pytest.CaptureFixture[str]) -> None:
    options = parse(["a.mp4", "--model", "m.tflite", "--null", "--refine", "guided"])
    assert (options.null, options.refine, options.out) == (True, "guided", None)
    assert Path(options.background).is_file()
    for wrong in (["--null", "--out", "b.mp4"], []):
        with pytest.raises(SystemExit, match="2"):
            parse(["a.mp4", "--model", "m.tflite", *wrong])


def test_cases_are_chosen_by_their_names() -> None:
    assert choose_cases(CASES, ()) == list(CASES)
    assert [case.name for case in choose_cases(CASES, ("archive", "decode"))] == ["decode, encode", "archive"]
    with pytest.raises(UsageError, match="--case replays: there are decode, encode; "):
        choose_cases(CASES, ("replays",))


def test_a_missing_program_is_one_line() -> None:
    scripts = [case for case in CASES if case.name.startswith("script")]
    (line,) = lacking_lines(scripts)
    assert line.startswith("skipped: script; script, guided; script, guided, null: ")
    assert line.endswith("build/script-env/bin/python is missing; make script-env makes it")
    assert {case.command[0] for case in scripts} == {str(SCRIPT_PYTHON)}


@pytest.mark.parametrize(
    "options",
    [("--rounds", 0), ("--frames", 0), ("--seconds", "nan"), ("--cores", 0), ("--cores", 9999), ("--case", "none")],
)
def test_bad_options(capsys: pytest.CaptureFixture[str], options: tuple[object, ...]) -> None:
    assert str(options[0]) in Command(capsys, main)(*options).complaint


def test_figures_of_the_reference(capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--case", "decode, encode", "--size", "320x240", "--rounds", 1, "--frames", 120)
    result = Command(capsys, main)(*given, "--cores", 1)
    assert result.code == 0
    assert "decode, encode" in result.out
    assert "320x240; frames: 120, rounds: 1, cores: 1; " in result.out


@exhaustive
@pytest.mark.gl
def test_figures_of_replays(capsys: pytest.CaptureFixture[str]) -> None:
    result = Command(capsys, main)("--case", "replay, replace", "--rounds", 1, "--frames", 100, "--json")
    rows = json.loads(result.out)["sizes"]["640x480"]
    assert [row["name"] for row in rows] == ["replay, replace, cpu", "replay, replace, gl"]
    assert all(row["cpu_ms"] > 0 and row["frames_per_s"] > 0 for row in rows)
