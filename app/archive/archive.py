"""Runs an archive from its first input to its summary, with workers on one machine or many."""

import contextlib
import pickle
import secrets
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from texelflow.gpu_delegate.base.errors import OutputError

from ..console import Console, counted
from ..models.catalogue import Progress
from ..models.finding_loading import ShownModel
from ..opengl_options import opengl_chosen, opengl_environment, opengl_of
from ..session.abilities import check_abilities
from ..session.derived import lead_of
from ..session.session_model import session_model
from ..settings.settings import Settings
from ..signals import exit_code, stop_flag
from .archive_inputs import ArchiveInputs, mark_of
from .archive_loop import ArchiveLoop
from .cluster.job_server import WorkerCharge
from .cluster.pool_cluster import PoolCluster, open_pool
from .cluster.ray_cluster import LOCAL_RAY, RayCluster, RayOptions, check_cluster, check_ray, open_ray
from .inputs.listing_thread import NOTHING_YET_S, ListingThread
from .jobs.archive_options import ArchiveOptions
from .jobs.worker_config import STAGING, WorkerConfig
from .manifest.manifest import MANIFEST_NAME, hold_folder, open_manifest
from .manifest.manifest_index import ManifestIndex
from .manifest.manifest_lines import RunRecord
from .progress.archive_figures import ArchiveFigures
from .progress.progress import archive_progress
from .rendering.piece_cutting import follows_things
from .results.results import ArchiveCounts
from .scheduling.scheduler import Scheduler
from .staging.staged_files import SEEN, clear_staging
from .staging.staging import prepare_staging

SOME_FAILED, SOME_CUT_OFF = 2, 3  # exit codes
_LOOKED_S = 5.0  # for something to do, before workers start for it: after an interruption much may be done
_WORKER = ("texelflow.app.archive.rendering.archive_worker", "ArchiveWorker")


def archive(options: ArchiveOptions, console: Console, as_json: bool = False) -> tuple[dict[str, Any], int]:
    """Run it: what it came to, and the exit code.

    0, 2 if any input failed or the run could not go on, 3 if any was cut off, 130 or 143 if it was interrupted. Raises
    TexelflowError for what is wrong before any work begins, and where the manifest cannot be written.
    """
    began = monotonic()
    if options.cluster:
        check_ray()
        check_cluster(options.cluster)
    settings, out = options.watch().settings, options.out.absolute()
    with contextlib.ExitStack() as stack:
        stack.enter_context(opengl_chosen(opengl_of(settings)))
        inputs = ArchiveInputs(options, out)
        with console.download() as progress:
            model = _check_model(options, settings, progress)  # before anything is made
            held = stack.enter_context(hold_folder(out))  # others would clear it at their end
            unbegun = stack.enter_context(contextlib.ExitStack())
            unbegun.callback(_clear_unbegun, out)
            staged = prepare_staging(settings, out, progress)
        mark = mark_of(options, staged)
        whole = options.whole or follows_things(model, settings)
        lead = 0 if whole else lead_of(settings, model.remembers)
        config = WorkerConfig(
            out, _with_one_thread(staged.settings), staged.made_from, options.format, options.with_masks, whole,
            options.piece_frames, lead, versions=mark.versions, overwrites=options.force,
        )  # fmt: skip
        charge = _charge(config, settings, stack)
        index = stack.enter_context(ManifestIndex(out / MANIFEST_NAME)) if options.resume else None
        if index:
            inputs.know(index, mark)
            for line in index.notes:
                console.note(line)
        figures = ArchiveFigures(monotonic())
        listing = stack.enter_context(ListingThread(inputs, inputs.stopping))
        scheduler = Scheduler(figures.read(listing), finished_pieces=inputs.finished_pieces)
        if _has_work(scheduler):
            cluster = _opened(options, charge, console, stack)
            figures.dashboard = _told_dashboard(cluster, console)
            run = RunRecord(mark, asdict(settings), lead, None if options.whole else options.piece_frames)
            manifest, index = open_manifest(out, run, options.resume, options.force, held=held, index=index)
            unbegun.pop_all()
            stack.callback(index.close)
            stack.callback(manifest.close)
            with archive_progress(console, as_json) as progress, stop_flag(cluster.wake) as stop:
                loop = ArchiveLoop(cluster, scheduler, manifest, figures, progress, console)
                loop.run(stop)
            cluster.close()  # nobody writes any more
            ended, signal = scheduler.fatal or loop.ended, stop.number
        else:
            ended = signal = None
        listing.close()
        code = _end(scheduler.counts, ended, inputs, signal, console)
        if scheduler.counts.all_known and not scheduler.counts.undecided:
            clear_staging(config.staging, keeps_pieces=code == SOME_FAILED)
    return _summary(scheduler.counts, ended, out, inputs, monotonic() - began, signal), code


