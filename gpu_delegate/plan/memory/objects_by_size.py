"""Planners of shared objects that place large tensors first.

Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (arXiv 2001.03288), section 4.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from .memory_plan import MemoryPlan
from .object_times import FAR, ObjectTimes
from .profiles import by_breadth, by_size, positional_maximums
from .records import UsageRecord


def greedy_by_size_objects(records: Sequence[UsageRecord], alignment_bytes: int = 1) -> MemoryPlan:
    """Largest tensor first, each into the smallest object that is free meanwhile: none ever grows."""
    return _each_by_size(by_size(records))


def greedy_by_breadth_objects(records: Sequence[UsageRecord], alignment_bytes: int = 1) -> MemoryPlan:
    """The task with most bytes alive first, of its tensors the largest first, each into the smallest object that is
    free meanwhile and large enough, else into the largest free one, which grows.
    """
    return _each_by_size(by_breadth(records))


def greedy_by_size_improved(records: Sequence[UsageRecord], alignment_bytes: int = 1) -> MemoryPlan:
    """Greedy by size, in which those of similar size go where they leave the fewest tasks between.

    Similar are tensors that equally many positional maximums cover. The next of them is that which is nearest in time
    to a use of an object that is free for it, and joins that; of equally near ones the largest.
    """
    maximums = [-size for size in positional_maximums(records)]

    def stage(record: UsageRecord) -> int:
        return bisect_right(maximums, -record.size_bytes)

    objects = ObjectTimes(len(records))
    for _, similar in groupby(sorted(by_size(records), key=stage), key=stage):
        _put_nearest_first(list(similar), objects)
    return objects.plan()


def _each_by_size(records: Sequence[UsageRecord]) -> MemoryPlan:
    objects = ObjectTimes(len(records))
    for record in records:
        objects.put(record, objects.best_by_size(record))
    return objects.plan()


def _put_nearest_first(records: Sequence[UsageRecord], objects: ObjectTimes) -> None:
    """Put tensors, each time that which is nearest to an object, of equally near ones that which comes first."""
    waiting = _Waiting(records)
    for _ in records:
        at, number = waiting.nearest(objects)
        record = waiting.take(at)
        number, gap = objects.put(record, number)
        waiting.shorten(record, number, gap)


class _Waiting:
    """Lifetimes of tensors that are not put yet, and how many tasks each is from the nearest object free for it.

    Tensors of one lifetime are equally near: only the first of each counts. Distances are lower bounds until they are
    looked up, and again when another tensor has taken the nearest object: only what is least of all is looked up.
    """

    def __init__(self, records: Sequence[UsageRecord]) -> None:
        tensors: dict[tuple[int, int], list[int]] = {}
        for rank in reversed(range(len(records))):
            tensors.setdefault((records[rank].first_task, records[rank].last_task), []).append(rank)
        self._records = records
        self._tensors = [tensors[lifetime] for lifetime in sorted(tensors)]  # their ranks, the lowest last
        self._first, self._last = np.array(sorted(tensors), np.int64).T
        self._ranks = np.array([ranks[-1] for ranks in self._tensors], np.int64)
        self._distances, self._nearest = np.zeros(len(tensors), np.int64), np.full(len(tensors), -1)
        self._known = np.zeros(len(tensors), bool)

    def nearest(self, objects: ObjectTimes) -> tuple[int, int | None]:
        """The lifetime of the next tensor, and the object that it joins; None for a new one."""
        while True:
            least = self._distances.min()
            equal = (self._distances == least).nonzero()[0]
            for at in equal[np.argsort(self._ranks[equal])]:
                if not self._known[at]:
                    self._distances[at], self._nearest[at] = objects.nearest(self._records[self._ranks[at]])
                    self._known[at] = True
                if self._distances[at] == least:
                    return int(at), int(self._nearest[at]) if least < FAR else None

    def take(self, at: int) -> UsageRecord:
        """The first tensor of a lifetime, which waits no longer."""
        record = self._records[self._tensors[at].pop()]
        if self._tensors[at]:
            self._ranks[at] = self._tensors[at][-1]
        else:
            self._distances[at] = 2 * FAR
        return record

    def shorten(self, record: UsageRecord, number: int, gap: tuple[int, int]) -> None:
        """Take into account that a tensor has gone into this gap of an object: no other gap has become nearer."""
        near = slice(*np.searchsorted(self._first, (gap[0] + 1, gap[1])))
        first, last, distances, nearest = (c[near] for c in (self._first, self._last, self._distances, self._nearest))
        known = self._known[near]
        apart = np.maximum(first - record.last_task, record.first_task - last)
        known &= (nearest != number) | (apart > 0)
        nearer = (apart < distances) | ((apart == distances) & known & (number < nearest))
        nearer &= (apart > 0) & (last < gap[1]) & (distances <= FAR)
        distances[nearer], nearest[nearer], known[nearer] = apart[nearer], number, True
