"""Lowering: turns a graph, after its passes, into an ordered list of kernels, and says how each tensor is stored."""

from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Generic

from ..device.device import Device
from ..device.tile import Tile
from ..model.graph import Graph, Node
from ..model.layout import PLAIN, Precision, Storages, ceil_div, shape_of
from ..ops.nodes import has_role
from .body import Body, too_many_bindings
from .bounds import weight_bytes
from .compile_options import CompileOptions
from .dispatch import D, KernelMaker, LoweredGraph
from .epilogue_sums import (
    EpilogueSum,
    PartialSums,
    find_epilogue_sums,
    needed_slices,
    shared_bytes_of,
    with_few_groups,
)
from .fusion import Groups, group_nodes
from .signature import graph_signature, signature_of
from .source_size import source_size
from .split_k import within_limits
from .static_model import work_groups
from .storages import storage_inside
from .tiling import choose_tiles, reduction_tile
from .vector_work import MOST_NODES, MOST_TURNS, VectorWork, input_names, narrowed, turns_of, vectors_size

MOST_ROUNDS = 256  # of loads by all threads of a work-group, in front of a kernel: while they wait, nothing else runs
MOST_REPEATED_BYTES = 1 << 26  # of the weights of vector nodes that are in several kernels, over the whole program


def lower(
    target: Callable[[Device, Storages], KernelMaker[D]],
    graph: Graph,
    device: Device,
    options: CompileOptions,
) -> LoweredGraph[D]:
    """Kernels of a whole graph, by a target that is given a device within its limits, and how tensors are stored.

    Raises UnsupportedError naming the first node that has none.
    """
    fuse, precision = options.fuse, options.precision
    if precision != "fp16-arithmetic":
        device = device.with_limits(half_arithmetic="")
    device = (device.for_graph(graph_signature(graph, precision)) if fuse else device).fitted()
    groups = group_nodes(graph, device, fuse, precision, options.memory.uses_views)
    signatures = [signature_of(body, precision) for body in groups.bodies]
    known, budget_s = device.tiles_of(signatures), options.compile_budget_s
    tiles = choose_tiles(groups.bodies, device.tuning, budget_s, known, len(groups.vector_nodes))
    tiles = [within_limits(body, tile, device.limits) for body, tile in zip(groups.bodies, tiles, strict=True)]
    sums = PartialSums(graph, groups.vector_nodes, {})
    if fuse and device.tuning.leaves_sums:
        tiles = _tiles_with_sums(groups, tiles, device)
        sums = find_epilogue_sums(graph, groups.bodies, tiles, groups.vector_nodes, device)
    storages = _storages(sums.graph, groups, precision)
    readers = _readers(groups.bodies, sums.vectors)
    read = {*graph.outputs, *(tensor for body in groups.bodies for tensor in body.inputs)}
    builder = _Builder(target(device, storages), device, sums, readers, read, inline=fuse)
    for number, (body, tile, signature) in enumerate(zip(groups.bodies, tiles, signatures, strict=True)):
        builder.add(replace(body, graph=sums.graph), tile, signature, sums.left_by.get(number, ()))
    builder.add_vectors([t for t in graph.outputs if t in groups.vector_nodes])
    if not fuse:
        builder.add_vectors(list(groups.vector_nodes))
    return LoweredGraph(sums.graph, tuple(builder.kernels), groups.declined, storages, groups.views)


def _tiles_with_sums(groups: Groups, tiles: Sequence[Tile], device: Device) -> list[Tile]:
    """Tiles with fewer work-groups for bodies that make maps which vector nodes reduce, or read what these make."""
    reduced = {node.inputs[0] for node in groups.vector_nodes.values() if has_role(node, "reduction")}
    return [
        with_few_groups(body, tile, device.tuning, device.limits)
        if reduced.intersection(body.outputs) or groups.vector_nodes.keys() & set(body.inputs)
        else tile
        for body, tile in zip(groups.bodies, tiles, strict=True)
    ]


def _storages(graph: Graph, groups: Groups, precision: Precision) -> Storages:
    """As groups have it, and for partial sums as requested; some outputs are plain."""
    sums = {number: storage_inside(tensor, precision) for number, tensor in graph.tensors.items()}
    return {**sums, **groups.storages, **dict.fromkeys(_plain_outputs(graph, groups), PLAIN)}


