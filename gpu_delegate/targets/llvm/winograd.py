"""Writes convolutions with fewer products: Winograd's, of patches of pixels.

"Fast Algorithms for Convolutional Neural Networks" (Lavin, Gray, CVPR 2016), section 4: a patch of 2x2 pixels takes 16
products for each channel of a 3x3 window, not 36. What the products need of the input is packed into the panel
(panels.py), once for all output slices, and their sums go there, too; weights are transformed before. A lane is a
patch. Which patches there are is chosen in patches.py, and what they are multiplied by is computed in toom_cook.py.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import partial

import numpy as np

from ...code.expressions import Slice, Weights
from ...code.indices import Index
from ...code.vocabulary import (
    X0,
    Y0,
    ZEROS,
    AddTo,
    Arithmetic,
    Assign,
    Inside,
    LoadFrom,
    Name,
    Operand,
    Operation,
    SourceIndex,
    StoreTo,
    Sum,
    Tap,
    Value,
    combined,
)
from ...code.window_taps import axis_at
from ...device.tile import Tile
from ...kernels.emit import SLICE
from ...model.graph import Conv2D, Graph, Node
from ...model.layout import Storages
from ...model.operators import attributes_of
from ...model.packing import Blob, Float32Array, convolution_blocks
from ...ops.convolution import constant_weights
from ...plan.body import Body
from .machine import CpuTarget
from .panels import LANE, PANEL
from .patches import Patches
from .plane_emitter import PlaneEmitter
from .runs import RunPixel
from .toom_cook import FactorMatrix, WindowProducts

_POINT = Name("point", "int")  # of products
_CROSSED: tuple[Arithmetic, Arithmetic] = ("add", "subtract")
_Line = Sequence[Name]


class WinogradEmitter(PlaneEmitter):
    """Builds the code; a tile's rows are vectors of patches, each of which has some of the thread's pixels.

    These are counted from the last one of a patch to the first: where a patch ends past the end of the map, what is
    computed there goes to the map's last pixels, and then come the right values, without any condition. So a step
    that reads these pixels begins when all groups are done (strips.py: patches and pixels are never one run).
    """

    def __init__(
        self, body: Body, tile: Tile, target: CpuTarget, blob: Blob, storages: Storages, patches: Patches
    ) -> None:
        super().__init__(body, tile, target, blob, storages)
        self._patches = patches
        self._vectors = range(tile.rows)
        self.rows = range(patches.pixels * tile.rows)
        self._sides = patches.down.pixels, patches.across.pixels
        maps = [tensor for tensor in body.inputs if not self.shape(tensor).is_vector]
        self._overwrites = len(maps) == 1

    @property
    def panel_floats(self) -> int:
        return self._patches.panel_floats

    def _corner(self, vector: int) -> tuple[Value, Value]:
        """(y, x) of a patch, in patches."""
        if not self.tile.flat:
            return Y0 + vector if vector else Y0, X0
        index, width = X0 + vector * self.lanes, self._patches.map.width
        return self.position("q", index / width), self.position("q", index % width)

    def _pixel_axes(self, row: int) -> tuple[Value, Value]:
        """(y, x) of a pixel, which may lie past the end of a map that is no multiple of patches."""
        vector, behind = divmod(row, self._patches.pixels)
        (y, x), (height, width), pixel = self._corner(vector), self._sides, self._patches.pixels - 1 - behind
        return y * height + pixel // width, x * width + pixel % width

    def pixel(self, row: int) -> Operand:
        """The index of the thread's pixel `row`; of one past the end, of the last in its row or column."""
        if (found := self._pixels.get(row)) is None:
            (y, x), domain, (height, width) = self._pixel_axes(row), self.domain, self._sides
            if domain.height % height:
                y = Operation("minimum", (y, domain.height - 1))
            if domain.width % width:
                x = Operation("minimum", (x, domain.width - 1))
            found = self._pixels[row] = self.position("i", y * domain.width + x)
        return found

    def _store_at(self, row: int, statement: StoreTo) -> None:
        """Pixels past the end are overwritten by the last ones; not stored where they may overwrite what is read."""
        axes = zip(self._pixel_axes(row), (self.domain.height, self.domain.width), self._sides, strict=True)
        inside = [self.position("k", Inside(place, size)) for place, size, side in axes if size % side]
        if not inside or self._overwrites:
            super()._store_at(row, statement)
            return
        with self.when(combined("both", inside)):
            self.add(statement)

    def _accumulate(self, node: Node, at: Slice) -> None:
        """Pack what the products need of one input slice."""
        source, padding, found = self.shape(node.inputs[0]), attributes_of(node, Conv2D).padding, self._patches
        for vector in self._vectors:
            y, x = self._corner(vector)
            rows, columns = (
                [axis_at(self, base, axis.pixels, Index.of(k - before), size, last) for k in range(axis.points)]
                for base, axis, before, size, last in (
                    (y, found.down, padding.top, source.height, found.map.height - 1),
                    (x, found.across, padding.left, source.width, found.map.width - 1),
                )
            )
            first = x * found.across.pixels - padding.left
            lines = [
                self._of_points(
                    found.across,
                    [self._read(node.inputs[0], at, row, first, column) for column in enumerate(columns)],
                )
                for row in rows
            ]
            for j, line in enumerate(_turned(lines)):
                for i, value in enumerate(self._of_points(found.down, line)):
                    self.add(StoreTo(PANEL, self._packed_at(at, i * found.across.points + j, vector), value))

    def _read(self, tensor: int, at: Slice, row: SourceIndex, first: Value, column: tuple[int, SourceIndex]) -> Name:
        """A pixel of a patch: `column` counts from the first one, and says where and whether it is in the map."""
        (number, place), count = column, self._patches.across.points
        if count == 1:
            return self.tap(tensor, at, row, place)
        start = self.read(tensor, at, Operation("add", (self._row_start(self.shape(tensor), row[0]), first)))
        assert isinstance(start, LoadFrom)
        value: Value = RunPixel(start, number, count)
        if valid := [each for each in (row[1], place[1]) if each is not None]:
            value = Tap(value, combined("both", valid), ZEROS)
        return self.once("v", value)

    def _of_points(self, axis: WindowProducts, values: _Line) -> _Line:
        """The values of a row or column at all points."""
        return self._crossed(axis, self._combined(axis.inputs, values))

    def _of_pixels(self, axis: WindowProducts, values: _Line) -> _Line:
        """The pixels of a row or column, of sums of products."""
        return self._combined(axis.outputs, self._crossed(axis, values))

    def _crossed(self, axis: WindowProducts, values: _Line) -> _Line:
        """Of each pair the sum and the difference."""
        single = axis.points - 2 * axis.pairs
        pairs = zip(values[single::2], values[single + 1 :: 2], strict=True)
        crossed = [Operation(how, pair) for pair in pairs for how in _CROSSED]
        return [*values[:single], *self.declare(crossed)]

    def _combined(self, matrix: FactorMatrix, values: _Line) -> _Line:
        sums = (_sum(row, values) for row in matrix)
        return [each if isinstance(each, Name) else self.declare([each])[0] for each in sums]

    def _packed_at(self, at: Slice, point: Operand, vector: int) -> Sum:
        """Where it lies in the panel: product by product, so that a sum runs through what lies one behind the other."""
        texel = 4 * self.lanes
        return _place((point, self._patches.product_floats), (at.at, texel * self.tile.rows), (vector, texel))

    def _sum_at(self, point: Operand, vector: int, index: int) -> Sum:
        """Where the sum of a product lies, behind all that is packed."""
        texel = 4 * self.lanes
        of_point = texel * self.tile.rows * self._patches.slices
        return _place((self._patches.packed_floats, 1), (point, of_point), (index * self.tile.rows + vector, texel))

    def _finish(self, node: Node) -> None:
        """Sum up each product over all input slices, and make pixels of them."""
        out, found, held = node.outputs[0], self._patches, self.held_slices(node.outputs[0])
        blocks = self.weights(node, "weights", partial(_transformed_weights, found.down, found.across))
        with self.loop((_POINT, found.points)):
            self._sum_up(node, blocks, held)
        for vector in self._vectors:
            for k in held:
                sums = self.declare([LoadFrom(PANEL, self._sum_at(point, vector, k)) for point in range(found.points)])
                lines = [sums[first :: found.across.points] for first in range(found.across.points)]
                rows = _turned([self._of_pixels(found.down, line) for line in lines])
                pixels = [pixel for row in rows for pixel in self._of_pixels(found.across, row)]
                for number, pixel in enumerate(pixels[::-1]):
                    to = self.held(out, vector * found.pixels + number, k)
                    self.add(Assign(to, Operation("add", (to, pixel))))

    def _sum_up(self, node: Node, blocks: Weights, held: range) -> None:
        """One product of all patches."""
        at = Slice(SLICE)
        sums = {(v, k): self.declare([ZEROS], "m")[0] for v in self._vectors for k in held}
        with self.loop((SLICE, self._patches.sources)):
            values = [self.once("v", LoadFrom(PANEL, self._packed_at(at, _POINT, v))) for v in self._vectors]
            for k in held:
                texels = [blocks.texel(_POINT, at, self.output_slice(k), lane) for lane in range(4)]
                factors = self.declare(texels, "w") if len(values) > 1 else texels
                for v, value in zip(self._vectors, values, strict=True):
                    self.add(AddTo(sums[v, k], self.products(node).of_block(value, factors)))
        for (v, k), total in sums.items():
            self.add(StoreTo(PANEL, self._sum_at(_POINT, v, k), total))


