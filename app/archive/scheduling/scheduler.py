"""The scheduler: decides which worker does what next, and what becomes of each input.

A state machine without threads, files, Ray or a clock of its own: whoever calls says what time it is, in seconds. The
same calls give the same answers. A worker is a name; nothing is kept of inputs that are decided.

Who is to blame. An input's failure is tried a second time; the same reason twice, and it has failed. A lost worker is
blamed on the job that it was doing, the others that it held are queued again. Losses and failures of machines count for
each job, up to ten; then its input has failed. A worker on which three inputs in a row failed for the machine's sake
rests while others work; twenty in a row, on every worker, end the run, as does what forbids writing results.
"""

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

from ..jobs.jobs import (
    ArchiveInput,
    Cut,
    InputDone,
    Job,
    JobFailed,
    JobOutcome,
    JoinPieces,
    OpenInput,
    PieceDone,
    RenderPiece,
)
from ..results.results import ArchiveCounts, ArchiveResult, DoneResult, FailedResult, PieceResult, SkippedInput
from .cut_recording import CutRecording
from .patience import JobPatience
from .waiting_jobs import ArchiveTask, TaskKey, TriedAgain, WaitingJobs

_MOST_REASONS = 10  # failures that the input caused, each with another reason
_UNFIT_AFTER = 3  # inputs in a row that failed on a worker for the machine's sake
_AGAIN_AFTER_S = 60.0  # a job that failed for the machine's sake, while there is other work
_SOONEST_S, _LATEST_S = 1.0, 30.0  # the same, where there is none: twice as long each time
_REST_S, _LONGEST_REST_S = 60.0, 3600.0
_END_AFTER = 20  # inputs in a row that failed so on every worker
_COPIES_LOOKED_AT = 16
_LATELY = 20  # jobs, about


@dataclass(frozen=True)
class SchedulerLimits:
    """What the state machine may do."""

    outstanding: int = 2  # jobs of a worker at most: the one it does, and one that waits there
    short_s: float = 2.0  # one waits there only while jobs take no longer than this, so that messages cost little
    losses: int = 10  # of workers, and failures of machines: as many tries each job has
    read_ahead: int = 10_000  # inputs, of which the largest go first
    copy_after_s: float = 60.0  # where nothing waits any more, a job handed out so long ago is given to a second worker


@dataclass(eq=False)
class _Worker:
    node: str
    tasks: deque[ArchiveTask] = field(default_factory=deque)  # the first one is being done
    began: float = 0.0  # the first one
    last_input: int | None = None
    failing: set[int] = field(default_factory=set)  # inputs in a row that failed here for the machine's sake
    rests: int = 0
    rests_until: float = 0.0


def _no_pieces(_input: ArchiveInput, _cut: Cut) -> Iterable[PieceDone]:
    return ()


