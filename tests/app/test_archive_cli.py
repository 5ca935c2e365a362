"""`texelflow archive` on the command line: what it refuses in one line, what it lists, what its help shows."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.helpers.commands import Command
from tests.helpers.markers import one_in
from tests.helpers.running import ROOT
from texelflow.app.archive.jobs.worker_config import CACHE_BYTES, MOST_FRAME_BYTES
from texelflow.app.archive_cli import archive_verb
from texelflow.app.cli import app
from texelflow.app.completion import completions
from texelflow.app.replay.held_frames import most_frames
from texelflow.app.settings.settings import defaults, specs
from texelflow.gpu_delegate.base.errors import UsageError


@pytest.fixture
def recordings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder rec of two inputs and a document, in the current folder."""
    for name in ("rec/a.mp4", "rec/day/b.png", "rec/notes.doc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"12345")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@one_in(3,
    ("arguments", "complaint"),
    [
        (["rec", "--out", "-"], "--out -: a folder is needed that every machine has under this name"),
        (["rec", "--out", "s3://bucket/done"], "--out s3://bucket/done: nothing is written to s3:// addresses"),
        (["rec", "--out", "done.mp4"], "--out done.mp4: a folder is needed, such as done"),
        (["rec", "--out", "rec/a.mp4"], "--out rec/a.mp4: a folder is needed"),
        (["rec", "--out", "rec/notes.doc"], "--out rec/notes.doc: that is a file; a folder is needed"),
        (["rec/a.mp4", "--out", "rec/day"], "has 'b.png' in it, and no manifest: choose another folder; --force"),
        (["rec/a.mp4", "--out", "rec/day", "--resume"], "has 'b.png' in it, and no manifest"),
        (["rec", "--out", "rec", "--force"], "rec is in the output folder; choose another one for --out"),
        (["rec", "--out", ".", "--force"], "rec is in the output folder; choose another one for --out"),
        (["rec", "--out", "done", "--workers", "0"], "--workers 0: a number from 1 to 10000 is needed"),
        (["rec", "--out", "done", "--retry-failed"], "--retry-failed needs --resume"),
        (["rec", "--out", "done", "--resume", "--force"], "--resume goes on, --force begins anew"),
        (["rec", "--out", "done", "--piece-frames", "1000"], "a multiple of 300 is needed"),
        (["rec", "--out", "done", "--format", "gif"], "--format gif: one of png, mp4, mkv, mov, webm is needed"),
        (["rec", "--out", "done", "--format", "mp4", "--effect", "cutout"], "has no transparency"),
        (["rec", "--out", "done", "--model", "glow"], "'glow' is neither a .tflite file nor a model of the catalogue"),
        (["rec", "--out", "done", "--effect", "glow"], "--effect glow: one of"),
        (["rec", "--out", "done", "--blur", "9", "--effect", "tint"], "--blur goes with --effect blur, not with tint"),
        (["rec", "--out", "done", "--background", "missing.png"], "missing.png"),
        (["rec", "--out", "done", "--codec", "prores", "--format", "webm"], "prores"),
        (["rec", "--out", "done", "--masks", "m"], "No such option: --masks"),
        (["rec", "--out", "done", "--window"], "No such option: --window"),
        (["rec", "--out", "done", "--overlay"], "No such option: --overlay"),
        (["rec"], "Missing option '--out'"),
        (["nowhere", "--out", "done"], "nowhere: no such file or folder"),
        (["rec/*.zip", "--out", "done"], "no recordings or pictures there"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_in_one_line_and_nothing_is_made(
    recordings: Path, arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complaint in Command(capsys)("archive", *arguments, "--dry-run").complaint
    assert not (recordings / "done").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--model", "./bad.tflite"], "texelflow: bad.tflite: "),
        (["--effect", "picture"], "texelflow: --effect picture: selfie puts out masks"),
        (["--strength", "0.5"], "texelflow: --strength: selfie puts out masks, not a picture"),
        (
            ["--model", "face-detection-full", "--with-masks"],
            "texelflow: --masks: face-detection-full finds things and",
        ),
    ],
)
def test_what_the_model_cannot_do_is_refused_before_workers_start(
    recordings: Path, arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (recordings / "bad.tflite").write_bytes(b"no model")
    assert Command(capsys)("archive", "rec", "--out", "done", *arguments).complaint.startswith(complaint)
    assert not (recordings / "done").exists()


def test_a_dry_run_lists_inputs_and_names_of_results(recordings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = Command(capsys)("archive", "rec", "--out", "done", "--dry-run", "--model", "face-landmark")
    assert done.code == 0
    assert done.out.splitlines() == [
        f"a  <-  {recordings}/rec/a.mp4", f"day/b  <-  {recordings}/rec/day/b.png",
        "2 inputs to do, 0.0 MB, to done",
    ]  # fmt: skip
    assert done.err == "left out: no recordings or pictures by their endings 1\n"
    assert not (recordings / "done").exists()


def test_a_dry_run_for_machines_is_json_line_by_line(recordings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (recordings / "paths.txt").write_text("rec/a.mp4\nrec/gone.mp4\ns9://x/y.mp4\n")
    done = Command(capsys)("archive", "paths.txt", "--out", "done", "--dry-run", "--json")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert [event.get("name") for event in events] == ["rec/a", "rec/gone", None]
    assert events[-1] | {"left_out": {}} == {
        "to_do": 2, "bytes": 5, "unknown_sizes": 1, "done_before": 0, "failed_before": 0, "left_out": {},
        "not_listed": 1,
    }  # fmt: skip
    assert done.code == 2, "one could not be listed"


def test_a_cluster_needs_ray(
    recordings: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "ray" else find(name, *more))
    complaint = Command(capsys)("archive", "rec", "--out", "done", "--cluster", "local").complaint
    assert complaint == "texelflow: --cluster needs Ray, which is not installed: pip install 'ray[default]'"
    assert not (recordings / "done").exists()


def test_one_machine_needs_neither_ray_nor_fsspec(
    recordings: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ray", "fsspec"):
        monkeypatch.setitem(sys.modules, name, None)  # importing it raises
    assert Command(capsys)("archive", "--help").code == 0
    assert Command(capsys)("archive", "rec", "--out", "done", "--dry-run").code == 0
    done = Command(capsys)("archive", "rec", "--out", "done", "--workers", "1")
    assert (done.code, done.err.count("\ntexelflow: failed: '")) == (2, 2), done.err


def test_it_has_the_looks_of_replay_and_what_is_of_one_run_alone_is_missing() -> None:
    replay, archive = ({spec.name for spec in specs(verb)} for verb in ("replay", "archive"))
    assert archive < replay
    assert {"effect", "background", "feather", "model", "backend", "codec", "quality"} <= archive
    single = {"out", "masks", "cutouts", "json_lines", "frame", "zoom", "pan", "overlay", "panel", "fullscreen"}
    of_faces = {"face_numbers", "open_faces"}
    assert {*single, *of_faces, "side_by_side"} == (
        replay - archive - {"overlay_style", "overlay_corner", "overlay_scale", "backgrounds", "start_hint"}
    )
    assert defaults("archive").effect == defaults("replay").effect == "tint"


def test_tab_completes_it() -> None:
    command: Any = typer.main.get_command(app)
    assert "archive" in [word for word, _ in completions(command, ["arch"]).words]
    assert completions(command, ["archive", ""]).files == "files"
    assert [word for word, _ in completions(command, ["archive", "--format", "m"]).words] == ["mp4", "mkv", "mov"]
    assert "--with-masks" in [word for word, _ in completions(command, ["archive", "--with"]).words]
    assert archive_verb.__doc__ is not None


def test_its_document_states_how_many_frames_a_worker_holds() -> None:
    text = " ".join((ROOT / "docs" / "archive.md").read_text(encoding="utf-8").split())
    limit = f"{MOST_FRAME_BYTES >> 30} GiB"
    assert f"more than {most_frames(1)} frames in memory ({most_frames(2)} with `--with-masks`)" in text
    assert f"and {limit} of them" in text
    assert f"a cache of {CACHE_BYTES >> 30} GiB" in text


@pytest.mark.gl
def test_a_pool_that_does_not_start_leaves_everything_as_it_was(
    recordings: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise UsageError("no workers")

    monkeypatch.setattr("texelflow.app.archive.archive.open_pool", refuse)
    manifest = recordings / "old" / "manifest.jsonl"
    manifest.parent.mkdir()
    manifest.write_bytes(b"{}\n")
    for folder, flags in (("new", ()), ("old", ("--force",))):
        command = Command(capsys)("archive", "rec", "--out", folder, *flags)
        assert (command.code, "no workers" in command.err) == (2, True), command.err
    assert manifest.read_bytes() == b"{}\n"
    assert [path.name for path in (recordings / "new").rglob("*") if path.is_file()] == ["driver.lock"]
