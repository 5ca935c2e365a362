"""Standard output and standard error on a full disk, or closed: one line, or nothing; and no recording suffers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.clips import Recipe, moving, write_clip
from tests.helpers.markers import one_in
from tests.helpers.running import ROOT, times_of
from tests.helpers.waiting import PATIENCE_S
from texelflow import assets
from texelflow.app.cli import main

CLIP = Path(assets.__file__).parent / "people.mp4"
FULL = Path("/dev/full")
FRAMES = 30
LINE = "texelflow: standard output cannot be written: no space left on device\n"

pytestmark = pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")


@pytest.mark.gl
@one_in(
    3,
    "arguments",
    [
        ["--help"],
        ["models"],
        ["models", "--json"],
        ["inspect", "selfie", "--ops"],
        ["inspect", "selfie", "--no-peaks"],
        ["live", "--dump-config"],
        ["live", "--list"],
        ["replay", str(CLIP), "--to", "0", "--backend", "cpu", "--json"],
        ["replay", str(CLIP), "--to", "0", "--backend", "cpu"],
    ],
    ids=" ".join,
)
def test_results_that_are_lost_are_told(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with FULL.open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        code = main(arguments)
        monkeypatch.undo()
    assert (code, capsys.readouterr().err) == (2, LINE)


def ended(command: str, **environment: str) -> tuple[int, str]:
    """The exit code and what reached stderr, or the file to which the shell's command leads."""
    program = f"{sys.executable} -m texelflow.app"
    done = subprocess.run(
        ["sh", "-c", command.replace("texelflow", program)], cwd=ROOT, env={**os.environ, **environment},
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


@one_in(2, "unbuffered", ["", "1"])
def test_python_has_nothing_to_add_at_the_end(unbuffered: str) -> None:
    assert ended("texelflow --version >/dev/full", PYTHONUNBUFFERED=unbuffered) == (2, LINE)
    assert ended("texelflow models 2>/dev/full --wrong", PYTHONUNBUFFERED=unbuffered) == (2, "")


@pytest.mark.gl
def test_a_recording_goes_on_where_nobody_can_be_told_about_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut, out = tmp_path / "cut.mkv", tmp_path / "out.mp4"
    data = write_clip(tmp_path / "whole.mkv", moving(FRAMES, 160, 120), Recipe(rate=30)).read_bytes()
    cut.write_bytes(data[: len(data) * 7 // 10])
    monkeypatch.setenv("DEBUG", "1")
    with FULL.open("w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        code = main(["replay", str(cut), "--out", str(out), "--backend", "cpu"])
        monkeypatch.undo()
    assert code == 3
    assert 0 < len(times_of(out)) < FRAMES


def test_a_file_does_not_take_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    """What libraries write to stderr would land in it."""
    program = (
        "import sys; from texelflow.app.streams import guarded\n"
        "with guarded(), open(sys.argv[1], 'w') as file:\n"
        "    print('lost', file=sys.stderr)\n"
        "    print('lost')\n"
        "    file.write(str(file.fileno() > 2))"
    )
    out = tmp_path / "out"
    subprocess.run(["sh", "-c", 'exec "$0" -c "$1" "$2" <&- >&- 2>&-', sys.executable, program, out], check=True)
    assert out.read_text() == "True"
