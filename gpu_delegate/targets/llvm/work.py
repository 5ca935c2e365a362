"""The table of work that threads go through: which rows of which step are computed when.

A range is some rows and parts of one step. A task is ranges that one thread does in order. A round is tasks that may be
done in any order, by any threads; the next round begins when all of them are done.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from .thread_choice import ThreadChoice

MOST_TASKS = (1 << 18) - 1  # the pool packs two counts and a generation into 64 bits


@dataclass(frozen=True)
class StepRange:
    """Rows y0 to y1 and parts z0 to z1 of a step, by its number.

    What lies between steps that take turns is found `shift` pixels in front of where it would be (strips.py).
    """

    step: int
    y0: int
    y1: int
    z0: int
    z1: int
    shift: int = 0


WorkTask = tuple[StepRange, ...]
WorkRound = tuple[WorkTask, ...]

_CALL = np.dtype(
    [("kernel", "<u8"), ("tensors", "<u8"), ("weights", "<u8"), *((name, "<i4") for name in ("y0", "y1", "z0", "z1"))],
    align=True,
)
CALL_BYTES = _CALL.itemsize


@dataclass(frozen=True)
class StepAddresses:
    """Where the function of a step is, the array of tensors' addresses, and its weights.

    `shifted` has other such arrays, for ranges whose tensors between steps lie so many pixels further in front.
    """

    kernel: int
    tensors: int
    weights: int
    shifted: Mapping[int, int] = field(default_factory=dict)


class WorkTable:
    """A plan in memory as native code reads it; it must outlive every run."""

    def __init__(self, rounds: Sequence[WorkRound], steps: Sequence[StepAddresses]) -> None:
        """Lay out the calls of all ranges. Raises ValueError for a plan of too many tasks."""
        rounds = [tasks for tasks in rounds if tasks]
        tasks = [task for each in rounds for task in each]
        if len(tasks) > MOST_TASKS:
            raise ValueError(f"a plan of {len(tasks)} tasks")
        calls = [_call(part, steps[part.step]) for task in tasks for part in task]
        ends = np.cumsum([0, *(len(tasks) for tasks in rounds)])
        limits = [int(end) for end, each in zip(ends[1:], rounds, strict=True) for _ in each]
        following = {int(end): int(after) for end, after in pairwise(ends)}
        self._calls = np.array(calls, _CALL)
        self._firsts = np.cumsum([0, *(len(task) for task in tasks)], dtype=np.int32)
        self._limits = np.array(limits, np.int32)
        self._following = np.array([following.get(limit, 0) for limit in limits], np.int32)
        parts = (self._calls, self._firsts, self._limits, self._following)
        self._head = np.array([*(part.ctypes.data for part in parts), len(tasks)], np.int64)
        self.tasks = len(tasks)
        self.address = int(self._head.ctypes.data)  # calls, each task's first one, the ends of its round and the next
        self.choice = ThreadChoice()


def _call(part: StepRange, step: StepAddresses) -> tuple[int, ...]:
    tensors = step.shifted.get(part.shift, step.tensors)
    return (step.kernel, tensors, step.weights, part.y0, part.y1, part.z0, part.z1)
