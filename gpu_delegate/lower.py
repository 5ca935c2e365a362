"""Lowering: the passes' graph goes in, kernels in an executable order and how tensors are stored come out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .body import Body, too_many_bindings
from .bounds import weight_bytes
from .device import COMPILE_BUDGET_S, Device
from .fusion import Groups, group_nodes
from .graph import Graph, Node
from .kernel import Kernel, input_names, pixel_kernel, reduction_kernel
from .layout import PHWC4, PLAIN, TEXEL_BYTES, Precision, Storages, shape_of, storage_inside
from .nodes import has_role
from .reduction import shared_bytes
from .signature import graph_signature, signature_of
from .tile import Tile
from .tiling import choose_tiles, reduction_tile
from .views import Views

MOST_REDUCTION_NODES = 32  # of one kernel: what it does not store, other kernels compute again
MOST_REPEATED_BYTES = 1 << 26  # of the weights of vector nodes that are in several kernels, over the whole program


@dataclass(frozen=True)
class Lowered:
    """Kernels in order, how each tensor is stored, and what fusion declined."""

    graph: Graph
    kernels: tuple[Kernel, ...]
    declined: tuple[str, ...]
    storages: Storages
    views: Views


def lower(
    graph: Graph,
    device: Device,
    fuse: bool = True,
    precision: Precision = "fp32",
    compile_budget_s: float = COMPILE_BUDGET_S,
) -> Lowered:
    """Kernels for a whole graph. Raises UnsupportedError naming the first node that has none."""
    device = device.for_graph(graph_signature(graph, precision)) if fuse else device
    groups = group_nodes(graph, device, fuse, precision)
    signatures = [signature_of(body, precision) for body in groups.bodies]
    tiles = choose_tiles(groups.bodies, device.tuning, compile_budget_s, device.tiles_of(signatures))
    storages = _storages(graph, groups, precision)
    builder = _Builder(graph, device, groups, storages, inline=fuse)
    for body, tile, signature in zip(groups.bodies, tiles, signatures, strict=True):
        builder.add(body, tile, signature)
    builder.add_vectors([t for t in graph.outputs if t in groups.vector_nodes])
    if not fuse:
        builder.add_vectors(list(groups.vector_nodes))
    return Lowered(graph, tuple(builder.kernels), groups.declined, storages, groups.views)


def _storages(graph: Graph, groups: Groups, precision: Precision) -> Storages:
    """Float32 for inputs, outputs and constants, which others access; else as requested."""
    plain, outside = _plain_outputs(graph, groups), {*graph.inputs, *graph.outputs}
    return {
        number: PLAIN
        if number in plain
        else PHWC4
        if number in outside or tensor.is_constant
        else storage_inside(tensor, precision)
        for number, tensor in graph.tensors.items()
    }


def _plain_outputs(graph: Graph, groups: Groups) -> frozenset[int]:
    """Outputs of one channel that pixel kernels write and no node reads."""
    read = {tensor for node in graph.nodes for tensor in node.inputs}
    written = {tensor for body in groups.bodies for tensor in body.outputs}
    shapes = {tensor: shape_of(graph.tensors[tensor]) for tensor in written & set(graph.outputs) - read}
    return frozenset(tensor for tensor, shape in shapes.items() if shape.channels == 1 and not shape.is_vector)


class _Builder:
    def __init__(self, graph: Graph, device: Device, groups: Groups, storages: Storages, inline: bool) -> None:
        self.graph = graph
        self.limits, self.tuning = device.limits, device.tuning
        self.vector_tile = reduction_tile(device)
        self.vector_nodes = groups.vector_nodes
        self.order = {tensor: number for number, tensor in enumerate(groups.vector_nodes)}  # that of the graph
        self.storages = storages
        self.inline = inline
        self.kernels: list[Kernel] = []
        self.stored: set[int] = set()
        self.computed: set[int] = set()  # by vector nodes, in some kernel
        self.repeated_bytes = 0

    def add(self, body: Body, tile: Tile, signature: str) -> None:
        """Add a body's kernel after the reduction kernels that it needs and cannot include as a prologue."""
        wanted = [t for t in body.inputs if t in self.vector_nodes and t not in self.stored]
        prologue = self._behind(wanted)
        if prologue and not self._is_cheap(prologue, body, tile):
            self.add_vectors(wanted)
            prologue = []
        self._count(prologue)
        kernel = pixel_kernel(body, prologue, tile, self.limits, self.storages)
        self.kernels.append(replace(kernel, signature=signature, tile=tile))

    def add_vectors(self, wanted: list[int]) -> None:
        """Add kernels that store these vectors: one for all if possible, else one for each node that they depend on."""
        wanted = [tensor for tensor in wanted if tensor not in self.stored]
        nodes = self._behind(wanted)
        if not self.inline or not self._fits(nodes, (), len(wanted), self.vector_tile):
            for node in nodes:
                self.kernels.append(self._reduction([node], node.outputs))
                self.stored.update(node.outputs)
        elif nodes:
            self._count(nodes)
            self.kernels.append(self._reduction(nodes, wanted))
            self.stored.update(wanted)

    def _reduction(self, nodes: Sequence[Node], outputs: Sequence[int]) -> Kernel:
        return reduction_kernel(self.graph, nodes, outputs, self.vector_tile, self.limits, self.storages)

    def _behind(self, wanted: list[int]) -> list[Node]:
        """Vector nodes needed for some tensors and not stored yet, in the graph's order."""
        needed: set[int] = set()
        waiting = list(wanted)
        while waiting:
            tensor = waiting.pop()
            if tensor in self.vector_nodes and tensor not in self.stored and tensor not in needed:
                needed.add(tensor)
                waiting += self.vector_nodes[tensor].inputs
        return [self.vector_nodes[tensor] for tensor in sorted(needed, key=self.order.__getitem__)]

    def _fits(self, nodes: list[Node], others: tuple[int, ...], outputs: int, tile: Tile) -> bool:
        """Whether one kernel can compute these vector nodes besides reading the inputs `others`."""
        if len(nodes) > MOST_REDUCTION_NODES or self.repeated_bytes + self._repeated(nodes) > MOST_REPEATED_BYTES:
            return False
        inputs = tuple(input_names(self.graph, others, nodes))
        taken_bytes = shared_bytes(self.graph, nodes, math.prod(tile.local)) + TEXEL_BYTES * tile.shared_texels
        room = taken_bytes <= self.limits.shared_memory_bytes
        return room and not too_many_bindings(self.graph, nodes, inputs, outputs, self.limits)

    def _repeated(self, nodes: list[Node]) -> int:
        """Bytes of weights that some kernel has already."""
        return sum(weight_bytes(self.graph, node) for node in nodes if node.outputs[0] in self.computed)

    def _count(self, nodes: list[Node]) -> None:
        """Record that a kernel computes these vector nodes."""
        self.repeated_bytes += self._repeated(nodes)
        self.computed.update(node.outputs[0] for node in nodes)

    def _is_cheap(self, prologue: list[Node], body: Body, tile: Tile) -> bool:
        """Whether repeating the vector nodes in each work-group costs less than a dispatch of their own."""
        if not self.inline or not self._fits(prologue, body.inputs, len(body.outputs), tile):
            return False
        loads = sum(shape_of(self.graph.tensors[n.inputs[0]]).texels for n in prologue if has_role(n, "reduction"))
        return loads * math.prod(tile.groups(body.domain)) <= self.tuning.prologue_loads
