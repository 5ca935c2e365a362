"""Writes the code of one pixel kernel for the CPU: tensors lie in planes, and lanes are pixels."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ...code.expressions import Slice, Weights
from ...code.indices import Index, Place
from ...code.kernel_writer import Pack
from ...code.product_forms import FLOAT_PRODUCTS, PAIR_PRODUCTS, Products, gains_in_pairs, products_of_bytes
from ...code.vocabulary import X0, Y0, Bits, Element, Lane, LoadFrom, Name, Operand, Requantized, StoreTo, Value, Weight
from ...device.tile import Tile
from ...kernels.emit import Emitter
from ...kernels.epilogue_reduction import GroupSums
from ...model.graph import Graph, Node, Size2
from ...model.layout import MapShape, Storages, ceil_div, plane_floats, shape_of
from ...model.packing import Blob, Float32Array, bias_of, vector_texels
from ...ops.convolution import weight_rows
from ...ops.nodes import is_contraction, needs_mask
from ...ops.requantize import channel_rounding, rounds_twice
from ...plan.body import Body, Phase
from ...plan.storages import byte_storage
from ...plan.tiling import domain_sides
from .kept_values import kept_values
from .machine import CpuTarget
from .panels import LANE, PANEL
from .planes import slice_planes

MOST_TAPS_IN_ROWS = 25  # of windows without loops: those of 7x7 take a quarter less time with one, and LLVM a tenth
MOST_COLUMNS = 32  # of a window that are written out one by one
PACKED_TOGETHER = 4  # products of bytes in an instruction: from so many on floats are packed for them
BLOCK = Name("block", "int")  # of output slices, of those that a tile's kernel computes together


@dataclass(frozen=True)
class BlockWeights(Weights):
    """Matrices of a convolution, block by block; `values` of one: (input slices, taps, its output slices, 4, 4)."""

    def texel(self, *at: Operand) -> Value:
        """By input slice, tap, output slice and lane, as Weights has it."""
        source, tap, target, lane = at
        assert self.base is not None
        assert isinstance(target, Slice)
        return Weight(Element(self.base, (BLOCK, source, tap, target.register, lane), self.values.shape[:-1]))


class PlaneEmitter(Emitter):
    """Builds the code; in a flat tile rows are runs of as many pixels as there are lanes, one behind the other."""

    def __init__(self, body: Body, tile: Tile, target: CpuTarget, blob: Blob, storages: Storages) -> None:
        names = {tensor: f"in{k}" for k, tensor in enumerate(body.inputs)}
        super().__init__(body, tile, names, {}, blob, storages, GroupSums(body, tile, (), len(body.outputs)))
        self.lanes = target.lanes
        self._target = target
        self._products: dict[int, Products] = {}
        self._kept, self._loop = kept_values(body, tile.rows * target.lanes), 0

    @property
    def panel_floats(self) -> int:
        """Of the panel that the code writes itself."""
        return self._texel * sum(self.shape(tensor).slices for tensor in self._kept)

    @property
    def _texel(self) -> int:
        """Floats of a slice in a panel, of all pixels."""
        return 4 * self.lanes * len(self.rows)

    def panel_place(self, number: Index, row: int) -> Operand:
        """Where a slice of the thread's pixel `row` lies in a panel, of each lane."""
        lane = Index.variable(LANE, 0, self.lanes - 1)
        return number.times(self._texel).plus(lane).plus(row * 4 * self.lanes).code

    def _phase(self, phase: Phase) -> None:
        super()._phase(phase)
        self._loop += 1

    def _compute(self, node: Node, at: Slice) -> Sequence[Value]:
        """What is kept is stored when it is computed, and loaded later."""
        if (kept := self._kept.get(node.outputs[0])) is None:
            return super()._compute(node, at)
        number = slice_number(at, self.shape(node.outputs[0]).slices).plus(kept.first_slice)
        places = [self.panel_place(number, row) for row in self.rows]
        if self._loop > kept.loop:
            return [self.once("v", LoadFrom(PANEL, place)) for place in places]
        values = super()._compute(node, at)
        for place, value in zip(places, values, strict=True):
            self.add(StoreTo(PANEL, place, value))
        return values

    def slice_stride(self, tensor: int) -> int:
        """In planes, whose slices are four of them, or one of four bytes; vectors count in whole slices."""
        shape = self.shape(tensor)
        return 1 if shape.is_vector else slice_planes(self.storages[tensor]) * plane_floats(shape)

    def channel_in_memory(self, tensor: int, channel: Index, pixel: Index) -> Value | None:
        """Its plane follows those of the channels before; one whose number is known is loaded with its neighbors."""
        is_in_planes = slice_planes(self.storages[tensor]) == 4 and not self.shape(tensor).is_vector
        return (
            Lane(LoadFrom(self._inputs[tensor], pixel.code), channel.code) if is_in_planes and channel.factors else None
        )

    def products(self, node: Node) -> Products:
        """Of bytes where the input is bytes, and weights are whole numbers; of floats elsewhere, in pairs if asked."""
        if (found := self._products.get(node.outputs[0])) is None:
            found = self._products[node.outputs[0]] = self._products_of(node)
        return found

    def _products_of(self, node: Node) -> Products:
        storage, steps = self.storages[node.inputs[0]], self.graph.tensors[node.inputs[0]].steps
        weights = self.graph.tensors[node.inputs[1]]
        together, is_arm = self._target.products_together, not self._target.is_x86
        found = storage if storage.is_bytes else byte_storage([steps]) if together == PACKED_TOGETHER else None
        if not weights.is_constant:
            return FLOAT_PRODUCTS
        if found is None:
            return PAIR_PRODUCTS if self._multiplies_pairs(node) else FLOAT_PRODUCTS
        rows, bias = weight_rows(self.graph, node), bias_of(self.graph, node)
        self.is_for_all = False  # other weights may need other products
        return products_of_bytes(found.low, rows, bias, together, is_arm, self._target.subtracts_products)

    def _multiplies_pairs(self, node: Node) -> bool:
        """Whether products are in bfloat16: those of contractions, if it pays. Sums of steps are exact in float32."""
        asked = self._target.precision == "bf16" and is_contraction(node)
        if not asked or self.graph.tensors[node.inputs[0]].steps:
            return False
        slices = self.shape(node.outputs[0]).slices
        return gains_in_pairs(self.graph.tensors[node.inputs[1]].shape[3], min(slices, self.tile.z_slices or slices))

    def _elementwise(self, node: Node, at: Slice) -> Sequence[Value]:
        """What rounds sums to steps has its multipliers as ints."""
        if rounds_twice(node):
            self.is_for_all = False  # others may have no shifts, or some to the left
        rounding = channel_rounding(self.graph, node)
        if rounding is None:
            return super()._elementwise(node, at)
        multipliers, shifts, limits = rounding
        multiplier, half, shift = [
            Bits(self.weights(node, what, partial(_texels_of, values)).texel(at))
            for what, values in (
                ("multipliers", multipliers),
                ("halves", np.left_shift(1, np.maximum(shifts - 1, 0)) * (shifts > 0)),
                ("shifts", shifts),
            )
        ]
        may_not = not shifts.all()
        channels = self.shape(node.outputs[0]).channels
        values = self.operand(node.inputs[0], at, channels)
        rounded = [Requantized(x, multiplier, half, shift, (limits.low, limits.high), may_not) for x in values]
        return [self.masked(value, channels, at) for value in rounded] if needs_mask(node) else rounded

    def looped_axes(self, kernel: Size2) -> tuple[bool, bool]:
        """Rows first: where a lane's column is known, what neighbors read lies in a row."""
        height, width = kernel
        return height * width > MOST_TAPS_IN_ROWS, width > MOST_COLUMNS

    def own_place(self, row: int) -> Place:
        """Of a tile across, too, rows are runs of pixels one behind the other."""
        if self.tile.flat:
            down, _, right = self.map_place(row)
            y, x = (Index.variable(at, 0, n - 1) for at, n in ((down, self.domain.rows), (right, self.domain.width)))
            return y.over(self.domain.height), y.modulo(self.domain.height), x
        if not self.tile.across:
            return super().own_place(row)
        ahead = row * self.lanes
        behind = self.domain.width - (self.tile.rows - 1) * self.lanes  # the last column of a thread's first lanes
        y = Index.variable(Y0, 0, self.domain.rows - 1)
        x = Index.variable(X0, 0, behind - 1).plus(ahead)
        return y.over(self.domain.height), y.modulo(self.domain.height), x

    def pixel(self, row: int) -> Operand:
        """The index of the thread's pixel `row`, where lanes count from the first one."""
        if self.tile.flat:
            return self.position("i", X0 + row * self.lanes)
        if self.tile.across:
            return self.position("i", Y0 * self.domain.width + (X0 + row * self.lanes))
        return super().pixel(row)

    def _pixel(self, shape: MapShape, row: int) -> Operand:
        if not self.tile.across or domain_sides(shape) == domain_sides(self.domain):
            return super()._pixel(shape, row)
        b, y, x = self.place(shape, row)
        found = b.times(shape.height).plus(y).times(shape.width).plus(x).code
        return self.position("i", found) if isinstance(found, Value) else found

    def map_place(self, row: int) -> tuple[Value, int, Value]:
        """In a flat tile each has a row and a column of its own."""
        if not self.tile.flat:
            return super().map_place(row)
        pixel, width = X0 + row * self.lanes, self.domain.width
        return self.position("q", pixel / width), 0, self.position("q", pixel % width)

    def _added(self, node: Node, what: str, pack: Pack) -> Weights:
        """Those of a convolution lie block by block, each in the order in which it is read."""
        if what != "weights" or not self.splits or node.outputs[0] not in self.body.held:
            return super()._added(node, what, pack)
        starts = block_starts(shape_of(self.graph.tensors[self.body.outputs[0]]).slices, self.tile.z_slices)
        found = self._packed(node, partial(_in_blocks, pack, starts, self.tile.z_slices))
        return BlockWeights(found.values[0], found.base)


def slice_number(at: Slice, slices: int) -> Index:
    """The number of a slice, of so many."""
    return Index.of(at.index) if at.index is not None else Index.variable(at.at, 0, slices - 1)


def _in_blocks(pack: Pack, starts: Sequence[int], together: int, graph: Graph, node: Node) -> Float32Array:
    """(input slices, taps, output slices, 4, 4) -> blocks of so many output slices, from each start on."""
    values = pack(graph, node)
    if values.shape[2] == len(starts) * together:
        sources, taps, _, *rest = values.shape
        return np.moveaxis(values.reshape(sources, taps, len(starts), together, *rest), 2, 0)
    return np.stack([values[:, :, start : start + together] for start in starts])


def _texels_of(values: npt.NDArray[Any], _graph: Graph, _node: Node) -> Float32Array:
    return vector_texels(values.view(np.float32))


def block_starts(slices: int, together: int) -> Sequence[int]:
    """The first slice of each block: the last block ends with the last slice."""
    return [min(block * together, slices - together) for block in range(ceil_div(slices, together))]