def _has_work(scheduler: Scheduler) -> bool:
    """Whether workers are needed: not where everything is done. False takes some seconds at most to find out."""
    until = monotonic() + _LOOKED_S
    while scheduler.reading and monotonic() < until:
        scheduler.read_on()
        if scheduler.nothing_yet:
            sleep(NOTHING_YET_S)
    return not scheduler.over


def _check_model(options: ArchiveOptions, settings: Settings, progress: Progress | None) -> ShownModel:
    """Read the model. Raises TexelflowError for one that cannot be used, or not for what is asked, as on workers."""
    model = session_model(settings, progress)
    asked = replace(settings, out="", masks="with" if options.with_masks else "", cutouts="")
    check_abilities(model, asked, options.flags)
    return model


def _with_one_thread(settings: Settings) -> Settings:
    """Each worker's share of the CPU is one core, unless somebody says how many threads compute the network."""
    return replace(settings, threads=settings.threads or 1)


def _charge(config: WorkerConfig, settings: Settings, stack: contextlib.ExitStack) -> WorkerCharge:
    """What every worker gets, and a file by which it knows that it sees this very folder."""
    token = config.staging / f"{SEEN}{secrets.token_hex(8)}"
    text = secrets.token_hex(16)
    stack.callback(token.unlink, missing_ok=True)
    try:
        token.write_text(text, encoding="utf-8")
        config = replace(config, began_ns=token.stat().st_mtime_ns)
    except OSError as error:
        raise OutputError(f"'{token.parent}' cannot be written ({error.strerror}); choose another --out") from error
    chosen = tuple(opengl_environment(settings).items())
    return WorkerCharge(version("texelflow"), (str(token), text), _WORKER, pickle.dumps(config), chosen)


def _opened(
    options: ArchiveOptions, charge: WorkerCharge, console: Console, stack: contextlib.ExitStack
) -> RayCluster | PoolCluster:
    """Processes of this machine, or Ray's workers. Raises UsageError."""
    if options.cluster is None:
        return stack.enter_context(open_pool(charge, options.workers))
    console.note("starting Ray" if options.cluster == LOCAL_RAY else f"joining Ray at {options.cluster}")
    return stack.enter_context(open_ray(RayOptions(options.cluster, options.workers), charge))


def _told_dashboard(cluster: RayCluster | PoolCluster, console: Console) -> str | None:
    """Say where it is, and the token that it asks for."""
    if isinstance(cluster, PoolCluster):
        return None
    if cluster.dashboard:
        # Who has the token may run programs here, so no log file gets it
        shown = f" {cluster.token}" if console.is_watched else ", shown on terminals alone"
        token = f", which asks for a token{shown}" if cluster.token else ""
        console.note(f"Ray's dashboard: {cluster.dashboard}{token}")
    return cluster.dashboard


def _end(counts: ArchiveCounts, ended: str | None, inputs: ArchiveInputs, signal: int | None, console: Console) -> int:
    """Say how it ended: the exit code. `ended` is why it could not go on."""
    go_on = "--resume goes on"
    if line := inputs.listing.left_out():
        console.note(line)
    for line in inputs.listing.not_listed():
        console.warn(line)
    if ended:
        console.warn(f"{ended}; what was done stays, {go_on}")
        return SOME_FAILED
    if signal is not None:
        console.warn(f"interrupted after {counted(counts.done, 'input')}; what was done stays, {go_on}")
        return exit_code(signal)
    if counts.failed or counts.skipped_failed or inputs.listing.problem_count:
        return SOME_FAILED
    return SOME_CUT_OFF if counts.cut_off or counts.skipped_cut_off else 0


def _clear_unbegun(out: Path) -> None:
    """Of a run that ended before any work began nothing stays, if no other has left a manifest."""
    with contextlib.suppress(OSError):
        if not (out / MANIFEST_NAME).exists():
            clear_staging(out / STAGING, keeps_pieces=False)


def _summary(
    counts: ArchiveCounts, ended: str | None, out: Path, inputs: ArchiveInputs, seconds: float, signal: int | None
) -> dict[str, Any]:
    return {
        "event": "summary",
        "inputs": counts.known,
        "done": counts.done,
        "failed": counts.failed,
        "cut_off": counts.cut_off,
        "skipped": counts.skipped,
        "skipped_cut_off": counts.skipped_cut_off,
        "skipped_failed": counts.skipped_failed,
        "not_listed": inputs.listing.problem_count,
        "undecided": counts.undecided,
        "frames": counts.frames,
        "pieces": counts.pieces,
        "seconds": round(seconds, 3),
        "frames_per_second": round(counts.frames / seconds, 2),
        "workers_lost": counts.lost,
        "interrupted": signal is not None,
        "ended": ended,
        "manifest": str(out / MANIFEST_NAME),
    }
