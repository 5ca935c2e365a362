"""A planner that improves greedy offsets by small changes of the order in which tensors are placed.

What lies highest in memory is placed earlier, which often finds it a place further down.
"""

from collections.abc import Iterator, Sequence

from .memory_bounds import lower_bound_bytes
from .memory_plan import MemoryPlan
from .offsets import place_in_order
from .profiles import by_size
from .records import UsageRecord

MOST_ORDERS, MOST_PLACED = 200, 20_000  # and tensors in all orders together: a second or two


def local_search(records: Sequence[UsageRecord], alignment_bytes: int = 1) -> MemoryPlan:
    """The smallest plan of greedy placements in some orders, the first by size.

    In turn the tensor that ends highest is moved in front of each that it is alive with and that is placed before it,
    the last of those first. An order with which memory does not grow is kept; if it has been met before, the next is
    tried. Ends at the lower bound, or where nothing new is left.
    """
    order = by_size(records)
    best = plan = place_in_order(order, alignment_bytes)
    least, met = lower_bound_bytes(records, alignment_bytes), {_key(order)}
    left = min(MOST_ORDERS, MOST_PLACED // max(1, len(records))) - 1
    while left > 0 and best.total_bytes > least:
        for other in _neighbors(order, plan):
            if _key(other) in met:
                continue
            met.add(_key(other))
            left -= 1
            moved = place_in_order(other, alignment_bytes)
            if moved.total_bytes <= plan.total_bytes:
                order, plan = other, moved
                best = min(best, plan, key=lambda plan: plan.total_bytes)
                break
            if left == 0:
                break
        else:
            return best
    return best


def _key(order: Sequence[UsageRecord]) -> tuple[int, ...]:
    return tuple(record.tensor for record in order)


def _neighbors(order: Sequence[UsageRecord], plan: MemoryPlan) -> Iterator[list[UsageRecord]]:
    """Orders in which a tensor that ends highest is placed before one that it has been placed after."""
    for at, record in enumerate(order):
        if plan.offsets[record.tensor] + record.size_bytes == plan.total_bytes:
            for before in reversed(range(at)):
                if order[before].overlaps(record):
                    yield [*order[:before], record, *order[before:at], *order[at + 1 :]]
