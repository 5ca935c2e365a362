"""Compiles a graph for a device to a CompiledGraph: everything is decided, and OpenGL not yet called."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ...base.errors import DeviceError
from ...device.device import Device
from ...device.limits import Limits
from ...model.graph import Graph, Tensor
from ...model.layout import Precision, Storages, shape_of
from ...model.packing import Float32Array, output_floats, phwc4, vector_texels
from ...model.rewrite import float_data
from ...ops.nodes import record_of
from ...passes.convolutions import separate_depth_to_space
from ...passes.pipeline import PassReport
from ...plan.admission import rewrite_graph
from ...plan.compile_options import COMPILE_DEFAULTS, CompileOptions
from ...plan.compiled_parts import PartWork
from ...plan.hazards import Access
from ...plan.memory.memory_options import MemoryOptions
from ...plan.memory.memory_plan import MemoryPlan
from ...plan.memory.records import UsageRecord
from ...plan.ordering import least_order
from ...plan.placement import merged_records, outer_lifetime, place_tensors, plan_memory, tensor_accesses, usage_records
from ...plan.state_memory import kept_inputs
from ...plan.views import Views
from .glsl_kernel import Kernel, lower_to_glsl


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
    in_place: Mapping[int, int]  # by output of a kernel: the input of it that it replaces
    precision: Precision
    memory: MemoryOptions
    constants: Mapping[int, Float32Array]  # maps that kernels read like tensors, and outputs, as PHWC4

    def tensor(self, number: int) -> Tensor:
        """A tensor as in the file: its own shape and type. Those that passes have made are as in `graph`."""
        return self.source.tensors.get(number) or self.graph.tensors[number]

    @property
    def work(self) -> PartWork:
        """Of one run."""
        nodes = {node.outputs: node for kernel in self.kernels for node in kernel.nodes}.values()
        once = sum(record_of(node).macs(self.graph, node) for node in nodes)
        executed = sum(kernel.macs + kernel.repeated_macs for kernel in self.kernels)
        return PartWork(len(self.kernels), once, executed - once)

    @cached_property
    def without_weights(self) -> "CompiledGraph":
        """The same for those who have weights elsewhere: arrays have shapes, and neither values nor memory."""
        kernels = tuple(replace(kernel, weights=_hollow(kernel.weights)) for kernel in self.kernels)
        constants = {tensor: _hollow(texels) for tensor, texels in self.constants.items()}
        source, graph = _without_data(self.source), _without_data(self.graph)
        return replace(self, source=source, graph=graph, kernels=kernels, constants=constants)

    @property
    def stored(self) -> tuple[int, ...]:
        """Tensors that the program writes to memory, in order."""
        return tuple(dict.fromkeys(t for kernel in self.kernels for t in kernel.outputs))


def _without_data(graph: Graph) -> Graph:
    """The same graph with hollow constants."""
    tensors = {
        number: tensor if tensor.data is None else replace(tensor, data=_hollow(tensor.data))
        for number, tensor in graph.tensors.items()
    }
    return replace(graph, tensors=MappingProxyType(tensors), original=b"")


def compile_graph(source: Graph, device: Device, options: CompileOptions = COMPILE_DEFAULTS) -> CompiledGraph:
    """Decide everything about a model: passes, kernels, memory, barriers.

    Raises UnsupportedError for a model with unsupported ops, too many weights or too long kernels, DeviceError for
    sizes over the limits and for a precision that the device does not have, UsageError for an unknown
    planner.
    """
    memory = MemoryOptions("naive") if options.keep_all else options.memory
    assert memory.strategy, "asked for first: an unknown name is an error before anything is done"
    if options.precision == "bf16":
        raise DeviceError("bf16 is for the CPU's own code: on the GPU there are fp32, fp16 and fp16-arithmetic")
    if options.precision == "fp16-arithmetic" and not device.limits.half_arithmetic:
        raise DeviceError("this device has no half-precision arithmetic for OpenGL; use fp16, which stores halves")
    device = device.fitted()
    graph, reports = rewrite_graph(source, options.fuse, (separate_depth_to_space,))
    if any(tensor.steps for tensor in graph.tensors.values()):  # sums of steps are exact in float32 alone
        options = replace(options, precision="fp32")
    lowered = lower_to_glsl(graph, device, replace(options, memory=memory))
    graph = lowered.graph
    placed = place_tensors(source.name, lowered, memory, device.offset_alignment_bytes, by_level=options.fuse)
    _check_sizes(graph, placed.records, device.limits)
    _check_grids(placed.kernels, device.limits)
    return CompiledGraph(
        source, graph, reports, lowered.declined, placed.kernels, placed.barriers, placed.records, placed.plan,
        lowered.storages, lowered.views, placed.in_place, options.precision, memory,
        _constants(graph, placed.kernels),
    )  # fmt: skip


def reordered_bytes(compiled: CompiledGraph, alignment_bytes: int) -> int:
    """What the tensors would take with the kernels in the order that takes the least; what is in place stays there."""
    graph, storages, memory = compiled.graph, compiled.storages, compiled.memory
    views = compiled.views.with_replaced(compiled.in_place)
    order = least_order(graph, compiled.kernels, storages, views, compiled.records, memory.keeps_inputs).tasks
    kernels = [compiled.kernels[number] for number in order]
    records = usage_records(graph, kernels, storages, compiled.views, always=outer_lifetime(memory))
    apart = (*graph.inputs, *graph.outputs) if memory.shares else ()
    merged, states = merged_records(records, compiled.in_place), kept_inputs(graph)
    plan = plan_memory(compiled.source.name, merged, views, memory.strategy.plan, alignment_bytes, apart, states)
    return min(plan.total_bytes, compiled.plan.total_bytes)


def _hollow(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.broadcast_to(np.zeros((), values.dtype), values.shape)


def accesses_of(compiled: CompiledGraph) -> list[list[Access]]:
    """The byte ranges that each dispatch accesses, in order."""
    return tensor_accesses(compiled.graph, compiled.kernels, compiled.storages, compiled.plan)


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


def _constants(graph: Graph, kernels: tuple[Kernel, ...]) -> Mapping[int, Float32Array]:
    """What is to be in memory before the first run: of these, outputs alone have places in the plan."""
    tensors = graph.tensors
    read = dict.fromkeys(t for kernel in kernels for t in kernel.inputs if tensors[t].is_constant)
    texels = {t: constant_texels(graph, t) for t in read}
    return texels | {t: _texels(graph, t, output_floats(tensors[t])) for t in graph.outputs if tensors[t].is_constant}


def constant_texels(graph: Graph, tensor: int) -> Float32Array:
    """A constant map or vector as kernels read it: PHWC4."""
    return _texels(graph, tensor, float_data(graph.tensors[tensor]))


def _texels(graph: Graph, tensor: int, values: Float32Array) -> Float32Array:
    shape = shape_of(graph.tensors[tensor])
    return vector_texels(values) if shape.is_vector else phwc4(values.reshape(shape.rows, shape.width, shape.channels))
