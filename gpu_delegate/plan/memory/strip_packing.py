"""A planner of offsets by best-fit strip packing: tensors are rectangles in a strip of time and memory.

Source: Sekiyama et al., "Profile-guided memory optimization for deep neural networks" (arXiv 1804.10001), 2018, the
best-fit heuristic.
"""

from collections.abc import Sequence
from heapq import heappop, heappush

import numpy as np

from ...model.layout import aligned
from .memory_plan import MemoryPlan, in_one_arena
from .profiles import record_columns
from .records import UsageRecord


def strip_packing(records: Sequence[UsageRecord], alignment_bytes: int = 1) -> MemoryPlan:
    """On the lowest part of the skyline the tensor that is alive longest within its tasks, until all are placed.

    Of equally low parts the earliest, of equally long tensors the largest. A part on which none of those left fits is
    raised to the lower of its neighbors and joins it.
    """
    waiting, skyline = _Waiting(records), _Skyline(records)
    offsets: dict[int, int] = {}
    while len(offsets) < len(records):
        start, end, height = skyline.lowest()
        number = waiting.take_longest(start, end)
        if number is None:
            skyline.raise_lowest()
            continue
        record = records[number]
        offsets[record.tensor] = height
        skyline.put(record, height + aligned(record.size_bytes, alignment_bytes))
    ends = [offsets[record.tensor] + record.size_bytes for record in records]
    return in_one_arena(offsets, max(ends, default=0))


class _Waiting:
    """Tensors that are not placed yet, those that are alive longest first."""

    def __init__(self, records: Sequence[UsageRecord]) -> None:
        first, last, sizes = record_columns(records)
        self._numbers = np.lexsort((-sizes, first - last))
        self._first, self._last = first[self._numbers], last[self._numbers]

    def take_longest(self, start: int, end: int) -> int | None:
        """The number of the first that is alive within these tasks alone, which waits no longer; None for none."""
        within = (self._first >= start) & (self._last <= end)
        at = int(np.argmax(within))
        if not within[at]:
            return None
        self._last[at] = end + 1  # no part of the skyline that is left or comes has room for it
        self._first[at] = -1
        return int(self._numbers[at])


class _Skyline:
    """How high memory is filled at each task: parts of equal height, by their first task."""

    def __init__(self, records: Sequence[UsageRecord]) -> None:
        start = min((record.first_task for record in records), default=0)
        end = max((record.last_task for record in records), default=0)
        self._parts = {start: (end, 0)}  # first task: last task, height in bytes
        self._starts = {end: start}  # the other way round
        self._lowest = [(0, start)]

    def lowest(self) -> tuple[int, int, int]:
        """First task, last task and height of the lowest part, the earliest of equal ones."""
        while True:
            height, start = self._lowest[0]
            if start in self._parts and self._parts[start][1] == height:
                return start, self._parts[start][0], height
            heappop(self._lowest)

    def put(self, record: UsageRecord, height: int) -> None:
        """Fill the lowest part up to a height over the tasks of a tensor."""
        start, end, below = self.lowest()
        self._set(record.first_task, record.last_task, height)
        if start < record.first_task:
            self._set(start, record.first_task - 1, below)
        if record.last_task < end:
            self._set(record.last_task + 1, end, below)

    def raise_lowest(self) -> None:
        """Fill the lowest part up to the lower of its neighbors, or to both if they are equally high."""
        start, end, _ = self.lowest()
        before, behind = self._parts.get(self._starts.get(start - 1, -1)), self._parts.get(end + 1)
        height = min(part[1] for part in (before, behind) if part)
        del self._parts[start]
        if before and before[1] == height:
            start = self._starts[start - 1]
        if behind and behind[1] == height:
            del self._parts[end + 1]
            end = behind[0]
        self._set(start, end, height)

    def _set(self, start: int, end: int, height: int) -> None:
        self._parts[start], self._starts[end] = (end, height), start
        heappush(self._lowest, (height, start))
