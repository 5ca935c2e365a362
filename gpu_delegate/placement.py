"""Kernels and how tensors are stored go in; when each tensor is alive, where it lies and who accesses it come out."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from types import MappingProxyType
from typing import Literal

from .errors import DeviceError
from .graph import Graph
from .hazards import STORAGE, TEXTURE_FETCH, UNIFORM, Access, find_cyclic_barriers
from .in_place import NOTHING_IN_PLACE
from .kernel import Kernel, with_replaced
from .layout import Fetch, MapShape, Storage, Storages, shape_of
from .lower import Lowered, TargetKernel
from .memory.bounds import lower_bound_bytes
from .memory.options import MemoryOptions
from .memory.own_tensors import with_own
from .memory.plan import BufferPlace, MemoryPlan, Planner
from .memory.records import UsageRecord
from .ordering import least_order
from .views import NONE, Views

MAX_ARENA_BYTES = 1 << 31
_WAYS: Mapping[Fetch, int] = MappingProxyType({"uniform": UNIFORM, "texture": TEXTURE_FETCH, "storage": STORAGE})

# Which of the model's inputs and outputs have memory of their own all the time. Of the others an input has it up to its
# last reader, since the caller writes it before each run, and an output from its first writer on.
OuterLifetime = Literal["both", "inputs", "none"]


def usage_records(
    graph: Graph,
    kernels: Sequence[TargetKernel],
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
    for tensor in graph.inputs if always != "none" else ():
        last[views.place(tensor)[0]] = len(kernels)
    return tuple(
        UsageRecord(tensor, size_bytes(storages[tensor], shape_of(graph.tensors[tensor])), first[tensor], last[tensor])
        for tensor in first
    )


def outer_lifetime(memory: MemoryOptions) -> OuterLifetime:
    """Which of the inputs and outputs have memory of their own all the time."""
    return "inputs" if memory.keeps_inputs else "none"


@dataclass(frozen=True)
class PlacedTensors:
    """Kernels as they read and write their tensors where these lie."""

    kernels: tuple[Kernel, ...]
    barriers: tuple[int, ...]  # before each of them
    records: tuple[UsageRecord, ...]
    plan: MemoryPlan
    in_place: Mapping[int, int]  # by output: the input of its kernel that it replaces


def place_tensors(name: str, lowered: Lowered, memory: MemoryOptions, alignment_bytes: int) -> PlacedTensors:
    """The memory of a program. Raises DeviceError where its tensors take too much."""
    placed = _placed_as_ordered(name, lowered, memory, alignment_bytes)
    if not memory.reorders:
        return placed
    views = lowered.views.with_replaced(placed.in_place)
    order = least_order(
        lowered.graph, lowered.kernels, lowered.storages, views, placed.records, memory.keeps_inputs
    ).tasks
    other = replace(lowered, kernels=tuple(lowered.kernels[number] for number in order))
    return min(placed, _placed_as_ordered(name, other, memory, alignment_bytes), key=lambda each: each.plan.total_bytes)


def _placed_as_ordered(name: str, lowered: Lowered, memory: MemoryOptions, alignment_bytes: int) -> PlacedTensors:
    kernels, views, in_place, planner = lowered.kernels, lowered.views, NOTHING_IN_PLACE, memory.strategy.plan
    records = usage_records(lowered.graph, kernels, lowered.storages, views, always=outer_lifetime(memory))
    if memory.replaces:
        in_place = choose_in_place(kernels, records, views, planner, alignment_bytes)
    pairs = {output: (output, tensor) for output, tensor in in_place.items()}
    kernels = tuple(
        next((with_replaced(kernel, *pairs[output]) for output in kernel.outputs if output in pairs), kernel)
        for kernel in kernels
    )
    records = tuple(merged_records(records, in_place))
    kept = (*lowered.graph.inputs, *lowered.graph.outputs) if memory.shares else ()
    plan = plan_memory(name, records, views.with_replaced(in_place), planner, alignment_bytes, kept)
    barriers = find_cyclic_barriers(tensor_accesses(lowered.graph, kernels, lowered.storages, plan))
    return PlacedTensors(kernels, barriers, records, plan, in_place)


def choose_in_place(
    kernels: Sequence[Kernel], records: Sequence[UsageRecord], views: Views, planner: Planner, alignment_bytes: int
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


def _pairs_that_meet(kernels: Sequence[Kernel], records: Sequence[UsageRecord], views: Views) -> Mapping[int, int]:
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
) -> MemoryPlan:
    """Where all tensors lie, views included; with tensors that are `kept`, other programs may share the rest.

    Raises DeviceError where they take too much memory.
    """
    own = {views.place(tensor)[0] for tensor in kept}
    plan = with_own(records, own, planner, alignment_bytes) if own else planner(records, alignment_bytes)
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
    graph: Graph, kernels: Sequence[Kernel], storages: Storages, plan: MemoryPlan
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
