"""One graph of an interpreter of which parts run in the CPU's own code: plans them, prepares them and runs them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from ..base.errors import UnsupportedError
from ..model.graph import Graph
from ..model.partition import Partition
from ..targets.llvm.native_runtime import NativeNetwork
from .function_kernel import FunctionKernels
from .native_operators import groups_of
from .native_parts import NativeParts
from .native_tensors import array_at, memory_of, reshape, shape_at, tensor_at
from .selection import kept_by_partitions
from .structs import TfLiteContext, TfLiteDelegateParams, integers_at
from .variable_marks import variables_reset


@dataclass(frozen=True)
class NativePart:
    """A partition with its network, and which of its tensors are not in TensorFlow Lite's memory."""

    partition: Partition
    network: NativeNetwork
    reads: tuple[int, ...]  # inputs whose values are read, from that memory
    writes: tuple[int, ...]  # outputs, likewise
    gives: Mapping[int, Sequence[NativeNetwork]]  # outputs that other partitions alone read, and theirs
    dispatches: int = 0  # on the GPU

    @property
    def nodes(self) -> tuple[int, ...]:
        """Its operators, by their numbers in the file."""
        return self.partition.nodes

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one run."""
        return self.network.work.macs


class NativeSubgraph:
    """What a delegate has of one graph: that of a signature, or the only one."""

    def __init__(self, number: int, found: NativeParts, functions: FunctionKernels) -> None:
        """`number` is that of the subgraph in the file; `functions` are of custom ops."""
        self.number, self.found, self.functions = number, found, functions
        self._kernels: dict[int, NativePart | None] = {}  # by number; None: constants, whose values readers compute
        self._arrays: dict[int, tuple[int, npt.NDArray[Any]]] = {}  # by tensor: an address, and the array there
        kept = kept_by_partitions(found.graph, found.partitions)
        pairs = [*zip(found.partitions, found.compiled, strict=True)]
        uploads = [_uploads(found.graph, partition) for partition in found.partitions]
        self.parts = tuple(
            NativePart(
                partition,
                network,
                tuple(index for index in own if index not in kept),
                tuple(index for index in partition.outputs if index not in kept),
                {
                    index: [other for (_, other), theirs in zip(pairs, uploads, strict=True) if index in theirs]
                    for index in partition.outputs
                    if index in kept
                },
            )
            for (partition, network), own in zip(pairs, uploads, strict=True)
        )

    @property
    def nodes(self) -> tuple[int, ...]:
        """All operators of its parts, ascending."""
        return tuple(sorted(number for part in self.parts for number in part.nodes))

    def check_groups(self, context: TfLiteContext) -> None:
        """Raises UnsupportedError where TensorFlow Lite would group operators in another way."""
        for group in groups_of(context, self.nodes) if self.nodes else ():
            self._part_of(group)

    def has_kernel(self, number: int) -> bool:
        return number in self._kernels or number in self.functions

    def make_kernel(self, params: TfLiteDelegateParams, number: int) -> None:
        """For one of the groups that TensorFlow Lite has formed of the operators."""
        if not self.functions.make(params, number):
            self._kernels[number] = self._part_of(integers_at(params.nodes_to_replace))

    def free_kernel(self, number: int) -> None:
        """Networks go with the delegate."""
        self.functions.free(number)
        self._kernels.pop(number, None)

    def prepare_kernel(self, context: TfLiteContext, number: int) -> None:
        """Raises UnsupportedError for other shapes than the file's."""
        if number in self.functions:
            self.functions.kernel(number).prepare(context)
            return
        part = self._kernels[number]
        if part is None:
            return
        for index in part.partition.inputs:
            if (found := shape_at(context, index)) != self._graph.tensors[index].shape:
                said = list(self._graph.tensors[index].shape)
                raise UnsupportedError(f"tensor {index} has the shape {list(found)} when it runs, not {said}")
        for index in part.partition.outputs:
            reshape(context, index, part.network.image.tensors[index].own.shape)

    def run_kernel(self, context: TfLiteContext, number: int) -> None:
        if number in self.functions:
            self.functions.kernel(number).run(context)
            return
        part = self._kernels[number]
        if part is None:
            return
        network = part.network
        if reset := variables_reset(context, network.image.states):
            network.reset_states(reset)
        for index in part.reads:
            network.write(index, self._array(context, index))
        with network.turn():
            network.compute()
            for index in part.writes:
                network.read_into(index, self._array(context, index))
            for index, readers in part.gives.items():
                for reader in readers:
                    reader.take(index, network)

    @property
    def _graph(self) -> Graph:
        return self.found.graph

    def _part_of(self, nodes: tuple[int, ...]) -> NativePart | None:
        """That of a group; None for constants alone. Raises UnsupportedError for one that has not been planned."""
        constants = {number for part in self.parts for number in part.partition.constants}
        computed = {*nodes} - constants
        if not computed:
            return None
        for part in self.parts:
            if computed == {*part.partition.computed}:
                return part
        raise UnsupportedError(f"TensorFlow Lite groups operators in another way: {sorted(nodes)[:8]}")

    def _array(self, context: TfLiteContext, index: int) -> npt.NDArray[Any]:
        """TensorFlow Lite's memory of a tensor, as an array that shares it, made once for each place."""
        address, size_bytes = memory_of(tensor_at(context, index), self._graph.tensors[index])
        known = self._arrays.get(index)
        if known is None or known[0] != address:
            known = self._arrays[index] = address, array_at(address, size_bytes, self._graph.tensors[index])
        return known[1]


def _uploads(graph: Graph, partition: Partition) -> tuple[int, ...]:
    """The inputs that a partition's network reads."""
    read = {index for number in partition.computed for index in graph.nodes[number].inputs}
    return tuple(index for index in partition.inputs if index in read)
