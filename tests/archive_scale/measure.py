"""Measures what real parts of the archive cost on this machine: the manifest, messages, the disk, Ray."""

import os
import pickle
import resource
import statistics
import time
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from texelflow.app.archive.jobs.jobs import ArchiveInput, Cut, InputDone, Job, JobOutcome, OpenInput, RenderPiece
from texelflow.app.archive.manifest.manifest import MANIFEST_NAME, open_manifest
from texelflow.app.archive.manifest.manifest_index import ManifestIndex
from texelflow.app.archive.manifest.manifest_lines import RecordedResult, RunMark, RunRecord, manifest_line
from texelflow.app.archive.manifest.resume import to_be_done
from texelflow.app.archive.rendering.piece_cutting import cut_frames
from texelflow.app.archive.results.results import ArchiveResult, DoneResult, PieceResult
from texelflow.app.archive.scheduling.cut_recording import CutRecording
from texelflow.app.archive.scheduling.scheduler import Scheduler

from .recordings import ArchiveKind
from .simulation import LEAD, WORKER, a_piece, outcome_of, whole_result

VERSIONS = {"texelflow": "0.1.0", "ray": "2.45.0", "python": "3.11.2"}
MARK = RunMark("0" * 64, "selfie-segmentation", "0" * 64, VERSIONS)
RUN = RunRecord(MARK, {"effect": "blur"}, LEAD, 3000)
TEN_HOURS = 10 * 3600 * 25  # frames


@dataclass(frozen=True)
class ManifestCosts:
    """Of a manifest with so many inputs done; bytes and microseconds are for each, index_bytes for all."""

    lines: int
    file_bytes: int
    write_us: float
    read_us: float
    index_bytes: int
    peak_rss_bytes: int
    lookup_us: float


def measure_manifest(archive: ArchiveKind, folder: Path) -> ManifestCosts:
    """Write it with the real writer, read it with the real index, and ask about each input as a resumed run does."""
    writer, index = open_manifest(folder, RUN)
    index.close()
    began = time.process_time()
    for each in archive.inputs():
        writer.put(DoneResult(each, whole_result(each.name, 1500, WORKER, 1)))
    writer.close()
    written = time.process_time() - began
    path = folder / MANIFEST_NAME
    began = time.process_time()
    with ManifestIndex(path) as index:
        read = time.process_time() - began
        sizes = {f"{each.name}.mp4": 15_000_000 for each in archive.inputs()}
        began = time.process_time()
        asked = to_be_done(archive.inputs(), index, MARK, partial(_have_sizes, sizes), lambda _input: None)
        left = sum(_is_new(item) for item in asked)
        looked_up = time.process_time() - began
        index_bytes = index.database_bytes
    if left:
        raise AssertionError(f"{left} inputs would be done again")
    us = 1e6 / archive.count
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    size = path.stat().st_size
    return ManifestCosts(archive.count, size, written * us, read * us, index_bytes, peak, looked_up * us)


def _have_sizes(sizes: Mapping[str, int], done: InputDone) -> bool:
    return all(sizes.get(file) == done.file_bytes[kind] for kind, file in done.files.items())


def _is_new(item: object) -> bool:
    return isinstance(item, ArchiveInput)


def sync_seconds(folder: Path, times: int = 50) -> float:
    """What it takes to append a line and have it on the disk, in the median."""
    taken = []
    with (folder / "synced").open("ab", buffering=0) as file:
        for _ in range(times):
            began = time.perf_counter()
            file.write(b"x" * 700)
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - began)
    return statistics.median(taken)


@dataclass(frozen=True)
class SchedulerCosts:
    """Of the scheduler with so many workers busy: CPU microseconds for each job, handing out and outcome together."""

    workers: int
    jobs: int
    us: float
    peak_bytes: int  # that it held at most, with the inputs read ahead


def measure_scheduler(archive: ArchiveKind, workers: int) -> SchedulerCosts:
    """All jobs of an archive, in rounds of one for each worker; only the scheduler's own calls are timed."""
    spent, jobs = _rounds(archive, workers)
    tracemalloc.start()
    try:
        _rounds(replace(archive, count=min(archive.count, 12 * workers)), workers)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return SchedulerCosts(workers, jobs, spent / jobs * 1e6, peak)