class Scheduler:
    """Hands out every input's jobs until each input is done or has failed."""

    def __init__(
        self,
        inputs: Iterable[ArchiveInput | SkippedInput | None],
        limits: SchedulerLimits | None = None,
        finished_pieces: Callable[[ArchiveInput, Cut], Iterable[PieceDone]] = _no_pieces,
    ) -> None:
        """Inputs have numbers, all different, and are read when needed; None says that there is none yet.

        `finished_pieces`: those of earlier runs.
        """
        self._limits = limits or SchedulerLimits()
        self._counts = ArchiveCounts()
        self._waiting = WaitingJobs(inputs, self._limits.read_ahead, self._counts)
        self._finished_pieces = finished_pieces
        self._workers: dict[str, _Worker] = {}
        self._out: OrderedDict[TaskKey, ArchiveTask] = OrderedDict()  # handed out and undecided, the first one first
        self._recordings: dict[int, CutRecording] = {}
        self._usual_s = math.inf  # what jobs took lately
        self._patience = JobPatience()
        self._failing: set[int] = set()  # inputs in a row that failed for the machine's sake, whatever the worker
        self._stopped = False
        self._fatal: str | None = None

    @property
    def counts(self) -> ArchiveCounts:
        """As of now: a copy."""
        counts = ArchiveCounts(**vars(self._counts))
        counts.outstanding, counts.waiting = len(self._out), len(self._waiting)
        counts.recordings_cut = len(self._recordings)
        return counts

    @property
    def waiting(self) -> int:
        """Jobs that could be handed out now, of the inputs that were read so far."""
        return len(self._waiting)

    @property
    def fatal(self) -> str | None:
        """Why the run cannot go on, in one line; None as long as it can."""
        return self._fatal

    @property
    def over(self) -> bool:
        """Whether everything is decided; after `stop`, whether nothing is under way any more."""
        if self._stopped:
            return not self._out
        return self._counts.all_known and not self._counts.undecided

    @property
    def reading(self) -> bool:
        """Whether inputs are still being read and none waits: `next_for` may have a job when it is asked once more."""
        return not (self._stopped or self._counts.all_known or len(self._waiting))

    @property
    def nothing_yet(self) -> bool:
        """Whether there was none when inputs were read last: it is in vain to read on at once."""
        return self._waiting.nothing_yet

    def read_on(self) -> None:
        """Read some inputs before anybody asks for one. Raises what the reader of inputs raises."""
        self._waiting.read_on()

    def joined(self, worker: str, node: str = "") -> None:
        """A worker is ready. A job's backup copy goes to another node only."""
        self._workers[worker] = _Worker(node)

    def next_for(self, worker: str, now: float) -> Job | None:
        """A job for it, None where there is none for now. Raises what the reader of inputs raises."""
        state = self._workers[worker]
        if self._stopped or len(state.tasks) >= self._limits.outstanding:
            return None
        if state.tasks and (self._usual_s > self._limits.short_s or len(self._waiting) <= len(self._workers)):
            return None  # what waits at one worker cannot go to another: not where jobs are long, or few are left
        self._waiting.read_on()
        if now < state.rests_until and any(other.rests_until <= now for other in self._workers.values()):
            return None
        task = self._waiting.take(state.last_input, self._orders(worker, now))
        if task is None and not state.tasks and self._counts.all_known:
            task = self._copied(worker, now)
        return self._handed(worker, task, now) if task else None

    def _orders(self, worker: str, now: float) -> TriedAgain:
        """A job that failed goes to another worker next, and to the same one if it failed on all or for its input."""

        def elsewhere(task: ArchiveTask) -> bool:
            return worker not in task.tried_by

        def anywhere(task: ArchiveTask) -> bool:
            known = sum(each in self._workers for each in task.tried_by)
            return now >= task.idle_until and (not task.losses or known == len(self._workers) or elsewhere(task))

        return TriedAgain(lambda task: now >= task.not_before and elsewhere(task), anywhere)

    def _copied(self, worker: str, now: float) -> ArchiveTask | None:
        """A job that another node has had for long, and no one else; one that was lost or failed gets no copy."""
        node = self._workers[worker].node
        for _ in range(min(len(self._out), _COPIES_LOOKED_AT)):
            key, task = next(iter(self._out.items()))
            self._out.move_to_end(key)
            old = now - task.handed_out >= self._limits.copy_after_s
            alone = len(task.holders) == 1 and self._workers[task.holders[0]].node != node
            if old and alone and not (task.losses or task.reasons):
                return task
        return None

    def _handed(self, worker: str, task: ArchiveTask, now: float) -> Job:
        state = self._workers[worker]
        if not state.tasks:
            state.began = now
        if not task.holders:
            task.handed_out = now
            self._out[task.key] = task
        task.holders.append(worker)
        state.tasks.append(task)
        state.last_input = task.job.input.number
        return task.job

    def finished(self, worker: str, job: Job, outcome: JobOutcome, now: float) -> tuple[ArchiveResult, ...]:
        """A worker is done with a job. What is known already changes nothing: a lost worker's, a copy's."""
        state, key = self._workers.get(worker), ArchiveTask(job).key
        place = next((place for place, task in enumerate(state.tasks) if task.key == key), None) if state else None
        if state is None or place is None:
            return ()
        task = state.tasks[place]
        del state.tasks[place]
        took = now - state.began if place == 0 else None
        if place == 0:
            state.began = now
        task.holders.remove(worker)
        if self._out.get(key) is not task:
            return ()
        if not _answers(outcome, job):
            outcome = JobFailed("machine", f"the worker answered {type(job).__name__} with {type(outcome).__name__}")
        if isinstance(outcome, JobFailed):
            return self._failed(worker, task, outcome, now)
        del self._out[key]
        if took is not None:
            self._usual_s = took if math.isinf(self._usual_s) else self._usual_s + (took - self._usual_s) / _LATELY
            if not isinstance(outcome, Cut):
                self._patience.learn(outcome.frames, took)
        self._counts.jobs += 1
        self._failing.clear()
        state.failing.clear()
        state.rests = 0
        return self._succeeded(task, outcome)

    def _succeeded(self, task: ArchiveTask, outcome: Cut | PieceDone | InputDone) -> tuple[ArchiveResult, ...]:
        job = task.job
        if isinstance(outcome, InputDone):
            self._recordings.pop(job.input.number, None)
            self._counts.done += 1
            self._counts.cut_off += outcome.cut_off is not None
            whole = not isinstance(job, JoinPieces) or job.render_whole
            self._counts.frames += outcome.frames if whole else 0
            named = replace(job.input, name=outcome.name) if outcome.name else job.input
            return (DoneResult(named, outcome),)
        if isinstance(outcome, PieceDone) and isinstance(job, RenderPiece):
            recording = self._recordings[job.input.number]
            recording.add(outcome)
            self._counts.frames += outcome.frames
            self._counts.pieces += 1
            if recording.complete:
                if recording.unfit:
                    self._withdraw_pieces(job.input.number, recording)
                self._waiting.add_join(ArchiveTask(recording.join()))
            return (PieceResult(job.input, job.sha256, outcome),)
        if isinstance(outcome, Cut):
            self._cut(job.input, outcome)
        return ()

    def _cut(self, cut_input: ArchiveInput, cut: Cut) -> None:
        recording = CutRecording(cut_input, cut, self._finished_pieces(cut_input, cut))
        self._recordings[cut_input.number] = recording
        last = len(cut.ranges) - 1
        self._waiting.add_pieces(
            ArchiveTask(RenderPiece(cut_input, cut.sha256, number, cut.ranges[number], number == last))
            for number in recording.missing
        )
        if recording.complete:
            self._waiting.add_join(ArchiveTask(recording.join()))

    def _failed(self, worker: str, task: ArchiveTask, failed: JobFailed, now: float) -> tuple[ArchiveResult, ...]:
        state = self._workers[worker]
        if failed.cause == "output" or self._stopped:
            if failed.cause == "output":
                self._end(failed.reason)
            self._tried_again(task, first=False)
            return ()
        task.tried_by.add(worker)
        if failed.cause == "input":
            self._failing.clear()
            state.failing.clear()
            return self._blamed_input(task, failed.reason)
        task.losses += 1
        task.not_before = now + _AGAIN_AFTER_S
        task.idle_until = now + min(_SOONEST_S * 2.0 ** (task.losses - 1), _LATEST_S)
        self._unfit(state, task.job.input.number, failed.reason, now)
        return self._tried_again_or_given_up(task, "machine", failed.reason)

    def _blamed_input(self, task: ArchiveTask, reason: str) -> tuple[ArchiveResult, ...]:
        known = reason in task.reasons
        task.reasons.append(reason)
        if known or len(task.reasons) >= _MOST_REASONS:
            return self._given_up(task, "input", reason)
        if isinstance(task.job, JoinPieces):  # perhaps its pieces are to blame
            task.job = replace(task.job, render_whole=True, why_whole=reason)
        self._tried_again(task, first=False)
        return ()

    def _unfit(self, state: _Worker, number: int, reason: str, now: float) -> None:
        """A machine lacks something: it rests, longer each time; if every one does, the run is over."""
        state.failing.add(number)
        self._failing.add(number)
        if len(state.failing) >= _UNFIT_AFTER:
            state.rests_until = now + min(_REST_S * 2.0**state.rests, _LONGEST_REST_S)
            state.rests = min(state.rests + 1, 10)
        if len(self._failing) >= _END_AFTER and all(each.failing for each in self._workers.values()):
            self._end(f"{len(self._failing)} inputs in a row failed, on every worker: {reason}")

    def lost(self, worker: str, reason: str, hung: bool = False) -> tuple[ArchiveResult, ...]:
        """A worker is gone, with what it held; in peace if it held nothing. Whoever comes instead has another name.

        `hung`: it was overdue, and was ended for that. That counts as the input's failure: twice, and it has failed.
        """
        state = self._workers.pop(worker, None)
        if state is None:
            return ()
        self._counts.lost += bool(state.tasks)
        for task in state.tasks:
            task.holders.remove(worker)
        results: tuple[ArchiveResult, ...] = ()
        for place, task in enumerate(state.tasks):
            if self._out.get(task.key) is not task:
                continue
            if place or self._stopped:
                self._tried_again(task, first=True)
            elif hung:
                results = self._blamed_input(task, reason)
            else:
                task.losses += 1
                results = self._tried_again_or_given_up(task, "lost", reason)
        return results

    def _tried_again_or_given_up(
        self, task: ArchiveTask, cause: Literal["machine", "lost"], reason: str
    ) -> tuple[ArchiveResult, ...]:
        if task.losses >= self._limits.losses:
            return self._given_up(task, cause, reason)
        self._tried_again(task, first=False)
        return ()

    def _tried_again(self, task: ArchiveTask, first: bool) -> None:
        """Unless another worker has it, too."""
        if not task.holders:
            del self._out[task.key]
            self._waiting.again(task, first)

    def _given_up(
        self, task: ArchiveTask, cause: Literal["input", "machine", "lost"], reason: str
    ) -> tuple[ArchiveResult, ...]:
        """The whole input has failed: what is under way for it is nobody's business any more."""
        failed, tries = task.job.input, len(task.reasons) + task.losses
        del self._out[task.key]
        recording = self._recordings.pop(failed.number, None)
        if recording:
            self._withdraw_pieces(failed.number, recording)
        self._counts.failed += 1
        return (FailedResult(failed, cause, reason, tries),)

    def _withdraw_pieces(self, number: int, recording: CutRecording) -> None:
        """Nobody needs those any more that wait or are under way."""
        for piece in range(len(recording.ranges)):
            self._out.pop((number, piece), None)
        self._waiting.drop(number)

    def stop(self) -> None:
        """No more work is handed out; what is under way still counts."""
        self._stopped = True

    def _end(self, reason: str) -> None:
        self._fatal = self._fatal or reason
        self.stop()

    def overdue(self, now: float) -> tuple[str, ...]:
        """Workers that take so long for what they do that they seem to hang (JobPatience): end them, and say `lost`."""
        return tuple(
            name
            for name, worker in self._workers.items()
            if worker.tasks and now - worker.began > self._allowed_s(worker.tasks[0])
        )

    def _allowed_s(self, task: ArchiveTask) -> float:
        return self._patience.allowed_s(task.job, len(task.reasons))


def _answers(outcome: JobOutcome, job: Job) -> bool:
    """Whether such an outcome can come of such a job."""
    if isinstance(outcome, PieceDone):
        return isinstance(job, RenderPiece) and (outcome.piece, outcome.range) == (job.piece, job.range)
    if isinstance(outcome, Cut):
        return isinstance(job, OpenInput) and bool(outcome.ranges)
    return not (isinstance(outcome, InputDone) and isinstance(job, RenderPiece))
