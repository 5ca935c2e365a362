"""An exact search for offsets at which blocks of memory with given lifetimes fit within a budget of bytes.

Depth first, from the lowest offset upward, each block directly on others: every plan can be brought into that form, and
does not grow. Related: Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning"
(ASPLOS 2023).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .budget import BudgetSpent, SearchBudget
from .profiles import full_tasks

MOST_SEARCHED = 400  # blocks: a level of Python's stack each
FIRST_STEPS = 100


@dataclass(frozen=True)
class MemoryBlock:
    """A tensor, its size and how high it may end, in units that divide all sizes."""

    tensor: int
    size: int
    highest: int
    first_task: int
    last_task: int

    def overlaps(self, other: "MemoryBlock") -> bool:
        return self.first_task <= other.last_task and other.first_task <= self.last_task


_ORDERS: tuple[Callable[[MemoryBlock], tuple[int, int]], ...] = (
    lambda block: (-block.size, block.first_task),
    lambda block: (block.first_task, -block.size),
)


def search_offsets(blocks: Sequence[MemoryBlock], budget: SearchBudget) -> dict[int, int] | None:
    """What searches find that try the blocks in several orders: in turn a while each, and then four times as long.

    One order often finds in some ten steps what another one has not found in thousands.
    """
    if len(blocks) > MOST_SEARCHED:
        raise BudgetSpent
    steps = FIRST_STEPS
    while True:
        for order in _ORDERS:
            try:
                return _Search(sorted(blocks, key=order), budget.part(steps)).offsets()
            except BudgetSpent:
                budget.spend()  # raises if that is spent, too
        steps *= 4


class _Search:
    """Depth first. Tasks are those with most alive: any two blocks that are alive at one time are so at one of these.

    Tried next are the blocks that may lie lowest, of equally low ones in the order given, and of those above only such
    that leave no room for another below.
    """

    def __init__(self, blocks: Sequence[MemoryBlock], budget: SearchBudget) -> None:
        self.blocks = blocks
        self.budget = budget
        tasks = full_tasks(blocks)
        self.spans = [slice(bisect_left(tasks, b.first_task), bisect_right(tasks, b.last_task)) for b in self.blocks]
        self.floor = [0] * len(tasks)  # up to where each is filled
        self.left, self.highest = [0] * len(tasks), [0] * len(tasks)  # what is still to come, and how high it may end
        for block, span in zip(self.blocks, self.spans, strict=True):
            for task in range(span.start, span.stop):
                self.left[task] += block.size
                self.highest[task] = max(self.highest[task], block.highest)
        self.found: dict[int, int] = {}

    def offsets(self) -> dict[int, int] | None:
        """Of all blocks; None if they do not fit. Raises BudgetSpent if that is open when the budget is spent."""
        return self.found if self._search(tuple(range(len(self.blocks))), 0, -1) else None

    def _search(self, waiting: tuple[int, ...], lowest: int, last: int) -> bool:
        """Whether the blocks that wait fit from `lowest` upward, and there behind the block `last`."""
        if not waiting:
            return True
        self.budget.spend()
        if not self._may_fit(lowest):
            return False
        floors = [(max(self.floor[self.spans[number]]), number) for number in waiting]
        if any(max(floor, lowest) + self.blocks[k].size > self.blocks[k].highest for floor, k in floors):
            return False
        ceiling = min(max(floor, lowest) + self.blocks[number].size for floor, number in floors)
        for floor, number in sorted(floors):
            if (lowest, last) < (floor, number) and floor < ceiling:
                rest = tuple(other for other in waiting if other != number)
                if self._put(number, floor, rest):
                    return True
        return False

    def _may_fit(self, lowest: int) -> bool:
        columns = zip(self.floor, self.left, self.highest, strict=True)
        return all(not left or max(floor, lowest) + left <= highest for floor, left, highest in columns)

    def _put(self, number: int, offset: int, rest: tuple[int, ...]) -> bool:
        span, size = self.spans[number], self.blocks[number].size
        floor, left = self.floor[span], self.left[span]
        self.floor[span], self.left[span] = [offset + size] * len(floor), [value - size for value in left]
        self.found[self.blocks[number].tensor] = offset
        if self._search(rest, offset, number):
            return True
        self.floor[span], self.left[span] = floor, left
        return False
