"""One kernel as a value: a planned body or vector nodes go in, complete GLSL, grid, bindings and weights come out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from .bindings import HalfFunctions, KernelInput, KernelOutput, declare, settle_fetches
from .body import Body
from .emit import Emitter
from .graph import Graph, Node
from .half_products import in_halves
from .layout import PHWC4, PHWC4_HALVES, Fetch, MapShape, Storage, Storages, ceil_div, shape_of
from .limits import Limits
from .nodes import called_functions, has_weights, is_constant_vector, record_of
from .ops.depth_to_space import plain_lanes
from .packing import Blob, Float32Array
from .print_glsl import lines, shared_array
from .reduction import ReductionEmitter
from .schedule import scheduled
from .shader import fill, load, with_extension
from .tile import Tile

Sides = tuple[int, int, int]  # (x, y, z)


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
    fetches: tuple[Fetch, ...]  # how each input is read
    weights_fetch: Fetch
    weights: Float32Array
    macs: int
    idle_threads: int = 0  # that have no pixel of their own
    signature: str = ""  # by which its tile is chosen; none for vector nodes alone
    tile: Tile | None = None
    weights_storage: Storage = PHWC4

    @property
    def weights_bytes(self) -> int:
        """Of the weights in memory."""
        return len(self.weights) * self.weights_storage.texel_bytes

    @property
    def threads(self) -> int:
        """Of all work-groups."""
        return math.prod(self.grid) * math.prod(self.local)


def pixel_kernel(body: Body, prologue: Sequence[Node], tile: Tile, limits: Limits, storages: Storages) -> Kernel:
    """GLSL for a body under a tile, with vector nodes computed first by every work-group."""
    graph, domain = body.graph, body.domain
    outline = _Outline(graph, body.inputs, prologue, tile, limits, storages)
    emitter = Emitter(body, tile, outline.inputs, outline.vectors.arrays, outline.blob, storages)
    emitter.emit()
    statements = scheduled((*emitter.preamble, *emitter.statements), tile)
    statements = in_halves(statements) if limits.half_arithmetic else statements
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
        ceil_div(slices, tile.z_slices) if tile.z_slices else 1,
    )
    targets = {tensor: _target(body, tensor, storages[tensor]) for tensor in body.outputs}
    nodes, text = (*prologue, *body.nodes), list(lines(statements))
    place, leaving = _leaving(tile, domain, slices) if tile.leaves else (None, [])
    shared = [shared_array(name, texels) for name, texels in emitter.shared.items()]
    kernel = outline.kernel(nodes, grid, targets, _Main(defines, leaving + text, place, shared))
    busy = width * ceil_div(height, tile.rows) * grid[2] * tile.parts
    return replace(kernel, idle_threads=kernel.threads - busy)


def reduction_kernel(
    graph: Graph, nodes: Sequence[Node], outputs: Sequence[int], tile: Tile, limits: Limits, storages: Storages
) -> Kernel:
    """GLSL for vector nodes alone: the one work-group of a tile, whose results are stored."""
    threads = math.prod(tile.local)
    outline = _Outline(graph, (), nodes, tile, limits, storages)
    stores = []
    for k, tensor in enumerate(outputs):
        shape = shape_of(graph.tensors[tensor])
        stores += [
            f"    for (int o = thread; o < {shape.slices}; o += {threads})",
            f"        WRITE(out{k}, o, keep({outline.vectors.arrays[tensor]}[o], {shape.channels} - 4 * o));",
        ]
    targets = {tensor: KernelOutput(storages[tensor]) for tensor in outputs}
    return outline.kernel(tuple(nodes), (1, 1, 1), targets, _Main({"WIDTH": threads, "HEIGHT": 1}, stores))


def _leaving(tile: Tile, domain: MapShape, slices: int) -> tuple[list[str], list[str]]:
    """Where a thread's pixels and slices begin, and what ends those that have none: behind the last barrier."""
    (width, height), counts, (x, y, parts) = tile.area(domain), tile.groups(domain), tile.local
    place = [
        "    int x0 = int(gl_GlobalInvocationID.x);",
        f"    int y0 = int(gl_GlobalInvocationID.y){f' * {tile.rows}' if tile.rows > 1 else ''};",
    ]
    if tile.z_slices:
        place.append(f"    int z0 = int(gl_WorkGroupID.z){f' * {tile.z_slices}' if tile.z_slices > 1 else ''};")
    past = [f"x0 >= {width}"] if counts[0] * x > width else []
    past += [f"y0 >= {height}"] if counts[1] * y * tile.rows > height else []
    if parts == 1:
        return place, [f"    if ({' || '.join(past)}) return;"] if past else []
    return [
        *place,
        "    int part = int(gl_LocalInvocationID.z);",
        f"    bool past = {' || '.join(past) or 'false'};  // such a thread repeats work until all threads have met",
        f"    x0 = min(x0, {width - 1});",
        f"    y0 = min(y0, {height - tile.rows});",
    ], []


