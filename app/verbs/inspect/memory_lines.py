"""What a compiled program's tensors take, and what each way to take less has saved, as values."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from texelflow.gpu_delegate.base.errors import DeviceError, UnsupportedError
from texelflow.gpu_delegate.device.device import Device
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.layout import FLOAT_BYTES, LINE_FLOATS, shape_of
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.memory.memory_options import ARENA, MemoryOptions
from texelflow.gpu_delegate.plan.memory.offsets import naive
from texelflow.gpu_delegate.plan.memory.records import UsageRecord
from texelflow.gpu_delegate.plan.memory.strategies import BOUNDS
from texelflow.gpu_delegate.plan.placement import OuterLifetime, usage_records
from texelflow.gpu_delegate.plan.storages import storage_inside
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph, reordered_bytes
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.native_program import NativeProgram, compile_native, native_records


@dataclass(frozen=True)
class Memory:
    """Bytes of the tensors, alone and under several plans, and of the weights.

    What is saved is counted in this order, each step with those before it, by the planner that is used.
    """

    where: str  # GPU or CPU
    mode: str  # of MemoryOptions
    planner: str
    buffers: int
    tensors: int
    outer_bytes: int  # inputs and outputs, always float32
    inner_bytes: int  # tensors between kernels ...
    stored: Mapping[str, int]  # ... by what they are stored as
    naive_bytes: int
    outer_saved_bytes: int  # by inputs behind their last reader, and outputs ahead of their writer
    views_saved_bytes: int  # by tensors that lie inside others
    in_place_saved_bytes: int  # by kernels that write where they have read
    planned_bytes: int
    wide_bytes: int  # planned if no whole numbers were stored as bytes
    lower_bound_bytes: int
    reordered_bytes: int  # planned with kernels in the order that takes the least
    weights_bytes: int


def memory_on_gpu(compiled: CompiledGraph, device: Device) -> Memory:
    """Of a program that was compiled for that device."""
    alignment_bytes = device.fitted().offset_alignment_bytes

    def records(made: CompiledGraph, always: OuterLifetime) -> Sequence[UsageRecord]:
        return usage_records(made.graph, made.kernels, made.storages, made.views, always=always)

    without = compiled
    if compiled.views.inside:
        options = CompileOptions(precision=compiled.precision, memory=compiled.memory)
        without = compile_graph(compiled.source, device, options.with_memory(uses_views=False, in_place=False))
    kept: OuterLifetime = "inputs" if compiled.memory.keeps_inputs else "none"
    weights_bytes = sum(kernel.weights_bytes for kernel in compiled.kernels)
    steps = (records(without, "both"), records(without, kept), records(compiled, kept))
    found = _memory("GPU", compiled, compiled.memory, steps, alignment_bytes, weights_bytes)
    return replace(found, reordered_bytes=reordered_bytes(compiled, alignment_bytes))


def memory_on_cpu(program: NativeProgram, fuse: bool = True) -> Memory:
    """Of the CPU's own code, whose kernels write nowhere in place, and stay in their order."""
    without = program
    if program.views.inside:
        without = compile_native(program.source, program.target, fuse, uses_views=False)
    steps = (native_records(without, "both"), without.records, program.records)
    return _memory("CPU", program, ARENA, steps, FLOAT_BYTES * LINE_FLOATS, program.weights.nbytes)


def memory_in_native_code(graph: Graph, fuse: bool = True) -> Memory | None:
    """Of a model on this CPU; None where there is no such code of it."""
    try:
        return memory_on_cpu(compile_native(graph, native_target(), fuse), fuse)
    except (DeviceError, UnsupportedError):
        return None


def _memory(
    where: str,
    compiled: CompiledGraph | NativeProgram,
    memory: MemoryOptions,
    steps: tuple[Sequence[UsageRecord], Sequence[UsageRecord], Sequence[UsageRecord]],
    alignment_bytes: int,
    weights_bytes: int,
) -> Memory:
    """`steps` are lifetimes if nothing is saved, if inputs and outputs share memory, and with views, too."""
    strategy, last, total, storages = memory.strategy, compiled.records, compiled.plan.total_bytes, compiled.storages
    apart, shared, viewed = (strategy.plan(records, alignment_bytes).total_bytes for records in steps)
    outer = {*compiled.graph.inputs, *compiled.graph.outputs}
    own_bytes = {record.tensor: record.size_bytes for record in steps[2]}
    outer_bytes = sum(own_bytes[tensor] for tensor in outer if tensor in own_bytes)
    stored = Counter[str]()
    for tensor in own_bytes.keys() - outer:
        stored[storages[tensor].kind] += own_bytes[tensor]
    wide = [_as_wide(compiled, record) if storages[record.tensor].is_bytes else record for record in last]
    wide_bytes = strategy.plan(wide, alignment_bytes).total_bytes if "bytes" in stored else total
    return Memory(
        where, memory.mode, strategy.name, len(compiled.plan.buffer_bytes), len(own_bytes), outer_bytes,
        sum(own_bytes.values()) - outer_bytes, dict(stored), naive(steps[2], alignment_bytes).total_bytes,
        apart - shared, shared - viewed, viewed - total, total, wide_bytes,
        BOUNDS[strategy.kind](last, alignment_bytes), total, weights_bytes,
    )  # fmt: skip


def _as_wide(compiled: CompiledGraph | NativeProgram, record: UsageRecord) -> UsageRecord:
    """The memory of a tensor that is stored as bytes if it were stored as others are."""
    tensor = compiled.graph.tensors[record.tensor]
    return replace(record, size_bytes=storage_inside(tensor, compiled.precision).size_bytes(shape_of(tensor)))
