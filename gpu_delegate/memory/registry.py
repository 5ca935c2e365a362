"""The name of a strategy goes in, its planner comes out: one table of all that there are.

To add one: a function of usage records and an alignment that returns a MemoryPlan, and a row here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ..errors import UsageError
from ..wording import meant
from .objects_by_flow import min_cost_flow
from .objects_by_size import greedy_by_breadth_objects, greedy_by_size_improved, greedy_by_size_objects
from .objects_in_order import equality, greedy_in_order, naive_objects
from .offsets import greedy_by_breadth, greedy_by_size, naive
from .plan import MemoryPlan, end_to_end
from .records import UsageRecord
from .strip_packing import strip_packing

PlanKind = Literal["objects", "offsets"]
Planner = Callable[[Sequence[UsageRecord], int], MemoryPlan]  # records, and the alignment of all places in bytes

_2019, _2020 = "arXiv 1907.01989, section 5", "arXiv 2001.03288, section"


@dataclass(frozen=True)
class Strategy:
    """A way to plan memory; names are unique among those of a kind."""

    name: str
    kind: PlanKind
    plan: Planner
    source: str  # where the algorithm is published


_OBJECTS = (
    Strategy("naive", "objects", naive_objects, "a buffer for each tensor"),
    Strategy("equality", "objects", equality, "TensorFlow Lite's GPU delegate, EQUALITY"),
    Strategy("greedy-in-order", "objects", greedy_in_order, _2019),
    Strategy("greedy-by-breadth", "objects", greedy_by_breadth_objects, f"{_2020} 4.2"),
    Strategy("greedy-by-size", "objects", greedy_by_size_objects, f"{_2020} 4.3"),
    Strategy("greedy-by-size-improved", "objects", greedy_by_size_improved, f"{_2020} 4.4"),
    Strategy("min-cost-flow", "objects", min_cost_flow, _2019),
)
_OFFSETS = (
    Strategy("naive", "offsets", naive, "every tensor in a place of its own"),
    Strategy("greedy-by-size", "offsets", greedy_by_size, f"{_2020} 5.2"),
    Strategy("greedy-by-breadth", "offsets", greedy_by_breadth, f"{_2020} 5.3"),
    Strategy("strip-packing", "offsets", strip_packing, "arXiv 1804.10001, best fit"),
)


def _laid_out(strategy: Strategy) -> Strategy:
    """The strategy of offsets that lays the objects of another one end to end."""

    def plan(records: Sequence[UsageRecord], alignment_bytes: int) -> MemoryPlan:
        return end_to_end(strategy.plan(records, alignment_bytes), alignment_bytes)

    return Strategy(f"{strategy.name}-end-to-end", "offsets", plan, strategy.source)


STRATEGIES = (*_OBJECTS, *_OFFSETS, *(_laid_out(strategy) for strategy in _OBJECTS[1:]))


def strategy_of(kind: PlanKind, name: str) -> Strategy:
    """The strategy of a kind with this name. Raises UsageError, which lists them, for other names."""
    found = {strategy.name: strategy for strategy in STRATEGIES if strategy.kind == kind}
    if name not in found:
        raise UsageError(f"planner {name}: one of {', '.join(found)} is needed for {kind}{meant(name, found)}")
    return found[name]
