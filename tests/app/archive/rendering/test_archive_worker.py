"""Jobs of an archive, done by one worker with real recordings: what is written, what is told, and whose fault it is."""

import errno
import hashlib
import itertools
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import cv2
import pytest

from tests.helpers.clips import Recipe, moving, write_clip
from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive, one_in
from tests.model_files.frame_models import class_network
from texelflow.app.archive.jobs.archive_options import ArchiveOptions
from texelflow.app.archive.jobs.failures import failure_of
from texelflow.app.archive.jobs.jobs import (
    ArchiveInput,
    Cut,
    FrameRange,
    InputDone,
    Job,
    JobFailed,
    JoinPieces,
    OpenInput,
    PieceDone,
    RenderPiece,
)
from texelflow.app.archive.jobs.versions import own_versions
from texelflow.app.archive.jobs.worker_config import WorkerConfig
from texelflow.app.archive.rendering.archive_worker import ArchiveWorker
from texelflow.app.archive.rendering.piece_cutting import why_apart
from texelflow.app.archive.staging.staging import prepare_staging
from texelflow.app.archive.staging.work_folder import job_key
from texelflow.gpu_delegate.base.errors import MediaError

pytestmark = pytest.mark.gl

FRAMES = 4
SIZE = (64, 48)
Configured = Callable[..., WorkerConfig]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A recording with sound, a picture, and what is damaged."""
    (tmp_path / "classes.tflite").write_bytes(class_network((48, 32)))
    write_clip(tmp_path / "talk.mp4", moving(FRAMES, *SIZE), Recipe(sound="aac"))
    cv2.imwrite(str(tmp_path / "shot.png"), moving(1, *SIZE)[0])
    (tmp_path / "bad.mp4").write_bytes(b"no video")
    return tmp_path


@pytest.fixture
def configured(folder: Path) -> Configured:
    """A run's configuration, as it comes over a network."""

    def make(flags: dict[str, object] | None = None, **more: object) -> WorkerConfig:
        out, network = folder / "out", {"model": str(folder / "classes.tflite"), "channel": "1", "backend": "cpu"}
        settings = ArchiveOptions((), out, {**network, **(flags or {})}).watch().settings
        staged = prepare_staging(settings, out)
        config = WorkerConfig(out, staged.settings, staged.made_from, versions=own_versions(), cache=folder / "cache")
        made = replace(config, **more)  # type: ignore[arg-type]
        copy: WorkerConfig = pickle.loads(pickle.dumps(made))
        return copy

    return make


@pytest.fixture
def worker(configured: Configured) -> Iterator[ArchiveWorker]:
    """One that writes masks, too."""
    made = ArchiveWorker(configured(with_masks=True))
    yield made
    made.close()


def listed(path: Path, name: str | None = None) -> ArchiveInput:
    """An input as lists of inputs have it."""
    found = path.stat() if path.exists() else None
    size, time = (found.st_size, found.st_mtime_ns) if found else (None, None)
    return ArchiveInput(0, str(path), name or path.stem, size, time)


def done(worker: ArchiveWorker, job: Job) -> InputDone:
    outcome = worker.run(job)
    assert isinstance(outcome, InputDone), outcome
    return outcome


