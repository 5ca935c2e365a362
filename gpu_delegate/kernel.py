"""One kernel as a value: a planned body or vector nodes go in, complete GLSL, grid, bindings and weights come out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .bindings import KernelInput, KernelOutput, declare
from .body import Body
from .emit import Emitter
from .graph import Graph, Node
from .layout import Storage, Storages, ceil_div, shape_of
from .limits import Limits
from .nodes import called_functions, has_weights, record_of
from .ops.depth_to_space import plain_lanes
from .packing import Blob, Float32Array
from .reduction import ReductionEmitter
from .shader import fill, load
from .tile import Tile

Sides = tuple[int, int, int]  # (x, y, z)

REDUCTION_THREADS = 256  # of the one work-group of a reduction kernel


@dataclass(frozen=True)
class Kernel:
    """A dispatch before memory is planned. Tensors are numbers of the graph; weights are texels (N, 4)."""

    name: str
    nodes: tuple[Node, ...]
    source: str
    grid: Sides  # in work-groups
    local: Sides  # threads of a work-group
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    through_storage: tuple[bool, ...]  # of each input: read as SSBO since it is too large for a buffer texture
    weights: Float32Array
    macs: int
    signature: str = ""  # by which its tile is chosen; none for vector nodes alone
    tile: Tile | None = None


def pixel_kernel(body: Body, prologue: Sequence[Node], tile: Tile, limits: Limits, storages: Storages) -> Kernel:
    """GLSL for a body under a tile, with vector nodes computed first by every work-group."""
    graph, domain = body.graph, body.domain
    outline = _Outline(graph, body.inputs, prologue, math.prod(tile.local), limits, storages)
    emitter = Emitter(body, tile, outline.inputs, outline.vectors.arrays, outline.blob, storages)
    emitter.emit()
    slices = shape_of(graph.tensors[body.outputs[0]]).slices
    width, height = tile.area(domain)
    defines = {
        "WIDTH": width,
        "HEIGHT": height,
        "ROWS": tile.rows,
        "SLICES": max(tile.z_slices, 1),
        "ALL_SLICES": slices if tile.z_slices else 1,
    }
    grid = (
        *tile.groups(domain),
        ceil_div(slices, tile.z_slices * tile.local[2]) if tile.z_slices else 1,
    )
    targets = {tensor: _target(body, tensor, storages[tensor]) for tensor in body.outputs}
    nodes, lines = (*prologue, *body.nodes), emitter.preamble + emitter.lines
    return outline.kernel(nodes, grid, tile.local, defines, targets, lines)


def reduction_kernel(
    graph: Graph, nodes: Sequence[Node], outputs: Sequence[int], limits: Limits, storages: Storages
) -> Kernel:
    """GLSL for vector nodes alone: one work-group, whose results are stored."""
    outline = _Outline(graph, (), nodes, REDUCTION_THREADS, limits, storages)
    stores = []
    for k, tensor in enumerate(outputs):
        shape = shape_of(graph.tensors[tensor])
        stores += [
            f"    for (int o = thread; o < {shape.slices}; o += {REDUCTION_THREADS})",
            f"        WRITE(out{k}, o, keep({outline.vectors.arrays[tensor]}[o], {shape.channels} - 4 * o));",
        ]
    defines, targets = (
        {"WIDTH": REDUCTION_THREADS, "HEIGHT": 1},
        {tensor: KernelOutput(storages[tensor]) for tensor in outputs},
    )
    return outline.kernel(tuple(nodes), (1, 1, 1), (REDUCTION_THREADS, 1, 1), defines, targets, stores)


class _Outline:
    """A kernel under construction: its inputs by name, its weights so far, and the reductions with which it begins."""

    def __init__(
        self,
        graph: Graph,
        body_inputs: Sequence[int],
        vector_nodes: Sequence[Node],
        threads: int,
        limits: Limits,
        storages: Storages,
    ) -> None:
        self._graph = graph
        self.inputs = input_names(graph, body_inputs, vector_nodes)
        self.blob = Blob()
        self.vectors = ReductionEmitter(graph, vector_nodes, threads, self.inputs, self.blob)
        self._sources = [
            KernelInput(storages[tensor], shape_of(graph.tensors[tensor]).texels > limits.texture_buffer_texels)
            for tensor in self.inputs
        ]

    def kernel(
        self,
        nodes: tuple[Node, ...],
        grid: Sides,
        local: Sides,
        defines: Mapping[str, int],
        targets: Mapping[int, KernelOutput],
        lines: list[str],
    ) -> Kernel:
        """The kernel whose main() continues with these lines after the reductions."""
        sizes = zip(("LOCAL_X", "LOCAL_Y", "LOCAL_Z"), local, strict=True)
        called = called_functions(nodes)
        bindings = declare(self._sources, list(targets.values())) + called + self.vectors.shared
        sections = {"bindings": bindings, "body": self.vectors.lines + lines}
        return Kernel(
            name="+".join(record_of(node).kernel_name for node in nodes),
            nodes=nodes,
            source=fill(load("kernel.comp", {**defines, **dict(sizes)}), sections),
            grid=grid,
            local=local,
            inputs=tuple(self.inputs),
            outputs=tuple(targets),
            through_storage=tuple(source.through_storage for source in self._sources),
            weights=self.blob.data(),
            macs=sum(record_of(node).macs(self._graph, node) for node in nodes),
        )


def input_names(graph: Graph, body_inputs: Sequence[int], prologue: Sequence[Node]) -> dict[int, str]:
    """Tensors that a kernel reads, in order of use, as in0, in1, ..."""
    made = {out for node in prologue for out in node.outputs}
    read = [tensor for tensor in body_inputs if tensor not in made]
    for node in prologue:
        operands = node.inputs[:1] if has_weights(node) else node.inputs
        read += [t for t in operands if t not in made and not _is_weights(graph, t)]
    return {tensor: f"in{k}" for k, tensor in enumerate(dict.fromkeys(read))}


def _is_weights(graph: Graph, tensor: int) -> bool:
    """Whether it is a constant vector, stored among a kernel's weights; constant maps are read like tensors."""
    return graph.tensors[tensor].is_constant and shape_of(graph.tensors[tensor]).is_vector


def _target(body: Body, tensor: int, storage: Storage) -> KernelOutput:
    if storage.lanes == 4:
        return KernelOutput(storage)
    return KernelOutput(storage, plain_lanes(shape_of(body.graph.tensors[tensor]).width // body.domain.width))
