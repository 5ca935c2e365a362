"""A memory plan: where each tensor lies, in one arena or in several shared objects."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from types import MappingProxyType

from ...model.layout import aligned
from .records import UsageRecord


@dataclass(frozen=True)
class BufferPlace:
    """A buffer of the plan, and where in it a tensor begins."""

    buffer: int
    offset_bytes: int


@dataclass(frozen=True)
class MemoryPlan:
    """Where each tensor lies: offsets in one arena are a plan of one buffer, shared objects are a buffer each."""

    places: Mapping[int, BufferPlace]
    buffer_bytes: tuple[int, ...]
    shared_buffers: int = 0  # so many of the first ones may be other programs', too, which run before and after it
    least_bytes: int = 0  # no plan of the kind takes less: what the planner has proven, 0 if it proves nothing

    @property
    def is_proven(self) -> bool:
        """Whether the planner has proven that no plan of the kind takes less."""
        return self.total_bytes <= self.least_bytes

    @property
    def total_bytes(self) -> int:
        """Of all buffers."""
        return sum(self.buffer_bytes)

    @cached_property
    def offsets(self) -> Mapping[int, int]:
        """Where the tensors would begin if the buffers lay end to end in one arena."""
        starts = (0, *accumulate(self.buffer_bytes))
        places = self.places.items()
        return MappingProxyType({tensor: starts[place.buffer] + place.offset_bytes for tensor, place in places})


Planner = Callable[[Sequence[UsageRecord], int], MemoryPlan]  # records, and the alignment of all places in bytes


def remembering(planner: Planner) -> Planner:
    """The same, which plans equal records once."""
    known: dict[tuple[tuple[UsageRecord, ...], int], MemoryPlan] = {}

    def plan(records: Sequence[UsageRecord], alignment_bytes: int) -> MemoryPlan:
        asked = tuple(records), alignment_bytes
        if asked not in known:
            known[asked] = planner(records, alignment_bytes)
        return known[asked]

    return plan


def in_one_arena(offsets: Mapping[int, int], total_bytes: int) -> MemoryPlan:
    """The plan of tensors at these offsets in one buffer."""
    return MemoryPlan({tensor: BufferPlace(0, offset) for tensor, offset in offsets.items()}, (total_bytes,))


def in_objects(objects: Mapping[int, int], sizes_bytes: Sequence[int]) -> MemoryPlan:
    """The plan of tensors that each have one of these buffers, at some time, from its beginning on."""
    return MemoryPlan({tensor: BufferPlace(number, 0) for tensor, number in objects.items()}, tuple(sizes_bytes))


def end_to_end(plan: MemoryPlan, alignment_bytes: int) -> MemoryPlan:
    """The same in one arena, in which the buffers lie one behind the other, each at a multiple of the alignment."""
    starts, end = [], 0
    for size in plan.buffer_bytes:
        starts.append(aligned(end, alignment_bytes))
        end = starts[-1] + size
    places = plan.places.items()
    return in_one_arena({tensor: starts[place.buffer] + place.offset_bytes for tensor, place in places}, end)


def side_by_side(shared: MemoryPlan, own: MemoryPlan) -> MemoryPlan:
    """One plan of two: the buffers of the first, which programs may share, and those of the second behind them."""
    count = len(shared.buffer_bytes)
    behind = {tensor: BufferPlace(place.buffer + count, place.offset_bytes) for tensor, place in own.places.items()}
    buffer_bytes, least_bytes = (*shared.buffer_bytes, *own.buffer_bytes), shared.least_bytes + own.least_bytes
    return MemoryPlan({**shared.places, **behind}, buffer_bytes, count, least_bytes)