def failed(worker: ArchiveWorker, job: Job) -> JobFailed:
    outcome = worker.run(job)
    assert isinstance(outcome, JobFailed), outcome
    assert "\n" not in outcome.reason
    return outcome


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@one_in(2, "backend", ["cpu", "gl"])
def test_results_are_those_of_replay(
    folder: Path, configured: Configured, backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    worker = ArchiveWorker(configured({"backend": backend, "effect": "blur"}, with_masks=True))
    outcome = done(worker, OpenInput(listed(folder / "talk.mp4", "year/talk")))
    assert dict(outcome.files) == {"out": "year/talk.mp4", "masks": "year/talk.masks.mp4"}
    assert outcome.sha256 == hashlib.sha256((folder / "talk.mp4").read_bytes()).hexdigest()
    assert (outcome.frames, outcome.pieces, outcome.cut_off) == (FRAMES, 1, None)
    assert outcome.backend == backend
    assert outcome.agreement
    assert (outcome.agreement.frames, outcome.agreement.least_iou) == (1, 1.0)
    assert outcome.agreement.largest_error < 1e-4
    options = ("--model", folder / "classes.tflite", "--channel", "1", "--backend", backend, "--effect", "blur")
    alone = folder / "alone"
    alone.mkdir()
    outputs = ("--out", alone / "talk.mp4", "--masks", alone / "talk.masks.mp4")
    command = Command(capsys)("replay", folder / "talk.mp4", *options, *outputs)
    assert command.code == 0, command.err
    expected = {"talk.mp4": outcome.file_bytes["out"], "talk.masks.mp4": outcome.file_bytes["masks"]}
    assert {name: len(data) for name, data in files_in(alone).items()} == expected
    assert files_in(folder / "out" / "year") == files_in(alone)
    worker.close()


def test_a_picture_and_what_looks_like_another_kind(folder: Path, configured: Configured) -> None:
    worker = ArchiveWorker(configured({"effect": "cutout"}, with_masks=True))
    picture = done(worker, OpenInput(listed(folder / "shot.png")))
    assert sorted(picture.files.values()) == ["shot.masks.png", "shot.png"]
    assert done(worker, OpenInput(listed(folder / "talk.mp4"))).files == {"out": "talk.mov", "masks": "talk.masks.mp4"}
    worker.close()


def test_a_result_takes_the_place_of_what_the_manifest_says_is_its_own(folder: Path, configured: Configured) -> None:
    """Whole, by its digest; anything else stays, and the result gets the next number."""
    source, out = listed(folder / "talk.mp4"), folder / "out"
    first = done(worker := ArchiveWorker(configured(format="png")), OpenInput(source))
    found = files_in(out / "talk")
    assert len(found) == FRAMES
    assert first.file_bytes == {"out": sum(map(len, found.values()))}
    own = tuple((first.files[kind], digest) for kind, digest in first.file_sha256.items())
    blurred = ArchiveWorker(configured({"effect": "blur"}, format="png"))
    again = done(blurred, OpenInput(replace(source, own=own)))
    assert (again.files, again.name) == ({"out": "talk"}, "")
    blurs = files_in(out / "talk")
    assert (blurs.keys(), blurs == found) == (found.keys(), False)
    for way, given in (("not by its line", own), ("without a line", ())):
        outcome = done(worker, OpenInput(replace(source, own=given)))
        assert outcome.files == {"out": outcome.name}, way
        assert outcome.notes[-1] == f"called '{outcome.name}': something else has the name 'talk'"
        assert files_in(out / outcome.name) == found, way
    assert {path.name for path in out.iterdir()} == {".archive", "talk", "talk-2"}, "the third has the very bytes"
    assert files_in(out / "talk") == blurs
    for each in (worker, blurred):
        each.close()


@one_in(3, "kind", ["file", "folder", "link", "dead link", "pipe"])
@pytest.mark.parametrize("overwrites", [False, True])
def test_whatever_has_the_name_stays(folder: Path, configured: Configured, kind: str, overwrites: bool) -> None:
    """What is no file, no --force lets a result replace; that is for files."""
    theirs, out = folder / "out" / "talk.masks.mp4", folder / "out"
    worker = ArchiveWorker(configured(with_masks=True, overwrites=overwrites))
    make: dict[str, Callable[[], object]] = {
        "file": lambda: theirs.write_bytes(b"theirs"),
        "folder": theirs.mkdir,
        "link": lambda: theirs.symlink_to(folder / "talk.mp4"),
        "dead link": lambda: theirs.symlink_to("nowhere"),
        "pipe": lambda: os.mkfifo(theirs),
    }
    make[kind]()
    before, recording = theirs.lstat(), (folder / "talk.mp4").read_bytes()
    outcome = done(worker, OpenInput(listed(folder / "talk.mp4")))
    if kind == "file" and overwrites:
        assert outcome.files == {"out": "talk.mp4", "masks": "talk.masks.mp4"}
        assert theirs.read_bytes() != b"theirs"
    else:
        assert outcome.files == {"out": "talk-2.mp4", "masks": "talk-2.masks.mp4"}
        assert (theirs.lstat().st_ino, theirs.lstat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
        assert not (out / "talk.mp4").exists(), "both have one name"
    assert (folder / "talk.mp4").read_bytes() == recording
    for made, digest in outcome.file_sha256.items():
        assert hashlib.sha256((out / outcome.files[made]).read_bytes()).hexdigest() == digest
        assert (out / outcome.files[made]).stat().st_mtime_ns == outcome.file_modified_ns[made]
    worker.close()


def test_another_attempt_at_the_same_job_in_this_run_counts(folder: Path, configured: Configured) -> None:
    """Though its bytes are others; what was there before the run is damaged, or somebody else's."""
    source, job = listed(folder / "talk.mp4"), OpenInput(listed(folder / "talk.mp4"))
    config = configured()
    worker = ArchiveWorker(config)
    first = done(worker, job)
    result = folder / "out" / "talk.mp4"
    data = result.read_bytes()
    result.write_bytes(data[:60] + bytes([data[60] ^ 1]) + data[61:])
    changed = hashlib.sha256(result.read_bytes()).hexdigest()
    during = ArchiveWorker(replace(config, began_ns=result.stat().st_ctime_ns - 1))
    outcome = done(during, job)
    assert (outcome.files, outcome.file_sha256) == (first.files, {"out": changed})
    later = ArchiveWorker(replace(config, began_ns=result.stat().st_ctime_ns + 1))
    outcome = done(later, OpenInput(replace(source, own=(("talk.mp4", first.file_sha256["out"]),))))
    assert (outcome.files, outcome.file_sha256) == ({"out": "talk-2.mp4"}, first.file_sha256)
    for each in (worker, during, later):
        each.close()


def test_a_repeated_job_does_no_harm(folder: Path, worker: ArchiveWorker) -> None:
    job = OpenInput(listed(folder / "talk.mp4"))
    own = folder / "out" / ".archive" / "work" / job_key(job)
    dead, alive = own / "elsewhere-17-x", own / "elsewhere-18-y"
    for left, ago in ((dead, 700), (alive, 500)):
        left.mkdir(parents=True)
        (left / "out.mp4").write_bytes(b"half")
        for path in (left / "out.mp4", left):
            os.utime(path, (time.time() - ago,) * 2)
    first = done(worker, job)
    found = files_in(folder / "out")
    again = done(worker, job)
    assert replace(again, seconds=0.0, agreement=first.agreement) == replace(first, seconds=0.0)
    assert files_in(folder / "out") == found
    assert list(own.iterdir()) == [alive], "what a dead attempt has left is gone, and a copy goes on"


class TestWhoseFaultItIs:
    @pytest.mark.parametrize("name", ["bad.mp4", "none.mp4", "classes.tflite", ".", "no\0name"])
    def test_of_the_input(self, folder: Path, worker: ArchiveWorker, name: str) -> None:
        path = str(folder / name) if name != "no\0name" else f"/{name}"
        outcome = failed(worker, OpenInput(ArchiveInput(0, path, "result")))
        assert outcome.cause == "input"
        assert set(files_in(folder / "out")) == {n for n in files_in(folder / "out") if n.startswith(".archive/models")}

    @pytest.mark.parametrize("name", ["../out", "/etc/x", "a/../../b", ".archive/x", ""])
    def test_of_a_name_that_leads_out(self, folder: Path, worker: ArchiveWorker, name: str) -> None:
        source = replace(listed(folder / "talk.mp4"), name=name)
        assert failed(worker, OpenInput(source)).cause == "input"

    def test_of_the_machine(self, folder: Path, configured: Configured) -> None:
        config, job = configured(), OpenInput(listed(folder / "talk.mp4"))
        for lacking, words in (
            (replace(config, versions={"texelflow": "0.0.1"}), "this run is by 0.0.1"),
            (replace(config, out=folder / "elsewhere"), "share the output folder"),
            (replace(config, settings=replace(config.settings, model=str(folder / "none.tflite"))), "none.tflite"),
        ):
            outcome = failed(ArchiveWorker(lacking), job)
            assert (outcome.cause, words in outcome.reason) == ("machine", True), outcome

    def test_of_a_machine_that_does_not_see_the_inputs(self, folder: Path, worker: ArchiveWorker) -> None:
        source = replace(listed(folder / "talk.mp4"), address=str(folder / "mount" / "talk.mp4"))
        outcome = failed(worker, OpenInput(source))
        assert (outcome.cause, "share the inputs" in outcome.reason) == ("machine", True), outcome
        (folder / "mount").mkdir()
        assert failed(worker, OpenInput(source)).cause == "input", "it was removed"

    def test_of_a_machine_without_such_a_gpu(
        self, folder: Path, configured: Configured, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TEXELFLOW_GPU", "99")
        outcome = failed(ArchiveWorker(configured({"backend": "gl"})), OpenInput(listed(folder / "talk.mp4")))
        assert (outcome.cause, "99" in outcome.reason) == ("machine", True), outcome

    def test_of_the_output(self, folder: Path, configured: Configured) -> None:
        import resource

        clip = write_clip(folder / "large.mp4", moving(8, 320, 240), Recipe(codec_options={"crf": "10"}))
        config = configured(format="mkv")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8000, before[1]))
        try:
            outcome = failed(ArchiveWorker(config), OpenInput(listed(clip)))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert outcome.cause == "output", outcome
        assert "the disk is full" in outcome.reason

    def test_of_an_input_that_changes_between_its_jobs(self, folder: Path, worker: ArchiveWorker) -> None:
        clip = folder / "talk.mp4"
        source, sha256 = listed(clip), hashlib.sha256(clip.read_bytes()).hexdigest()
        os.utime(clip)  # looked at anew, and found to be the same
        piece = RenderPiece(source, sha256, 0, FrameRange(0, FRAMES - 1, 0), is_last=True)
        assert isinstance(worker.run(piece), PieceDone)
        clip.write_bytes(clip.read_bytes() + b"more")
        outcomes = failed(worker, piece), failed(worker, JoinPieces(source, sha256, (), render_whole=True))
        assert [(outcome.cause, "was changed" in outcome.reason) for outcome in outcomes] == [("input", True)] * 2


@exhaustive
def test_pieces_become_what_one_go_gives(folder: Path, configured: Configured) -> None:
    """Byte for byte, with their sound, where masks have no memory. Nothing of them stays behind."""
    clip = write_clip(folder / "long.mp4", moving(460, 32, 24), Recipe(sound="aac"))
    config = configured({"refine": False, "effect": "mask", "channel": "2"}, piece_frames=300, with_masks=True)
    worker, source = ArchiveWorker(config), listed(clip)
    cut = worker.run(OpenInput(source))
    assert isinstance(cut, Cut), cut
    assert [(each.first, each.last) for each in cut.ranges] == [(0, 299), (300, 459)]
    pieces = list[PieceDone]()
    for number, each in enumerate(cut.ranges):
        piece = worker.run(RenderPiece(source, cut.sha256, number, each, is_last=each.last == 459))
        assert isinstance(piece, PieceDone), piece
        assert all((config.staging / name).is_file() for name in piece.files.values())
        pieces.append(piece)
    assert why_apart(pieces) is None
    joined = done(worker, JoinPieces(source, cut.sha256, tuple(pieces)))
    assert (joined.frames, joined.pieces, joined.agreement and joined.agreement.frames) == (460, 2, 2)
    assert not list((config.staging / "pieces").iterdir())
    found = {name: (config.out / name).read_bytes() for name in joined.files.values()}
    gone = failed(worker, JoinPieces(source, cut.sha256, tuple(pieces)))
    assert (gone.cause, gone.reason) == ("input", "2 of 2 pieces are gone")
    whole = done(worker, JoinPieces(source, cut.sha256, tuple(pieces), render_whole=True, why_whole=gone.reason))
    assert (whole.pieces, whole.notes[0]) == (1, "rendered in one go: 2 of 2 pieces are gone")
    assert {name: (config.out / name).read_bytes() for name in whole.files.values()} == found
    worker.close()


@exhaustive
def test_pieces_that_are_made_otherwise_lie_elsewhere(folder: Path, configured: Configured) -> None:
    clip = write_clip(folder / "long.mp4", moving(310, 32, 24))
    sha256, made = hashlib.sha256(clip.read_bytes()).hexdigest(), set[str]()
    for flags, given in itertools.product(({}, {"effect": "blur"}), (FrameRange(0, 299, 0), FrameRange(0, 9, 0))):
        worker = ArchiveWorker(configured({"refine": False, **flags}, piece_frames=300))
        piece = worker.run(RenderPiece(listed(clip), sha256, 0, given, is_last=False))
        assert isinstance(piece, PieceDone), piece
        made |= set(piece.files.values())
        worker.close()
    assert len(made) == 4


def test_pieces_with_other_frames_than_they_claim_are_not_joined(folder: Path, configured: Configured) -> None:
    clip = write_clip(folder / "long.mp4", moving(12, 32, 24))
    worker = ArchiveWorker(configured({"refine": False}, format="png"))
    sha256, pieces = hashlib.sha256(clip.read_bytes()).hexdigest(), list[PieceDone]()
    for number, given in enumerate((FrameRange(0, 5, 0), FrameRange(6, 11, 0))):
        piece = worker.run(RenderPiece(listed(clip), sha256, number, given, is_last=number == 1))
        assert isinstance(piece, PieceDone), piece
        pieces.append(replace(piece, frames=5))
    outcome = failed(worker, JoinPieces(listed(clip), sha256, tuple(pieces)))
    assert (outcome.cause, outcome.reason) == ("input", "the pieces have 12 frames, not the 10 made")
    worker.close()


@pytest.mark.parametrize(
    ("path", "cause"),
    [("/out/x.mp4", "output"), ("/out", "output"), ("/out2/x.mp4", "input"), ("/out/in.mp4", "input")],
)
def test_whose_fault_a_path_is_that_may_not_be_touched(path: str, cause: str) -> None:
    error = MediaError(f"'{path}' cannot be opened")
    error.__cause__ = PermissionError(errno.EACCES, "Permission denied", path)
    assert failure_of(error, Path("/out"), reads="/out/in.mp4").cause == cause


@exhaustive
def test_a_job_is_stopped_from_another_thread(folder: Path, configured: Configured) -> None:
    clip = write_clip(folder / "long.mp4", moving(2000, *SIZE))
    worker = ArchiveWorker(configured())
    timer = threading.Timer(0.5, worker.stop)
    timer.start()
    outcome = failed(worker, OpenInput(listed(clip)))
    timer.join()
    assert (outcome.cause, outcome.reason) == ("machine", "the worker was stopped")
    assert not (folder / "out" / "long.mp4").exists()
    assert failed(worker, OpenInput(listed(folder / "talk.mp4"))).reason == "the worker was stopped"


def test_a_recording_that_was_cut_off(folder: Path, worker: ArchiveWorker) -> None:
    whole = write_clip(folder / "whole.mkv", moving(40, *SIZE)).read_bytes()
    (folder / "short.mkv").write_bytes(whole[: len(whole) // 2])
    outcome = done(worker, OpenInput(listed(folder / "short.mkv")))
    assert outcome.cut_off
    assert outcome.frames < 40


def test_reasons_name_what_the_user_named_so_that_they_are_the_same_everywhere(configured: Configured) -> None:
    fsspec = pytest.importorskip("fsspec")
    address = "memory://reasons/bad.mp4"
    with fsspec.open(address, "wb") as file:
        file.write(b"no video")
    reasons = set[str]()
    for cache in ("cache", "other"):
        config = configured()
        worker = ArchiveWorker(replace(config, cache=config.out / cache))
        outcome = worker.run(OpenInput(ArchiveInput(0, address, "bad")))
        assert isinstance(outcome, JobFailed)
        assert outcome.cause == "input"
        reasons.add(outcome.reason)
        worker.close()
    (reason,) = reasons
    assert reason.startswith(f"'{address}' ")
