"""Grouping: the passes' graph goes in, groups of nodes that become one kernel each come out, in an order to run.

A node joins the group of what it reads pixel by pixel, if one body can be planned for both (gpu_delegate/body.py), if
no cycle arises between groups, and if the device has pixels enough to fill its threads. Where it does not join, the
reason is kept for `texelflow inspect`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpu_delegate.body import Body, Decline, plan_body
from gpu_delegate.device import Device
from gpu_delegate.errors import UnsupportedError
from gpu_delegate.graph import Graph, Node
from gpu_delegate.nodes import SCATTERS, is_contraction, is_pointwise_convolution
from gpu_delegate.ops.elementwise import is_elementwise
from gpu_delegate.vector import is_vector_node


@dataclass(frozen=True)
class Groups:
    """Pixel kernels' bodies in an order to run, vector nodes by output, and why nodes did not join."""

    bodies: tuple[Body, ...]
    vector_nodes: dict[int, Node]
    declined: tuple[str, ...]


def group_nodes(graph: Graph, device: Device, fuse: bool = True) -> Groups:
    """Partition the graph's nodes; with fuse=False every node is a kernel of its own.

    Raises UnsupportedError naming a node for which no kernel can be planned at all.
    """
    grouper = _Grouper(graph, device)
    for number, node in enumerate(graph.nodes):
        if not is_vector_node(graph, node):
            grouper.place(number, fuse)
    return grouper.finish()


class _Grouper:
    def __init__(self, graph: Graph, device: Device) -> None:
        self.graph = graph
        self.device = device
        self.nodes = graph.nodes
        self.producer = {out: number for number, node in enumerate(graph.nodes) for out in node.outputs}
        self.consumers = graph.consumers()
        self.group_of: dict[int, frozenset[int]] = {}
        self.declined: list[str] = []

    def place(self, number: int, fuse: bool) -> None:
        """Put a node into the first group that may take it, else into one of its own."""
        node = self.nodes[number]
        alone = frozenset({number})
        choices = self._choices(node) if fuse else []
        for choice in choices:
            reason = self._refuse(choice | alone)
            if reason is None:
                self._set(choice | alone)
                return
            self.declined.append(f"{node.op} -> {self.graph.tensors[node.outputs[0]].name}: {reason}")
        try:
            self._body(alone)
        except Decline as reason:
            name = self.graph.tensors[node.outputs[0]].name
            raise UnsupportedError(
                f"{node.op} (operator {node.index}, {name}) does not run on the GPU: {reason}"
            ) from None
        self._set(alone)

    def _choices(self, node: Node) -> list[frozenset[int]]:
        """Groups that the node could join: all of its pixel by pixel inputs together first, then one by one."""
        reads: Iterable[int] = ()
        if is_elementwise(node):
            reads = node.inputs
        elif is_pointwise_convolution(self.graph, node) or node.op in SCATTERS:
            reads = node.inputs[:1]
        groups = {self.group_of[self.producer[i]] for i in reads if self.producer.get(i) in self.group_of}
        latest_first = sorted(groups, key=max, reverse=True)
        together = [frozenset().union(*groups)] if len(groups) > 1 else []
        return [*together, *latest_first]

    def _set(self, group: frozenset[int]) -> None:
        for member in group:
            self.group_of[member] = group

    def _body(self, group: frozenset[int]) -> Body:
        members = [self.nodes[number] for number in sorted(group)]
        return plan_body(self.graph, members, self._stored(group), self.device)

    def _stored(self, group: frozenset[int]) -> set[int]:
        inside = {id(self.nodes[number]) for number in group}
        return {
            out
            for number in group
            for out in self.nodes[number].outputs
            if out in self.graph.outputs or any(id(reader) not in inside for reader in self.consumers.get(out, []))
        }

    def _refuse(self, group: frozenset[int]) -> str | None:
        """Why a group cannot be, or None."""
        if self._makes_cycle(group):
            return "its inputs depend on the kernel that it would join"
        try:
            body = self._body(group)
        except Decline as reason:
            return str(reason)
        whole = sum(is_contraction(node) for node in body.nodes) > 1 or not body.split
        if whole and body.domain.pixels < self.device.min_fused_threads:
            return f"{body.domain.pixels} pixels leave the device idle"
        return None

    def _makes_cycle(self, group: frozenset[int]) -> bool:
        """Whether something outside the group both needs it and is needed by it, groups counting as one."""
        waiting = [number for member in group for number in self._needs(member) if number not in group]
        seen: set[int] = set()
        while waiting:
            number = waiting.pop()
            if number in group:
                return True
            if number not in seen:
                seen |= self.group_of.get(number, frozenset({number}))
                waiting += [n for m in self.group_of.get(number, {number}) for n in self._needs(m)]
        return False

    def _needs(self, number: int) -> list[int]:
        return [self.producer[i] for i in self.nodes[number].inputs if i in self.producer]

    def finish(self) -> Groups:
        """All groups, planned."""
        bodies = [self._body(group) for group in self._in_order(list(dict.fromkeys(self.group_of.values())))]
        vectors = {n.outputs[0]: n for n in self.nodes if is_vector_node(self.graph, n)}
        return Groups(tuple(bodies), vectors, tuple(self.declined))

    def _in_order(self, groups: Sequence[frozenset[int]]) -> list[frozenset[int]]:
        """Groups such that each comes after all that it needs, else in the order of the graph."""
        done: set[int] = set()
        ordered: list[frozenset[int]] = []

        def visit(number: int) -> None:
            if number in done:
                return
            members = self.group_of.get(number, frozenset({number}))
            done.update(members)
            for member in sorted(members):
                for need in self._needs(member):
                    visit(need)
            if number in self.group_of:
                ordered.append(members)

        for group in sorted(groups, key=min):
            visit(min(group))
        return ordered
