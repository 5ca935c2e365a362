"""The name of a strategy goes in, its planner comes out: one table of all that there are.

To add one: a function of usage records and an alignment that returns a MemoryPlan, and a row here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from .offsets import greedy_by_size, naive
from .plan import MemoryPlan
from .records import UsageRecord

PlanKind = Literal["objects", "offsets"]
Planner = Callable[[Sequence[UsageRecord], int], MemoryPlan]  # records, and the alignment of all places in bytes


@dataclass(frozen=True)
class Strategy:
    """A way to plan memory; names are unique among those of a kind."""

    name: str
    kind: PlanKind
    plan: Planner
    source: str  # where the algorithm is published


STRATEGIES = (
    Strategy("naive", "offsets", naive, "every tensor in a place of its own"),
    Strategy("greedy-by-size", "offsets", greedy_by_size, "arXiv 2001.03288, section 5.2"),
)
