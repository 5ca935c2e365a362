"""Plans a program's memory: when each tensor is alive, where it lies, and which bytes each kernel accesses."""

import contextlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from types import MappingProxyType
from typing import Literal

from ..base.errors import DeviceError
from ..model.graph import Graph
from ..model.layout import Fetch, MapShape, Storage, Storages, shape_of
from .dispatch import B, BoundDispatch, LoweredGraph, PlacedTensors, PlannedDispatch
from .hazards import STORAGE, TEXTURE_FETCH, UNIFORM, Access, barriers_of_levels, find_cyclic_barriers, levels_of
from .in_place import NOTHING_IN_PLACE
from .memory.memory_bounds import lower_bound_bytes
from .memory.memory_options import MemoryOptions
from .memory.memory_plan import BufferPlace, MemoryPlan, Planner, remembering
from .memory.own_tensors import with_own
from .memory.records import UsageRecord
from .ordering import accesses_by_owner, least_order
from .state_memory import kept_inputs, replaced_states, with_state_buffers
from .views import NONE, Views

MAX_ARENA_BYTES = 1 << 31
MOST_GROWTH = 1.5  # of memory, for kernels that run side by side: of the catalogue's models none takes a byte more
_WAYS: Mapping[Fetch, int] = MappingProxyType({"uniform": UNIFORM, "texture": TEXTURE_FETCH, "storage": STORAGE})

# Which of the model's inputs and outputs have memory of their own all the time. Of the others an input has it up to its
# last reader, since the caller writes it before each run, and an output from its first writer on.
OuterLifetime = Literal["both", "inputs", "none"]


def usage_records(
    graph: Graph,
    kernels: Sequence[PlannedDispatch],
    storages: Storages,
    views: Views = NONE,
    size_bytes: Callable[[Storage, MapShape], int] = Storage.size_bytes,
    always: OuterLifetime = "inputs",
) -> tuple[UsageRecord, ...]:
    """Lifetimes of all tensors with memory of their own, those of their views included; `always` is the caller's."""
    first: dict[int, int] = dict.fromkeys((views.place(tensor)[0] for tensor in graph.inputs), 0)
    last = dict(first)
    for number, kernel in enumerate(kernels):
        for tensor in kernel.outputs:
            first.setdefault(views.place(tensor)[0], number)
        for tensor in (*kernel.inputs, *kernel.outputs):
            last[views.place(tensor)[0]] = number
    for tensor in graph.outputs:
        owner = views.place(tensor)[0]
        first[owner], last[owner] = 0 if always == "both" else first.get(owner, 0), len(kernels)
    for tensor in graph.inputs if always != "none" else kept_inputs(graph):
        last[views.place(tensor)[0]] = len(kernels)
    return tuple(
        UsageRecord(tensor, size_bytes(storages[tensor], shape_of(graph.tensors[tensor])), first[tensor], last[tensor])
        for tensor in first
    )


def outer_lifetime(memory: MemoryOptions) -> OuterLifetime:
    """Which of the inputs and outputs have memory of their own all the time."""
    return "inputs" if memory.keeps_inputs else "none"


def place_tensors(
    name: str, lowered: LoweredGraph[B], memory: MemoryOptions, alignment_bytes: int, by_level: bool = True
) -> PlacedTensors[B]:
    """The memory of a program; kernels keep their order unless they may run side by side `by_level`.

    Raises DeviceError where tensors take too much.
    """
    placed = placed_in_order(name, lowered, memory, alignment_bytes)
    if memory.reorders:
        views = lowered.views.with_replaced(placed.in_place)
        order = least_order(
            lowered.graph, lowered.kernels, lowered.storages, views, placed.records, memory.keeps_inputs
        ).tasks
        other = _in_order(lowered, order)
        placed = min(
            placed, placed_in_order(name, other, memory, alignment_bytes), key=lambda each: each.plan.total_bytes
        )
    return _placed_by_level(name, lowered, memory, alignment_bytes, placed) if by_level else placed


def _in_order(lowered: LoweredGraph[B], order: Sequence[int]) -> LoweredGraph[B]:
    return replace(lowered, kernels=tuple(lowered.kernels[number] for number in order))


