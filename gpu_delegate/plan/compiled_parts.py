"""Compiles the parts of a model that a target can take, and says why other operators are left to TensorFlow Lite.

Every operator is either in one part, which has been compiled, or has a reason.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Generic, Protocol, TypeVar

from ..base.errors import DeviceError, UnsupportedError
from ..device.device import Device
from ..model.graph import Graph
from ..model.partition import Partition, partition_graph, subgraph
from ..model.reasons import CONSTANT_OF_CPU, CONSTANT_OUTPUT
from .refusals import LoneNodes, find_refusals, refused_states


@dataclass(frozen=True)
class PartWork:
    """What one run of a compiled part is."""

    dispatches: int  # or steps
    macs: int  # multiply-accumulates of its operators, each counted once
    repeated_macs: int = 0  # that kernels compute again


class PartProgram(Protocol):
    """A compiled part, of any target."""

    @property
    def work(self) -> PartWork: ...


CompiledPart_co = TypeVar("CompiledPart_co", bound=PartProgram, covariant=True)
CompiledPart = TypeVar("CompiledPart", bound=PartProgram)
CompilePart = Callable[
    [Graph, float], CompiledPart
]  # of a share of all operators; raises UnsupportedError, DeviceError


@dataclass(frozen=True)
class CompiledParts(Generic[CompiledPart_co]):
    """What of a graph runs on a target. Nodes are given by their positions in the graph."""

    graph: Graph
    partitions: tuple[Partition, ...]  # in the order in which they run
    compiled: tuple[CompiledPart_co, ...]  # of each partition
    reasons: Mapping[int, str]  # of the nodes that are left to TensorFlow Lite, ascending

    @property
    def largest(self) -> int:
        """The number of the partition with the most operators. Raises ValueError where there is none."""
        return max(range(len(self.partitions)), key=lambda number: len(self.partitions[number].nodes))


AnyParts = CompiledParts[PartProgram]


def compile_parts(
    graph: Graph,
    device: Device,
    compile_part: CompilePart[CompiledPart],
    fuse: bool = True,
    select: Callable[[CompiledParts[CompiledPart]], Mapping[int, str]] = lambda found: {},
) -> CompiledParts[CompiledPart]:
    """Partition a graph as read and compile the partitions. Refuses no graph.

    `select` says which nodes to leave to TensorFlow Lite, and why; it is asked until it leaves no more.
    """
    found = find_refusals(graph, device, fuse)
    most = len(graph.nodes) - len(found.reasons)

    def compiled(part: Graph) -> CompiledPart:
        return compile_part(part, min(1.0, len(part.nodes) / most))

    compiler = _Compiler(found.graph, found.constants, compiled)
    reasons = dict(found.reasons)
    while more := select(result := compiler.compile(reasons)):
        reasons |= more
    return result


class _Compiler(Generic[CompiledPart]):
    """Partitions again, with fewer nodes, until every partition compiles."""

    def __init__(self, graph: Graph, constants: frozenset[int], compile_part: Callable[[Graph], CompiledPart]) -> None:
        self._graph = graph
        self._constants = constants
        self._compile_part = compile_part
        self._programs: dict[tuple[int, ...], CompiledPart] = {}

    def compile(self, reasons: dict[int, str]) -> CompiledParts[CompiledPart]:
        """Each round compiles what is new, and ends with a further node refused or with everything compiled."""
        while True:
            partitions = partition_graph(self._graph, reasons, self._constants)
            if apart := refused_states(self._graph, reasons, [partition.nodes for partition in partitions]):
                reasons |= apart
                continue
            failed = [failure for partition in partitions if (failure := self._failure(partition))]
            if not failed:
                break
            for failure in failed:
                reasons |= failure
        covered = {number for partition in partitions for number in partition.nodes}
        left = [number for number in range(len(self._graph.nodes)) if number not in covered]
        return CompiledParts(
            self._graph,
            partitions,
            tuple(self._programs[partition.nodes] for partition in partitions),
            MappingProxyType({number: reasons.get(number) or self._constant(number) for number in left}),
        )

    def _constant(self, number: int) -> str:
        """Why a constant node is left out."""
        is_output = not {*self._graph.outputs}.isdisjoint(self._graph.nodes[number].outputs)
        return CONSTANT_OUTPUT if is_output else CONSTANT_OF_CPU

    def _failure(self, partition: Partition) -> dict[int, str]:
        """The nodes because of which a partition does not compile, with reasons; empty if it does.

        If each of its nodes compiles alone, it is all of them.
        """
        if partition.nodes in self._programs:
            return {}
        computed = partition.computed
        try:
            self._programs[partition.nodes] = self._compile_part(subgraph(self._graph, partition))
        except (UnsupportedError, DeviceError) as error:
            alone = LoneNodes(self._graph).failures(computed, self._compile_part)
            return alone or dict.fromkeys(computed, f"as one program of {len(computed)} operators: {error}")
        return {}