@dataclass(frozen=True)
class _Main:
    """What is a kernel's own in kernel.comp."""

    defines: Mapping[str, int]
    lines: list[str]
    place: list[str] | None = None  # where a thread's pixels begin, if threads leave
    shared: list[str] = field(default_factory=list)  # declarations of arrays


class _Outline:
    """A kernel under construction: its inputs by name, its weights so far, and the reductions with which it begins."""

    def __init__(
        self,
        graph: Graph,
        body_inputs: Sequence[int],
        vector_nodes: Sequence[Node],
        tile: Tile,
        limits: Limits,
        storages: Storages,
    ) -> None:
        self._graph = graph
        self._tile = tile
        self._limits = limits
        self.inputs = input_names(graph, body_inputs, vector_nodes)
        self.blob = Blob()
        self.vectors = ReductionEmitter(graph, vector_nodes, math.prod(tile.local), self.inputs, self.blob)
        self._sources = [
            KernelInput(storages[tensor], shape_of(graph.tensors[tensor]).texels, tile.inputs_fetch)
            for tensor in self.inputs
        ]

    def kernel(
        self,
        nodes: tuple[Node, ...],
        grid: Sides,
        targets: Mapping[int, KernelOutput],
        main: "_Main",
    ) -> Kernel:
        """The kernel whose main() continues so after the reductions."""
        sizes = zip(("LOCAL_X", "LOCAL_Y", "LOCAL_Z"), self._tile.local, strict=True)
        called, weights = called_functions(nodes), self.blob.data()
        storage = PHWC4_HALVES if self._limits.half_arithmetic else PHWC4
        wanted = KernelInput(storage, len(weights), self._tile.weights_fetch if len(weights) else "texture")
        read, *sources = settle_fetches([wanted, *self._sources], len(targets), self._limits)
        restricts = "storage" in (self._tile.weights_fetch, self._tile.inputs_fetch)
        is_declared = len(weights) or (self._tile.weights_fetch == "texture" and self._limits.texture_buffer_texels)
        bindings = declare(
            sources,
            list(targets.values()),
            read if is_declared else None,
            restricts,
            HalfFunctions(self._limits.packs_halves, bool(self._limits.half_arithmetic)),
        )
        sections = {
            "bindings": bindings + called + self.vectors.shared + main.shared,
            "place": main.place,
            "body": self.vectors.lines + main.lines,
        }
        return Kernel(
            name="+".join(record_of(node).kernel_name for node in nodes),
            nodes=nodes,
            source=with_extension(
                fill(load("kernel.comp", {**main.defines, **dict(sizes)}), sections), self._limits.half_arithmetic
            ),
            grid=grid,
            local=self._tile.local,
            inputs=tuple(self.inputs),
            outputs=tuple(targets),
            fetches=tuple(source.fetch for source in sources),
            weights_fetch=read.fetch,
            weights=weights,
            weights_storage=storage,
            macs=sum(record_of(node).macs(self._graph, node) for node in nodes),
        )


def input_names(graph: Graph, body_inputs: Sequence[int], prologue: Sequence[Node]) -> dict[int, str]:
    """Tensors that a kernel reads, in order of use, as in0, in1, ..."""
    made = {out for node in prologue for out in node.outputs}
    read = [tensor for tensor in body_inputs if tensor not in made]
    for node in prologue:
        operands = node.inputs[:1] if has_weights(node) else node.inputs
        read += [t for t in operands if t not in made and not is_constant_vector(graph, t)]
    return {tensor: f"in{k}" for k, tensor in enumerate(dict.fromkeys(read))}


def _target(body: Body, tensor: int, storage: Storage) -> KernelOutput:
    if storage.lanes == 4:
        return KernelOutput(storage)
    return KernelOutput(storage, plain_lanes(shape_of(body.graph.tensors[tensor]).width // body.domain.width))