def _place(*terms: tuple[Operand, int]) -> Sum:
    """Of a lane in the panel: numbers, each times another one."""
    named = tuple((term, factor) for term, factor in terms if isinstance(term, Value))
    return Sum((*named, (LANE, 1)), sum(int(term) * factor for term, factor in terms if not isinstance(term, Value)))


def _sum(factors: Sequence[Fraction], values: _Line) -> Operand:
    """A sum of values, each times a factor: one that has the factor 1 is the first."""
    terms = sorted(((f, v) for f, v in zip(factors, values, strict=True) if f), key=lambda term: term[0] != 1)
    products = [value if factor == 1 else Operation("multiply", (value, float(factor))) for factor, value in terms]
    return combined("add", products)


def _turned(lines: Sequence[_Line]) -> Sequence[_Line]:
    return list(zip(*lines, strict=True))


def _transformed_weights(down: WindowProducts, across: WindowProducts, graph: Graph, node: Node) -> Float32Array:
    """(products, input slices, output slices, 4 in, 4 out)."""
    weights_ohwi = constant_weights(graph, node).astype(np.float64)
    sides = (np.array(axis.weights, np.float64) for axis in (down, across))
    found = np.einsum("ia,oabc,jb->oijc", next(sides), weights_ohwi, next(sides), optimize=True).astype(np.float32)
    return convolution_blocks(found).swapaxes(0, 1)
