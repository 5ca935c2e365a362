"""Compiles a graph for the CPU up to LLVM's text: steps, weights and a plan of memory, no machine code yet.

Passes, fusion, views, tiles and the plan of memory are those of the GPU path (lower.py); what differs is in the tuning
(native_tuning.py), in the order of values in memory (planes.py), and in the code.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from ...base.errors import UnsupportedError
from ...device.device import Device
from ...device.tile import Tile
from ...model.graph import Graph, Tensor
from ...model.layout import FLOAT_BYTES, LINE_FLOATS, MapShape, Precision, Storage, Storages, aligned, shape_of
from ...model.packing import Float32Array, output_floats, put_together
from ...model.quantization import precision_for
from ...model.rewrite import float_data
from ...passes.algebra import multiply_by_reciprocal
from ...passes.convolutions import columns_to_channels, turn_columns, whole_map_to_vector
from ...passes.pipeline import PassReport
from ...plan.admission import rewrite_graph
from ...plan.body import Body
from ...plan.compile_options import CompileOptions
from ...plan.compiled_parts import PartWork
from ...plan.epilogue_sums import EpilogueSum
from ...plan.lower import lower
from ...plan.memory.memory_options import MemoryOptions
from ...plan.memory.memory_plan import MemoryPlan, end_to_end
from ...plan.memory.records import UsageRecord
from ...plan.placement import OuterLifetime, plan_memory, usage_records
from ...plan.state_memory import kept_inputs
from ...plan.vector_work import VectorWork
from ...plan.views import Views
from .depth_to_space_kernel import depth_to_space_function, is_depth_to_space
from .ir import Module
from .machine import CpuTarget
from .native_kernel import KnownKernels, LlvmKernel, pixel_function
from .native_tuning import cpu_device
from .pixel_needs import local_tensors, pixels_of_steps
from .planes import tensor_floats, to_planes
from .strips import StepPixels, kept_together, sections
from .vectors import in_functions, vector_function

_PASSES = (whole_map_to_vector, columns_to_channels, turn_columns, multiply_by_reciprocal)  # after those of all targets
# LLVM takes about a second for a megabyte of text, and for long functions of many conditions up to five
MOST_FUNCTION_BYTES = 5_000_000
MOST_MODEL_BYTES = 16_000_000
TOLD_BYTES = 150_000  # of functions together: LLVM takes some 80 ms for them


@dataclass(frozen=True)
class NativeProgram:
    """A model as a list of calls with their memory. Offsets of weights and constants are in floats, 16 to a line."""

    source: Graph  # as read
    graph: Graph  # after the passes
    passes: tuple[PassReport, ...]
    declined: tuple[str, ...]
    target: CpuTarget
    kernels: tuple[LlvmKernel, ...]  # in order
    text: str  # of the module with all functions
    weights: Float32Array  # of all kernels, and constants behind them
    weight_offsets: tuple[int, ...]  # of each kernel
    constants: Mapping[int, int]  # what kernels read like tensors, and outputs: the offset among the weights
    records: tuple[UsageRecord, ...]
    plan: MemoryPlan
    shared_bytes: int  # of its arena, in front: what lives in a run alone, so that others may have it before and after
    storages: Storages
    views: Views
    pixels: tuple[StepPixels, ...]  # of each kernel: what strips go by
    local: frozenset[int]  # tensors between kernels that take turns: whole they are never there

    def tensor(self, number: int) -> Tensor:
        """A tensor as in the file: its own shape and type. Those that passes have made are as in `graph`."""
        return self.source.tensors.get(number) or self.graph.tensors[number]

    @property
    def precision(self) -> Precision:
        """Of its products."""
        return self.target.precision

    @property
    def work(self) -> PartWork:
        """Of one run."""
        return PartWork(len(self.kernels), sum(kernel.macs for kernel in self.kernels))

    @property
    def stored(self) -> tuple[int, ...]:
        """Tensors that the kernels write to memory, in order."""
        return tuple(dict.fromkeys(t for kernel in self.kernels for t in kernel.outputs))


def compile_native(
    source: Graph,
    target: CpuTarget,
    fuse: bool = True,
    keep_all: bool = False,
    module: Module | None = None,
    uses_views: bool = True,
    written: Callable[[str], None] | None = None,
) -> NativeProgram:
    """Decide everything about a model; `fuse` and `keep_all` are CompileOptions', `uses_views` MemoryOptions'.

    Functions go into a module if given. `written` is told their texts while further ones are made, some in a module.

    Raises UnsupportedError for a model with unsupported ops, too many weights or too much code, DeviceError for too
    much memory.
    """
    target = target_for(source, target)
    graph, reports = rewrite_graph(source, fuse, _PASSES)
    module = module or Module()
    before = module.shared_bytes

    def makes(device: Device, storages: Storages) -> _NativeKernels:
        return _NativeKernels(module, target, storages, before, written)

    lowered = lower(makes, graph, cpu_device(target), CompileOptions(fuse).with_memory(uses_views=uses_views))
    if written and module.further_bytes:
        written(module.further_text())
    graph, kernels = lowered.graph, lowered.kernels
    records = usage_records(graph, kernels, lowered.storages, lowered.views, _size_bytes)
    pixels = pixels_of_steps(graph, kernels, lowered.views)
    found = sections(pixels, target.caches.l2_bytes)
    local = frozenset[int]() if keep_all else local_tensors(graph, kernels, lowered.views, found)
    records = tuple(kept_together(records, found))
    planner = MemoryOptions("naive" if keep_all else "arena").strategy.plan
    kept = () if keep_all else (*graph.inputs, *(t for t in graph.outputs if graph.tensors[t].is_constant))
    states = kept_inputs(graph)
    plan = plan_memory(source.name, records, lowered.views, planner, FLOAT_BYTES * LINE_FLOATS, kept, states)
    shared_bytes = sum(plan.buffer_bytes[: plan.shared_buffers])
    planes = _constants(graph, kernels)
    weights, offsets = _joined([*(kernel.weights for kernel in kernels), *((plane,) for plane in planes.values())])
    constants = dict(zip(planes, offsets[len(kernels) :], strict=True))
    return NativeProgram(
        source, graph, reports, lowered.declined, target, kernels, module.text, weights, offsets[: len(kernels)],
        MappingProxyType(constants), records, end_to_end(plan, FLOAT_BYTES * LINE_FLOATS), shared_bytes,
        lowered.storages, lowered.views, tuple(pixels), local,
    )  # fmt: skip


def target_for(graph: Graph, target: CpuTarget) -> CpuTarget:
    """The target with the precision that a network has."""
    return target.with_precision(precision_for(graph, target.precision))


def _constants(graph: Graph, kernels: Sequence[LlvmKernel]) -> Mapping[int, Float32Array]:
    """The planes of constants that kernels read like tensors, and of those that are outputs."""
    tensors = graph.tensors
    read = dict.fromkeys(t for kernel in kernels for t in kernel.inputs if tensors[t].is_constant)
    values = {t: float_data(tensors[t]) for t in read}
    values |= {t: output_floats(tensors[t]) for t in graph.outputs if tensors[t].is_constant}
    return {t: to_planes(each, shape_of(tensors[t])) for t, each in values.items()}


def native_records(program: NativeProgram, always: OuterLifetime) -> list[UsageRecord]:
    """Lifetimes of its tensors if the caller had inputs and outputs so."""
    graph, kernels, views = program.graph, program.kernels, program.views
    records = usage_records(graph, kernels, program.storages, views, _size_bytes, always)
    return kept_together(records, sections(program.pixels, program.target.caches.l2_bytes))


@dataclass(frozen=True)
class _NativeKernels:
    """Makes the functions of a program; equal ones are one."""

    module: Module
    target: CpuTarget
    storages: Storages
    before: int  # bytes of what the module had already
    written: Callable[[str], None] | None
    known: KnownKernels = field(default_factory=KnownKernels)

    def pixel(
        self, body: Body, prologue: VectorWork, tile: Tile, left: Sequence[EpilogueSum], signature: str
    ) -> LlvmKernel:
        """A body's function; the tuning leaves vector nodes to functions of their own."""
        assert not prologue.nodes
        assert not left
        before = self.module.shared_bytes
        if is_depth_to_space(body):
            made = depth_to_space_function(
                self.module, self.module.new_name("k"), body, self.target.lanes, self.storages
            )
            made = self._shared(made)
        else:
            made = pixel_function(self.module, body, tile, self.target, self.storages, self.known)
        self._check_length(made, before)
        return replace(made, signature=signature)

    def vectors(self, work: VectorWork, outputs: Sequence[int]) -> Sequence[LlvmKernel]:
        """Functions that store all values of vector nodes."""
        made = []
        for nodes in in_functions(work):
            name = self.module.new_name("k")
            kernel = vector_function(self.module, name, replace(work, nodes=nodes), self.target, self.storages)
            before = self.module.shared_bytes
            made.append(self._shared(kernel))
            self._check_length(made[-1], before)
        return made

    def _shared(self, made: LlvmKernel) -> LlvmKernel:
        return replace(made, symbol=self.module.shared(made.symbol))

    def _check_length(self, made: LlvmKernel, before: int) -> None:
        """Raises UnsupportedError for what LLVM would take longer for than anybody waits at the first start."""
        own, together = self.module.shared_bytes - before, self.module.shared_bytes - self.before
        for what, found, most in ((made.name, own, MOST_FUNCTION_BYTES), ("the model", together, MOST_MODEL_BYTES)):
            if found > most:
                sizes = f"{found / 1e6:.1f} MB of code as text, at most {most / 1e6:.1f} are allowed"
                raise UnsupportedError(f"{what} takes {sizes}: compiling it for the CPU would take too long")
        if self.written and self.module.further_bytes >= TOLD_BYTES:
            self.written(self.module.further_text())


def _size_bytes(storage: Storage, shape: MapShape) -> int:
    return FLOAT_BYTES * tensor_floats(shape, storage)


def _joined(groups: Sequence[Sequence[Float32Array]]) -> tuple[Float32Array, tuple[int, ...]]:
    """Groups of pieces one behind the other, each from the beginning of a cache line on, and where each begins."""
    sizes = [sum(piece.size for piece in pieces) for pieces in groups]
    ends = np.cumsum([0, *(aligned(size, LINE_FLOATS) for size in sizes)]).tolist()
    joined = np.zeros(ends[-1], np.float32)
    for start, size, pieces in zip(ends, sizes, groups, strict=False):
        put_together(pieces, joined[start : start + size])
    return joined, tuple(ends[:-1])
