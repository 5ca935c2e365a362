"""Kernels and how tensors are stored go in; when each tensor is alive, where it lies and who accesses it come out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

from .errors import DeviceError
from .graph import Graph
from .hazards import STORAGE, TEXTURE_FETCH, UNIFORM, Access
from .kernel import Kernel
from .layout import Fetch, MapShape, Storage, Storages, shape_of
from .lower import TargetKernel
from .memory.plan import BufferPlace, MemoryPlan, Planner
from .memory.records import UsageRecord
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


def plan_memory(
    name: str, records: Sequence[UsageRecord], views: Views, planner: Planner, alignment_bytes: int
) -> MemoryPlan:
    """Where all tensors lie, views included. Raises DeviceError where they take too much memory."""
    plan = planner(records, alignment_bytes)
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
