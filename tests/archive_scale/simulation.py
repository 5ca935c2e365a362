"""Simulates how the real scheduler fares with an archive and a cluster, event by event, by a clock of its own.

Nodes differ in speed, some are lost and others come instead. What an event takes on the wire is not simulated.
"""

import heapq
import math
import random
from collections import deque
from dataclasses import dataclass, field
from itertools import count

from texelflow.app.archive.jobs.jobs import (
    Cut,
    InputDone,
    Job,
    JobOutcome,
    JoinPieces,
    OpenInput,
    PieceDone,
    RenderPiece,
)
from texelflow.app.archive.rendering.piece_cutting import cut_frames
from texelflow.app.archive.results.results import ArchiveCounts, FailedResult
from texelflow.app.archive.scheduling.scheduler import Scheduler, SchedulerLimits

from .recordings import BYTES_PER_FRAME, ArchiveKind

LEAD = 60
WORKER = "node-0123.cluster:40213"
OPENING_S = 0.5  # decoder, encoder, rename: assumed
READ_BYTES_PER_S = 200e6  # hashing and copying: assumed
FOUND_OUT_S = 30.0  # until a lost node is known to be lost: assumed
REPLACED_S = 180.0  # until another node has come instead: assumed
_AILING = 30.0  # a bad disk's: assumed, after MapReduce's (section 3.6 of its paper)
_TICK_S = 60.0  # workers with nothing to do are asked again


@dataclass(frozen=True)
class ClusterKind:
    """Nodes of one worker each. `slow` of them work at half speed, `very_slow` at a fifth, the others differ by 5 %."""

    nodes: int
    seconds_per_frame: float
    slow: float = 0.05
    very_slow: float = 0.01
    losses_per_hour: float = 0.0  # of each node
    ailing_per_hour: float = 0.0  # how often each begins to ail: from then on, jobs take thirty times as long
    seed: int = 1

    def slowness(self, number: int) -> float:
        """How much longer a node takes than most."""
        chance = random.Random(number * 104729 + self.seed)
        kind = chance.random()
        return (5.0 if kind < self.very_slow else 2.0 if kind < self.very_slow + self.slow else 1.0) * chance.uniform(
            0.95, 1.05
        )


@dataclass(frozen=True)
class SimulatedRun:
    """How it went, in seconds of the simulation."""

    makespan_s: float
    ideal_s: float  # all work, spread evenly over all nodes by their speed
    events: int
    counts: ArchiveCounts
    listed: int  # inputs given up
    work_s: float  # of jobs whose outcome counted
    wasted_s: float  # of those lost, and of copies that came second
    most_cut: int  # recordings of which pieces were under way at once


@dataclass(eq=False)
class _Node:
    name: str
    slowness: float
    jobs: deque[Job] = field(default_factory=deque)
    began: float = 0.0
    alive: bool = True
    ails_from: float = math.inf


def simulate(
    archive: ArchiveKind,
    cluster: ClusterKind,
    limits: SchedulerLimits,
    piece_frames: int | None = 3000,
    sized: bool = True,
) -> SimulatedRun:
    """Run it all; piece_frames None: nothing is cut."""
    run = _Simulation(archive, cluster, limits, piece_frames, sized)
    return run.to_the_end()


