"""An exact planner: finds the smallest plan in one arena, or proves that there is no smaller one.

Tensors that fit whatever the others do are left for last, those that are always alive go to the bottom, and what has no
task in common is planned apart; one that alone holds such parts together is tried at the bottom. What that leaves of a
network is small, and searched (block_search.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import gcd

from ...model.layout import aligned
from .block_search import MemoryBlock, search_offsets
from .budget import BudgetSpent, SearchBudget
from .memory_bounds import lower_bound_bytes
from .memory_plan import MemoryPlan, in_one_arena
from .records import UsageRecord


def shrunk(records: Sequence[UsageRecord], alignment_bytes: int, plan: MemoryPlan, budget: SearchBudget) -> MemoryPlan:
    """The smallest plan that is found within the budget, no larger than the given one, and what is proven of it.

    The lower bound is tried first, then the middle of what is open, each with half of the budget that is left.
    """
    step = gcd(alignment_bytes, *(record.size_bytes for record in records))  # all totals are multiples of it
    least = tried = total = lower_bound_bytes(records, alignment_bytes)
    while tried < plan.total_bytes:
        try:
            offsets = offsets_within(records, alignment_bytes, total, budget.half())
        except BudgetSpent:
            tried = total + step
        else:
            if offsets is None:
                least = tried = total + step
            else:
                plan = in_one_arena(offsets, max(offsets[r.tensor] + r.size_bytes for r in records))
        total = tried + (plan.total_bytes - tried) // step // 2 * step
    return replace(plan, least_bytes=least)


def offsets_within(
    records: Sequence[UsageRecord], alignment_bytes: int, total_bytes: int, budget: SearchBudget
) -> dict[int, int] | None:
    """Aligned offsets of all tensors, none of which ends behind `total_bytes`; None if there are no such offsets.

    Raises BudgetSpent if that is open when the budget is spent.
    """
    padded = [aligned(record.size_bytes, alignment_bytes) for record in records]
    unit = gcd(*padded) or alignment_bytes
    blocks = [
        MemoryBlock(
            r.tensor, size // unit, (total_bytes - r.size_bytes) // unit + size // unit, r.first_task, r.last_task
        )
        for r, size in zip(records, padded, strict=True)
    ]
    found = _pack(blocks, budget)
    return None if found is None else {tensor: offset * unit for tensor, offset in found.items()}


def _pack(blocks: Sequence[MemoryBlock], budget: SearchBudget) -> dict[int, int] | None:
    """Offsets of all blocks, or None for none."""
    hard, easy = _without_easy(blocks)
    found = _pack_hard(hard, budget)
    if found is None:
        return None
    placed = list(hard)
    for block in reversed(easy):
        found[block.tensor] = _first_gap(block, [(found[o.tensor], o.size) for o in placed if o.overlaps(block)])
        placed.append(block)
    return found


def _without_easy(blocks: Sequence[MemoryBlock]) -> tuple[list[MemoryBlock], list[MemoryBlock]]:
    """The blocks without, and in order those for which always one of the gaps between the others is large enough."""
    around = _alive_with(blocks)
    sums = {block.tensor: sum(other.size for other in around[block.tensor].values()) for block in blocks}
    easy: dict[int, MemoryBlock] = {}
    before = -1
    while before < len(easy):
        before = len(easy)
        for block in sorted(blocks, key=lambda block: block.size):
            others = around[block.tensor]
            gaps = block.highest - sums[block.tensor]
            if block.tensor in easy or block.highest < block.size or gaps <= (len(others) + 1) * (block.size - 1):
                continue
            easy[block.tensor] = block
            for tensor in others:
                del around[tensor][block.tensor]
                sums[tensor] -= block.size
    return [block for block in blocks if block.tensor not in easy], list(easy.values())


def _alive_with(blocks: Sequence[MemoryBlock]) -> dict[int, dict[int, MemoryBlock]]:
    """For each tensor those that are alive at some time when it is."""
    found: dict[int, dict[int, MemoryBlock]] = {block.tensor: {} for block in blocks}
    alive: list[MemoryBlock] = []
    for block in sorted(blocks, key=lambda block: block.first_task):
        alive = [other for other in alive if other.last_task >= block.first_task]
        for other in alive:
            found[block.tensor][other.tensor], found[other.tensor][block.tensor] = other, block
        alive.append(block)
    return found


def _first_gap(block: MemoryBlock, placed: Sequence[tuple[int, int]]) -> int:
    end = 0
    for offset, size in sorted(placed):
        if offset - end >= block.size:
            return end
        end = max(end, offset + size)
    return end


def _pack_hard(blocks: Sequence[MemoryBlock], budget: SearchBudget) -> dict[int, int] | None:
    """The same for blocks of which none is easy."""
    found, height = dict[int, int](), 0
    lowest = min((block.highest for block in blocks), default=0)
    always = [b for b in blocks if b.highest == lowest and all(b.overlaps(other) for other in blocks)]
    for block in always:
        found[block.tensor] = height
        height += block.size
    if any(found[block.tensor] + block.size > block.highest for block in always):
        return None
    rest = [replace(block, highest=block.highest - height) for block in blocks if block not in always]
    parts = list(_apart(rest))
    for part in parts:
        whole = len(part) == len(blocks)  # nothing has become simpler
        inside = (_pack_on_longest(part, budget) or search_offsets(part, budget)) if whole else _pack(part, budget)
        if inside is None:
            return None
        found |= {tensor: offset + height for tensor, offset in inside.items()}
    return found


def _pack_on_longest(blocks: Sequence[MemoryBlock], budget: SearchBudget) -> dict[int, int] | None:
    """Offsets with the block that is alive longest at the bottom all the time, if it alone connects the others.

    None where there are none, or half of the budget does not suffice: others may still exist.
    """
    longest = max(blocks, key=lambda block: block.last_task - block.first_task)
    rest = [block for block in blocks if block is not longest]
    if len(list(_apart(rest))) < 2:
        return None
    highest = min(block.highest for block in blocks)
    times = min(block.first_task for block in rest), max(block.last_task for block in rest)
    held = replace(longest, highest=highest, first_task=times[0], last_task=times[1])
    try:
        return _pack_hard([held, *rest], budget.half())
    except BudgetSpent:
        return None


def _apart(blocks: Sequence[MemoryBlock]) -> Iterator[list[MemoryBlock]]:
    """Groups of blocks with no task in common."""
    group, end = list[MemoryBlock](), -1
    for block in sorted(blocks, key=lambda block: block.first_task):
        if group and block.first_task > end:
            yield group
            group = []
        group.append(block)
        end = max(end, block.last_task)
    if group:
        yield group
