"""The table of all memory planners, by name.

To add one: a function of usage records and an alignment that returns a MemoryPlan, and a row here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from ...base.errors import UsageError
from ...base.wording import meant
from .compared.exact_objects import exact_objects
from .compared.objects_by_flow import min_cost_flow
from .local_search import local_search
from .memory_bounds import BytesBound, lower_bound_bytes, objects_bound_bytes
from .memory_plan import MemoryPlan, Planner, end_to_end
from .objects_by_size import greedy_by_breadth_objects, greedy_by_size_improved, greedy_by_size_objects
from .objects_in_order import equality, greedy_in_order, naive_objects
from .offsets import greedy_by_breadth, greedy_by_size, naive
from .records import UsageRecord
from .smallest import exact_offsets, searched_offsets, smallest
from .strip_packing import strip_packing

PlanKind = Literal["objects", "offsets"]

END_TO_END = "-end-to-end"  # behind the name of a planner of objects: offsets of these one behind the other
BOUNDS: Mapping[PlanKind, BytesBound] = MappingProxyType({"objects": objects_bound_bytes, "offsets": lower_bound_bytes})

_2019, _2020 = "arXiv 1907.01989, section 5", "arXiv 2001.03288, section"


def _laid_out(planner: Planner) -> Planner:
    """The planner of offsets that lays the objects of another one end to end."""

    def plan(records: Sequence[UsageRecord], alignment_bytes: int) -> MemoryPlan:
        return end_to_end(planner(records, alignment_bytes), alignment_bytes)

    return plan


@dataclass(frozen=True)
class Strategy:
    """A way to plan memory; names are unique among those of a kind."""

    name: str
    kind: PlanKind
    plan: Planner
    source: str  # where the algorithm is published


_BEST_OBJECTS = smallest(
    (greedy_in_order, greedy_by_size_improved, greedy_by_breadth_objects, greedy_by_size_objects, equality),
    BOUNDS["objects"],
)
_OBJECTS = (
    Strategy("naive", "objects", naive_objects, "a buffer for each tensor"),
    Strategy("equality", "objects", equality, "TensorFlow Lite's GPU delegate, EQUALITY"),
    Strategy("greedy-in-order", "objects", greedy_in_order, _2019),
    Strategy("greedy-by-breadth", "objects", greedy_by_breadth_objects, f"{_2020} 4.2"),
    Strategy("greedy-by-size", "objects", greedy_by_size_objects, f"{_2020} 4.3"),
    Strategy("greedy-by-size-improved", "objects", greedy_by_size_improved, f"{_2020} 4.4"),
    Strategy("min-cost-flow", "objects", min_cost_flow, _2019),
    Strategy("best", "objects", _BEST_OBJECTS, "the smallest of those above that need no library"),
    Strategy("exact", "objects", exact_objects(_BEST_OBJECTS), "integer program, solved by HiGHS"),
)
_BEST_OFFSETS = smallest(
    (greedy_by_size, searched_offsets, greedy_by_breadth, strip_packing, local_search, _laid_out(_BEST_OBJECTS)),
    BOUNDS["offsets"],
)
_OFFSETS = (
    Strategy("naive", "offsets", naive, "every tensor in a place of its own"),
    Strategy("greedy-by-size", "offsets", greedy_by_size, f"{_2020} 5.2"),
    Strategy("greedy-by-breadth", "offsets", greedy_by_breadth, f"{_2020} 5.3"),
    Strategy("strip-packing", "offsets", strip_packing, "arXiv 1804.10001, best fit"),
    Strategy("local-search", "offsets", local_search, "greedy by size in other orders"),
    Strategy("best", "offsets", _BEST_OFFSETS, "the smallest of those above, and of a search of fixed length"),
    Strategy("exact", "offsets", exact_offsets(_BEST_OFFSETS), "branch and bound, after MiniMalloc (ASPLOS 2023)"),
)

STRATEGIES = (
    *_OBJECTS,
    *_OFFSETS,
    *(
        Strategy(strategy.name + END_TO_END, "offsets", _laid_out(strategy.plan), strategy.source)
        for strategy in _OBJECTS
        if strategy.name not in ("naive", "best", "exact")
    ),
)


def strategy_of(kind: PlanKind, name: str) -> Strategy:
    """The strategy of a kind with this name. Raises UsageError, which tells them, for other names."""
    found = {strategy.name: strategy for strategy in STRATEGIES if strategy.kind == kind}
    if name not in found:
        listed = ", ".join(known for known in found if not known.endswith(END_TO_END))
        laid_out = f", or one for objects with {END_TO_END} behind its name," if kind == "offsets" else ""
        raise UsageError(f"planner {name}: one of {listed}{laid_out} is needed for {kind}{meant(name, found)}")
    return found[name]