def _rounds(archive: ArchiveKind, workers: int) -> tuple[float, int]:
    inputs = list(archive.inputs())
    scheduler, names = Scheduler(inputs), [f"node-{number:04}:1" for number in range(workers)]
    held: list[tuple[str, Job]] = []
    for name in names:
        scheduler.joined(name, name)
        held += [(name, job) for _ in range(2) if (job := scheduler.next_for(name, 0.0))]
    spent, jobs = 0.0, 0
    for now in count(1):
        outcomes = [(name, job, outcome_of(job, archive, 3000)) for name, job in held]
        held = []
        began = time.thread_time()
        for name, job, outcome in outcomes:
            scheduler.finished(name, job, outcome, float(now))
        for name in names:
            while job_or_none := scheduler.next_for(name, float(now)):
                held.append((name, job_or_none))
        spent += time.thread_time() - began
        jobs += len(outcomes)
        if scheduler.over:
            break
    return spent, jobs


def lecture_jobs(frames: int = TEN_HOURS) -> dict[str, Job | JobOutcome]:
    """One of each kind of message about a recording of ten hours."""
    lecture = ArchiveInput(1, "/archive/recordings/0000001.mp4", "recordings/0000001", 18_000_000_000, 1)
    cut = Cut("0" * 64, cut_frames(frames, 3000, LEAD), 12.0)
    jobs = [RenderPiece(lecture, cut.sha256, place, each, False) for place, each in enumerate(cut.ranges)]
    recording = CutRecording(lecture, cut, [a_piece(job, WORKER) for job in jobs])
    done = whole_result(lecture.name, frames, WORKER, len(jobs))
    return {
        "OpenInput": OpenInput(lecture),
        f"Cut in {len(jobs)}": cut,
        "RenderPiece": jobs[-1],
        "PieceDone": a_piece(jobs[-1], WORKER),
        f"JoinPieces of {len(jobs)}": recording.join(),
        "InputDone": replace(done, notes=("1 damaged frame",)),
    }


def message_bytes() -> dict[str, int]:
    """How large messages are that go through Ray."""
    return {name: len(pickle.dumps(message)) for name, message in lecture_jobs().items()}


def line_bytes() -> dict[str, int]:
    """How large lines of the manifest are."""
    messages = lecture_jobs()
    lecture = ArchiveInput(1, "/archive/recordings/0000001.mp4", "recordings/0000001", 18_000_000_000, 10**18)
    job = messages["RenderPiece"]
    if not isinstance(job, RenderPiece):
        raise TypeError
    results: dict[str, ArchiveResult] = {
        "piece": PieceResult(lecture, "0" * 64, a_piece(job, WORKER)),
        "done": DoneResult(lecture, whole_result(lecture.name, TEN_HOURS, WORKER, 300)),
    }
    return {kind: len(manifest_line(RecordedResult(MARK, result), 0.0)) for kind, result in results.items()}


@dataclass(frozen=True)
class RayCosts:
    """Of a job that does nothing, on an actor of a local Ray: milliseconds a job, and of the driver's CPU."""

    round_trip_ms: float
    in_line_ms: float  # with two outstanding
    driver_cpu_ms: float


class _Echo:
    """A worker that has nothing to do for a job."""

    def __init__(self, outcome: bytes) -> None:
        self._outcome = outcome

    def run(self, _job: bytes) -> bytes:
        return self._outcome


def measure_ray(jobs: int = 1000) -> RayCosts:
    """Real messages to one actor and back, one after the other and two at a time."""
    import ray

    messages = lecture_jobs()
    job, outcome = pickle.dumps(messages["OpenInput"]), pickle.dumps(messages["InputDone"])
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    try:
        actor: Any = ray.remote(_Echo).remote(outcome)

        def call() -> Any:
            return actor.run.remote(job)

        for _ in range(100):
            ray.get(call())
        began = time.perf_counter()
        for _ in range(jobs):
            ray.get(call())
        round_trip = (time.perf_counter() - began) / jobs
        began, cpu = time.perf_counter(), time.process_time()
        waiting = [call(), call()]
        for _ in range(jobs):
            ready, waiting = ray.wait(waiting, num_returns=1)
            ray.get(ready[0])
            waiting.append(call())
        in_line, driver = (time.perf_counter() - began) / jobs, (time.process_time() - cpu) / jobs
        return RayCosts(round_trip * 1e3, in_line * 1e3, driver * 1e3)
    finally:
        ray.shutdown()
