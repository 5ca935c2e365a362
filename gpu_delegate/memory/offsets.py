"""Usage records go in, offsets in one arena come out.

Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (arXiv 2001.03288).
"""

from collections.abc import Sequence

import numpy as np

from .plan import MemoryPlan, in_one_arena
from .records import UsageRecord, aligned


def naive(records: Sequence[UsageRecord], alignment_bytes: int = 1) -> MemoryPlan:
    """Every tensor in a place of its own."""
    offsets, end = {}, 0
    for record in records:
        offsets[record.tensor] = end
        end = aligned(end + record.size_bytes, alignment_bytes)
    return in_one_arena(offsets, end)


def greedy_by_size(records: Sequence[UsageRecord], alignment_bytes: int = 1) -> MemoryPlan:
    """Largest tensor first, each into the smallest gap between those placed already that are alive with it.

    Source: arXiv 2001.03288, section 5.2, "Greedy by Size for Offset Calculation".
    """
    sizes = [aligned(record.size_bytes, alignment_bytes) for record in records]
    offsets: dict[int, int] = {}
    placed = _Placed(len(records))
    for number in sorted(range(len(records)), key=lambda k: -records[k].size_bytes):
        offset = placed.best_offset(records[number], sizes[number])
        placed.put(records[number], offset, sizes[number])
        offsets[records[number].tensor] = offset
    return in_one_arena(offsets, placed.total_bytes)


class _Placed:
    """Tensors by their offset in memory, as columns, so that placing one more takes a few array operations."""

    def __init__(self, room: int) -> None:
        self._columns = np.zeros((4, room), np.int64)  # start, end, first task, last task
        self._count = 0
        self.total_bytes = 0

    def best_offset(self, record: UsageRecord, size_bytes: int) -> int:
        """The lowest of the smallest sufficient gaps between tensors alive at that time, else behind all of them."""
        starts, ends, first, last = self._columns[:, : self._count]
        alive = np.flatnonzero((first <= record.last_task) & (last >= record.first_task))
        if not alive.size:
            return 0
        before = np.maximum.accumulate(np.concatenate(([0], ends[alive])))  # the end of all those below
        gaps = starts[alive] - before[:-1]
        fitting = np.flatnonzero(gaps >= size_bytes)
        return int(before[fitting[np.argmin(gaps[fitting])]] if fitting.size else before[-1])

    def put(self, record: UsageRecord, offset: int, size_bytes: int) -> None:
        """Place a tensor, behind those with the same offset."""
        at = int(np.searchsorted(self._columns[0, : self._count], offset, side="right"))
        self._columns[:, at + 1 : self._count + 1] = self._columns[:, at : self._count]
        self._columns[:, at] = offset, offset + size_bytes, record.first_task, record.last_task
        self._count += 1
        self.total_bytes = max(self.total_bytes, offset + size_bytes)