def _plain_outputs(graph: Graph, groups: Groups) -> frozenset[int]:
    """Outputs of one channel that pixel kernels write and no node reads; states are stored as what they replace."""
    read = {tensor for node in graph.nodes for tensor in node.inputs} | {state.written for state in graph.states}
    written = {tensor for body in groups.bodies for tensor in body.outputs}
    shapes = {tensor: shape_of(graph.tensors[tensor]) for tensor in written & set(graph.outputs) - read}
    return frozenset(tensor for tensor, shape in shapes.items() if shape.channels == 1 and not shape.is_vector)


def _readers(bodies: Sequence[Body], vectors: Mapping[int, Node]) -> Mapping[int, int]:
    """Of how many bodies each vector is needed, directly or for others; what is far behind counts less often."""
    found = Counter[int]()
    for body in bodies:
        wanted = [tensor for tensor in body.inputs if tensor in vectors]
        found.update(_behind(wanted, vectors, (), MOST_NODES))
    return found


def _behind(wanted: Sequence[int], vectors: Mapping[int, Node], known: Container[int], most: int = 1 << 31) -> set[int]:
    """Vectors needed for some tensors, without those that are known and what only these need; about `most` of them."""
    needed, waiting = set[int](), list(wanted)
    while waiting and len(needed) < most:
        tensor = waiting.pop()
        if tensor in vectors and tensor not in known and tensor not in needed:
            needed.add(tensor)
            waiting += vectors[tensor].inputs
    return needed


def _readers_in(work: VectorWork, tensor: int) -> int:
    """How many nodes of a work read a tensor."""
    return sum(tensor in node.inputs for node in work.nodes)


