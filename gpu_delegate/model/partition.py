"""Splits a graph into the parts that run on the GPU, where some operators stay on the CPU.

Groups are those that TensorFlow Lite makes when it hands operators over to a delegate
(PartitionGraphIntoIndependentNodeSubsets in its graph_info.cc): operators are taken in an order in which they can run,
first all of one side, GPU or CPU, that need nothing of the other, then all of the other side, and so on. Each group is
convex, and groups run in their order.

Constants that a file keeps in another form (DEQUANTIZE of float16 weights, DENSIFY of sparse ones) cross no boundary:
every group computes those that it reads. Such an operator is the GPU's if all its readers are and its value is no
output of the graph, else TensorFlow Lite runs it for the others. TensorFlow Lite does not know that it is a constant:
it takes its turn like any other, and may be in a group that comes before that of its readers, or in one of its own.
"""

import heapq
import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from .graph import ABSENT, Graph, Node

CONTROL_FLOW = frozenset({"IF", "WHILE", "CALL_ONCE"})


@dataclass(frozen=True)
class Partition:
    """Operators that become one program, by their positions in the graph, and the tensors that cross its boundary."""

    nodes: tuple[int, ...]  # ascending
    constants: tuple[int, ...]  # of these and of others, operators whose values are computed when it is compiled
    inputs: tuple[int, ...]  # tensors, without constants; those of the graph first, in its order
    outputs: tuple[int, ...]  # tensors that others read or that are outputs of the graph; again those first

    @property
    def computed(self) -> tuple[int, ...]:
        """Its own operators that are computed at run time; of these it has at least one."""
        return tuple(number for number in self.nodes if number not in self.constants)


def partition_graph(graph: Graph, refused: Container[int], constants: Container[int]) -> tuple[Partition, ...]:
    """The partitions of a graph, in the order in which they run.

    `refused` are the positions of nodes that stay on the CPU, `constants` those of nodes whose values are known before
    a run. Every other node is in one partition; a constant one is with the first of its readers.
    """
    wiring = _Wiring(graph)
    claimed = _claimed(wiring, refused, constants)
    computed = [[number for number in group if number not in constants] for group in _groups(wiring, claimed)]
    groups = [group for group in computed if group]
    home = {number: group for group, members in enumerate(groups) for number in members}
    for number in sorted(claimed - home.keys(), reverse=True):
        home[number] = min((home[reader] for reader in wiring.readers_of(number)), default=0)
    members: list[list[int]] = [[] for _ in groups]
    for number in sorted(home):
        members[home[number]].append(number)
    return tuple(_partition(wiring, each, constants) for each in members)


def subgraph(graph: Graph, partition: Partition) -> Graph:
    """A partition as a graph of its own, for compile_graph. That of all nodes is the graph itself."""
    if len(partition.nodes) == len(graph.nodes):
        return graph
    nodes = tuple(graph.nodes[number] for number in sorted({*partition.nodes, *partition.constants}))
    used = {index for node in nodes for index in (*node.inputs, *node.outputs)} - {ABSENT}
    tensors = MappingProxyType({index: graph.tensors[index] for index in sorted(used)})
    end = max(graph.dropped_below, 1 + max(graph.tensors))  # numbers of other tensors are not for new ones
    return replace(
        graph, tensors=tensors, nodes=nodes, inputs=partition.inputs, outputs=partition.outputs, original=b"",
        dropped_below=end,
    )  # fmt: skip


def crossing_bytes(graph: Graph, tensors: Iterable[int]) -> int:
    """The bytes of tensors as TensorFlow Lite has them, which are copied where they cross a boundary."""
    found = (graph.tensors[tensor] for tensor in tensors)
    return sum(
        math.prod(tensor.shape) * np.dtype(tensor.dtype).itemsize for tensor in found if tensor.dtype != "resource"
    )


