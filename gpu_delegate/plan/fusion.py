"""Fusion: groups the nodes of a graph so that each group becomes one kernel.

A node joins the group of what it reads pixel by pixel, if one body can be planned for both (gpu_delegate/plan/body.py),
if no cycle arises between groups, if there are enough pixels to occupy the device's threads, and if together they cost
no more than apart (gpu_delegate/plan/static_model.py). Where it does not join, the reason is kept for `texelflow
inspect`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..base.errors import UnsupportedError
from ..device.device import Device, Tuning
from ..model.graph import Graph, Node
from ..model.layout import Precision, Storages
from ..ops.nodes import (
    has_role,
    is_channel_reduction,
    is_contraction,
    is_elementwise,
    is_pixelwise_contraction,
    is_scatter,
    place_in_file,
)
from .body import NOTHING, Body, Decline, Loops
from .body_keys import BodyKeys
from .precedence import Precedence
from .reads import read_through
from .static_model import dispatch_cost, whole_cost
from .storages import plan_storages
from .tiling import has_threads_enough, is_too_long, only_reduces, takes_too_many_turns, usual_tile
from .vector_nodes import is_vector_node
from .views import Views

A = TypeVar("A")


@dataclass(frozen=True)
class Groups:
    """Bodies of pixel kernels in an executable order, vector nodes by output, and why nodes did not join.

    `storages` says how tensors are stored that lie between kernels.
    """

    bodies: tuple[Body, ...]
    vector_nodes: dict[int, Node]
    declined: tuple[str, ...]
    storages: Storages
    views: Views


def group_nodes(
    graph: Graph, device: Device, fuse: bool = True, precision: Precision = "fp32", uses_views: bool = True
) -> Groups:
    """Partition the graph's nodes; with fuse=False every node is a kernel of its own.

    The precision says how tensors are stored, and so what views may share, if tensors may lie inside others at all.

    An example, on maps of 64x64 with 8 channels; nodes are placed in this order:

        c = CONV_2D 3x3 (x)        reads no group: a kernel of its own
        q = HARD_SWISH (c)         joins c
        s = ADD (q, x)             joins c, q
        d = DEPTHWISE_CONV_2D (s)  reads s at other pixels: a kernel of its own, and s is stored
        z = MUL (d, s)             would join both, declined: "a window over a value that the same kernel computes";
                                   then joins d alone, and reads s from memory

    So there are two bodies, (c, q, s) that stores s, and (d, z) that stores z.

    Raises UnsupportedError naming a node for which no kernel can be planned at all.
    """
    storages, views = plan_storages(graph, device, precision, fuse and uses_views)
    grouper = _Grouper(graph, device.fitted(), storages, views, fuse)
    for number in range(len(graph.nodes)):
        grouper.place(number)
    return grouper.finish()


@dataclass(frozen=True, eq=False)
class _Group:
    """Nodes by number, the loops that they need, and the kernel of these loops with the stores that are needed."""

    members: frozenset[int]
    loops: Loops
    body: Body


class _Grouper:
    def __init__(self, graph: Graph, device: Device, storages: Storages, views: Views, fuse: bool) -> None:
        self.storages = storages
        self.views = views
        self.fuse = fuse
        self.graph = graph
        self.device = device
        self.nodes = graph.nodes
        self.outputs = frozenset(graph.outputs)
        self.producer = {out: number for number, node in enumerate(graph.nodes) for out in node.outputs}
        self.needs = [[self.producer[i] for i in node.inputs if i in self.producer] for node in graph.nodes]
        self.readers: dict[int, list[int]] = {}
        for number, node in enumerate(graph.nodes):
            for tensor in dict.fromkeys(node.inputs):
                self.readers.setdefault(tensor, []).append(number)
        self.precedence = Precedence(self.needs)
        self.group_of: dict[int, _Group] = {}
        self.keys = BodyKeys(graph)
        self.through = read_through(graph, self.keys, views) if fuse else NOTHING
        self.vectors: dict[int, Node] = {}
        self.declined: list[str] = []

    def place(self, number: int) -> None:
        """Put a node into the first group that may take it, else into one of its own; vector nodes are in none."""
        node = self.nodes[number]
        if node.outputs[0] in self.through or node.outputs[0] in self.views.nodes:
            self.precedence.place(frozenset({number}))
            return
        if is_vector_node(self.graph, node):
            self.vectors[node.outputs[0]] = node
            self.precedence.place(frozenset({number}))
            return
        for groups in self._choices(node) if self.fuse and not self._is_for_its_reader(node) else ():
            try:
                self._set(self._joined(groups, number))
                return
            except Decline as reason:
                self.declined.append(f"{node.op} -> {self.graph.tensors[node.outputs[0]].name}: {reason}")
        try:
            self._set(self._planned(self._loops([node]), frozenset({number})))
        except Decline as reason:
            name, where = self.graph.tensors[node.outputs[0]].name, "CPU's own code" if self.device.in_planes else "GPU"
            raise UnsupportedError(
                f"{node.op} ({place_in_file(self.graph, node)}, {name}) does not run on the {where}: {reason}"
            ) from None

    def _is_for_its_reader(self, node: Node) -> bool:
        """Whether a node makes floats of bytes that are in memory anyway: what reads it may have it in its kernel.

        In the kernel of what it reads it would be a second output, and four times as large.
        """
        out = node.outputs[0]
        readers = self.readers.get(out, ())
        if not is_elementwise(node) or len(readers) != 1 or not is_elementwise(self.nodes[readers[0]]):
            return False
        if out in self.outputs or self.storages[out].is_bytes:
            return False
        runtime = [tensor for tensor in node.inputs if not self.graph.tensors[tensor].is_constant]
        return all(self.storages[tensor].is_bytes and len(self.readers[tensor]) > 1 for tensor in runtime)

    def _choices(self, node: Node) -> list[list[_Group]]:
        """Groups that the node could join: first those of all its pixel-by-pixel inputs together, then each alone."""
        graph, reads = self.graph, tuple[int, ...]()
        if is_elementwise(node):
            reads = node.inputs
        elif is_pixelwise_contraction(graph, node) or is_channel_reduction(graph, node) or is_scatter(node):
            reads = node.inputs[:1]
        groups = {self.group_of[self.producer[i]] for i in reads if self.producer.get(i) in self.group_of}
        latest_first = sorted(groups, key=lambda group: max(group.members), reverse=True)
        together = [latest_first] if len(groups) > 1 else []
        return [*together, *([group] for group in latest_first)]

    def _set(self, group: _Group) -> None:
        self.precedence.place(group.members)
        self.group_of.update(dict.fromkeys(group.members, group))

    def _joined(self, groups: Sequence[_Group], number: int) -> _Group:
        """Groups with one more node, the last of all. Raises Decline."""
        members = frozenset({number}).union(*(group.members for group in groups))
        if self.precedence.waits_for_itself(members):
            raise Decline("its inputs depend on the kernel that it would join")
        if len(groups) == 1:
            loops = groups[0].loops.with_node(self.nodes[number])
        else:
            loops = self._loops([self.nodes[member] for member in sorted(members)])
        group = self._planned(loops, members)
        body = group.body
        if self._told(is_too_long, body):
            raise Decline("its source would be too long")
        if not self.device.tuning.joins_sums and sum(map(_sums, body.nodes)) > 1:
            raise Decline("it would have two windows or contractions")
        if only_reduces(body):
            return group
        whole = not body.split or sum(is_contraction(node) for node in body.nodes) > 1
        if whole and not self._told(has_threads_enough, body):
            raise Decline(f"{body.domain.pixels} pixels are too few to occupy the device")
        if self._costs_more(group, groups, number):
            raise Decline("together they would cost more than apart")
        return group

    def _costs_more(self, group: _Group, groups: Sequence[_Group], number: int) -> bool:
        """Whether groups with one more node cost more than in kernels of their own."""
        whole, parts = self._cost(group), sum(map(self._cost, groups))
        if whole <= parts + dispatch_cost(self.device.tuning):
            return False
        alone = self._planned(self._loops([self.nodes[number]]), frozenset({number}))
        return whole > parts + self._cost(alone)

    def _cost(self, group: _Group) -> float:
        return self._told(_usual_cost, group.body)

    def _told(self, question: Callable[[Body, Tuning], A], body: Body) -> A:
        """An answer that bodies of the same key share: layers are repeated, and groups grow node by node."""
        return self.keys.once(question, body.key, lambda: question(body, self.device.tuning))

    def _loops(self, nodes: Sequence[Node]) -> Loops:
        return Loops(self.graph, self.device, nodes, self.through, self.keys)

    def _planned(self, loops: Loops, members: frozenset[int]) -> _Group:
        """A group that stores those values that nodes outside it read. Raises Decline."""
        stored = {
            out
            for member in members
            for out in self.nodes[member].outputs
            if out in self.outputs or any(reader not in members for reader in self.readers.get(out, ()))
        }
        body = loops.body(stored)
        if self._told(takes_too_many_turns, body):
            raise Decline(f"the loops of a thread would take more than {self.device.tuning.loop_turns:,} turns")
        return _Group(members, loops, body)

    def finish(self) -> Groups:
        """All groups, in an executable order."""
        bodies = tuple(group.body for group in self._in_order())
        return Groups(bodies, self.vectors, tuple(self.declined), self.storages, self.views)

    def _in_order(self) -> list[_Group]:
        """Groups such that each comes after those that it needs, otherwise in the order of the graph."""
        done: set[int] = set()
        ordered: list[_Group] = []
        for first in range(len(self.nodes)):
            waiting = [] if first in done or first not in self.group_of else [self._visit(first, done)]
            while waiting:
                needs, group = waiting[-1]
                following = next((need for need in needs if need not in done), None)
                if following is not None:
                    waiting.append(self._visit(following, done))
                    continue
                waiting.pop()
                if group is not None:
                    ordered.append(group)
        return ordered

    def _visit(self, number: int, done: set[int]) -> tuple[Iterator[int], _Group | None]:
        """What a node's group still needs, and the group (None for vector nodes); all its members count as done."""
        group = self.group_of.get(number)
        members = frozenset({number}) if group is None else group.members
        done |= members
        return (need for member in sorted(members) for need in self.needs[member]), group


def _usual_cost(body: Body, tuning: Tuning) -> float:
    """Of a kernel with its usual tile."""
    return whole_cost(body, usual_tile(body, tuning), tuning)


def _sums(node: Node) -> bool:
    """Whether a node adds up many values, each times a weight of its own, or not."""
    return is_contraction(node) or has_role(node, "window")
