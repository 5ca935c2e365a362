"""The driver's loop: hands every job to a worker, and writes every result to the manifest.

One thread, one loop. Decisions are the scheduler's.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from time import monotonic

from ..console import Console
from ..signals import StopFlag
from .cluster.cluster import (
    Cluster,
    ClusterEnded,
    ClusterEvent,
    JobFinished,
    NodeRefused,
    NodeTold,
    WorkerJoined,
    WorkerLost,
)
from .inputs.listing_thread import NOTHING_YET_S
from .manifest.manifest import ManifestWriter
from .progress.archive_figures import ArchiveFigures
from .progress.progress import ArchiveProgress
from .results.results import ArchiveResult
from .scheduling.scheduler import Scheduler

_TICK_S = 1.0
_OVERDUE_EVERY_S = 10.0
_STOPPING_S = 15.0  # for workers to come to the next frame
_NOBODY_S = 60.0
_HUNG = "it takes far longer than any before"


@dataclass
class ArchiveLoop:
    """What takes part. `ended` says in one line why the cluster is of no more use."""

    cluster: Cluster
    scheduler: Scheduler
    manifest: ManifestWriter
    figures: ArchiveFigures
    progress: ArchiveProgress
    console: Console
    clock: Callable[[], float] = monotonic
    ended: str | None = None
    _outstanding: Counter[str] = field(default_factory=Counter)  # jobs of each worker
    _joined: bool = False

    def run(self, stop: StopFlag) -> None:
        """Until everything is decided, or nothing more can be. After a signal, until what is under way has ended.

        Raises MediaError where the manifest cannot be written, UsageError for bad input of lists.
        """
        began = checked = self.clock()
        stops_until: float | None = None
        while not self.scheduler.over and not self.ended:
            now = self.clock()
            if stops_until is None and (stop or self.scheduler.fatal):
                self.scheduler.stop()
                self.cluster.stop()
                stops_until = now + _STOPPING_S
                continue
            if stops_until is not None and now > stops_until:
                return
            hungry = self._feed(now)
            self.progress.tick(lambda now=now: self.figures.snapshot(self.scheduler.counts, now), now)  # type: ignore[misc]
            self.manifest.tick()
            for event in self.cluster.wait(self._patience_s(hungry)):
                self._take(event, self.clock())
            if now - checked > _OVERDUE_EVERY_S:
                checked = now
                self._end_overdue(now)
            if not self._joined and now - began > _NOBODY_S:
                self.console.note_once("no worker has started yet; of a cluster, CPUs and GPUs may all be taken")

    def _feed(self, now: float) -> bool:
        """Jobs for all workers that can hold one more; whether one has none while inputs are still being read."""
        hungry = False
        for worker, jobs in self._outstanding.items():
            while job := self.scheduler.next_for(worker, now):
                self.cluster.submit(worker, job)
                jobs += 1
            self._outstanding[worker] = jobs
            hungry |= not jobs
        return hungry and self.scheduler.reading

    def _patience_s(self, hungry: bool) -> float:
        due_s = self.manifest.due_s()
        tick_s = _TICK_S if not hungry else NOTHING_YET_S if self.scheduler.nothing_yet else 0.0
        return tick_s if due_s is None else min(tick_s, due_s)

    def _take(self, event: ClusterEvent, now: float) -> None:
        if isinstance(event, JobFinished):
            self._outstanding[event.worker] -= 1
            self.figures.finished(event.worker, event.job, event.outcome, event.memory_bytes, now)
            self._record(self.scheduler.finished(event.worker, event.job, event.outcome, now), now)
        elif isinstance(event, WorkerJoined):
            self._joined = True
            self._outstanding[event.worker] = 0
            self.scheduler.joined(event.worker, event.node.id)
            self.figures.joined(event.worker, event.node.name, now)
        elif isinstance(event, WorkerLost):
            self._lose(event, now)
        elif isinstance(event, NodeRefused):
            self.console.warn(f"{event.node.name}: {event.line}; it gets no work")
        elif isinstance(event, NodeTold):
            self.console.warn(f"{event.node.name}: {event.line}")
        elif isinstance(event, ClusterEnded):
            self.ended = event.reason

    def _end_overdue(self, now: float) -> None:
        for worker in self.scheduler.overdue(now):
            self.cluster.kill(worker)
            self._lose(WorkerLost(worker, _HUNG), now, hung=True)

    def _lose(self, lost: WorkerLost, now: float, hung: bool = False) -> None:
        if lost.worker in self._outstanding:
            del self._outstanding[lost.worker]
            self.progress.lost(lost, self.figures.lost(lost.worker))
            self._record(self.scheduler.lost(lost.worker, lost.reason, hung), now)

    def _record(self, results: Iterable[ArchiveResult], now: float) -> None:
        for result in results:
            self.manifest.put(result)
            self.figures.decided(result, now)
            self.progress.decided(result)
