"""The scheduler against archives and clusters of all kinds, in every order of events that Hypothesis thinks of."""

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.helpers.archive_jobs import WHOLE, a_cut, a_piece, an_input
from texelflow.app.archive.jobs.jobs import Job, JobFailed, JobOutcome, OpenInput, RenderPiece
from texelflow.app.archive.results.results import ArchiveResult, DoneResult, FailedResult, SkippedInput
from texelflow.app.archive.scheduling.scheduler import Scheduler, SchedulerLimits

Nature = Literal["short", "cut", "apart", "unfit", "bad", "flaky", "unlike", "killer", "nowhere", "skipped"]
GOOD = {"short", "cut", "apart", "unfit", "flaky"}


def outcome_of(job: Job, nature: Nature, tries: int) -> JobOutcome | None:
    """What comes of a job of such an input when it was tried so often before; None: the worker dies of it."""
    opened = isinstance(job, OpenInput)
    if nature == "killer":
        return None
    if nature == "bad" or (nature == "flaky" and not tries):
        return JobFailed("input", "it is damaged")
    if nature == "unlike":  # never twice the same
        return JobFailed("input", f"it is damaged at {tries}")
    if nature == "nowhere":
        return JobFailed("machine", "too large for this worker")
    if opened and nature in ("cut", "apart", "unfit"):
        return a_cut(4)
    if isinstance(job, RenderPiece):
        return a_piece(job, nature == "apart", "its decoder differs" if nature == "unfit" and job.piece == 2 else "")
    return WHOLE


@dataclass
class Cluster:
    """Drives a scheduler and checks whatever must hold after each event."""

    natures: list[Nature]
    limits: SchedulerLimits
    now: float = 0.0
    held: dict[str, list[Job]] = field(default_factory=dict)
    tries: Counter[tuple[int, str, int]] = field(default_factory=Counter)
    results: list[ArchiveResult] = field(default_factory=list)
    failed: set[tuple[str, tuple[int, str, int]]] = field(default_factory=set)  # worker and job
    copies: int = 0
    names: int = 0

    def __post_init__(self) -> None:
        items = (
            SkippedInput(an_input(number)) if nature == "skipped" else an_input(number, 1000 + number * 37 % 11)
            for number, nature in enumerate(self.natures)
        )
        self.scheduler = Scheduler(items, self.limits)

    def join(self) -> None:
        name = f"w{self.names}"
        self.names += 1
        self.held[name] = []
        self.scheduler.joined(name, f"node {self.names % 3}")

    def ask(self, name: str) -> Job | None:
        before = self.scheduler.counts
        job = self.scheduler.next_for(name, self.now)
        if job is None:
            return None
        holders = [other for other, jobs in self.held.items() if key_of(job) in map(key_of, jobs)]
        if holders and self.decided(job.input.number) == 0:
            assert len(holders) == 1
            assert holders[0] != name
            after = self.scheduler.counts
            assert after.all_known
            assert after.known == before.known
            failed_here = sum(worker == name for worker, _ in self.failed)
            assert before.waiting <= failed_here or "nowhere" in self.natures, "what waits failed on this worker before"
            self.copies += 1
        self.held[name].append(job)
        assert len(self.held[name]) <= self.limits.outstanding
        assert self.natures[job.input.number] != "skipped"
        return job

    def finish(self, name: str) -> None:
        """The first job of a worker ends, in whatever way it does."""
        job = self.held[name][0]
        outcome = outcome_of(job, self.natures[job.input.number], self.tries[key_of(job)])
        self.tries[key_of(job)] += 1
        if isinstance(outcome, JobFailed):
            self.failed.add((name, key_of(job)))
        if outcome is None:
            self.lose(name, "the process was killed")
            return
        del self.held[name][0]
        self.took(self.scheduler.finished(name, job, outcome, self.now))

    def lose(self, name: str, reason: str = "the node is gone") -> None:
        del self.held[name]
        self.took(self.scheduler.lost(name, reason))

    def took(self, results: tuple[ArchiveResult, ...]) -> None:
        self.results += results
        counts = self.scheduler.counts
        assert counts.done == sum(isinstance(result, DoneResult) for result in self.results)
        assert counts.failed == sum(isinstance(result, FailedResult) for result in self.results)
        assert counts.undecided >= 0
        assert counts.outstanding <= sum(map(len, self.held.values()))

    def decided(self, number: int) -> int:
        return sum(
            result.input.number == number for result in self.results if isinstance(result, DoneResult | FailedResult)
        )

    def drain(self, alive: int) -> None:
        """From now on everything that can end ends, one event after the other."""
        for _ in range(3000):
            if self.scheduler.over:
                return
            self.now += 5.0
            while len(self.held) < alive:
                self.join()
            for name in list(self.held):
                while self.ask(name):
                    pass
            busy = [name for name, jobs in self.held.items() if jobs]
            if busy:
                self.finish(busy[int(self.now) % len(busy)])
        raise AssertionError("it does not come to its end")


