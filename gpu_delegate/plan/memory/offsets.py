"""Greedy planners of offsets in one arena.

Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (arXiv 2001.03288).
"""

from collections.abc import Sequence

import numpy as np

from ...model.layout import aligned
from .memory_plan import MemoryPlan, end_to_end, in_one_arena
from .objects_in_order import naive_objects
from .profiles import by_breadth, by_size
from .records import UsageRecord


def naive(records: Sequence[UsageRecord], alignment_bytes: int = 1) -> MemoryPlan:
    """Every tensor in a place of its own."""
    return end_to_end(naive_objects(records), alignment_bytes)


def greedy_by_size(records: Sequence[UsageRecord], alignment_bytes: int = 1) -> MemoryPlan:
    """Largest tensor first, each into the smallest gap between those placed already that are alive with it.

    Source: arXiv 2001.03288, section 5.2, "Greedy by Size for Offset Calculation".
    """
    return place_in_order(by_size(records), alignment_bytes)


def greedy_by_breadth(records: Sequence[UsageRecord], alignment_bytes: int = 1) -> MemoryPlan:
    """The same for the tensors of the task with most bytes alive, then for those of the next.

    Source: arXiv 2001.03288, section 5.3, "Greedy by Breadth for Offset Calculation".
    """
    return place_in_order(by_breadth(records), alignment_bytes)


def place_in_order(records: Sequence[UsageRecord], alignment_bytes: int) -> MemoryPlan:
    """Each tensor in turn into the smallest gap that it fits into, the lowest of equal ones, else behind the others."""
    offsets: dict[int, int] = {}
    placed = PlacedOffsets(len(records), alignment_bytes)
    for record in records:
        offsets[record.tensor] = placed.put(record)
    return in_one_arena(offsets, placed.total_bytes)


class PlacedOffsets:
    """Tensors by their offset in memory, as columns, so that placing one more takes a few array operations."""

    def __init__(self, room: int, alignment_bytes: int) -> None:
        self._columns = np.zeros((4, room), np.int64)  # start, end up to which it is aligned, first task, last task
        self._count = 0
        self._alignment_bytes = alignment_bytes
        self.total_bytes = 0

    def put(self, record: UsageRecord) -> int:
        """Place a tensor, behind those with the same offset, which is returned."""
        return self._put(record, self._best_offset(record))

    def put_within(self, record: UsageRecord, most_bytes: int) -> int | None:
        """The same if all then take no more than so many bytes; None, and nothing done, if not."""
        offset = self._best_offset(record)
        return self._put(record, offset) if offset + record.size_bytes <= most_bytes else None

    def _put(self, record: UsageRecord, offset: int) -> int:
        size_bytes = aligned(record.size_bytes, self._alignment_bytes)
        at = int(np.searchsorted(self._columns[0, : self._count], offset, side="right"))
        self._columns[:, at + 1 : self._count + 1] = self._columns[:, at : self._count]
        self._columns[:, at] = offset, offset + size_bytes, record.first_task, record.last_task
        self._count += 1
        self.total_bytes = max(self.total_bytes, offset + record.size_bytes)
        return offset

    def _best_offset(self, record: UsageRecord) -> int:
        """The lowest of the smallest sufficient gaps between tensors alive at that time, else behind all of them."""
        size_bytes = aligned(record.size_bytes, self._alignment_bytes)
        starts, ends, first, last = self._columns[:, : self._count]
        alive = np.flatnonzero((first <= record.last_task) & (last >= record.first_task))
        if not alive.size:
            return 0
        before = np.maximum.accumulate(np.concatenate(([0], ends[alive])))  # the end of all those below
        gaps = starts[alive] - before[:-1]
        fitting = np.flatnonzero(gaps >= size_bytes)
        return int(before[fitting[np.argmin(gaps[fitting])]] if fitting.size else before[-1])
