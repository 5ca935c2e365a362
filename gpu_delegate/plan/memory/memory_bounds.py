"""Lower bounds on the bytes of any plan, for offsets in one arena and for shared objects.

Source: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference" (arXiv 2001.03288).
"""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

from ...model.layout import aligned
from .profiles import positional_maximums
from .records import UsageRecord

BytesBound = Callable[[Sequence[UsageRecord], int], int]  # of records, and the alignment of all places in bytes


def lower_bound_bytes(records: Sequence[UsageRecord], alignment_bytes: int = 1) -> int:
    """The most bytes alive at one task: no plan in one arena can need less.

    All sizes count as aligned but that of the last in memory, at best the one that alignment adds most to.
    """
    most, alive = 0, 0
    ends: list[tuple[int, int]] = []  # of what is alive: last task, aligned size
    padding: list[tuple[int, int]] = []  # what alignment adds, negative, and the last task
    for record in sorted(records, key=lambda record: record.first_task):
        while ends and ends[0][0] < record.first_task:
            alive -= heappop(ends)[1]
        size_bytes = aligned(record.size_bytes, alignment_bytes)
        alive += size_bytes
        heappush(ends, (record.last_task, size_bytes))
        heappush(padding, (record.size_bytes - size_bytes, record.last_task))
        while padding[0][1] < record.first_task:
            heappop(padding)
        most = max(most, alive + padding[0][0])
    return most


def objects_bound_bytes(records: Sequence[UsageRecord], alignment_bytes: int = 1) -> int:
    """The sum of the positional maximums: no plan of shared objects can need less."""
    return sum(positional_maximums(records))