def _placed_by_level(
    name: str, lowered: LoweredGraph[B], memory: MemoryOptions, alignment_bytes: int, placed: PlacedTensors[B]
) -> PlacedTensors[B]:
    """The same with kernels that need nothing of each other side by side, if that takes fewer barriers.

    First with memory that no two of them share, which may be more, unless the least was asked for; else with what is
    shared ordered by barriers of its own.
    """
    graph, kernels, storages, views = lowered.graph, lowered.kernels, lowered.storages, lowered.views
    owners = {record.tensor for record in usage_records(graph, kernels, storages, views)}
    levels = levels_of(accesses_by_owner(graph, kernels, storages, views, owners))
    if 1 + max(levels, default=0) >= _count(placed.barriers):
        return placed
    order = sorted(range(len(levels)), key=levels.__getitem__)
    other, total_bytes = _in_order(lowered, order), placed.plan.total_bytes
    apart = [levels[number] for number in order]
    for together, growth in ((apart, 1.0 if memory.reorders else MOST_GROWTH), (None, 1.0)):
        with contextlib.suppress(DeviceError):  # too much memory
            found = placed_in_order(name, other, memory, alignment_bytes, together)
            fewer = _count(found.barriers) < _count(placed.barriers)
            if fewer and found.plan.total_bytes <= growth * total_bytes:
                return found
    return placed


def _count(barriers: Sequence[int]) -> int:
    return sum(map(bool, barriers))


def placed_in_order(
    name: str,
    lowered: LoweredGraph[B],
    memory: MemoryOptions,
    alignment_bytes: int,
    levels: Sequence[int] | None = None,
) -> PlacedTensors[B]:
    """The memory of kernels in the given order; with their `levels`, ascending, those of one level share none of it.

    Raises DeviceError where tensors take too much.
    """
    kernels, views = lowered.kernels, lowered.views
    in_place = of_states = NOTHING_IN_PLACE
    planner = remembering(memory.strategy.plan)  # to choose outputs in place mostly asks for the plan itself
    records = usage_records(lowered.graph, kernels, lowered.storages, views, always=outer_lifetime(memory))
    if levels:
        records = _through_levels(records, levels)
    if memory.replaces:
        of_states = replaced_states(lowered.graph, kernels, records, views, levels)
        records, views = tuple(merged_records(records, of_states)), views.with_replaced(of_states)
        in_place = choose_in_place(kernels, records, views, planner, alignment_bytes)
    pairs = {output: (output, tensor) for output, tensor in in_place.items()}
    kernels = tuple(
        next((kernel.with_replaced(*pairs[output]) for output in kernel.outputs if output in pairs), kernel)
        for kernel in kernels
    )
    records = tuple(merged_records(records, in_place))
    kept = (*lowered.graph.inputs, *lowered.graph.outputs) if memory.shares else ()
    states = kept_inputs(lowered.graph)
    plan = plan_memory(name, records, views.with_replaced(in_place), planner, alignment_bytes, kept, states)
    accesses = tensor_accesses(lowered.graph, kernels, lowered.storages, plan)
    barriers = barriers_of_levels(accesses, levels) if levels else find_cyclic_barriers(accesses)
    return PlacedTensors(kernels, barriers, records, plan, MappingProxyType({**of_states, **in_place}))


def _through_levels(records: Sequence[UsageRecord], levels: Sequence[int]) -> tuple[UsageRecord, ...]:
    """Lifetimes from the first kernel of a level to the last one of a level; the end of the program stays the end."""
    count = len(levels)
    starts = [bisect_left(levels, level) for level in levels]
    ends = [*(bisect_right(levels, level) - 1 for level in levels), count]
    return tuple(
        replace(record, first_task=starts[record.first_task], last_task=ends[record.last_task]) for record in records
    )


def choose_in_place(
    kernels: Sequence[BoundDispatch],
    records: Sequence[UsageRecord],
    views: Views,
    planner: Planner,
    alignment_bytes: int,
) -> Mapping[int, int]:
    """By output the input that it replaces, for those pairs of kernels without which the plan would be larger."""
    pairs = _pairs_that_meet(kernels, records, views)
    merged = merged_records(records, pairs)
    if not pairs or lower_bound_bytes(merged) >= (before := planner(records, alignment_bytes).total_bytes):
        return NOTHING_IN_PLACE
    least = planner(merged, alignment_bytes).total_bytes
    if least >= before:
        return NOTHING_IN_PLACE
    alive, lives = _bytes_alive(merged), {record.tensor: record for record in records}
    apart = {output: alive[lives[output].first_task] + lives[output].size_bytes for output in pairs}
    needed = {output: tensor for output, tensor in pairs.items() if apart[output] > least}
    fewer = planner(merged_records(records, needed), alignment_bytes).total_bytes
    return MappingProxyType(needed if fewer <= least else pairs)