def key_of(job: Job) -> tuple[int, str, int]:
    return job.input.number, type(job).__name__, job.piece if isinstance(job, RenderPiece) else -1


NATURES: st.SearchStrategy[list[Nature]] = st.lists(
    st.sampled_from(("short", "cut", "apart", "unfit", "bad", "flaky", "unlike", "killer", "nowhere", "skipped")),
    max_size=12,
)
EVENTS = st.lists(st.tuples(st.sampled_from(("ask", "finish", "lose", "join", "wait")), st.integers(0, 9)), max_size=80)


@settings(max_examples=100)
@example(["short", "unlike", "short", "short", "short"], [("ask", 1), ("ask", 0), ("lose", 0)], 1, 0.0, 4, 1)
@given(
    NATURES,
    EVENTS,
    st.integers(1, 3),
    st.sampled_from((0.0, math.inf)),
    st.integers(1, 5),
    st.sampled_from((1, 3, 10_000)),
)
def test_every_input_is_done_once_or_fails_once(
    natures: list[Nature],
    events: list[tuple[str, int]],
    outstanding: int,
    short_s: float,
    workers: int,
    read_ahead: int,
) -> None:
    cluster = Cluster(natures, SchedulerLimits(outstanding, short_s, read_ahead=read_ahead, copy_after_s=20.0))
    for _ in range(workers):
        cluster.join()
    for event, which in events:
        names = list(cluster.held)
        name = names[which % len(names)] if names else None
        if event == "join" or name is None:
            cluster.join()
        elif event == "wait":
            cluster.now += which * 10.0
        elif event == "ask":
            cluster.ask(name)
        elif event == "lose":
            cluster.lose(name)
        elif cluster.held[name]:
            cluster.finish(name)
    cluster.drain(workers)
    assert cluster.scheduler.fatal is None
    ends = {result.input.number: result for result in cluster.results if isinstance(result, DoneResult | FailedResult)}
    for number, nature in enumerate(natures):
        assert cluster.decided(number) == (nature != "skipped")
        result = ends.get(number)
        if isinstance(result, FailedResult):
            assert nature not in GOOD or (result.cause, result.tries) >= ("lost", 10)
            assert result.tries >= (2 if result.cause == "input" else 10)
        else:
            assert nature in GOOD | {"skipped"}
    counts = cluster.scheduler.counts
    assert (counts.known, counts.waiting, counts.outstanding) == (len(natures), 0, 0)
    assert counts.skipped == natures.count("skipped")


@given(NATURES, EVENTS)
def test_after_a_stop_nothing_is_handed_out_and_what_is_under_way_counts(
    natures: list[Nature], events: list[tuple[str, int]]
) -> None:
    cluster = Cluster(natures, SchedulerLimits())
    cluster.join()
    cluster.join()
    for event, which in events[:20]:
        name = f"w{which % 2}"
        if event == "finish" and cluster.held.get(name):
            cluster.finish(name)
        elif name in cluster.held:
            cluster.ask(name)
    cluster.scheduler.stop()
    while any(cluster.held.values()):
        assert not any(cluster.scheduler.next_for(name, cluster.now) for name in cluster.held)
        cluster.finish(next(name for name, jobs in cluster.held.items() if jobs))
    assert cluster.scheduler.over


@given(NATURES, st.integers(1, 4))
def test_the_same_calls_give_the_same_answers(natures: list[Nature], workers: int) -> None:
    histories = []
    for _ in range(2):
        cluster = Cluster(natures, SchedulerLimits())
        cluster.drain(workers)
        histories.append((cluster.results, cluster.now, cluster.copies))
    assert histories[0] == histories[1]