class _Simulation:
    def __init__(
        self,
        archive: ArchiveKind,
        cluster: ClusterKind,
        limits: SchedulerLimits,
        piece_frames: int | None,
        sized: bool,
    ) -> None:
        self._archive, self._cluster, self._piece_frames = archive, cluster, piece_frames
        self._scheduler = Scheduler(archive.inputs(sized), limits)
        self._events: list[tuple[float, int, str, _Node]] = []
        self._order, self._numbers = count(), count()
        self._chance = random.Random(cluster.seed)
        self._idle: dict[str, _Node] = {}
        self._now = self._work = self._wasted = 0.0
        self._handled = self._listed = self._most_cut = 0
        self._speed = 0.0

    def to_the_end(self) -> SimulatedRun:
        for _ in range(self._cluster.nodes):
            self._speed += 1 / self._join().slowness
        while not self._scheduler.over:
            self._now, _, what, node = heapq.heappop(self._events)
            if what == "join":
                self._join()
            elif what == "tick":
                self._ask_idle()
                if self._idle:
                    self._at(self._now + _TICK_S, "tick", node)
            elif what == "found out":
                self._found_out(node)
            elif node.alive:
                (self._end if what == "end" else self._lose)(node)
        work = sum(self._alone_s(number) for number in range(self._archive.count))
        return SimulatedRun(
            makespan_s=self._now,
            ideal_s=work / self._speed,
            events=self._handled,
            counts=self._scheduler.counts,
            listed=self._listed,
            work_s=self._work,
            wasted_s=self._wasted,
            most_cut=self._most_cut,
        )

    def _at(self, when: float, what: str, node: _Node) -> None:
        heapq.heappush(self._events, (when, next(self._order), what, node))

    def _join(self) -> _Node:
        number = next(self._numbers)
        node = _Node(f"node-{number}:1", self._cluster.slowness(number))
        self._scheduler.joined(node.name, node.name)
        if self._cluster.ailing_per_hour:
            node.ails_from = self._now + self._chance.expovariate(self._cluster.ailing_per_hour / 3600)
        if self._cluster.losses_per_hour:
            self._at(self._now + self._chance.expovariate(self._cluster.losses_per_hour / 3600), "lose", node)
        self._ask(node)
        return node

    def _ask(self, node: _Node) -> None:
        """Give a node what it may have."""
        while True:
            job = self._scheduler.next_for(node.name, self._now)
            if job is None:
                break
            node.jobs.append(job)
            if len(node.jobs) == 1:
                self._begin(node)
        if node.jobs:
            self._idle.pop(node.name, None)
        elif node.name not in self._idle:
            if not self._idle:
                self._at(self._now + _TICK_S, "tick", node)
            self._idle[node.name] = node

    def _ask_idle(self) -> None:
        for node in list(self._idle.values()):
            self._ask(node)

    def _begin(self, node: _Node) -> None:
        node.began = self._now
        slowness = node.slowness * (_AILING if self._now >= node.ails_from else 1.0)
        self._at(self._now + self._job_s(node.jobs[0]) * slowness, "end", node)

    def _end(self, node: _Node) -> None:
        self._handled += 1
        job = node.jobs.popleft()
        before = self._scheduler.counts.jobs
        results = self._scheduler.finished(
            node.name, job, outcome_of(job, self._archive, self._piece_frames), self._now
        )
        counts = self._scheduler.counts
        self._most_cut = max(self._most_cut, counts.recordings_cut)
        took = self._now - node.began
        if counts.jobs > before:
            self._work += took
        else:
            self._wasted += took
        self._listed += sum(isinstance(result, FailedResult) for result in results)
        if node.jobs:
            self._begin(node)
        self._ask(node)
        if self._idle and self._scheduler.waiting:
            self._ask_idle()

    def _lose(self, node: _Node) -> None:
        node.alive = False
        self._idle.pop(node.name, None)
        if node.jobs:
            self._wasted += self._now - node.began
        self._at(self._now + FOUND_OUT_S, "found out", node)

    def _found_out(self, node: _Node) -> None:
        self._handled += 1
        results = self._scheduler.lost(node.name, "the node was lost")
        self._listed += sum(isinstance(result, FailedResult) for result in results)
        self._at(self._now + REPLACED_S, "join", node)
        if self._scheduler.waiting:
            self._ask_idle()

    def _job_s(self, job: Job) -> float:
        """On a node of common speed."""
        per_frame = self._cluster.seconds_per_frame
        if isinstance(job, RenderPiece):
            return OPENING_S + (job.range.frames + job.range.lead) * per_frame
        frames = self._archive.frames(job.input.number)
        reading = OPENING_S + frames * BYTES_PER_FRAME / READ_BYTES_PER_S
        if isinstance(job, JoinPieces):
            return reading
        return reading if is_cut(frames, self._piece_frames) else reading + frames * per_frame

    def _alone_s(self, number: int) -> float:
        """What a recording takes in one go."""
        frames = self._archive.frames(number)
        return OPENING_S + frames * (self._cluster.seconds_per_frame + BYTES_PER_FRAME / READ_BYTES_PER_S)


def is_cut(frames: int, piece_frames: int | None) -> bool:
    """Whether a recording becomes several pieces."""
    return piece_frames is not None and len(cut_frames(frames, piece_frames, LEAD)) > 1


def outcome_of(job: Job, archive: ArchiveKind, piece_frames: int | None) -> JobOutcome:
    """As large as real ones."""
    frames = archive.frames(job.input.number)
    if isinstance(job, RenderPiece):
        return a_piece(job, WORKER)
    if isinstance(job, OpenInput) and piece_frames and is_cut(frames, piece_frames):
        return Cut("0" * 64, cut_frames(frames, piece_frames, LEAD), 1.0)
    return whole_result(job.input.name, frames, WORKER, len(job.pieces) if isinstance(job, JoinPieces) else 1)


def a_piece(job: RenderPiece, worker: str) -> PieceDone:
    """As large as a real one."""
    first, last = job.range.first, job.range.last
    head = tuple(range(max(0, first - 8), first))
    name = f"{job.input.name}.{job.piece:05}.mp4"
    return PieceDone(
        *(job.piece, job.range, job.range.frames, {"out": name}, 48.0, worker, head), tuple(range(last - 7, last + 1))
    )


def whole_result(name: str, frames: int, worker: str, pieces: int) -> InputDone:
    """As large as a real one."""
    return InputDone(
        sha256="0" * 64,
        input_bytes=frames * BYTES_PER_FRAME,
        frames=frames,
        files={"out": f"{name}.mp4"},
        file_bytes={"out": frames * BYTES_PER_FRAME // 2},
        seconds=frames * 0.02,
        worker=worker,
        backend="native",
        renderer="LLVM 20, x86-64-v3, 1 thread",
        pieces=pieces,
        lead=LEAD if pieces > 1 else 0,
        file_sha256={"out": "0" * 64},
        file_modified_ns={"out": 10**18},
    )


def over_ideal(run: SimulatedRun) -> float:
    """How much longer a run took than work that is spread evenly."""
    return run.makespan_s / run.ideal_s if run.ideal_s else math.inf
