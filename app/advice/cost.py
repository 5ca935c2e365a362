"""Compiled partitions and a machine's peaks go in; what one run costs at least, copies included, comes out.

Kernels count as in gpu_delegate/roofline.py. Tensors that cross the border of a partition come from TensorFlow Lite's
memory, dense BHWC, or go there: their bytes count once for the way, and where their order in PHWC4 is another one, a
dispatch counts that reads them in the one order and writes them in the other.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from texelflow.gpu_delegate.compiled_partitions import CompiledPartitions
from texelflow.gpu_delegate.graph import Graph, Node, Tensor
from texelflow.gpu_delegate.kernel import Kernel
from texelflow.gpu_delegate.layout import PHWC4, Storage, shape_of
from texelflow.gpu_delegate.nodes import has_weights, record_of
from texelflow.gpu_delegate.partition import border_bytes
from texelflow.gpu_delegate.program import CompiledGraph
from texelflow.gpu_delegate.roofline import Cost, Peaks, cost_of


@dataclass(frozen=True)
class RunCost:
    """What one run of a model, or a part of it, costs at least. Also a difference of two, which may be negative."""

    dispatches: int = 0
    moved_bytes: int = 0
    macs: int = 0  # as computed: vectors of four channels, those of padding included
    ms: float | None = None  # at the machine's peaks; None where they were not measured

    def __add__(self, other: "RunCost") -> "RunCost":
        ms = None if self.ms is None or other.ms is None else self.ms + other.ms
        macs = self.macs + other.macs
        return RunCost(self.dispatches + other.dispatches, self.moved_bytes + other.moved_bytes, macs, ms)

    def __sub__(self, other: "RunCost") -> "RunCost":
        ms = None if other.ms is None else -other.ms
        return self + RunCost(-other.dispatches, -other.moved_bytes, -other.macs, ms)


def total(costs: Iterable[RunCost], peaks: Peaks | None) -> RunCost:
    """The sum; that of nothing takes no time, if peaks are known."""
    return reduce(RunCost.__add__, costs, RunCost(ms=0.0 if peaks else None))


def run_cost(found: CompiledPartitions, peaks: Peaks | None) -> RunCost:
    """That of all partitions. What TensorFlow Lite computes on the CPU does not count."""
    kernels = (kernel_cost(compiled, kernel, peaks) for compiled in found.compiled for kernel in compiled.kernels)
    crossing = (
        copy_cost(found.graph, tensor, peaks, compiled.storages[tensor])
        for partition, compiled in zip(found.partitions, found.compiled, strict=True)
        for tensor in (*partition.inputs, *partition.outputs)
    )
    return total((*kernels, *crossing), peaks)


def kernel_cost(compiled: CompiledGraph, kernel: Kernel, peaks: Peaks | None) -> RunCost:
    """That of one dispatch."""
    counted = cost_of(compiled, kernel)
    macs = sum(_computed_macs(compiled.graph, node) for node in kernel.nodes)
    return _dispatch(Cost(macs, counted.read_bytes, counted.written_bytes), peaks)


def copy_cost(graph: Graph, tensor: int, peaks: Peaks | None, storage: Storage = PHWC4) -> RunCost:
    """That of a tensor which comes from TensorFlow Lite's memory or goes there."""
    dense_bytes = border_bytes(graph, [tensor])
    way = RunCost(0, dense_bytes, 0, dense_bytes / peaks.bytes_per_s * 1e3 if peaks else None)
    if is_dense(graph.tensors[tensor], storage):
        return way
    return way + _dispatch(Cost(0, dense_bytes, storage.size_bytes(shape_of(graph.tensors[tensor]))), peaks)


def is_dense(tensor: Tensor, storage: Storage) -> bool:
    """Whether a stored tensor has the bytes that it has in TensorFlow Lite's memory."""
    shape = shape_of(tensor)
    if tensor.dtype != "float32" or storage.is_halves:
        return False
    return shape.channels == storage.lanes or (shape.is_vector and shape.channels % storage.lanes == 0)


def _dispatch(cost: Cost, peaks: Peaks | None) -> RunCost:
    ms = peaks.least_ms(cost) + peaks.dispatch_s * 1e3 if peaks else None
    return RunCost(1, cost.moved_bytes, cost.macs, ms)


def _computed_macs(graph: Graph, node: Node) -> int:
    """Multiply-accumulates of a node, those of padding lanes included: its packed weights have all of them."""
    macs = record_of(node).macs(graph, node)
    if not has_weights(node):
        return macs
    weights = graph.tensors[node.inputs[1]].data
    assert weights is not None, "kernels have constant weights"
    return macs * record_of(node).weight_bytes(graph, node) // (4 * weights.size)
