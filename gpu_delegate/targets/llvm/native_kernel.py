"""Makes one CPU kernel: a function in LLVM's language from a planned body and a tile.

    void NAME(ptr tensors, ptr weights, i32 y0, i32 y1, i32 z0, i32 z1)

`tensors` has a float pointer for each input, then one for each output, in the order of LlvmKernel; `weights` points at
the kernel's own, 64-byte aligned. Row groups y0 to y1 - 1 of the map are computed, slice blocks z0 to z1 - 1 of the
output, and all columns: what calls with other groups and blocks write is never left with other values.

A function is a loop over blocks of slices, over groups of rows and over blocks of as many columns as there are lanes;
of sums the first one is the innermost, and what it reads may be packed first (panels.py, winograd.py). Planes may be
copied first, with zeros around them (padded_planes.py). Where a map is no multiple of them, the last group or block
begins earlier, and computes some values again; in small maps it has vectors of half as many lanes, where these are
enough, or four pixels at a time (quads.py).
"""

from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ...code.vocabulary import Statement
from ...device.tile import Tile
from ...kernels.weights_recipe import WeightsRecipe
from ...model.graph import Node
from ...model.layout import MapShape, Storages, ceil_div, shape_of
from ...model.packing import Blob, Float32Array
from ...ops.nodes import computed_of, is_contraction, is_elementwise, record_of
from ...plan.body import Body
from ...plan.tiling import needs_its_pixels
from .index_analysis import Outline, run_of
from .ir import FLOAT, I64, Function, Module, Register, integer
from .kernel_context import KernelContext, Region, Tables, first_of_block
from .lanes import Affine, IntValue, Lanes, PlaneMemory
from .machine import CpuTarget
from .matrix_kernel import ProductEmitter, ProductTile, ProductWriter, product_tile
from .padded_planes import PaddedEmitter, PaddedPlane, copy_plane, fill_with_zeros, padded_plane
from .panels import LANE, PANEL, Packing, packed, packs
from .plane_emitter import PlaneEmitter
from .print_llvm import LanePrinter, by_channels
from .quads import QUAD_PIXELS, QuadEmitter
from .tensor_memories import context_of, forms_in_memory, has_all_planes, plain_outputs
from .tiles import native_tile
from .winograd import WinogradEmitter

PARAMETERS = (
    ("ptr noalias readonly", "tensors"),
    ("ptr noalias readonly", "weights"),
    *(("i32", name) for name in ("y0", "y1", "z0", "z1")),
)
LEAST_INSIDE = 0.25  # of all blocks, for code of their own without conditions
MOST_BLOCKS = 4  # of columns, where a narrower last one gains enough for code of its own
MOST_GROUPS = 32  # of pixels
_LANE = Affine(None, 0, 1)
LEAST_LANES = 8  # of a last one: narrower vectors take as long


