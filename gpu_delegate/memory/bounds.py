"""Usage records go in; the fewest bytes that a plan can take comes out."""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from .records import UsageRecord


def lower_bound_bytes(records: Sequence[UsageRecord]) -> int:
    """The most bytes alive at one time: no plan can need less."""
    change: Counter[int] = Counter()
    for record in records:
        change[record.first_task] += record.size_bytes
        change[record.last_task + 1] -= record.size_bytes
    return max(accumulate(change[task] for task in sorted(change)), default=0)
