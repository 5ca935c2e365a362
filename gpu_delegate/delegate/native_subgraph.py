"""One graph of an interpreter of which parts run in the CPU's own code: plans them, prepares them and runs them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from ..base.errors import UnsupportedError
from ..model.graph import Graph, Shape
from ..model.partition import Partition, subgraph
from ..reading.resizing import read_resized
from ..targets.llvm.native_runtime import NativeNetwork
from .function_kernel import FunctionKernels
from .live_constants import constant_places, with_constants_of
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
    gives: Mapping[int, Sequence[int]]  # outputs that other partitions alone read, and the places of those
    dispatches: int = 0  # on the GPU

    @property
    def nodes(self) -> tuple[int, ...]:
        """Its operators, by their numbers in the file."""
        return self.partition.nodes

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one run."""
        return self.network.work.macs


LoadNetwork = Callable[[Graph], NativeNetwork]
MOST_SIZES = 4  # of a part, for which networks are kept


class NativeSubgraph:
    """What a delegate has of one graph: that of a signature, or the only one."""

    def __init__(
        self, number: int, file: bytes, found: NativeParts, functions: FunctionKernels, load: LoadNetwork
    ) -> None:
        """`number` is that of the subgraph in its model, `file` is what the graph was read from; `functions` are of
        custom ops; `load` makes the network of a part that gets other sizes."""
        self.number, self.found, self.functions = number, found, functions
        self._load = load
        self._sizes: list[dict[tuple[Shape, ...], NativeNetwork]] = []  # by part: networks by the shapes of inputs
        self._now = [*found.compiled]  # the network of each part for its present shapes
        self._files = [file for _ in found.partitions]  # of each part, with the constants that it is loaded with
        self._constants = [constant_places(file, partition.nodes) for partition in found.partitions]
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
                    index: [place for place, theirs in enumerate(uploads) if index in theirs]
                    for index in partition.outputs
                    if index in kept
                },
            )
            for (partition, network), own in zip(pairs, uploads, strict=True)
        )
        for partition, network in pairs:
            shapes = tuple(found.graph.tensors[index].shape for index in partition.inputs)
            self._sizes.append({shapes: network})

    @property
    def networks(self) -> tuple[NativeNetwork, ...]:
        """That of each part for its present shapes."""
        return tuple(self._now)

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
        """Raises UnsupportedError for shapes that its operators do not take."""
        if number in self.functions:
            self.functions.kernel(number).prepare(context)
            return
        part = self._kernels[number]
        if part is None:
            return
        place = self.parts.index(part)
        self._arrays.clear()
        self._take_constants(context, place)
        network = self._now[place] = self._sized(place, tuple(shape_at(context, i) for i in part.partition.inputs))
        for index in part.partition.outputs:
            reshape(context, index, network.image.tensors[index].own.shape)

    def run_kernel(self, context: TfLiteContext, number: int) -> None:
        if number in self.functions:
            self.functions.kernel(number).run(context)
            return
        part = self._kernels[number]
        if part is None:
            return
        network = self._now[self.parts.index(part)]
        if reset := variables_reset(context, network.image.states):
            network.reset_states(reset)
        for index in part.reads:
            network.write(index, self._array(context, network, index))
        with network.turn():
            network.compute()
            for index in part.writes:
                network.read_into(index, self._array(context, network, index))
            for index, readers in part.gives.items():
                for reader in readers:
                    self._now[reader].take(index, network)

    def notice_resets(self, context: TfLiteContext) -> None:
        """Reset what TensorFlow Lite has set to zero since the last run."""
        for network in self._now:
            if reset := variables_reset(context, network.image.states):
                network.reset_states(reset)

    def _take_constants(self, context: TfLiteContext, place: int) -> None:
        """Forget a part's networks if a program has changed a constant in memory. Raises UnsupportedError."""
        file = with_constants_of(context, self._files[place], self._constants[place])
        if file is not self._files[place]:
            self._files[place] = file
            self._sizes[place].clear()

    def _sized(self, place: int, shapes: tuple[Shape, ...]) -> NativeNetwork:
        """The network of a part for these shapes of its inputs, of which the last few are kept."""
        known = self._sizes[place]
        if shapes not in known:
            partition = self.parts[place].partition
            part = subgraph(self.found.graph, partition)
            known[shapes] = self._load(
                read_resized(self._files[place], part, dict(zip(partition.inputs, shapes, strict=True)))
            )
            while len(known) > MOST_SIZES:
                del known[next(iter(known))]
        return known[shapes]

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

    def _array(self, context: TfLiteContext, network: NativeNetwork, index: int) -> npt.NDArray[Any]:
        """TensorFlow Lite's memory of a tensor, as an array that shares it: made anew where it has moved."""
        tensor = tensor_at(context, index)
        known = self._arrays.get(index)
        if known is None or known[0] != tensor.data:
            own = network.image.tensors[index].own
            address, size_bytes = memory_of(tensor, own)
            known = self._arrays[index] = address, array_at(address, size_bytes, own)
        return known[1]


def _uploads(graph: Graph, partition: Partition) -> tuple[int, ...]:
    """The inputs that a partition's network reads."""
    read = {index for number in partition.computed for index in graph.nodes[number].inputs}
    return tuple(index for index in partition.inputs if index in read)
