"""Reorders kernels so that their tensors take the least memory at a time."""

from collections.abc import Container, Sequence

from ..model.graph import Graph
from ..model.layout import Storages, shape_of
from .dispatch import PlannedDispatch
from .hazards import STORAGE, Access
from .memory.order import TaskOrder, least_peak
from .memory.records import UsageRecord
from .views import Views


def least_order(
    graph: Graph,
    kernels: Sequence[PlannedDispatch],
    storages: Storages,
    views: Views,
    records: Sequence[UsageRecord],
    keeps_inputs: bool,
) -> TaskOrder:
    """Numbers of kernels in the order with the fewest bytes alive at a time. Views count as what they lie in.

    `records` are those of the tensors with memory of their own, in the order given.
    """
    sizes = {record.tensor: record.size_bytes for record in records}
    tasks = accesses_by_owner(graph, kernels, storages, views, sizes)
    inputs, outputs = ({views.place(tensor)[0] for tensor in outer} for outer in (graph.inputs, graph.outputs))
    return least_peak(tasks, sizes, inputs, outputs | inputs if keeps_inputs else outputs)


def accesses_by_owner(
    graph: Graph, kernels: Sequence[PlannedDispatch], storages: Storages, views: Views, owners: Container[int]
) -> list[list[Access]]:
    """What each kernel reads and writes, in buffers that are the tensors with memory of their own: `owners`."""

    def accesses(tensors: Sequence[int], writes: bool) -> list[Access]:
        places = ((tensor, *views.place(tensor)) for tensor in tensors)
        return [
            Access(owner, at, at + storages[tensor].size_bytes(shape_of(graph.tensors[tensor])), STORAGE, writes)
            for tensor, owner, at in places
            if owner in owners
        ]

    return [[*accesses(kernel.inputs, False), *accesses(kernel.outputs, True)] for kernel in kernels]
