"""Makes the kernel of a product of two matrices that the model computes: attention, above all.

The second matrix of a row group is packed once, as weights lie that are known beforehand: four values of an output
slice for each term of their sums, whatever its order in memory and the maps that it is read through. Then, for a few
pixels after the other, what these are made of is packed into a panel (panels.py), and multiplied for each block of
slices.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...code.expressions import Slice
from ...code.indices import Index
from ...code.product_forms import FLOAT_PRODUCTS
from ...code.vocabulary import Z0, AddTo, LoadFrom, Name, Statement, StoreTo
from ...device.tile import Tile
from ...kernels.emit import SLICE
from ...model.graph import Node
from ...model.layout import FLOAT_BYTES, Storages, ceil_div, shape_of
from ...model.operators import attributes_of
from ...model.packing import Blob
from ...ops.matrix_product import MatrixProduct
from ...ops.nodes import multiplies_rows
from ...plan.body import Body, maps_of
from .index_analysis import Outline
from .ir import FLOAT, I64, Function, Register, integer
from .kernel_context import Region, Tables, first_of_block
from .lanes import Affine, IntValue, Lanes, PlaneMemory
from .machine import CpuTarget
from .panels import LANE, MOST_BYTES, PANEL, packed
from .plane_emitter import PlaneEmitter, slice_number
from .print_llvm import LanePrinter
from .tensor_memories import context_of

MATRIX = "matrix"  # the memory of the second one
FIRST = Name("first", "int")  # the output slice with which it begins
_QUAD = 4  # values of a slice
_ROWS = 2  # vectors of pixels that share a value of the matrix
_LEAST_PIXELS = 8  # that share a packed matrix: not measured
_LANE = Affine(None, 0, 1)


class ProductTile(NamedTuple):
    """A product, how many pixels and slices of it are computed at once, and of how many slices a matrix is packed."""

    node: Node
    tile: Tile
    lanes: int
    packed_blocks: int  # in each of which are the tile's slices


def product_tile(body: Body, target: CpuTarget) -> ProductTile | None:
    """Of a product with independent slices: two vectors of pixels, or one and more slices, whichever fit a row.

    None for other bodies, where few pixels share a matrix, and for sums that are longer than a panel.
    """
    node, width = _product_of(body), body.domain.width
    if node is None or width < _LEAST_PIXELS:
        return None
    depth, slices = (shape_of(body.graph.tensors[tensor]) for tensor in (node.inputs[0], body.outputs[0]))
    lanes = target.lanes
    while lanes > _QUAD and width <= lanes // 2:
        lanes //= 2
    together = max(_ROWS, target.registers // 8)  # sums of slices: they have half of the registers
    choices = [rows for rows in (_ROWS, 1) if rows * lanes <= width or rows == 1]
    for rows in sorted(choices, key=lambda k: ceil_div(width, k * lanes) * k):
        panel_bytes = FLOAT_BYTES * _QUAD * depth.slices * rows * lanes
        for z_slices in range(min(together // rows, slices.slices), 0, -1):
            blocks = (MOST_BYTES - panel_bytes) // (FLOAT_BYTES * _QUAD * depth.channels * z_slices)
            if blocks > 0:
                tile = Tile(rows, z_slices, (1, 1, 1), loads_at_use=True, across=True)
                return ProductTile(node, tile, lanes, min(blocks, ceil_div(slices.slices, z_slices)))
    return None


def _product_of(body: Body) -> Node | None:
    """The product of a body, unless it needs all slices at once, or constants, which may be weights."""
    products = [node for node in body.nodes if multiplies_rows(node)]
    if not body.split or len(products) != 1:
        return None
    (node,) = products
    moves = maps_of([replace(node, inputs=node.inputs[1:])], body.through)
    read = [tensor for each in (node, *moves) for tensor in each.inputs]
    return None if any(body.graph.tensors[tensor].is_constant for tensor in read) else node


class ProductEmitter(PlaneEmitter):
    """Builds the code of the pixels: the first matrix goes into the panel, the second one lies packed."""

    def __init__(self, body: Body, chosen: ProductTile, target: CpuTarget, storages: Storages) -> None:
        super().__init__(body, chosen.tile, replace(target, lanes=chosen.lanes), Blob(), storages)
        self._node = chosen.node

    @property
    def depth(self) -> int:
        """Terms of a sum."""
        return self.shape(self._node.inputs[0]).channels

    @property
    def panel_floats(self) -> int:
        return self._texel * self.shape(self._node.inputs[0]).slices

    def _accumulate(self, node: Node, at: Slice) -> None:
        """Pack one slice of the pixels."""
        number = slice_number(at, self.shape(node.inputs[0]).slices)
        for row, value in enumerate(self.value(node.inputs[0], at)):
            self.add(StoreTo(PANEL, self.panel_place(number, row), value))

    def _finish(self, node: Node) -> None:
        """Add up all terms: four at a time, and those that are left."""
        whole, rest = divmod(self.shape(node.inputs[0]).channels, _QUAD)
        if whole:
            with self.loop(*([(SLICE, whole)] if whole > 1 else [])):
                self._multiply(node, Slice(SLICE if whole > 1 else 0), _QUAD)
        if rest:
            with self.loop():
                self._multiply(node, Slice(whole), rest)

    def _multiply(self, node: Node, at: Slice, terms: int) -> None:
        source, out = self.shape(node.inputs[0]), node.outputs[0]
        number = slice_number(at, source.slices)
        values = [self.once("v", LoadFrom(PANEL, self.panel_place(number, row))) for row in self.rows]
        for index in self.held_slices(out):
            first = _from_first(self.shape(out).slices).plus(index).times(source.channels)
            places = [first.plus(number.times(_QUAD)).plus(term) for term in range(terms)]
            factors = self.declare([LoadFrom(MATRIX, place.code) for place in places], "w")
            for row, value in enumerate(values):
                self.add(AddTo(self.held(out, row, index), FLOAT_PRODUCTS.of_block(value, factors)))


class MatrixEmitter(PlaneEmitter):
    """Builds the code that packs an output slice of the second matrix.

    Lanes are terms where the matrix has them as pixels, else the four values of the slice.
    """

    def __init__(self, body: Body, node: Node, target: CpuTarget, storages: Storages) -> None:
        matrix, out = (shape_of(body.graph.tensors[tensor]) for tensor in (node.inputs[1], node.outputs[0]))
        self._node, self._slices, self.is_turned = node, out.slices, attributes_of(node, MatrixProduct).adj_y
        self.columns = _QUAD * out.slices if self.is_turned else matrix.width
        self.is_shared = matrix.rows == 1  # by all row groups
        body = replace(body, domain=replace(body.domain, width=self.columns))
        lanes = _QUAD if self.is_turned else target.lanes
        tile = Tile(1, 1, (1, 1, 1), loads_at_use=True, across=True)
        super().__init__(body, tile, replace(target, lanes=lanes), Blob(), storages)

    def memory(self, pointer: Register) -> PlaneMemory:
        """The packed matrix as it is written."""
        return PlaneMemory(pointer, 1, _QUAD) if self.is_turned else PlaneMemory(pointer, _QUAD, 1)

    def emit(self) -> None:
        """All terms, or as many as there are lanes."""
        matrix = self._node.inputs[1]
        shape, slice_ = self.shape(matrix), _from_first(self._slices)
        image, row, column = self.place(shape, 0)
        place = image, row, column.clamped(0, shape.width - 1)
        if not self.is_turned:
            at = slice_.times(shape.width).plus(column)
            self.add(StoreTo(MATRIX, at.code, self.texel_at(matrix, Slice(Z0, place=0), place)))
            return
        with self.loop(*([(SLICE, shape.slices)] if shape.slices > 1 else [])):
            source = Slice(SLICE if shape.slices > 1 else 0)
            at = slice_.times(_QUAD * shape.channels).plus(slice_number(source, shape.slices).times(_QUAD * _QUAD))
            at = at.plus(Index.variable(LANE, 0, _QUAD - 1))
            self.add(StoreTo(MATRIX, at.code, self.texel_at(matrix, source, place)))


def _from_first(slices: int) -> Index:
    """The number of an output slice among those that are packed."""
    return Index.variable(Z0, 0, slices - 1).plus(Index.variable(FIRST, 0, slices - 1).times(-1))


class ProductWriter:
    """Writes the loops of a product's function: over parts of the matrix, row groups, pixels, and blocks of slices."""

    def __init__(
        self,
        function: Function,
        target: CpuTarget,
        chosen: ProductTile,
        products: ProductEmitter,
        storages: Storages,
        tables: Tables,
    ) -> None:
        """The code of `products` is there; it and its tables lie behind its weights."""
        self.f, self._chosen, self._target = function, chosen, replace(target, lanes=chosen.lanes)
        self._products, self._matrix = products, MatrixEmitter(products.body, chosen.node, self._target, storages)
        self._matrix.emit()
        body, rows = products.body, np.arange(products.domain.rows)
        self._context = context_of(function, body, storages, tables, self._target, Outline.of((), 0, rows), rows)
        self._width, self._slices = body.domain.width, products.shape(body.outputs[0]).slices

    def write(self) -> None:
        """All of it."""
        z_slices, blocks = self._chosen.tile.z_slices, self._chosen.packed_blocks
        y0, y1, z0, z1 = (self.f.convert("sext", limit, I64) for limit in self.f.parameters[2:])
        panel = self.f.reserve(FLOAT, self._products.panel_floats)
        lanes = Lanes(self.f, self._target)
        floats = _QUAD * (
            blocks * z_slices * self._products.depth + max(_QUAD, self._target.lanes)
        )  # and what is written past
        matrix = self.f.reserve(FLOAT, floats)
        with self.f.loop(z0, z1, blocks) as first_block:
            behind = self.f.binary("add nsw", first_block, integer(blocks, I64))
            behind = self.f.call("llvm.smin.i64", I64, behind, z1)
            last_block = self.f.binary("sub nsw", behind, integer(1, I64))
            first, last = (
                lanes.scalar(first_of_block(self.f, block, z_slices, self._slices))
                for block in (first_block, last_block)
            )
            part = first, self.f.binary("add nsw", last, integer(z_slices, I64))
            if self._matrix.is_shared:
                self._pack(matrix, integer(0, I64), part)
            with self.f.loop(y0, y1) as group:
                if not self._matrix.is_shared:
                    self._pack(matrix, group, part)
                self._multiply((panel, matrix), group, first, (first_block, behind))
        self.f.give_back()

    def _pack(self, matrix: Register, group: Register, part: tuple[Register, Register]) -> None:
        """The matrix of a row group, slice by slice: what is written past the end of one the next one writes over."""
        emitter = self._matrix
        lanes = Lanes(self.f, replace(self._target, lanes=emitter.lanes))
        statements, memories = (*emitter.preamble, *emitter.statements), {MATRIX: emitter.memory(matrix)}
        with self.f.loop(*part) as slice_:
            ints = {"y0": Affine(group, 0), Z0.name: Affine(slice_, 0), FIRST.name: Affine(part[0], 0)}
            columns = (
                nullcontext(Affine(self.f.binary("mul nsw", slice_, integer(_QUAD, I64)), 0))
                if emitter.is_turned
                else self._columns(emitter.columns, emitter.lanes)
            )
            with columns as start:
                printer = self._printer(lanes, emitter.columns, statements, memories)
                printer(statements, start, ints, None)

    def _multiply(
        self, memory: tuple[Register, Register], group: Register, first: Register, blocks: tuple[Register, Register]
    ) -> None:
        """All pixels of a row group, for a part of the matrix."""
        emitter, tile, lanes = self._products, self._chosen.tile, Lanes(self.f, self._target)
        statements = (*emitter.preamble, *emitter.statements)
        packing = packed(statements, lanes.count)
        assert packing is not None, "it writes its panel itself"
        panel, matrix = PlaneMemory(memory[0], 1, lanes.count), PlaneMemory(memory[1], _QUAD, 1)
        printer = self._printer(lanes, self._width, statements, {PANEL: panel, MATRIX: matrix})
        mask = lanes.first_lanes(self._width) if self._width < lanes.count else None
        ints = {"y0": Affine(group, 0), FIRST.name: Affine(first, 0)}
        with self._columns(self._width, tile.rows * lanes.count) as start:
            printer(packing.pack, start, ints, None)
            with self.f.loop(*blocks) as block:
                z0 = first_of_block(self.f, block, tile.z_slices, self._slices)
                printer(packing.use, start, {**ints, Z0.name: z0}, mask)

    @contextmanager
    def _columns(self, width: int, together: int) -> Iterator[Affine]:
        """A loop over columns, some at once: the last ones end with the row, which may have fewer."""
        if width <= together:
            yield Affine(None, 0)
            return
        with self.f.loop(integer(0, I64), integer(ceil_div(width, together), I64)) as number:
            yield first_of_block(self.f, number, together, width)

    def _printer(
        self, lanes: Lanes, columns: int, statements: Sequence[Statement], memories: Mapping[str, PlaneMemory]
    ) -> Callable[[Sequence[Statement], Affine, Mapping[str, IntValue], Register | None], None]:
        """What prints some of the statements, from a column on, under a mask."""
        outline = Outline.of(statements, columns, self._context.rows)
        context = replace(self._context, outline=outline, memories={**self._context.memories, **memories})
        region = Region((0, columns - 1), slice(None))

        def prints(
            some: Sequence[Statement], first: Affine, ints: Mapping[str, IntValue], mask: Register | None
        ) -> None:
            lanes.present = lanes.first_lanes(min(columns, lanes.count))
            with lanes.block():
                LanePrinter(lanes, context, region, first, {**ints, LANE.name: _LANE}, mask).print(some)

        return prints
