"""Completion by Tab, asked for as the shells' scripts do: in bash, and in other shells where they are installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.commands import Command
from tests.helpers.waiting import PATIENCE_S
from texelflow.app import completion
from texelflow.app.frame.looks.effects import EFFECTS
from texelflow.app.models.entries import CATALOGUE, SEGMENTERS
from texelflow.app.verb_options import COMPLETION_ASKED

ASKS = "import sys; from texelflow.app.cli import main; main(sys.argv[1:]); sys.exit('numpy' in sys.modules)"


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def offered(texelflow: Command, monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[list[str], str]:
    """The words that are offered, and which files."""
    with monkeypatch.context() as patch:
        patch.setenv(COMPLETION_ASKED, "1")
        result = texelflow(*words)
    assert (result.code, result.err) == (0, "")
    files, *lines = result.out.splitlines()
    return [line.partition("\t")[0] for line in lines], files


@pytest.mark.parametrize(
    ("line", "words", "files"),
    [
        ("rep", ["replay"], "none"),
        ("models fe", ["fetch"], "none"),
        ("models fetch selfie", ["selfie", "selfie-landscape"], "none"),
        ("bench qua", ["quality"], "none"),
        ("replay --eff", ["--effect"], "none"),
        ("replay clip.mp4 --no-mir", ["--no-mirror"], "none"),
        ("replay --effect ", [*EFFECTS], "none"),
        ("replay --effect=t", [f"--effect={name}" for name in EFFECTS if name.startswith("t")], "none"),
        ("replay --effect = t", [name for name in EFFECTS if name.startswith("t")], "none"),
        ("replay --effect tint --model ", [*CATALOGUE, "body-hands"], "tflite"),
        ("replay --mirror ", [], "files"),
        ("replay a.mp4 --out ", [], "files"),
        ("live --camera ", ["pattern"], "files"),
        ("live --backend g", ["gl"], "none"),
        ("live --overlay-corner top-", ["top-left", "top-right"], "none"),
        ("live --background d", ["dusk"], "files"),
        ("live --config ", [], "files"),
        ("inspect ", [*CATALOGUE, "body-hands"], "tflite"),
        ("check pose", [name for name in CATALOGUE if name.startswith("pose")], "files"),
        ("bench model --backend d", ["delegate"], "none"),
        ("bench frame --frames ", [], "files"),
        ("replay --from ", [], "none"),
        ("--show-completion z", ["zsh"], "none"),
    ],
)
def test_offers(line: str, words: list[str], files: str, texelflow: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert offered(texelflow, monkeypatch, *line.split(" ")) == (words, files)


def test_every_shown_option_is_offered_and_no_hidden_one(texelflow: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = offered(texelflow, monkeypatch, "live", "-")
    assert {"--effect", "--no-refine", "-m", "--help", "--list"} <= set(found)
    assert "--mattes" not in found, "an earlier name"


def in_a_shell(*command: str, environment: dict[str, str], cwd: Path) -> str:
    done = subprocess.run(
        command,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
        env={**os.environ, **environment},
    )
    assert done.stderr == ""
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with files to name; the program is this interpreter's, in a path with a blank and a quote."""
    program = tmp_path / "it's here" / "texelflow"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{ASKS}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(program)])
    for name in ("own model.tflite", "clip.mp4"):
        (tmp_path / name).touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_bash_completes(folder: Path, texelflow: Command) -> None:
    (folder / ".bashrc").write_text("before=1")
    for _ in range(2):
        assert "Tab completes" in texelflow("--install-completion", "bash").out
    assert (folder / ".bashrc").read_text().count("texelflow") == 2, "one line, which names the file twice"
    asks = """
    . ~/.bashrc; echo $before
    try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _texelflow; (IFS=,; echo "${COMPREPLY[*]}"); }
    try texelflow repl; try texelflow replay --model ''; try texelflow replay --effect = bl; try texelflow replay cl
    complete -p texelflow"""
    told = in_a_shell("bash", "--norc", "-c", asks, environment={"HOME": str(folder)}, cwd=folder).splitlines()
    assert told[:2] == ["1", "replay"]
    assert {*SEGMENTERS, "own model.tflite", "it's here"} <= set(told[2].split(","))
    assert "clip.mp4" not in told[2]
    assert told[3:] == ["blur,blur-faces", "clip.mp4", "complete -F _texelflow texelflow"]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes(folder: Path, texelflow: Command) -> None:
    texelflow("--install-completion", "fish")
    asks = 'source ~/.config/fish/completions/texelflow.fish; complete -C "texelflow replay --effect bl"'
    told = in_a_shell("fish", "--no-config", "-c", asks, environment={"HOME": str(folder)}, cwd=folder)
    assert told.split() == ["blur", "blur-faces"]


def test_zsh_reads_a_line_and_a_script(folder: Path, texelflow: Command) -> None:
    texelflow("--install-completion", "zsh")
    line = (folder / ".zshrc").read_text()
    place = folder / ".local" / "share" / "texelflow" / "completion.zsh"
    assert str(place) in line
    assert place.read_text() == completion.completion_script("zsh") == texelflow("--show-completion", "zsh").out
    assert COMPLETION_ASKED in place.read_text()


def test_refuses_other_shells_and_places(folder: Path, texelflow: Command) -> None:
    assert "did you mean bash?" in texelflow("--install-completion", "bahs").complaint
    (folder / ".local").touch()
    assert "--show-completion zsh" in texelflow("--install-completion", "zsh").complaint