class _Builder(Generic[D]):
    def __init__(
        self,
        maker: KernelMaker[D],
        device: Device,
        sums: PartialSums,
        readers: Mapping[int, int],
        read: Container[int],
        inline: bool,
    ) -> None:
        """`readers`: how many bodies need each vector; `read`: what bodies read, and the graph's outputs."""
        self.maker = maker
        self.readers, self.read = readers, read
        self.lanes = max(device.tuning.simd_width, device.tuning.wave_threads if device.tuning.simd_width == 1 else 1)
        self.graph = sums.graph
        self.limits, self.tuning = device.limits, device.tuning
        self.vector_threads = reduction_tile(device).threads
        self.vector_nodes = sums.vectors
        self.vector_readers = Counter(tensor for node in sums.vectors.values() for tensor in set(node.inputs))
        self.order = {tensor: number for number, tensor in enumerate(sums.vectors)}  # that of the graph
        self.inline = inline
        self.kernels: list[D] = []
        self.stored: set[int] = set()
        self.computed: set[int] = set()  # by vector nodes, in some kernel
        self.repeated_bytes = 0

    def add(self, body: Body, tile: Tile, signature: str, left: Sequence[EpilogueSum] = ()) -> None:
        """Add a body's kernel after the reduction kernels that it needs and cannot include as a prologue."""
        wanted = [t for t in body.inputs if t in self.vector_nodes and t not in self.stored]
        prologue = narrowed(self._work(self._behind(wanted), tile.threads), *needed_slices(body, tile))
        if prologue.nodes and not self._is_cheap(prologue, body, tile, left):
            self.add_vectors(wanted)
            prologue = replace(prologue, nodes=())
        if prologue.nodes and tile.weights_fetch == self.tuning.weights_fetch:
            tile = replace(tile, weights_fetch=self.tuning.fetch_of_weights(is_varied=True))
        self._count(prologue.nodes)
        self.kernels.append(self.maker.pixel(body, prologue, tile, left, signature))

    def add_vectors(self, wanted: list[int]) -> None:
        """Add kernels that store these vectors: one for all if possible, else each with as many nodes as fit.

        Without fusion it is one node each.
        """
        wanted = [tensor for tensor in wanted if tensor not in self.stored]
        work = self._work(self._behind(wanted), self.vector_threads)
        others = self._read_elsewhere(work, wanted)
        if self._fits(work, (), len(wanted) + len(others)):
            wanted += others
        if not self.inline or not self._fits(work, (), len(wanted)):
            for part in self._parts(work, wanted):
                self._add_reduction(part, self._read_behind(part, wanted))
        elif work.nodes:
            self._count(work.nodes)
            self._add_reduction(work, wanted)

    def _parts(self, work: VectorWork, wanted: Sequence[int]) -> Iterator[VectorWork]:
        """Works one behind the other, in the order of the nodes, of one node each or of as many as fit."""
        part = replace(work, nodes=())
        for node in work.nodes:
            more = replace(work, nodes=(*part.nodes, node))
            if part.nodes and not (self.inline and self._fits(more, (), len(self._read_behind(more, wanted)))):
                yield part
                more = replace(work, nodes=(node,))
            part = more
        if part.nodes:
            yield part

    def _read_behind(self, part: VectorWork, wanted: Sequence[int]) -> list[int]:
        """What a work has to store: what is wanted of it, and what others read."""
        return [
            out
            for node in part.nodes
            for out in node.outputs
            if out in wanted or out in self.read or self.vector_readers[out] > _readers_in(part, out)
        ]

    def _read_elsewhere(self, work: VectorWork, wanted: Sequence[int]) -> list[int]:
        """Values behind those wanted that other kernels need, too, and for which they would reduce a map again."""
        reduced, found = set[int](), list[int]()
        for node in work.nodes:
            out = node.outputs[0]
            of_map = has_role(node, "reduction") and not shape_of(self.graph.tensors[node.inputs[0]]).is_vector
            if of_map or reduced.intersection(node.inputs):
                reduced.add(out)
                if out not in wanted and (out in self.read or self.vector_readers[out] > _readers_in(work, out)):
                    found.append(out)
        return found

    def _add_reduction(self, work: VectorWork, outputs: Sequence[int]) -> None:
        for kernel in self.maker.vectors(work, outputs):
            self.kernels.append(kernel)
            self.stored.update(kernel.outputs)

    def _work(self, nodes: Sequence[Node], threads: int) -> VectorWork:
        return VectorWork(self.graph, tuple(nodes), threads, self.inline and self.tuning.leaves_sums)

    def _behind(self, wanted: list[int]) -> list[Node]:
        """Vector nodes needed for some tensors and not stored yet, in the graph's order."""
        needed = _behind(wanted, self.vector_nodes, self.stored)
        return [self.vector_nodes[tensor] for tensor in sorted(needed, key=self.order.__getitem__)]

    def _fits(self, work: VectorWork, others: tuple[int, ...], outputs: int, taken_bytes: int = 0) -> bool:
        """Whether one kernel can do this vector work besides reading the inputs `others`, in what is left of memory."""
        repeated_bytes = self.repeated_bytes + self._repeated(work.nodes)
        if len(work.nodes) > MOST_NODES or repeated_bytes > MOST_REPEATED_BYTES:
            return False
        inputs = tuple(input_names(others, work))
        room = work.shared_bytes + taken_bytes <= self.limits.shared_memory_bytes
        return room and not too_many_bindings(self.graph, work.nodes, inputs, outputs, self.limits)

    def _repeated(self, nodes: Sequence[Node]) -> int:
        """Bytes of weights that some kernel has already."""
        return sum(weight_bytes(self.graph, node) for node in nodes if node.outputs[0] in self.computed)

    def _count(self, nodes: Sequence[Node]) -> None:
        """Record that a kernel computes these vector nodes."""
        self.repeated_bytes += self._repeated(nodes)
        self.computed.update(node.outputs[0] for node in nodes)

    def _is_cheap(self, prologue: VectorWork, body: Body, tile: Tile, left: Sequence[EpilogueSum]) -> bool:
        """Whether repeating the vector nodes in each work-group costs less than a dispatch of their own."""
        outputs, taken_bytes = len(body.outputs) + len(left), shared_bytes_of(body, tile, left)
        if not self.inline or not self._fits(prologue, body.inputs, outputs, taken_bytes):
            return False
        if (source_size(body, tile) + vectors_size(prologue.nodes)).characters > self.tuning.source_characters:
            return False
        rounds = prologue.steps // tile.threads if prologue.is_shared else 0
        if turns_of(prologue) > MOST_TURNS or rounds > MOST_ROUNDS:
            return False
        return self._repeated_steps(prologue, body, tile) <= self.tuning.prologue_loads

    def _repeated_steps(self, prologue: VectorWork, body: Body, tile: Tile) -> int:
        """What all work-groups of all kernels spend on these vector nodes beyond computing them once, lanes filled."""
        readers = max(self.readers.get(out, 1) for node in prologue.nodes for out in node.outputs)
        idle = ceil_div(self.lanes, prologue.threads)
        return prologue.steps * (work_groups(body, tile) * idle * readers - 1)