@dataclass(frozen=True)
class LlvmKernel:
    """A function that was added to a module, before memory is planned. Tensors are numbers of the graph."""

    name: str  # of its ops
    symbol: str  # of the function
    nodes: tuple[Node, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    weights: tuple[Float32Array, ...]  # to lie one behind the other: texels, then tables
    row_groups: int  # y0 and y1 are among 0 ... row_groups
    rows: int  # of a group; of a flat tile runs of as many pixels as there are lanes
    slice_blocks: int  # z0 and z1 are among 0 ... slice_blocks
    macs: int
    tile: Tile
    signature: str = ""  # by which its tile is chosen
    group_pixels: int = 1  # that a group of rows computes, in the order of memory
    patches: int = 0  # of which groups have some, where they have no pixels in that order

    @property
    def weights_bytes(self) -> int:
        """Of all pieces."""
        return sum(piece.nbytes for piece in self.weights)


@dataclass(frozen=True)
class KnownKernels:
    """The kernels of a program so far."""

    functions: dict[str, tuple[str, Float32Array]] = field(default_factory=dict)  # names, tables; by what decides both
    kernels: dict[Hashable, tuple[LlvmKernel, WeightsRecipe]] = field(default_factory=dict)  # one of all alike


def pixel_function(
    module: Module, body: Body, tile: Tile, target: CpuTarget, storages: Storages, known: KnownKernels
) -> LlvmKernel:
    """The kernel of a body under a tile; its function is added to a module, if none that it has does the same.

    Raises UnsupportedError for what has no code on the CPU.
    """
    numbers = repr([computed_of(node).numbers for node in body.nodes if is_elementwise(node)])  # tables have these
    same = body.key, numbers, tile, tuple(map(storages.get, body.tensors))
    if same in known.kernels:
        first, recipe = known.kernels[same]
        weights = recipe.packed(body)
        return replace(first, nodes=body.nodes, inputs=body.inputs, outputs=body.outputs, weights=weights)
    if chosen := product_tile(body, target):
        made = _product(module, body, chosen, target, storages)
    else:
        made = _pixels(module, body, tile, target, storages, known)
    emitter, grid = made.emitter, made.grid
    kernel = LlvmKernel(
        name="+".join(record_of(node).kernel_name for node in body.nodes),
        symbol=made.symbol,
        nodes=body.nodes,
        inputs=body.inputs,
        outputs=body.outputs,
        weights=(*emitter.blob.pieces, made.tables),
        row_groups=grid.row_groups,
        rows=emitter.tile.down,
        slice_blocks=grid.slice_blocks,
        macs=sum(record_of(node).macs(body.graph, node) for node in body.nodes),
        tile=emitter.tile,
        group_pixels=grid.step or emitter.tile.down * (grid.width if grid.patches else body.domain.width),
        patches=grid.patches,
    )
    if emitter.is_for_all:
        known.kernels[same] = kernel, WeightsRecipe.of(body, emitter.pieces, made.tables)
    return kernel


class _Made(NamedTuple):
    """A function, what its code was built by, and the tables behind its weights."""

    emitter: PlaneEmitter
    grid: "Grid"
    symbol: str
    tables: Float32Array


def _product(module: Module, body: Body, chosen: ProductTile, target: CpuTarget, storages: Storages) -> _Made:
    """Of a product of two computed matrices."""
    name = module.new_name("k")
    emitter = ProductEmitter(body, chosen, target, storages)
    emitter.emit()
    tables = Tables(4 * len(emitter.blob))
    function = module.function(name, PARAMETERS)
    ProductWriter(function, target, chosen, emitter, storages, tables).write()
    return _Made(emitter, Grid.of(body, chosen.tile, chosen.lanes), module.shared(name), tables.data)


def _pixels(
    module: Module, body: Body, tile: Tile, target: CpuTarget, storages: Storages, known: KnownKernels
) -> _Made:
    """Of all other bodies."""
    has_bytes = any(storages[tensor].is_bytes for tensor in (*body.inputs, *body.outputs))
    tile, target, patched, ends_in_quads = native_tile(body, tile, target, has_bytes)
    grid, plane = Grid.of(body, tile, target.lanes, patched.map if patched else None), padded_plane(body, tile, target)
    if patched:
        emitter: PlaneEmitter = WinogradEmitter(body, tile, target, Blob(), storages, patched)
    elif plane:
        emitter = PaddedEmitter(body, tile, target, Blob(), storages, plane)
    else:
        emitter = PlaneEmitter(body, tile, target, Blob(), storages)
    emitter.emit()
    if plane and not (has_all_planes(body, storages) and by_channels((*emitter.preamble, *emitter.statements))):
        plane, emitter = None, PlaneEmitter(body, tile, target, Blob(), storages)
        emitter.emit()
    statements, start = (*emitter.preamble, *emitter.statements), 4 * len(emitter.blob)
    # Printing takes longer than all that is before. Where other bodies may have the same code it is known by its key.
    parts = (
        statements,
        grid,
        ends_in_quads,
        plane is None,
        forms_in_memory(body, storages),
        plain_outputs(body, storages),
        start,
    )
    text = "" if emitter.is_for_all else repr(parts)
    if not text or text not in known.functions:
        name = module.new_name("k")
        quads = QuadEmitter(body, tile.z_slices, target, storages) if ends_in_quads else None
        writer = _Writer(module.function(name, PARAMETERS), target, grid, body, storages, start, quads, plane)
        writer.write(statements, emitter.panel_floats)
        known.functions[text] = module.shared(name), writer.tables.data
    return _Made(emitter, grid, *known.functions[text])


@dataclass(frozen=True)
class Grid:
    """The blocks that a function runs over: of a flat tile the map is one row."""

    width: int
    height: int
    rows: int
    step: int  # columns from one group of rows to the next: of a flat tile all are in one row
    row_groups: int
    slices: int
    z_slices: int
    patches: int = 0  # that it runs over, if not over pixels

    @staticmethod
    def of(body: Body, tile: Tile, lanes: int, patched: MapShape | None = None) -> "Grid":
        domain, slices = patched or body.domain, shape_of(body.graph.tensors[body.outputs[0]]).slices
        patches = patched.pixels if patched else 0
        if tile.flat:
            step = tile.rows * lanes
            return Grid(domain.pixels, 1, 1, step, ceil_div(domain.pixels, step), slices, tile.z_slices, patches)
        width, height = tile.area(domain)
        return Grid(width, height, tile.down, 0, ceil_div(height, tile.down), slices, tile.z_slices, patches)

    @property
    def slice_blocks(self) -> int:
        return ceil_div(self.slices, self.z_slices) if self.z_slices else 1

    def has_narrow_end(self, lanes: int, is_sum: bool) -> bool:
        """Whether half as many lanes are enough for the last pixels, of a map or of each row, and matter there."""
        blocks, rest = divmod(self.width, lanes)
        most = (MOST_GROUPS if is_sum and self.step == lanes else 0) if self.step else MOST_BLOCKS
        return lanes >= 2 * LEAST_LANES and 0 < blocks < most and 0 < rest <= lanes // 2

    @property
    def first_rows(self) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        """The first row of each group."""
        if self.step:
            return np.zeros(1, np.int64)
        return np.minimum(np.arange(self.row_groups) * self.rows, self.height - self.rows)


class _Writer:
    """Writes one function: its loops, and within them the code of blocks."""

    def __init__(
        self,
        function: Function,
        target: CpuTarget,
        grid: Grid,
        body: Body,
        storages: Storages,
        weights: int,
        quads: QuadEmitter | None,
        plane: PaddedPlane | None,
    ) -> None:
        """`quads` builds the code of the last pixels, where these are computed four at a time; `plane` is copied."""
        self.f = function
        self.grid = grid
        self.lanes = Lanes(function, target)
        self._is_sum, self._needs_its_pixels = any(map(is_contraction, body.nodes)), needs_its_pixels(body)
        self._packs = packs(body)
        self._packs_pairs = target.precision == "bf16" and packs(body, in_pairs=True)
        has_narrow = not quads and grid.has_narrow_end(target.lanes, self._is_sum)
        self._narrow = Lanes(function, replace(target, lanes=target.lanes // 2)) if has_narrow else None
        self.tables = Tables(weights)
        self._quads, self._plane = quads, plane
        self._source = "" if plane is None else f"in{body.inputs.index(plane.tensor)}"
        self._limits = function.parameters[2:]
        self._target = target
        self._body, self._storages = body, storages

    def write(self, statements: tuple[Statement, ...], panel_floats: int) -> None:
        """All of it; of a panel, if its size is not known from the statements."""
        grid = self.grid
        columns = min(grid.width, 3) if grid.step and self._needs_its_pixels else grid.width  # those need no conditions
        self._statements = statements
        outline = Outline.of(statements, columns, grid.first_rows)
        self._context = context_of(
            self.f, self._body, self._storages, self.tables, self._target, outline, grid.first_rows
        )
        packing = self._packing(self.lanes)
        floats = (packing.floats if packing else 0) or panel_floats
        self._panel = self.f.reserve(FLOAT, floats) if floats else None
        y0, y1, z0, z1 = (self.f.convert("sext", limit, I64) for limit in self._limits)
        self._inner_blocks = (z0, z1) if self._is_sum else None
        if self._quads:
            self._quads.emit()
            self._quad_panel = self.f.reserve(FLOAT, self._quads.panel_floats)
        with self._block_loop(None if self._is_sum else (z0, z1)) as ints:
            if has_all_planes(self._body, self._storages) and by_channels(statements):
                copied = self._plane and self._room_for(self._plane)
                with self.f.loop(integer(0, I64), integer(4, I64)) as channel:
                    self._context = self._of_channel(self._context, channel)
                    if self._plane and copied:
                        self._copy(self._plane, copied, (y0, y1), ints)
                    self._groups(y0, y1, ints)
            else:
                self._groups(y0, y1, ints)
        self.f.give_back()

    @contextmanager
    def _block_loop(self, limits: tuple[Register, Register] | None) -> Iterator[Mapping[str, IntValue]]:
        """A loop over blocks of slices, and the numbers that it gives; none without limits.

        Sums have it innermost: what a few pixels are made of stays in the first cache, and weights run past it; one
        column of them is used by as many pixels as a thread has, each of the inputs by four channels alone.
        """
        if limits is None:
            yield {}
            return
        with self.f.loop(*limits) as block:
            ints: dict[str, IntValue] = {"block": Affine(block, 0)}
            if self.grid.z_slices:
                ints["z0"] = first_of_block(self.f, block, self.grid.z_slices, self.grid.slices)
            yield ints

    def _room_for(self, plane: PaddedPlane) -> Register:
        """Memory for a plane, filled with zeros, and what is read past its end."""
        lanes = self.lanes.count
        memory = self.f.reserve(FLOAT, plane.floats + 2 * lanes)
        fill_with_zeros(self.f, memory, plane.floats, lanes)
        return memory

    def _copy(
        self, plane: PaddedPlane, memory: Register, groups: tuple[Register, Register], ints: Mapping[str, IntValue]
    ) -> None:
        """Copy what is read for some groups of rows; it is read from there."""
        grid, source, z0 = self.grid, self._context.memories[self._source], ints["z0"]
        assert isinstance(z0, Affine)
        first = self.lanes.scalar(first_of_block(self.f, groups[0], grid.rows, grid.height))
        behind = self.f.binary("mul nsw", groups[1], integer(grid.rows, I64))
        behind = self.f.call("llvm.smin.i64", I64, behind, integer(grid.height, I64))
        slices = self.f.binary("mul nsw", self.lanes.scalar(z0), integer(4 * source.step, I64))
        read = self.f.at(source.pointer, slices)
        copy_plane(self.f, plane, read, memory, (first, behind), self.lanes.count)
        memories = {**self._context.memories, self._source: PlaneMemory(memory, 1, 0)}
        self._context = replace(self._context, memories=memories)

    def _packing(self, lanes: Lanes) -> Packing | None:
        """How what a few pixels are made of is packed, where that pays off."""
        if self._has_bytes or not (self._packs or self._packs_pairs):
            return None
        found = packed(self._statements, lanes.count)
        return found if self._packs or (found and found.in_pairs) else None

    @property
    def _has_bytes(self) -> bool:
        """Whether a tensor has the four channels of a slice in an int."""
        return any(memory.low is not None for memory in self._context.memories.values())

    def _of_channel(self, context: KernelContext, channel: Register) -> KernelContext:
        """What surrounds the code of one channel of all slices."""
        memories = {
            name: memory._replace(
                pointer=self.f.at(memory.pointer, self.f.binary("mul nsw", channel, integer(memory.step, I64)))
            )
            for name, memory in context.memories.items()
        }
        return replace(context, memories=memories, channel=channel)

    def _groups(self, y0: Register, y1: Register, ints: Mapping[str, IntValue]) -> None:
        if not self.grid.step or not (self._narrow or self._quads):
            with self.f.loop(y0, y1) as group:
                self._rows(group, ints)
            return
        last = integer(self.grid.row_groups - 1, I64)
        with self.f.loop(y0, self.f.call("llvm.smin.i64", I64, y1, last)) as group:
            self._rows(group, ints)
        with self.f.loop(self.f.call("llvm.smax.i64", I64, y0, last), y1):
            if self._narrow:
                self._end(self._narrow, {**ints, "y0": Affine(None, 0)})
            elif self._quads:
                self._end_in_quads(self._quads, {**ints, "y0": Affine(None, 0)})

    def _end(self, lanes: Lanes, ints: Mapping[str, IntValue]) -> None:
        """The last columns, in narrower vectors."""
        first, last = self.grid.width - lanes.count, self.grid.width - 1
        region = Region((0 if self.grid.step else first, last), slice(None))  # pixels in a row are all the same
        self._print(region, Affine(None, first), ints, lanes)

    def _end_in_quads(self, quads: QuadEmitter, ints: Mapping[str, IntValue]) -> None:
        """The last pixels of a flat tile."""
        grid, statements = self.grid, (*quads.preamble, *quads.statements)
        packing = packed(statements, QUAD_PIXELS)
        assert packing is not None, "it writes its panel itself"
        lanes = Lanes(self.f, replace(self._target, lanes=QUAD_PIXELS))
        memories = {**self._context.memories, PANEL: PlaneMemory(self._quad_panel, 1, QUAD_PIXELS)}
        outline = Outline.of(statements, min(grid.width, 3), grid.first_rows)  # pixels in a row are all the same
        context = replace(self._context, memories=memories, outline=outline)
        region = Region((0, grid.width - 1), slice(None))
        first = grid.width // grid.step * grid.step
        count = ceil_div(grid.width - first, QUAD_PIXELS)
        with self.f.loop(integer(0, I64), integer(count, I64)) as number, lanes.block():
            place = self.f.binary("mul nsw", number, integer(QUAD_PIXELS, I64))
            place = self.f.binary("add nsw", place, integer(first, I64))
            x = Affine(self.f.call("llvm.smin.i64", I64, place, integer(grid.width - QUAD_PIXELS, I64)), 0)
            LanePrinter(lanes, context, region, x, {**ints, LANE.name: _LANE}, None).print(packing.pack)
            with self._block_loop(self._inner_blocks) as more, lanes.block():
                LanePrinter(lanes, context, region, x, {**ints, **more, LANE.name: _LANE}, None).print(packing.use)

    def _rows(self, group: Register, ints: Mapping[str, IntValue]) -> None:
        """The blocks of one group of rows."""
        grid, lanes = self.grid, self.lanes.count
        whole = Region((0, grid.width - 1), slice(None))
        if grid.step:
            self._print(whole, first_of_block(self.f, group, grid.step, grid.width), {**ints, "y0": Affine(None, 0)})
            return
        ints = {**ints, "y0": first_of_block(self.f, group, grid.rows, grid.height)}
        blocks, inside = self._blocks, self._inside()
        if (inside is None or inside == whole) and blocks == 1:
            self._print(Region((0, min(grid.width, lanes) - 1), slice(None)), Affine(None, 0), ints)
        elif inside is None or inside == whole:
            with self.f.loop(integer(0, I64), integer(blocks, I64)) as number:
                self._print(whole, first_of_block(self.f, number, lanes, grid.width), ints)
        else:
            self._edges_apart(group, inside, blocks, ints)
        if self._narrow:
            self._end(self._narrow, ints)

    @property
    def _blocks(self) -> int:
        """Of columns, in a row."""
        return self.grid.width // self.lanes.count if self._narrow else ceil_div(self.grid.width, self.lanes.count)

    def _edges_apart(self, group: Register, inside: Region, blocks: int, ints: Mapping[str, IntValue]) -> None:
        """Blocks where no condition fails in a loop of their own, and then the others with all conditions."""
        grid, lanes = self.grid, self.lanes.count
        first, behind = self._blocks_inside(inside)
        last = self.f.choose(self._is_inside(group, inside), integer(behind, I64), integer(first, I64))
        with self.f.loop(integer(first, I64), last) as number:
            self._print(inside, first_of_block(self.f, number, lanes, grid.width), ints)
        done = self.f.binary("sub nsw", last, integer(first, I64))
        with self.f.loop(integer(0, I64), self.f.binary("sub nsw", integer(blocks, I64), done)) as number:
            skipped = self.f.choose(self.f.compare("icmp sge", number, integer(first, I64)), done, integer(0, I64))
            place = self.f.binary("add nsw", number, skipped)
            self._print(
                Region((0, grid.width - 1), slice(None)), first_of_block(self.f, place, lanes, grid.width), ints
            )

    def _inside(self) -> Region | None:
        """Where no condition fails; None where that is too little for code of its own.

        Bytes that lie outside are replaced four at a time, which code of its own for all others would not pay for.
        """
        if self._has_bytes or self._panel:
            return None
        grid, outline = self.grid, self._context.outline
        fine_columns, fine_rows = (each.undisturbed(outline.values) for each in (outline.columns, outline.rows))
        if fine_columns.all() and fine_rows.all():
            return Region((0, grid.width - 1), slice(None))
        first, behind = run_of(fine_columns)
        group, last_group = run_of(fine_rows)
        region = Region((first, behind - 1), slice(group, last_group))
        start, stop = self._blocks_inside(region)
        if (stop - start) * (last_group - group) < LEAST_INSIDE * self._blocks * len(fine_rows):
            return None
        return region

    def _blocks_inside(self, region: Region) -> tuple[int, int]:
        """The blocks of columns that lie in a region: the first one, and the one behind the last."""
        grid, lanes, (first, last) = self.grid, self.lanes.count, region.columns
        starts = np.minimum(np.arange(self._blocks) * lanes, max(grid.width - lanes, 0))
        found = np.flatnonzero((starts >= first) & (starts + lanes <= last + 1))
        return (int(found[0]), int(found[-1]) + 1) if len(found) else (0, 0)

    def _is_inside(self, group: Register, region: Region) -> Register:
        """Whether a group of rows lies in a region."""
        above = self.lanes.compare_ints("sge", Affine(group, 0), Affine(None, region.groups.start))
        found = self.lanes.both(
            above, self.lanes.compare_ints("slt", Affine(group, 0), Affine(None, region.groups.stop))
        )
        assert isinstance(found, Register)
        return found

    def _print(self, region: Region, x: Affine, ints: Mapping[str, IntValue], lanes: Lanes | None = None) -> None:
        lanes = lanes or self.lanes
        mask = lanes.first_lanes(self.grid.width) if self.grid.width < lanes.count else None
        lanes.present = mask or lanes.present
        context, packing = self._context, self._packing(lanes) if self._panel else None
        with lanes.block():
            if self._panel:
                panel = PlaneMemory(self._panel, 1, lanes.count)
                if packing:
                    panel = panel._replace(in_pairs=packing.in_pairs, channels=packing.channels)
                context = replace(context, memories={**context.memories, PANEL: panel})
                ints = {**ints, LANE.name: _LANE}

            def write(statements: tuple[Statement, ...], ints: Mapping[str, IntValue], in_turn: bool = False) -> None:
                """Statements; those of the four channels of slices in turn, where they may be: that is less code."""
                if in_turn and by_channels(statements) and has_all_planes(self._body, self._storages):
                    with self.f.loop(integer(0, I64), integer(4, I64)) as channel, lanes.block():
                        of_channel = self._of_channel(context, channel)
                        LanePrinter(lanes, of_channel, region, x, ints, mask).print(statements)
                else:
                    LanePrinter(lanes, context, region, x, ints, mask).print(statements)

            if packing:
                write(packing.pack, ints, bool(packing.finish))
            with self._block_loop(self._inner_blocks) as more, lanes.block():
                write(packing.use if packing else self._statements, {**ints, **more})
                if packing and packing.finish:
                    write(packing.finish, {**ints, **more}, True)
