"""Makes complete GLSL kernels from planned bodies and vector nodes, with grid, bindings and weights."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...device.device import Device
from ...device.limits import Limits
from ...device.tile import Tile
from ...kernels.kernel_code import KernelCode, pixel_code, vector_code
from ...kernels.weights_recipe import WeightsRecipe
from ...model.graph import Graph, Node
from ...model.layout import PHWC4, PHWC4_HALVES, Fetch, Storage, Storages, ceil_div, shape_of
from ...model.packing import Float32Array
from ...ops.depth_to_space import plain_lanes
from ...ops.nodes import arithmetic_of, is_elementwise, record_of
from ...plan.body import Body
from ...plan.bounds import check_source, is_short
from ...plan.compile_options import COMPILE_DEFAULTS, CompileOptions
from ...plan.dispatch import LoweredGraph
from ...plan.epilogue_sums import EpilogueSum
from ...plan.in_place import InPlacePair, in_place_pairs
from ...plan.lower import lower
from ...plan.repetition import repetition_of
from ...plan.source_size import KERNEL, VECTOR_NODE, source_size
from ...plan.tiling import reduction_tile
from ...plan.vector_work import VectorWork, input_names
from .bindings import Bindings, HalfFunctions, KernelInput, KernelOutput, settle_fetches, with_lows
from .print_glsl import libraries_of, lines, shared_array
from .shader import fill, lines_of, load, with_extension

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
    bindings: Bindings  # how inputs, outputs and weights are declared in the source
    weights_fetch: Fetch
    weights: Float32Array
    macs: int  # as the ops define them; each counts once
    repeated_macs: int = 0  # that work-groups and threads compute again (repetition.py)
    repeated_bytes: int = 0  # that work-groups read again
    idle_threads: int = 0  # that have no pixel of their own
    signature: str = ""  # by which its tile is chosen; none for vector nodes alone
    tile: Tile | None = None
    weights_storage: Storage = PHWC4
    operations: int = 0  # of the driver's compiler (source_size.py)
    in_place: tuple[InPlacePair, ...] = ()  # outputs that may lie where an input does, if that is read as storage

    @property
    def fetches(self) -> tuple[Fetch, ...]:
        """How each input is read."""
        return tuple(source.fetch for source in self.bindings.inputs)

    @property
    def weights_bytes(self) -> int:
        """Of the weights in memory."""
        return len(self.weights) * self.weights_storage.texel_bytes

    @property
    def threads(self) -> int:
        """Of all work-groups."""
        return math.prod(self.grid) * math.prod(self.local)

    def with_replaced(self, output: int, tensor: int) -> "Kernel":
        """The same where an output lies in the place of an input, for one of the pairs that it has `in_place`."""
        before = self.bindings
        bindings = before.with_replaced(self.inputs.index(tensor), self.outputs.index(output))
        old, new = ("".join(f"{line}\n" for line in each.lines) for each in (before, bindings))
        assert self.source.count(old) == 1, "declarations stand together"
        return replace(self, bindings=bindings, source=self.source.replace(old, new))


def compile_s(kernels: Iterable[Kernel], operation_compile_us: float) -> float:
    """About how long a driver that has nothing kept compiles them, in seconds of the CPU; equal sources once."""
    return sum({kernel.source: kernel.operations for kernel in kernels}.values()) * operation_compile_us / 1e6


@dataclass(frozen=True)
class GlslKernels:
    """Makes the kernels of a program in GLSL."""

    limits: Limits
    storages: Storages
    vector_tile: Tile  # of kernels of vector nodes alone
    known: dict[Hashable, tuple[Kernel, WeightsRecipe]] = field(default_factory=dict)  # one of all alike

    def pixel(
        self, body: Body, prologue: VectorWork, tile: Tile, left: Sequence[EpilogueSum], signature: str
    ) -> Kernel:
        """A body's kernel, with vector nodes computed first, and sums left at the end.

        Where the tile's text would be too long, that of the shortest tile. Raises UnsupportedError if that is, too.
        """
        same = body.key, tile, tuple(map(self.storages.get, body.tensors))
        is_alone = not prologue.nodes and not left
        if is_alone and same in self.known:
            first, known = self.known[same]
            return replace(_with_tensors_of(body, first), weights=known.weights(body), signature=signature)
        kernel, recipe = pixel_kernel(body, prologue, tile, self.limits, self.storages, left)
        if not is_short(kernel.source) and not left:
            tile = _shortest(body, tile, keeps_slices=bool(prologue.nodes))
            kernel, recipe = pixel_kernel(body, prologue, tile, self.limits, self.storages, left)
        check_source(kernel.name, kernel.source)
        blocks = len(kernel.outputs) + [*kernel.fetches, kernel.weights_fetch].count("storage")
        pairs = in_place_pairs(body, tile, frozenset(input_names((), prologue)), self.storages)
        fits = not left and blocks < self.limits.storage_bindings
        kernel = replace(
            kernel, signature=signature, tile=tile, in_place=pairs[:1] if fits else (),
            operations=source_size(body, tile).operations + VECTOR_NODE * len(prologue.nodes),
        )  # fmt: skip
        if recipe:
            self.known[same] = kernel, recipe
        return kernel

    def vectors(self, work: VectorWork, outputs: Sequence[int]) -> Sequence[Kernel]:
        """The one kernel of vector nodes, or where its text would be too long, one for each of them.

        Raises UnsupportedError for a node whose own is.
        """
        whole = self._reduction(work, outputs)
        if is_short(whole.source):
            return [whole]
        found = [self._reduction(replace(work, nodes=(node,)), node.outputs) for node in work.nodes]
        for kernel in found:
            check_source(kernel.name, kernel.source)
        return found

    def _reduction(self, work: VectorWork, outputs: Sequence[int]) -> Kernel:
        kernel = reduction_kernel(work, outputs, self.vector_tile, self.limits, self.storages)
        return replace(kernel, operations=KERNEL + VECTOR_NODE * len(work.nodes))


def _with_tensors_of(body: Body, kernel: Kernel) -> Kernel:
    """The kernel of a body with the same key, for another one."""
    before = (*kernel.inputs, *kernel.outputs)
    now = dict(zip(before, (*body.inputs, *body.outputs), strict=True))
    in_place = tuple((now[output], now[tensor]) for output, tensor in kernel.in_place)
    return replace(kernel, nodes=body.nodes, inputs=body.inputs, outputs=body.outputs, in_place=in_place)


def _shortest(body: Body, tile: Tile, keeps_slices: bool) -> Tile:
    """A tile whose text is the shortest; a prologue has been made for the slices that a thread computes."""
    if tile.parts > 1 or tile.across:
        return tile
    splits = body.split and not keeps_slices
    return replace(tile, rows=1, baked=False, z_slices=1 if splits else tile.z_slices)


def pixel_kernel(
    body: Body,
    prologue: VectorWork,
    tile: Tile,
    limits: Limits,
    storages: Storages,
    left: Sequence[EpilogueSum] = (),
) -> tuple[Kernel, WeightsRecipe | None]:
    """GLSL for a body under a tile, with vector nodes computed first by every work-group, and sums left at the end.

    And how its weights are packed, if bodies with the same key have this code and theirs are packed so.
    """
    graph, domain = body.graph, body.domain
    code = pixel_code(body, prologue, tile, left, storages, bool(limits.half_arithmetic))
    slices, packed = shape_of(graph.tensors[body.outputs[0]]).slices, len(code.blob)
    width, height = tile.area(domain)
    defines = {
        "WIDTH": width,
        "HEIGHT": height,
        "ROWS": tile.down,
        "SLICES": max(tile.z_slices, 1),
        "ALL_SLICES": slices if tile.z_slices else 1,
    }
    targets = {tensor: _target(body, tensor, storages[tensor]) for tensor in body.outputs}
    targets |= {each.tensor: KernelOutput(storages[each.tensor]) for each in left}
    kernel = _printed(code, prologue, tile, limits, storages, targets, defines)
    busy = width * ceil_div(height, tile.down) * tile.blocks(slices) * tile.parts
    again = repetition_of(body, tile, prologue, storages, kernel.weights_storage)
    kernel = replace(
        kernel, idle_threads=kernel.threads - busy, repeated_macs=again.macs, repeated_bytes=again.read_bytes
    )
    return kernel, None if code.pieces is None else WeightsRecipe.of(body, code.pieces, kernel.weights[packed:])


def reduction_kernel(
    work: VectorWork, outputs: Sequence[int], tile: Tile, limits: Limits, storages: Storages
) -> Kernel:
    """GLSL for vector nodes alone: the one work-group of a tile, whose results are stored."""
    targets = {tensor: KernelOutput(storages[tensor]) for tensor in outputs}
    defines = {"WIDTH": work.threads, "HEIGHT": 1}
    return _printed(vector_code(work, outputs), work, tile, limits, storages, targets, defines)


def _printed(
    code: KernelCode,
    work: VectorWork,
    tile: Tile,
    limits: Limits,
    storages: Storages,
    targets: Mapping[int, KernelOutput],
    defines: Mapping[str, int],
) -> Kernel:
    """The kernel that does what the code says."""
    blob, written, lows = code.blob, list(targets.values()), list[str]()
    sources = [KernelInput(storages[tensor], work.shape(tensor).texels, tile.inputs_fetch) for tensor in code.inputs]
    if len(blob.data()) and not tile.has_literals:
        sources, written, lows = with_lows(sources, written, blob)
    weights, storage = blob.data(), PHWC4_HALVES if limits.half_arithmetic else PHWC4
    wanted = KernelInput(storage, len(weights), tile.weights_fetch if len(weights) else "texture")
    read, *sources = settle_fetches([wanted, *sources], len(targets), limits)
    is_declared = len(weights) or (tile.weights_fetch == "texture" and limits.texture_buffer_texels)
    bindings = Bindings(
        tuple(sources),
        tuple(written),
        read if is_declared else None,
        "storage" in (tile.weights_fetch, tile.inputs_fetch),
        HalfFunctions(limits.packs_halves, bool(limits.half_arithmetic)),
    )
    return Kernel(
        name="+".join(record_of(node).kernel_name for node in code.nodes),
        nodes=code.nodes,
        source=_source(code, tile, bindings, lows, defines, limits),
        grid=code.grid,
        local=tile.local,
        inputs=tuple(code.inputs),
        outputs=tuple(targets),
        bindings=bindings,
        weights_fetch=read.fetch,
        weights=weights,
        weights_storage=storage,
        macs=sum(record_of(node).macs(work.graph, node) for node in code.nodes),
    )


def _source(
    code: KernelCode,
    tile: Tile,
    bindings: Bindings,
    lows: Sequence[str],
    defines: Mapping[str, int],
    limits: Limits,
) -> str:
    """The text of kernel.comp with what is a kernel's own; where its threads begin is there, but for some tiles."""
    sizes = zip(("LOCAL_X", "LOCAL_Y", "LOCAL_Z"), tile.local, strict=True)
    shared = [shared_array(*each) for each in code.shared.items()]
    sections = {
        "bindings": [*bindings.lines, *_called_functions(code.nodes), *shared],
        "place": list(lines(code.place)) if tile.deep or tile.leaves or tile.turned else None,
        "body": [*lows, *lines(code.statements)],
    }
    return with_extension(fill(load("kernel.comp", {**defines, **dict(sizes)}), sections), limits.half_arithmetic)


def _called_functions(nodes: Iterable[Node]) -> list[str]:
    """Lines of GLSL with the functions that elementwise nodes call, each once."""
    files = libraries_of(arithmetic_of(node) for node in nodes if is_elementwise(node))
    return [line for file in files for line in lines_of(file)]


def _target(body: Body, tensor: int, storage: Storage) -> KernelOutput:
    if storage.lanes == 4:
        return KernelOutput(storage)
    return KernelOutput(storage, plain_lanes(shape_of(body.graph.tensors[tensor]).width // body.domain.width))


Lowered = LoweredGraph[Kernel]


def lower_to_glsl(graph: Graph, device: Device, options: CompileOptions = COMPILE_DEFAULTS) -> Lowered:
    """Kernels in GLSL for a whole graph. Raises UnsupportedError naming the first node that has none."""

    def makes(fitted: Device, storages: Storages) -> GlslKernels:
        return GlslKernels(fitted.limits, storages, reduction_tile(fitted))

    return lower(makes, graph, device, options)