def _bytes_alive(records: Sequence[UsageRecord]) -> list[int]:
    """During each task."""
    change = [0] * (2 + max(record.last_task for record in records))
    for record in records:
        change[record.first_task] += record.size_bytes
        change[record.last_task + 1] -= record.size_bytes
    return list(accumulate(change))


def _pairs_that_meet(
    kernels: Sequence[BoundDispatch], records: Sequence[UsageRecord], views: Views
) -> Mapping[int, int]:
    """Those pairs of kernels whose output begins there and whose input ends there, both in memory of their own."""
    lives, found = {record.tensor: record for record in records}, dict[int, int]()
    for number, kernel in enumerate(kernels):
        for output, tensor in kernel.in_place:
            first, last = lives.get(output), lives.get(tensor)
            if first is None or last is None or first.size_bytes != last.size_bytes:
                continue
            readers = [each for each in kernel.inputs if views.place(each)[0] == tensor]
            if last.last_task == number == first.first_task and readers == [tensor]:
                found[output] = tensor
    return found


def merged_records(records: Sequence[UsageRecord], in_place: Mapping[int, int]) -> list[UsageRecord]:
    """Lifetimes where outputs lie in the memory of inputs, which is that of the first tensor there."""
    lives = {record.tensor: record for record in records}
    for output, tensor in in_place.items():  # in the order of kernels
        while tensor not in lives:
            tensor = in_place[tensor]
        lives[tensor] = replace(lives[tensor], last_task=lives.pop(output).last_task)
    return list(lives.values())


def plan_memory(
    name: str,
    records: Sequence[UsageRecord],
    views: Views,
    planner: Planner,
    alignment_bytes: int,
    kept: Collection[int] = (),
    states: Collection[int] = (),
) -> MemoryPlan:
    """Where all tensors lie, views included; with tensors that are `kept`, other programs may share the rest.

    Each of the `states` has a buffer of its own, behind the others. Raises DeviceError where they take too much memory.
    """
    own = {views.place(tensor)[0] for tensor in kept}
    planned = [record for record in records if record.tensor not in states]
    plan = with_own(planned, own, planner, alignment_bytes) if own else planner(planned, alignment_bytes)
    plan = with_state_buffers(plan, [record for record in records if record.tensor in states])
    if plan.total_bytes > MAX_ARENA_BYTES:
        raise DeviceError(f"{name} takes {plan.total_bytes >> 20} MiB for its tensors, at most 2048 are allowed")
    return with_views(plan, views)


def with_views(plan: MemoryPlan, views: Views) -> MemoryPlan:
    """The plan with the places of tensors that lie inside others."""
    places = {tensor: views.place(tensor) for tensor in (*views.inside, *views.nodes)}
    owners = {tensor: (plan.places[owner], at) for tensor, (owner, at) in places.items() if owner in plan.places}
    inside = {tensor: BufferPlace(whole.buffer, whole.offset_bytes + at) for tensor, (whole, at) in owners.items()}
    return replace(plan, places={**plan.places, **inside})


def tensor_accesses(
    graph: Graph, kernels: Sequence[BoundDispatch], storages: Storages, plan: MemoryPlan
) -> list[list[Access]]:
    """The byte ranges that each dispatch accesses, in order."""

    def access(tensor: int, way: int, writes: bool = False) -> Access:
        place, size_bytes = plan.places[tensor], storages[tensor].size_bytes(shape_of(graph.tensors[tensor]))
        return Access(place.buffer, place.offset_bytes, place.offset_bytes + size_bytes, way, writes)

    return [
        [
            access(tensor, _WAYS[fetch])
            for tensor, fetch in zip(kernel.inputs, kernel.fetches, strict=True)
            if tensor in plan.places
        ]
        + [access(tensor, STORAGE, writes=True) for tensor in kernel.outputs]
        for kernel in kernels
    ]
