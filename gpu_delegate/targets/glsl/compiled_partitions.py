"""Compiles the parts of a model that the GPU can take, and says why other operators stay on the CPU.

No OpenGL is needed. Every operator is either in one partition, which has been compiled, or has a reason.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from ...base.errors import DeviceError, UnsupportedError
from ...device.device import Device
from ...model.graph import Graph
from ...model.partition import Partition, partition_graph, subgraph
from ...model.reasons import CONSTANT_OF_CPU, CONSTANT_OUTPUT
from ...plan.compile_options import COMPILE_DEFAULTS, CompileOptions
from ...plan.refusals import LoneNodes, find_refusals
from .compiled_graph import CompiledGraph, compile_graph

CompileGraph = Callable[[Graph, Device, CompileOptions], CompiledGraph]  # as compile_graph
Compile = Callable[[Graph], CompiledGraph]  # raises UnsupportedError, DeviceError
Select = Callable[["CompiledPartitions"], Mapping[int, str]]  # the nodes to leave to the CPU, and why; {}: no more


@dataclass(frozen=True)
class CompiledPartitions:
    """What of a graph runs on the GPU. Nodes are given by their positions in the graph."""

    graph: Graph
    partitions: tuple[Partition, ...]  # in the order in which they run
    compiled: tuple[CompiledGraph, ...]  # of each partition
    reasons: Mapping[int, str]  # of the nodes that are left to the CPU, ascending

    @property
    def largest(self) -> int:
        """The number of the partition with the most operators. Raises ValueError where there is none."""
        return max(range(len(self.partitions)), key=lambda number: len(self.partitions[number].nodes))


def compile_partitions(
    graph: Graph,
    device: Device,
    options: CompileOptions = COMPILE_DEFAULTS,
    select: Select = lambda found: {},
    compile_part: CompileGraph = compile_graph,
) -> CompiledPartitions:
    """Partition a graph as read and compile the partitions. Refuses no graph.

    Each partition has a share of the budget that is in proportion to its operators. `select` is asked until it leaves
    nothing more to the CPU.
    """
    found = find_refusals(graph, device, options.fuse)
    most = len(graph.nodes) - len(found.reasons)

    def compiled(part: Graph) -> CompiledGraph:
        share_s = options.compile_budget_s * min(1.0, len(part.nodes) / most)
        return compile_part(part, device, replace(options, compile_budget_s=share_s))

    compiler = _Compiler(found.graph, found.constants, compiled)
    reasons = dict(found.reasons)
    while more := select(result := compiler.compile(reasons)):
        reasons |= more
    return result


class _Compiler:
    """Partitions again, with fewer nodes, until every partition compiles."""

    def __init__(self, graph: Graph, constants: frozenset[int], compile_part: Compile) -> None:
        self._graph = graph
        self._constants = constants
        self._compile_part = compile_part
        self._programs: dict[tuple[int, ...], CompiledGraph] = {}

    def compile(self, reasons: dict[int, str]) -> CompiledPartitions:
        """Each round compiles what is new, and ends with a further node refused or with everything compiled."""
        while True:
            partitions = partition_graph(self._graph, reasons, self._constants)
            failed = [failure for partition in partitions if (failure := self._failure(partition))]
            if not failed:
                break
            for failure in failed:
                reasons |= failure
        covered = {number for partition in partitions for number in partition.nodes}
        left = [number for number in range(len(self._graph.nodes)) if number not in covered]
        return CompiledPartitions(
            self._graph,
            partitions,
            tuple(self._programs[partition.nodes] for partition in partitions),
            MappingProxyType({number: reasons.get(number) or self._constant(number) for number in left}),
        )

    def _constant(self, number: int) -> str:
        """Why a constant node stays on the CPU."""
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
