"""The loop over a cluster of this process, whose workers do what addresses say: everything else is real."""

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from tests.helpers.waiting import PATIENCE_S
from texelflow.app.archive.archive_loop import ArchiveLoop
from texelflow.app.archive.cluster.cluster import (
    ClusterEnded,
    ClusterEvent,
    ClusterNode,
    JobFinished,
    NodeRefused,
    WorkerJoined,
    WorkerLost,
)
from texelflow.app.archive.inputs.listing_thread import ListingThread
from texelflow.app.archive.jobs.jobs import ArchiveInput, InputDone, Job, JobFailed
from texelflow.app.archive.manifest.manifest import MANIFEST_NAME, open_manifest
from texelflow.app.archive.manifest.manifest_lines import RecordedResult, RunMark, RunRecord, read_manifest_line
from texelflow.app.archive.progress.archive_figures import ArchiveFigures
from texelflow.app.archive.progress.progress import archive_progress
from texelflow.app.archive.results.results import DoneResult, FailedResult
from texelflow.app.archive.scheduling.scheduler import Scheduler
from texelflow.app.console import Console
from texelflow.app.signals import StopFlag

NODE = ClusterNode("node", "host")
RUN = RunRecord(RunMark("settings", "selfie", "sha256", {"texelflow": "1"}), {})


class ThreadlessCluster:
    """One job is done, by the worker that has waited longest, each time that somebody waits; an hour passes with it."""

    def __init__(self, workers: int, happens: Callable[[int], None] = lambda step: None) -> None:
        self.stopped, self.killed, self.now = False, list[str](), 0.0
        self.done, self.patience_s = 0, 0.0  # of who waits
        self._names = (f"worker {number}" for number in itertools.count())
        self._jobs = dict[str, deque[Job]]()
        self._events, self._happens, self._steps = deque[ClusterEvent](), happens, itertools.count()
        for _ in range(workers):
            self._join()

    def _join(self) -> None:
        name = next(self._names)
        self._jobs[name] = deque()
        self._events.append(WorkerJoined(name, NODE, 1))

    def tell(self, event: ClusterEvent) -> None:
        """It has happened."""
        self._events.append(event)

    def submit(self, worker: str, job: Job) -> None:
        self._jobs[worker].append(job)

    def wait(self, seconds: float) -> Sequence[ClusterEvent]:
        assert seconds >= 0
        self.patience_s = seconds
        self._happens(next(self._steps))
        self.now += 3600.0
        for worker, jobs in list(self._jobs.items()):
            if jobs and jobs[0].input.address != "hang" and not self._events:
                self._do(worker, jobs.popleft())
        events, self._events = list(self._events), deque[ClusterEvent]()
        return events

    def _do(self, worker: str, job: Job) -> None:
        self._jobs[worker] = self._jobs.pop(worker)  # others come first next time
        if self.stopped:
            self.tell(JobFinished(worker, job, JobFailed("machine", "stopped"), 1))
        elif job.input.address == "die":
            del self._jobs[worker]
            self.tell(WorkerLost(worker, "killed"))
            self._join()
        elif job.input.address == "full":
            self.tell(JobFinished(worker, job, JobFailed("output", "the disk is full"), 1))
        else:
            self.done += 1
            self.tell(JobFinished(worker, job, InputDone("", 0, 10, {}, {}, 1.0, worker, "", ""), 1))

    def wake(self) -> None:
        """Nobody ever waits."""

    def kill(self, worker: str) -> None:
        self.killed.append(worker)
        del self._jobs[worker]
        self._join()

    def stop(self) -> None:
        self.stopped = True


def run_loop(
    folder: Path,
    addresses: Sequence[str],
    cluster: ThreadlessCluster,
    stop: StopFlag,
    read: Callable[[Iterable[ArchiveInput]], Iterable[ArchiveInput | None]] = iter,
) -> ArchiveLoop:
    """The loop, when it has ended, and its manifest is closed."""
    console = Console(quiet=True)
    manifest, index = open_manifest(folder, RUN)
    inputs = [ArchiveInput(number, address, str(number)) for number, address in enumerate(addresses)]
    figures = ArchiveFigures(0.0)
    scheduler = Scheduler(figures.read(read(inputs)))
    with archive_progress(console, as_json=False) as progress:
        loop = ArchiveLoop(cluster, scheduler, manifest, figures, progress, console, lambda: cluster.now)
        loop.run(stop)
    manifest.close()
    index.close()
    return loop


