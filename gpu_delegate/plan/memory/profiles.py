"""The orders in which planners take tensors, by what is alive with them.

Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (arXiv 2001.03288), section 3.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .records import Lifetime, UsageRecord

Numbers = NDArray[np.int64]


def positional_maximums(records: Sequence[UsageRecord]) -> tuple[int, ...]:
    """The most bytes that the largest tensor of a task has, the most that the second largest has, and so on."""
    columns = record_columns(records)
    starts, ends = (columns[:, np.argsort(columns[row], kind="stable")] for row in (0, 1))
    maximums, alive, ended = np.zeros(len(records), np.int64), np.zeros(0, np.int64), 0  # alive: as -bytes, sorted
    for number, (first, size) in enumerate(starts[[0, 2]].T.tolist()):
        while ends[1, ended] < first:
            alive = np.delete(alive, np.searchsorted(alive, -ends[2, ended]))
            ended += 1
        alive = np.insert(alive, np.searchsorted(alive, -size), -size)
        if number + 1 == len(records) or ends[1, ended] < starts[0, number + 1]:  # later tasks lack one of these
            most = maximums[: len(alive)]
            np.maximum(most, -alive, out=most)
    return tuple(maximums[: np.count_nonzero(maximums)].tolist())


def by_size(records: Sequence[UsageRecord]) -> list[UsageRecord]:
    """The largest first, of equal ones that which comes first."""
    return sorted(records, key=lambda record: -record.size_bytes)


def by_breadth(records: Sequence[UsageRecord]) -> list[UsageRecord]:
    """Those of the task with most bytes alive first, of equal tasks of the earlier; of a task the largest first."""
    first, last, sizes = record_columns(records)
    starts = np.unique(first)  # where tensors begin: other tasks have some of those alive before
    begun = np.concatenate(([0], np.cumsum(sizes[np.argsort(first, kind="stable")])))
    ended = np.concatenate(([0], np.cumsum(sizes[np.argsort(last, kind="stable")])))
    alive = begun[np.searchsorted(np.sort(first), starts, "right")] - ended[np.searchsorted(np.sort(last), starts)]
    ranks = np.empty(len(starts), np.int64)
    ranks[np.argsort(-alive, kind="stable")] = np.arange(len(starts))
    spans = zip(np.searchsorted(starts, first), np.searchsorted(starts, last, "right"), strict=True)
    taken = np.array([ranks[start:end].min() for start, end in spans], np.int64)
    return [records[number] for number in np.lexsort((-sizes, taken))]


def full_tasks(records: Sequence[Lifetime]) -> list[int]:
    """Tasks by which all others are covered: what is alive at one of those is alive at one of these.

    Tensors that are alive at one time are so at one of these: those at which some begin before the next ends.
    """
    starts, ends = sorted({record.first_task for record in records}), sorted(record.last_task for record in records)
    following = [*starts[1:], math.inf]
    return [start for start, other in zip(starts, following, strict=True) if ends[bisect_left(ends, start)] < other]


def record_columns(records: Sequence[UsageRecord]) -> Numbers:
    """First tasks, last tasks and bytes, a row each."""
    rows = [(record.first_task, record.last_task, record.size_bytes) for record in records]
    return np.array(rows, np.int64).reshape(-1, 3).T