class _Wiring:
    """Which nodes write and read each tensor, by their positions."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.producer = {tensor: number for number, node in enumerate(graph.nodes) for tensor in node.outputs}
        self.starts = {tensor: place for place, tensor in enumerate(dict.fromkeys(graph.inputs))}
        self.ends = {tensor: place for place, tensor in enumerate(dict.fromkeys(graph.outputs))}
        self.readers: dict[int, set[int]] = {}
        for number, node in enumerate(graph.nodes):
            for tensor in node.inputs:
                self.readers.setdefault(tensor, set()).add(number)
        in_turn = [number for number, node in enumerate(graph.nodes) if _has_side_effects(graph, node)]
        self.after = dict(pairwise(in_turn))
        self.before = {later: earlier for earlier, later in self.after.items()}

    def sources(self, number: int) -> set[int]:
        """The nodes that a node reads from."""
        return {self.producer[tensor] for tensor in self.graph.nodes[number].inputs if tensor in self.producer}

    def needs(self, number: int) -> set[int]:
        """The nodes that a node waits for."""
        return self.sources(number) | {self.before[number] for _ in range(number in self.before)}

    def readers_of(self, number: int) -> set[int]:
        """The nodes that read from a node."""
        return set[int]().union(*(self.readers.get(tensor, ()) for tensor in self.graph.nodes[number].outputs))

    def followers_of(self, number: int) -> set[int]:
        """The nodes that wait for a node."""
        return self.readers_of(number) | {self.after[number] for _ in range(number in self.after)}


def _has_side_effects(graph: Graph, node: Node) -> bool:
    """Whether TensorFlow Lite keeps a node behind all others of this kind (OpMightHaveSideEffect in subgraph.cc)."""
    tensors = (graph.tensors[index] for index in (*node.inputs, *node.outputs) if index != ABSENT)
    return node.op in CONTROL_FLOW or any(tensor.dtype == "resource" for tensor in tensors)


def _claimed(wiring: _Wiring, refused: Container[int], constants: Container[int]) -> set[int]:
    """The nodes that are the GPU's."""
    numbers = range(len(wiring.graph.nodes))
    claimed = {number for number in numbers if number not in refused and number not in constants}
    for number in reversed(numbers) if claimed else ():
        is_output = wiring.ends.keys() & wiring.graph.nodes[number].outputs
        if number in constants and not is_output and wiring.readers_of(number) <= claimed:
            claimed.add(number)
    return claimed


def _groups(wiring: _Wiring, claimed: Container[int]) -> list[list[int]]:
    """The groups of the GPU: always all nodes of one side that are ready, then all of the other."""
    waits = {number: len(wiring.needs(number)) for number in range(len(wiring.graph.nodes))}
    sides: tuple[list[int], list[int]] = ([], [])  # of the GPU, of the CPU: the nodes that are ready, as heaps
    groups = list[list[int]]()

    def make_ready(number: int) -> None:
        heapq.heappush(sides[number not in claimed], number)

    for number, count in waits.items():
        if not count:
            make_ready(number)
    while any(sides):
        side = min(filter(None, sides))  # that of the first node
        group = list[int]()
        while side:
            group.append(heapq.heappop(side))
            for reader in wiring.followers_of(group[-1]):
                waits[reader] -= 1
                if not waits[reader]:
                    make_ready(reader)
        if side is sides[0]:
            groups.append(group)
    return groups


def _partition(wiring: _Wiring, members: list[int], constants: Container[int]) -> Partition:
    """The partition of some nodes: the constants that it needs, and what crosses its boundary."""
    graph, inside = wiring.graph, set(members)
    computed = [number for number in members if number not in constants]
    needed, waiting = {number for number in members if number in constants}, list(members)
    while waiting:
        more = {number for number in wiring.sources(waiting.pop()) if number in constants} - needed
        needed |= more
        waiting += more
    nodes = [graph.nodes[number] for number in sorted(needed.union(computed))]
    made = {tensor for node in nodes for tensor in node.outputs}
    read = dict.fromkeys(tensor for node in nodes for tensor in node.inputs if tensor != ABSENT)
    known = {tensor for tensor in read if graph.tensors[tensor].is_constant or graph.tensors[tensor].is_variable}
    inputs = [tensor for tensor in read if tensor not in made and tensor not in known]
    written = [tensor for number in computed for tensor in graph.nodes[number].outputs]
    outputs = [t for t in written if t in wiring.ends or not wiring.readers.get(t, set()) <= inside]
    return Partition(
        tuple(members), tuple(sorted(needed)), _ordered(inputs, wiring.starts), _ordered(outputs, wiring.ends)
    )


def _ordered(tensors: list[int], places: Mapping[int, int]) -> tuple[int, ...]:
    """Those that have a place by their places, then the others in their order."""
    return tuple(sorted(tensors, key=lambda tensor: places.get(tensor, len(places))))
