"""Planners that run several others, the cheapest first, and take the smallest plan."""

from collections.abc import Sequence
from dataclasses import replace

from .budget import SearchBudget
from .exact_offsets import shrunk
from .memory_bounds import BytesBound, lower_bound_bytes
from .memory_plan import MemoryPlan, Planner
from .offsets import greedy_by_size
from .records import UsageRecord

START_STEPS, START_STEPS_EACH = 2000, 6  # of the search when a program starts: at least, and for each tensor
START_TENSORS = 3000  # with more of them what comes before the search takes long, too
EXACT_STEPS, EXACT_SECONDS = 10_000_000, 10.0


def smallest(planners: Sequence[Planner], bound_bytes: BytesBound) -> Planner:
    """Of equal plans that of the first planner. Once a plan is proven to be the least, the others are not asked."""

    def plan(records: Sequence[UsageRecord], alignment_bytes: int = 1) -> MemoryPlan:
        least = bound_bytes(records, alignment_bytes)
        best = planners[0](records, alignment_bytes)
        for planner in planners[1:]:
            if best.total_bytes <= least:
                break
            found = planner(records, alignment_bytes)
            least = max(least, found.least_bytes)
            best = min(best, found, key=lambda plan: plan.total_bytes)
        return replace(best, least_bytes=least)

    return plan


def searched_offsets(records: Sequence[UsageRecord], alignment_bytes: int = 1) -> MemoryPlan:
    """Greedy by size, and what the steps of a start find of up to START_TENSORS: always the same."""
    plan = greedy_by_size(records, alignment_bytes)
    if len(records) > START_TENSORS:
        return plan
    return shrunk(records, alignment_bytes, plan, SearchBudget(max(START_STEPS, START_STEPS_EACH * len(records))))


def exact_offsets(planner: Planner) -> Planner:
    """What EXACT_SECONDS of the search make of a planner's plans: the least or the smallest found, is_proven tells."""

    def plan(records: Sequence[UsageRecord], alignment_bytes: int = 1) -> MemoryPlan:
        start = planner(records, alignment_bytes)
        if start.total_bytes <= lower_bound_bytes(records, alignment_bytes):
            return start
        return shrunk(records, alignment_bytes, start, SearchBudget(EXACT_STEPS, EXACT_SECONDS))

    return plan
