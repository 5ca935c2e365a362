"""Planners of shared objects that take tensors in the order in which they are written.

Sources: Lee et al., "On-Device Neural Net Inference with Mobile GPUs" (arXiv 1907.01989), section 5, for
`greedy_in_order`; `equality` is what TensorFlow Lite has for sizes that cannot be told apart as smaller and larger.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from typing import TypeVar

from .memory_plan import MemoryPlan, in_objects
from .records import Lifetime, UsageRecord

AnyLifetime = TypeVar("AnyLifetime", bound=Lifetime)
AnySize = TypeVar("AnySize", bound=Hashable)


def naive_objects(records: Sequence[UsageRecord], alignment_bytes: int = 1) -> MemoryPlan:
    """An object for each tensor."""
    numbers = {record.tensor: number for number, record in enumerate(records)}
    return in_objects(numbers, [record.size_bytes for record in records])


def equality(records: Sequence[UsageRecord], alignment_bytes: int = 1) -> MemoryPlan:
    """Each tensor into the object of exactly its size that was freed last, else into a new one. O(n log n)."""
    return in_objects(*share_equal(records, {record.tensor: record.size_bytes for record in records}))


def share_equal(records: Sequence[Lifetime], sizes: Mapping[int, AnySize]) -> tuple[dict[int, int], list[AnySize]]:
    """The same for sizes of any kind, those of each tensor: which object each tensor has, and the objects' sizes."""
    objects, found = dict[int, int](), list[AnySize]()
    free: dict[AnySize, list[int]] = defaultdict(list)
    for record, freed in by_first_task(records, objects):
        for number in freed:
            free[found[number]].append(number)
        size = sizes[record.tensor]
        if free[size]:
            objects[record.tensor] = free[size].pop()
        else:
            objects[record.tensor] = len(found)
            found.append(size)
    return objects, found


def greedy_in_order(
    records: Sequence[UsageRecord], alignment_bytes: int = 1, sharing: Sequence[Collection[int]] | None = None
) -> MemoryPlan:
    """Each tensor into the free object of the nearest size, which grows where it is smaller, else into a new one.

    Of two equally near the larger one. The pool of free objects is sorted: O(n log n) comparisons. Where tasks run side
    by side, `sharing` tells for each record those that may come before it in an object
    (tests/helpers/memory_reallocation.py).
    """
    objects, sizes = dict[int, int](), list[int]()
    pool: list[tuple[int, int]] = []  # free objects: size, number
    users = list[int]()  # of each object the last
    numbers = {record.tensor: number for number, record in enumerate(records)}
    for record, freed in by_first_task(records, objects):
        for number in freed:
            insort(pool, (sizes[number], number))
        taken = numbers[record.tensor]
        allowed = pool if sharing is None else [entry for entry in pool if users[entry[1]] in sharing[taken]]
        if allowed:
            entry = allowed[_nearest(allowed, record.size_bytes)]
            del pool[bisect_left(pool, entry)]
            number = entry[1]
            sizes[number], users[number] = max(sizes[number], record.size_bytes), taken
        else:
            number = len(sizes)
            sizes.append(record.size_bytes)
            users.append(taken)
        objects[record.tensor] = number
    return in_objects(objects, sizes)


def _nearest(pool: Sequence[tuple[int, int]], size_bytes: int) -> int:
    """Where in a sorted pool that is not empty the object of the nearest size is."""
    at = bisect_left(pool, (size_bytes, 0))
    smaller = at > 0 and (at == len(pool) or size_bytes - pool[at - 1][0] < pool[at][0] - size_bytes)
    return at - 1 if smaller else at


def by_first_task(
    records: Sequence[AnyLifetime], objects: Mapping[int, int]
) -> Iterator[tuple[AnyLifetime, list[int]]]:
    """Records by their first task, each with the objects that have become free since the one before.

    The caller enters the object of each record in `objects` before it takes the next.
    """
    used: list[tuple[int, int]] = []  # last task, object
    for record in sorted(records, key=lambda record: record.first_task):
        freed = []
        while used and used[0][0] < record.first_task:
            freed.append(heappop(used)[1])
        yield record, freed
        heappush(used, (record.last_task, objects[record.tensor]))
