"""Compilation: a graph and a device go in, a CompiledGraph (everything decided, no OpenGL yet) comes out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from .admission import check_compilable
from .bounds import check_text, check_weights
from .device import COMPILE_BUDGET_S, Device
from .errors import DeviceError
from .graph import Graph, Tensor
from .hazards import STORAGE, TEXTURE_FETCH, UNIFORM, Access, find_cyclic_barriers
from .kernel import Kernel
from .layout import Fetch, MapShape, Precision, Storage, Storages, shape_of
from .limits import Limits
from .lower import TargetKernel, lower
from .memory.offsets import greedy_by_size, naive
from .memory.plan import BufferPlace, MemoryPlan
from .memory.records import UsageRecord
from .memory.registry import Planner
from .packing import Float32Array, phwc4, vector_texels
from .passes.pipeline import PASSES, UNFUSED_PASSES, Pass, PassReport, run_passes
from .rewrite import float_data
from .views import NONE, Views

MAX_ARENA_BYTES = 1 << 31
_WAYS: Mapping[Fetch, int] = MappingProxyType({"uniform": UNIFORM, "texture": TEXTURE_FETCH, "storage": STORAGE})


@dataclass(frozen=True)
class CompiledGraph:
    """A model as a list of dispatches with their memory; the runtime only executes it."""

    source: Graph  # as read
    graph: Graph  # after the passes
    passes: tuple[PassReport, ...]
    declined: tuple[str, ...]
    kernels: tuple[Kernel, ...]
    barriers: tuple[int, ...]  # barrier bits before each kernel
    records: tuple[UsageRecord, ...]
    plan: MemoryPlan
    storages: Storages
    views: Views
    precision: Precision
    constants: Mapping[int, Float32Array]  # constant maps that kernels read like tensors, as PHWC4

    def tensor(self, number: int) -> Tensor:
        """A tensor as in the file: its own shape and type. Those that passes have made are as in `graph`."""
        return self.source.tensors.get(number) or self.graph.tensors[number]

    @property
    def stored(self) -> tuple[int, ...]:
        """Tensors that the program writes to memory, in order."""
        return tuple(dict.fromkeys(t for kernel in self.kernels for t in kernel.outputs))


def compile_graph(
    source: Graph,
    device: Device,
    fuse: bool = True,
    keep_all: bool = False,
    precision: Precision = "fp32",
    compile_budget_s: float = COMPILE_BUDGET_S,
) -> CompiledGraph:
    """Decide everything about a model: passes, kernels, memory, barriers.

    fuse=False compiles one dispatch per op; keep_all gives each tensor its own memory, so that all can be read
    afterwards; precision="fp16" stores tensors inside the network as halves, "fp16-arithmetic" also multiplies weights,
    as halves, in half precision, where the device has it; compile_budget_s is about how many seconds
    of the CPU the driver may take for the kernels, which are made shorter where they would take longer. Raises
    UnsupportedError for a model with unsupported ops, too many weights or too long kernels, DeviceError for sizes over
    the limits.
    """
    if precision != "fp16-arithmetic":
        device = device.with_limits(half_arithmetic="")
    elif not device.limits.half_arithmetic:
        raise DeviceError("this device has no half-precision arithmetic for OpenGL; use fp16, which stores halves")
    device = device.fitted()
    graph, reports = rewrite_graph(source, fuse)
    lowered = lower(graph, device, fuse, precision, compile_budget_s)
    graph = lowered.graph
    records = usage_records(graph, lowered.kernels, lowered.storages, lowered.views)
    _check_sizes(graph, records, device.limits)
    _check_grids(lowered.kernels, device.limits)
    plan = memory_plan(source.name, records, lowered.views, keep_all, device.offset_alignment_bytes)
    barriers = find_cyclic_barriers(_accesses(graph, lowered.kernels, lowered.storages, plan))
    constants = dict.fromkeys(t for kernel in lowered.kernels for t in kernel.inputs if graph.tensors[t].is_constant)
    return CompiledGraph(
        source, graph, reports, lowered.declined, lowered.kernels, barriers, records, plan,
        lowered.storages, lowered.views, precision, {tensor: constant_texels(graph, tensor) for tensor in constants},
    )  # fmt: skip


def rewrite_graph(
    source: Graph, fuse: bool = True, more: tuple[Pass, ...] = ()
) -> tuple[Graph, tuple[PassReport, ...]]:
    """The graph that kernels are made from, and what each pass did, a target's own `more` included.

    Raises UnsupportedError as compile_graph does.
    """
    check_compilable(source)
    check_weights(source)  # before passes change them
    graph, reports = run_passes(source, (*(PASSES if fuse else UNFUSED_PASSES), *more))
    check_weights(graph)
    check_text(graph)
    return graph, reports


def usage_records(
    graph: Graph,
    kernels: Sequence[TargetKernel],
    storages: Storages,
    views: Views = NONE,
    size_bytes: Callable[[Storage, MapShape], int] = Storage.size_bytes,
) -> tuple[UsageRecord, ...]:
    """Lifetimes of all tensors with memory of their own, those of their views included.

    The model's inputs and outputs are always alive: the caller accesses them.
    """
    first: dict[int, int] = dict.fromkeys((views.place(tensor)[0] for tensor in graph.inputs), 0)
    last: dict[int, int] = {}
    for number, kernel in enumerate(kernels):
        for tensor in kernel.outputs:
            first.setdefault(views.place(tensor)[0], number)
        for tensor in (*kernel.inputs, *kernel.outputs):
            last[views.place(tensor)[0]] = number
    for tensor in (*graph.inputs, *graph.outputs):
        owner, _ = views.place(tensor)
        first[owner], last[owner] = 0, len(kernels)
    return tuple(
        UsageRecord(tensor, size_bytes(storages[tensor], shape_of(graph.tensors[tensor])), first[tensor], last[tensor])
        for tensor in first
    )


def memory_plan(
    name: str, records: Sequence[UsageRecord], views: Views, keep_all: bool, alignment_bytes: int
) -> MemoryPlan:
    """Where all tensors lie, views included. Raises DeviceError where they take too much memory."""
    planner: Planner = naive if keep_all else greedy_by_size
    plan = planner(list(records), alignment_bytes)
    if plan.total_bytes > MAX_ARENA_BYTES:
        raise DeviceError(f"{name} takes {plan.total_bytes >> 20} MiB for its tensors, at most 2048 are allowed")
    return with_views(plan, views)


def accesses_of(compiled: CompiledGraph) -> list[list[Access]]:
    """The byte ranges that each dispatch accesses in the arena, in order."""
    return _accesses(compiled.graph, compiled.kernels, compiled.storages, compiled.plan)


def with_views(plan: MemoryPlan, views: Views) -> MemoryPlan:
    """The plan with the places of tensors that lie inside others."""
    places = {tensor: views.place(tensor) for tensor in (*views.inside, *views.nodes)}
    owners = {tensor: (plan.places[owner], at) for tensor, (owner, at) in places.items() if owner in plan.places}
    inside = {tensor: BufferPlace(whole.buffer, whole.offset_bytes + at) for tensor, (whole, at) in owners.items()}
    return replace(plan, places={**plan.places, **inside})


def _accesses(graph: Graph, kernels: tuple[Kernel, ...], storages: Storages, plan: MemoryPlan) -> list[list[Access]]:
    ends = {t: at + storages[t].size_bytes(shape_of(graph.tensors[t])) for t, at in plan.offsets.items()}
    return [
        [
            Access(plan.offsets[tensor], ends[tensor], _WAYS[fetch])
            for tensor, fetch in zip(kernel.inputs, kernel.fetches, strict=True)
            if tensor in plan.offsets
        ]
        + [Access(plan.offsets[tensor], ends[tensor], STORAGE, writes=True) for tensor in kernel.outputs]
        for kernel in kernels
    ]


def _check_sizes(graph: Graph, records: tuple[UsageRecord, ...], limits: Limits) -> None:
    for record in records:
        if record.size_bytes > limits.storage_block_bytes:
            name, shape = graph.tensors[record.tensor].name, list(graph.tensors[record.tensor].shape)
            raise DeviceError(
                f"{name} {shape} takes {record.size_bytes >> 20} MiB, "
                f"this device allows {limits.storage_block_bytes >> 20} MiB a tensor"
            )


def _check_grids(kernels: tuple[Kernel, ...], limits: Limits) -> None:
    most = min(limits.work_group_count)
    for kernel in kernels:
        if max(kernel.grid) > most:
            size = "x".join(map(str, kernel.grid))
            raise DeviceError(f"{kernel.name} needs {size} work-groups, this device allows {most} a side")


def constant_texels(graph: Graph, tensor: int) -> Float32Array:
    """A constant map or vector as kernels read it: PHWC4."""
    shape = shape_of(graph.tensors[tensor])
    values = float_data(graph.tensors[tensor])
    return vector_texels(values) if shape.is_vector else phwc4(values.reshape(shape.rows, shape.width, shape.channels))
