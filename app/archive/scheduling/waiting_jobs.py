"""The queue of waiting jobs: which one a worker should do next.

Recordings whose pieces are there are joined first, then come jobs that were lost or failed once, then pieces, of the
recording that the worker had last before others, and then new inputs: of those read ahead the largest.
"""

import heapq
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from ..jobs.jobs import ArchiveInput, Job, JoinPieces, OpenInput, RenderPiece
from ..results.results import ArchiveCounts, SkippedInput

_READ_AT_ONCE = 100  # inputs for each job that is asked for: the driver never reads on without end
_LOOKED_THROUGH = 16  # jobs that are tried again, from the first one on

TaskKey = tuple[int, int]


@dataclass(eq=False)
class ArchiveTask:
    """A job, and what became of it so far."""

    job: Job
    holders: list[str] = field(default_factory=list)  # workers that have it: one, or two if one is a backup copy
    handed_out: float = 0.0  # when first
    reasons: list[str] = field(default_factory=list)  # of failures that the input caused
    losses: int = 0  # of workers that had it, and failures of machines
    tried_by: set[str] = field(default_factory=set)  # workers on which it failed
    not_before: float = 0.0  # while there is other work
    idle_until: float = 0.0  # in any case: what it lacked, such as a server, may be there again

    @property
    def key(self) -> TaskKey:
        """The input's number and the piece's; -1 where it is opened, -2 where it is joined."""
        piece = self.job.piece if isinstance(self.job, RenderPiece) else -2 if isinstance(self.job, JoinPieces) else -1
        return self.job.input.number, piece


@dataclass(frozen=True)
class TriedAgain:
    """Which of the jobs that were tried before a worker may have: before all other work, and after it."""

    before: Callable[[ArchiveTask], bool]
    after: Callable[[ArchiveTask], bool]


class WaitingJobs:
    """All that could be handed out. Memory is for what was read ahead, and for pieces of recordings under way."""

    def __init__(
        self, inputs: Iterable[ArchiveInput | SkippedInput | None], read_ahead: int, counts: ArchiveCounts
    ) -> None:
        """Inputs are read when they are needed, None where there is none yet; `counts` learns how many there were."""
        self._inputs: Iterator[ArchiveInput | SkippedInput | None] = iter(inputs)
        self.nothing_yet = False  # the last time that inputs were read
        self._read_ahead, self._counts = read_ahead, counts
        self._new: list[tuple[int, int, ArchiveInput]] = []  # a heap, the largest first, then as they were named
        self._joins: deque[ArchiveTask] = deque()
        self._again: deque[ArchiveTask] = deque()
        self._pieces: OrderedDict[int, deque[ArchiveTask]] = OrderedDict()  # by input, in the order of their cuts
        self._count = 0  # of pieces

    def __len__(self) -> int:
        return len(self._new) + len(self._joins) + len(self._again) + self._count

    def read_on(self) -> None:
        """Read some more inputs, of those that are there. Raises whatever their reader does."""
        self.nothing_yet = False
        for _ in range(_READ_AT_ONCE):
            if self._counts.all_known or self.nothing_yet or len(self._new) >= self._read_ahead:
                break
            try:
                item = next(self._inputs)
            except StopIteration:
                self._counts.all_known = True
                break
            if item is None:
                self.nothing_yet = True
            elif isinstance(item, SkippedInput):
                self._counts.known += 1
                self._counts.skipped += item.was == "done"
                self._counts.skipped_cut_off += item.cut_off
                self._counts.skipped_failed += item.was == "failed"
            else:
                self._counts.known += 1
                heapq.heappush(self._new, (-(item.size_bytes or 0), item.number, item))

    def add_pieces(self, pieces: Iterable[ArchiveTask]) -> None:
        """Pieces of one recording."""
        for task in pieces:
            self._pieces.setdefault(task.job.input.number, deque()).append(task)
            self._count += 1

    def add_join(self, task: ArchiveTask) -> None:
        """All pieces of a recording are there."""
        self._joins.append(task)

    def again(self, task: ArchiveTask, first: bool) -> None:
        """A job is to be tried once more: before the others that are, or after them."""
        (self._again.appendleft if first else self._again.append)(task)

    def drop(self, number: int) -> None:
        """Forget the pieces of an input."""
        self._count -= len(self._pieces.pop(number, ()))
        self._again = deque(task for task in self._again if task.job.input.number != number)

    def take(self, last_input: int | None, tried: TriedAgain) -> ArchiveTask | None:
        """The next job, for a worker that had the input `last_input` last."""
        if self._joins:
            return self._joins.popleft()
        first = self._tried_before(tried.before)
        return first or self._piece(last_input) or self._new_one() or self._tried_before(tried.after)

    def _tried_before(self, may: Callable[[ArchiveTask], bool]) -> ArchiveTask | None:
        for place, task in enumerate(islice(self._again, _LOOKED_THROUGH)):
            if may(task):
                del self._again[place]
                return task
        return None

    def _piece(self, last_input: int | None) -> ArchiveTask | None:
        if not self._pieces:
            return None
        number = next(iter(self._pieces))
        if last_input is not None and last_input in self._pieces:
            number = last_input
        task = self._pieces[number].popleft()
        self._count -= 1
        if not self._pieces[number]:
            del self._pieces[number]
        return task

    def _new_one(self) -> ArchiveTask | None:
        return ArchiveTask(OpenInput(heapq.heappop(self._new)[2])) if self._new else None