def recorded(folder: Path) -> list[RecordedResult]:
    """What the manifest says of inputs."""
    lines = [read_manifest_line(line) for line in (folder / MANIFEST_NAME).read_bytes().splitlines()]
    return [line for line in lines if isinstance(line, RecordedResult)]


def done(folder: Path) -> list[str]:
    """Names of the inputs that are done."""
    return sorted(line.result.input.name for line in recorded(folder) if isinstance(line.result, DoneResult))


def test_everything_is_done_once_and_what_ends_ten_workers_is_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loop = run_loop(tmp_path, ["ok", "die", "ok", "ok", "ok"], ThreadlessCluster(2), StopFlag())
    assert loop.ended is None
    assert done(tmp_path) == ["0", "2", "3", "4"]
    (failed,) = (line.result for line in recorded(tmp_path) if isinstance(line.result, FailedResult))
    assert (failed.input.name, failed.cause, failed.reason, failed.tries) == ("1", "lost", "killed", 10)
    assert loop.scheduler.counts.lost == 10
    assert capsys.readouterr().err.count(" on host was lost: killed; others do its work") == 10
    snapshot = loop.figures.snapshot(loop.scheduler.counts, 1e6)
    assert [(node.name, node.workers, node.losses) for node in snapshot.nodes] == [("host", 2, 10)]


def test_after_a_signal_no_job_is_handed_out_and_what_was_done_is_in_the_manifest(tmp_path: Path) -> None:
    stop = StopFlag()

    def signal(step: int) -> None:
        if step == 3:
            stop.number = 2

    cluster = ThreadlessCluster(1, signal)
    loop = run_loop(tmp_path, ["ok"] * 50, cluster, stop)
    assert cluster.stopped
    assert 0 < len(done(tmp_path)) < 10
    assert loop.scheduler.counts.undecided == 50 - len(done(tmp_path))


def test_a_signal_ends_the_run_while_the_next_input_is_waited_for(tmp_path: Path) -> None:
    stop, never = StopFlag(), threading.Event()

    def unending(inputs: Iterable[ArchiveInput]) -> Iterator[ArchiveInput]:
        yield from inputs
        never.wait(PATIENCE_S)

    def signal(step: int) -> None:
        if cluster.done == 3 and cluster.patience_s > 0:  # it does not ask again at once
            stop.number = 2

    cluster = ThreadlessCluster(2, signal)
    loop = run_loop(tmp_path, ["ok"] * 3, cluster, stop, lambda inputs: ListingThread(unending(inputs)))
    never.set()
    assert cluster.stopped
    assert done(tmp_path) == ["0", "1", "2"]
    assert not loop.scheduler.counts.all_known


def test_a_worker_that_hangs_is_ended_and_its_input_fails_the_second_time(tmp_path: Path) -> None:
    cluster = ThreadlessCluster(1)
    run_loop(tmp_path, ["hang", "ok"], cluster, StopFlag())
    assert done(tmp_path) == ["1"]
    assert len(cluster.killed) == 2
    (failed,) = (line.result for line in recorded(tmp_path) if isinstance(line.result, FailedResult))
    assert failed.reason == "it takes far longer than any before"


def test_where_results_cannot_be_written_the_run_ends(tmp_path: Path) -> None:
    loop = run_loop(tmp_path, ["full"] * 9, ThreadlessCluster(2), StopFlag())
    assert loop.scheduler.fatal == "the disk is full"
    assert loop.scheduler.counts.undecided == 9
    assert recorded(tmp_path) == []


def test_where_ray_ends_the_loop_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def ends(step: int) -> None:
        if step == 1:
            cluster.tell(NodeRefused(NODE, "it has no disk"))
        if step == 5:
            cluster.tell(ClusterEnded("the head is gone"))

    cluster = ThreadlessCluster(1, ends)
    loop = run_loop(tmp_path, ["ok"] * 50, cluster, StopFlag())
    assert loop.ended == "the head is gone"
    assert done(tmp_path)
    assert "host: it has no disk; it gets no work" in capsys.readouterr().err
