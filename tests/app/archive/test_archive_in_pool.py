"""Six clips through the real command, workers killed in the middle; `make archive-test` does sixty on a Ray cluster."""

import os
import secrets
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.archive_proof.archive_process import ArchiveProcess
from tests.archive_proof.clip_files import made_clips
from tests.archive_proof.comparison import compare_with_singles, single_replays
from tests.archive_proof.judge import judge_archive, same_sound
from tests.archive_proof.manifest_records import files_below
from tests.archive_proof.ray_nodes import NODE_MARK, kill_marked, marked
from tests.archive_proof.recipes import ClipKind, PlannedClip
from tests.archive_proof.single_runs import run_each
from tests.helpers.markers import exhaustive
from tests.helpers.waiting import PATIENCE_S, until
from tests.model_files.frame_models import class_network
from texelflow.app.archive.manifest.verify import verify_archive
from texelflow.app.console import Console

SMALL = (64, 48)
CLIPS = [
    PlannedClip("plain.mp4", ClipKind(".mp4"), SMALL, 10, 20, 1),
    PlannedClip("Töne/mit Ton.mp4", ClipKind(".mp4", sound="aac"), SMALL, 10, 25, 2),
    PlannedClip("Töne/uneven.mkv", ClipKind(".mkv", varies=True), SMALL, 10, 25, 3),
    PlannedClip("a/long.mp4", ClipKind(".mp4", sound="aac"), SMALL, 30, 751, 4),  # three pieces
    PlannedClip("a/picture.png", ClipKind(".png"), SMALL, 10, 1, 5),
    PlannedClip("broken.mp4", ClipKind(".mp4"), SMALL, 10, 20, 6, "text"),
]
FAILURES = 2  # exit code


@pytest.fixture
def mark() -> Iterator[str]:
    """What all processes of a run have in their environment; those that are left are killed."""
    mark = f"{NODE_MARK}={secrets.token_hex(8)}"
    yield mark
    kill_marked(mark)


@exhaustive
def test_six_clips_are_each_done_once_though_a_worker_is_killed(tmp_path: Path, mark: str) -> None:
    clips, out, alone = tmp_path / "clips", tmp_path / "out", tmp_path / "alone"
    made_clips(clips, CLIPS)
    network = tmp_path / "classes.tflite"  # a small one
    network.write_bytes(class_network((48, 32)))
    flags = ("--model", str(network), "--channel", "1", "--no-refine", "--backend", "cpu")
    environment = {**os.environ, NODE_MARK: mark.partition("=")[2]}
    arguments = (clips, "--with-masks", "--piece-frames", 300, *flags)
    with ArchiveProcess(out, tmp_path / "first", environment, *arguments) as archive:
        until(lambda: archive.records().of_kind("piece") or not archive.is_running)
        workers = [each for each in marked(mark) if "pool_worker" in each.title]
        assert workers, archive.complaints
        for worker in workers:
            os.kill(worker.pid, signal.SIGKILL)
        assert archive.end(PATIENCE_S) == FAILURES, archive.complaints
        assert archive.events()
    verdict = judge_archive(CLIPS, clips, out)
    assert verdict.complaints == ()
    assert (len(verdict.done), len(verdict.failed), verdict.done["a/long.mp4"]["pieces"]) == (5, 1, 3)
    codes = [run.code for run in run_each(single_replays(verdict.done, alone, flags))]
    compared = compare_with_singles(verdict.done, out, alone, codes)
    assert (compared.differing, compared.cut, compared.same) == ((), {}, 10)
    assert same_sound(clips / "a/long.mp4", out / verdict.done["a/long.mp4"]["outputs"]["out"])

    before = {name: (out / name).stat().st_mtime_ns for name in files_below(out)}
    with ArchiveProcess(out, tmp_path / "second", environment, *arguments, "--resume") as again:
        assert again.end(PATIENCE_S) == FAILURES, again.complaints
        assert "workers are starting" not in again.complaints, "there is nothing to do"
    after = {name: (out / name).stat().st_mtime_ns for name in files_below(out)}
    assert {name for name in after if after[name] != before.get(name)} <= {"manifest.jsonl"}
    assert judge_archive(CLIPS, clips, out).complaints == ()
    assert not list(marked(mark)), "workers are left"


def test_a_manifest_cannot_have_a_result_written_over_another_or_over_a_file_of_the_users(tmp_path: Path) -> None:
    """Two failed lines with one name; the files that have it belong to somebody else."""
    clips, out = tmp_path / "clips", tmp_path / "out"
    clips.mkdir()
    for name in ("a.mp4", "b.mp4", "fine.png"):
        (clips / name).write_bytes(b"no video")
    made_clips(tmp_path, [PlannedClip("fine.png", ClipKind(".png"), SMALL, 10, 1, 7)])
    shutil.copy(tmp_path / "fine.png", clips / "fine.png")
    network = tmp_path / "classes.tflite"
    network.write_bytes(class_network((48, 32)))
    arguments = (clips, "--workers", 1, "--model", str(network), "--channel", "1", "--no-refine", "--backend", "cpu")
    with ArchiveProcess(out, tmp_path / "first", os.environ, *arguments) as first:
        assert first.end(PATIENCE_S) == FAILURES, first.complaints
    manifest = out / "manifest.jsonl"
    manifest.write_text(manifest.read_text().replace('"name":"b"', '"name":"a"'))
    for seed, name in enumerate(("a.mp4", "b.mp4")):
        made_clips(tmp_path, [PlannedClip(name, ClipKind(".mp4"), SMALL, 10, 12, seed)])
        shutil.copy(tmp_path / name, clips / name)
    (out / "a.mp4").write_bytes(b"the user's own")
    (out / "fine.png").write_bytes(b"the user's own, too")
    with ArchiveProcess(out, tmp_path / "second", os.environ, *arguments, "--resume", "--retry-failed") as second:
        assert second.end(PATIENCE_S) == 0, second.complaints
        assert f"name taken: {clips / 'a.mp4'} became a-2\n" in second.complaints
    assert (out / "a.mp4").read_bytes() == b"the user's own"
    assert (out / "fine.png").read_bytes() == b"the user's own, too"
    done = {Path(line["input"]).name: line["outputs"]["out"] for line in second.records().of_kind("done")}
    assert done == {"fine.png": "fine-2.png", "a.mp4": "a-2.mp4", "b.mp4": "b.mp4"}
    assert (out / "a-2.mp4").read_bytes() != (out / "b.mp4").read_bytes()
    assert verify_archive(out, Console(quiet=True), as_json=False) == 0
    with ArchiveProcess(out, tmp_path / "third", os.environ, *arguments, "--resume") as third:
        assert third.end(PATIENCE_S) == 0, third.complaints
        assert third.events()[-1]["skipped"] == 3
