"""Estimates what one run of compiled partitions costs at least, copies included, from a machine's peaks.

Kernels count as in gpu_delegate/targets/glsl/roofline.py. Tensors that cross the border of a partition come from
TensorFlow Lite's memory or go there, arrays of floats, BHWC (gpu_delegate/delegate/io_binding.py): their bytes count
once for the way, and where they have another order in PHWC4, a dispatch counts that reads them in the one order and
writes the other.
"""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType

import numpy as np

from texelflow.gpu_delegate.delegate.repacking import is_array
from texelflow.gpu_delegate.delegate.selection import kept_by_partitions
from texelflow.gpu_delegate.model.graph import Graph, Node, Tensor
from texelflow.gpu_delegate.model.layout import PHWC4, Storage, Storages, shape_of
from texelflow.gpu_delegate.model.partition import Partition
from texelflow.gpu_delegate.ops.nodes import has_weights, record_of
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph
from texelflow.gpu_delegate.targets.glsl.compiled_partitions import CompiledPartitions
from texelflow.gpu_delegate.targets.glsl.glsl_kernel import Kernel
from texelflow.gpu_delegate.targets.glsl.roofline import Cost, Peaks, cost_of

NO_STORAGES: Storages = MappingProxyType({})


@dataclass(frozen=True)
class RunRates:
    """What times are estimated with."""

    peaks: Peaks
    hand_over_ms: float  # of a call of a partition, whatever it computes


@dataclass(frozen=True)
class RunCost:
    """What one run of a model, or a part of it, costs at least. Also a difference of two, which may be negative."""

    dispatches: int = 0
    moved_bytes: int = 0
    macs: int = 0  # as computed: vectors of four channels, those of padding and repeated ones included
    ms: float | None = None  # at the machine's peaks; None where they were not measured

    def __add__(self, other: "RunCost") -> "RunCost":
        ms = None if self.ms is None or other.ms is None else self.ms + other.ms
        macs = self.macs + other.macs
        return RunCost(self.dispatches + other.dispatches, self.moved_bytes + other.moved_bytes, macs, ms)

    def __sub__(self, other: "RunCost") -> "RunCost":
        ms = None if other.ms is None else -other.ms
        return self + RunCost(-other.dispatches, -other.moved_bytes, -other.macs, ms)


def total(costs: Iterable[RunCost], rates: RunRates | None) -> RunCost:
    """The sum; that of nothing takes no time, if times are known."""
    return reduce(RunCost.__add__, costs, RunCost(ms=0.0 if rates else None))


def run_cost(found: CompiledPartitions, rates: RunRates | None) -> RunCost:
    """That of all partitions. What TensorFlow Lite computes on the CPU does not count."""
    storages = {tensor: storage for compiled in found.compiled for tensor, storage in compiled.storages.items()}
    kernels = (kernel_cost(compiled, kernel, rates) for compiled in found.compiled for kernel in compiled.kernels)
    return total((*kernels, crossing_cost(found.graph, found.partitions, rates, storages)), rates)


def crossing_cost(
    graph: Graph, partitions: Collection[Partition], rates: RunRates | None, storages: Storages = NO_STORAGES
) -> RunCost:
    """That of calling partitions and of their copies; tensors whose storage is not given are PHWC4.

    What another partition has computed is handed over on the GPU. Inputs of which only the shape is read stay away.
    """
    kept, made = kept_by_partitions(graph, partitions), {tensor for part in partitions for tensor in part.outputs}
    costs = [RunCost(ms=len(partitions) * rates.hand_over_ms if rates else None)]
    for part in partitions:
        read = {tensor for number in part.computed for tensor in graph.nodes[number].inputs}
        inputs = [tensor for tensor in part.inputs if tensor in read]
        copied = [t for t in inputs if t not in made] + [t for t in part.outputs if t not in kept]
        costs += [copy_cost(graph.tensors[t], rates, storages.get(t, PHWC4)) for t in copied]
        costs += [_handed_over(graph.tensors[t], rates) for t in inputs if t in made]
    return total(costs, rates)


def _handed_over(tensor: Tensor, rates: RunRates | None) -> RunCost:
    """Read and written once."""
    moved_bytes = 2 * PHWC4.size_bytes(shape_of(tensor))
    return RunCost(0, moved_bytes, 0, moved_bytes / rates.peaks.bytes_per_s * 1e3 if rates else None)


def kernel_cost(compiled: CompiledGraph, kernel: Kernel, rates: RunRates | None) -> RunCost:
    """That of one dispatch."""
    counted = cost_of(compiled, kernel)
    macs = sum(_computed_macs(compiled.graph, node) for node in kernel.nodes) + kernel.repeated_macs
    return _dispatch(Cost(macs, counted.read_bytes, counted.written_bytes), rates)


def copy_cost(tensor: Tensor, rates: RunRates | None, storage: Storage = PHWC4) -> RunCost:
    """That of a tensor which comes from TensorFlow Lite's memory or goes there."""
    array_bytes = math.prod(tensor.shape) * np.dtype(tensor.dtype).itemsize
    way = RunCost(0, array_bytes, 0, array_bytes / rates.peaks.bytes_per_s * 1e3 if rates else None)
    shape = shape_of(tensor)
    if tensor.dtype != "float32" or is_array(shape, storage):
        return way  # other types are converted in RAM
    return way + _dispatch(Cost(0, array_bytes, storage.size_bytes(shape)), rates)


def _dispatch(cost: Cost, rates: RunRates | None) -> RunCost:
    ms = rates.peaks.least_ms(cost) + rates.peaks.dispatch_s * 1e3 if rates else None
    return RunCost(1, cost.moved_bytes, cost.macs, ms)


def _computed_macs(graph: Graph, node: Node) -> int:
    """Multiply-accumulates of a node, those of padding lanes included: its packed weights have all of them."""
    macs = record_of(node).macs(graph, node)
    if not has_weights(node):
        return macs
    weights = graph.tensors[node.inputs[1]].data
    assert weights is not None, "kernels have constant weights"
    return macs * record_of(node).weight_bytes(graph, node) // (4 * weights.size)
