"""Counts what happens in an archive: how far it is, how fast it goes, and how much time is left.

No clock of its own and no Ray: times are seconds from any beginning.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ..jobs.jobs import ArchiveInput, Cut, InputDone, Job, JobOutcome, JoinPieces, PieceDone
from ..results.results import ArchiveCounts, ArchiveResult, DoneResult, PieceResult, SkippedInput

WINDOW_S = 600.0  # over which rates are taken: jobs end in lumps of some minutes
_STEP_S = 5.0
_LEAST_S = 10.0  # before this nobody knows how long it will take
_LEAST_JOBS = 2  # of each worker

_Read = TypeVar("_Read", bound=ArchiveInput | SkippedInput | None)


@dataclass(frozen=True)
class NodeFigures:
    """One machine. Memory is that of its workers together, as of their last jobs."""

    name: str
    workers: int
    frames_per_second: float
    memory_bytes: int
    losses: int


@dataclass(frozen=True)
class ArchiveSnapshot:
    """How far it is. `left_s` is None as long as there is no ground for it; without all_known it is the least."""

    seconds: float
    counts: ArchiveCounts
    frames_per_second: float
    left_s: float | None
    nodes: tuple[NodeFigures, ...]
    dashboard: str | None = None


class RateWindow:
    """Adds up what comes, and says how much of it came in a second, over the last ten minutes at most."""

    def __init__(self, began: float) -> None:
        """Nothing has come at that time."""
        self._began = began
        self._steps = deque[tuple[int, float]]()  # (number of a step of time, what came in it)
        self._sum = 0.0

    def add(self, amount: float, now: float) -> None:
        """It came now."""
        step = int(now / _STEP_S)
        if self._steps and self._steps[-1][0] == step:
            self._steps[-1] = step, self._steps[-1][1] + amount
        else:
            self._steps.append((step, amount))
        self._sum += amount

    def per_second(self, now: float) -> float:
        """0 before anything has come."""
        while self._steps and (self._steps[0][0] + 1) * _STEP_S < now - WINDOW_S:
            self._sum -= self._steps.popleft()[1]
        taken = min(now - self._began, WINDOW_S)
        return max(0.0, self._sum) / taken if taken > 0 and self._steps else 0.0


@dataclass
class _Node:
    name: str
    rate: RateWindow
    workers: dict[str, int] = field(default_factory=dict)  # bytes of memory by worker
    losses: int = 0


@dataclass
class _Recording:
    """One that was cut: what it weighs, and how much of it is done."""

    weight: float
    frames: int
    done: int = 0

    @property
    def weight_done(self) -> float:
        return self.weight * min(1.0, self.done / max(1, self.frames))


class ArchiveFigures:
    """Counts for one run. What an input weighs is its size in bytes; one of unknown size weighs what others do."""

    def __init__(self, began: float) -> None:
        """Nothing has happened by then."""
        self._began = began
        self.dashboard: str | None = None  # the address of Ray's
        self._frames, self._weight = RateWindow(began), RateWindow(began)
        self._nodes = dict[str, _Node]()
        self._node_of = dict[str, str]()
        self._cut = dict[int, _Recording]()
        self._known_bytes, self._sized, self._unsized = 0, 0, 0
        self._bytes_left, self._unsized_left = 0, 0

    def read(self, inputs: Iterable[_Read]) -> Iterator[_Read]:
        """The same inputs, counted as they are taken; None is none."""
        for each in inputs:
            if isinstance(each, ArchiveInput):
                self._sized += each.size_bytes is not None
                self._unsized += each.size_bytes is None
                self._known_bytes += each.size_bytes or 0
                self._bytes_left += each.size_bytes or 0
                self._unsized_left += each.size_bytes is None
            yield each

    def joined(self, worker: str, node: str, now: float) -> None:
        """A worker is ready, on a machine of that name. Rates count from the first one on."""
        if not self._nodes:
            self._frames, self._weight = RateWindow(now), RateWindow(now)
        if node not in self._nodes:
            self._nodes[node] = _Node(node, RateWindow(now))
        self._nodes[node].workers[worker] = 0
        self._node_of[worker] = node

    def lost(self, worker: str) -> str:
        """It is gone; where it was comes out. Raises KeyError where it had not joined."""
        node = self._nodes[self._node_of.pop(worker)]
        del node.workers[worker]
        node.losses += 1
        return node.name

    def finished(self, worker: str, job: Job, outcome: JobOutcome, memory_bytes: int, now: float) -> None:
        """A worker is done with a job, whatever came of it."""
        if isinstance(outcome, Cut):
            frames = sum(each.frames for each in outcome.ranges)
            self._cut[job.input.number] = _Recording(self._weight_of(job.input), frames)
        rendered = isinstance(outcome, PieceDone) or (
            isinstance(outcome, InputDone) and (not isinstance(job, JoinPieces) or job.render_whole)
        )
        frames = outcome.frames if rendered and isinstance(outcome, (PieceDone, InputDone)) else 0
        self._frames.add(frames, now)
        if node := self._nodes.get(self._node_of.get(worker, "")):
            node.rate.add(frames, now)
            node.workers[worker] = memory_bytes

    def decided(self, result: ArchiveResult, now: float) -> None:
        """A line of the manifest was written."""
        cut = self._cut.get(result.input.number)
        before = cut.weight_done if cut else 0.0
        if isinstance(result, PieceResult):
            if cut:
                cut.done += result.piece.frames
                self._weight.add(cut.weight_done - before, now)
            return
        self._cut.pop(result.input.number, None)
        self._bytes_left -= result.input.size_bytes or 0
        self._unsized_left -= result.input.size_bytes is None
        if isinstance(result, DoneResult):
            self._weight.add((cut.weight if cut else self._weight_of(result.input)) - before, now)

    def snapshot(self, counts: ArchiveCounts, now: float) -> ArchiveSnapshot:
        """As of now."""
        nodes = tuple(
            NodeFigures(
                node.name, len(node.workers), node.rate.per_second(now), sum(node.workers.values()), node.losses
            )
            for node in self._nodes.values()
        )
        return ArchiveSnapshot(
            now - self._began, replace(counts), self._frames.per_second(now), self._left_s(counts, now), nodes,
            self.dashboard,
        )  # fmt: skip

    def _left_s(self, counts: ArchiveCounts, now: float) -> float | None:
        """By what came of the last minutes. None before each worker has done two jobs."""
        rate, workers = self._weight.per_second(now), sum(len(node.workers) for node in self._nodes.values())
        if not rate or now - self._began < _LEAST_S or counts.jobs < _LEAST_JOBS * workers:
            return None
        left = self._bytes_left + self._unsized_left * self._mean_weight
        return max(0.0, left - sum(cut.weight_done for cut in self._cut.values())) / rate

    @property
    def _mean_weight(self) -> float:
        return self._known_bytes / self._sized if self._sized and self._known_bytes else 1.0

    def _weight_of(self, each: ArchiveInput) -> float:
        return self._mean_weight if each.size_bytes is None else float(each.size_bytes)
