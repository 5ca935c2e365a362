"""Writes 3x3 convolutions with fewer products: Winograd's F(2x2, 3x3), in patches of 2x2 pixels.

"Fast Algorithms for Convolutional Neural Networks" (Lavin, Gray, CVPR 2016), section 4.1: a patch of the output takes
16 products for each channel, not 36. What 4x4 pixels of the input become is packed into the panel (panels.py), once for
all output slices; weights are transformed before. A lane is a patch.
"""

import numpy as np

from ...code.expressions import Slice
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
    StoreTo,
    Sum,
    Value,
    combined,
)
from ...code.window_taps import axis_at
from ...device.tile import Tile
from ...kernels.emit import SLICE
from ...model.graph import Conv2D, Node
from ...model.layout import FLOAT_BYTES, LINE_FLOATS, MapShape, Storages, ceil_div, shape_of
from ...model.operators import attributes_of
from ...model.packing import Blob, Float32Array, convolution_blocks
from ...ops.convolution import constant_weights
from ...plan.body import Body
from .machine import CpuTarget
from .panels import LANE, LEAST_SLICES, MOST_BYTES, PANEL, convolved
from .plane_emitter import PlaneEmitter

SIDE = 2  # pixels of a patch
_READ = SIDE + 2  # pixels of a side of what it is made of
_LEAST_SOURCES = 4  # slices of the input: with fewer, sums are short beside transforms; estimated, as the next two
_LEAST_GAIN = 1.25  # counted multiply-adds of the direct sums for one of these, and of transforms
_TRANSFORM = 160  # multiply-adds that loading and transforming 4x4 values are counted as
_WEIGHTS = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])  # G
_OUTPUTS = ((1, 1, 1, 0), (0, 1, -1, -1))  # the transpose of A
# The transpose of B: each line is two values, and what is done with them.
_INPUTS: tuple[tuple[int, int, Arithmetic], ...] = (
    (0, 2, "subtract"),
    (1, 2, "add"),
    (2, 1, "subtract"),
    (1, 3, "subtract"),
)


def patches(body: Body) -> MapShape | None:
    """The map of patches of a body that is such a convolution, where these take less time; None elsewhere."""
    node, graph, domain = convolved(body), body.graph, body.domain
    if node is None or domain.batch > 1:
        return None
    conv, weights = attributes_of(node, Conv2D), graph.tensors[node.inputs[1]]
    if weights.shape[1:3] != (3, 3) or not conv.stride == conv.dilation == (1, 1):
        return None
    if graph.tensors[node.inputs[0]].steps:  # whose sums are exact
        return None
    sources, targets = (shape_of(graph.tensors[t]).slices for t in (node.inputs[0], node.outputs[0]))
    found = MapShape(1, ceil_div(domain.height, SIDE), ceil_div(domain.width, SIDE), domain.channels)
    direct = domain.pixels * 9 * 4 * targets
    transformed = found.pixels * (_READ**2 * 4 * targets + _TRANSFORM)
    pays = sources >= _LEAST_SOURCES and targets >= LEAST_SLICES and direct >= _LEAST_GAIN * transformed
    return found if pays else None


def panel_fits(body: Body, vectors: int, lanes: int) -> bool:
    """Whether the panel of so many vectors of patches is small enough."""
    node = convolved(body)
    assert node is not None
    return _READ**2 * FLOAT_BYTES * _product_floats(body, node, vectors, lanes) <= MOST_BYTES


def _product_floats(body: Body, node: Node, vectors: int, lanes: int) -> int:
    """Of one of the products in a panel: those of the next one lie in other sets of the cache."""
    return shape_of(body.graph.tensors[node.inputs[0]]).slices * vectors * 4 * lanes + LINE_FLOATS


class WinogradEmitter(PlaneEmitter):
    """Builds the code; a tile's rows are vectors of patches, each of which has four of the thread's pixels."""

    def __init__(
        self, body: Body, tile: Tile, target: CpuTarget, blob: Blob, storages: Storages, patches: MapShape
    ) -> None:
        super().__init__(body, tile, target, blob, storages)
        self._patches = patches
        self._vectors = range(tile.rows)
        self.rows = range(SIDE**2 * tile.rows)

    @property
    def panel_floats(self) -> int:
        node = convolved(self.body)
        assert node is not None
        return _READ**2 * _product_floats(self.body, node, len(self._vectors), self.lanes)

    def _corner(self, vector: int) -> tuple[Value, Value]:
        """(y, x) of a patch, in patches."""
        if not self.tile.flat:
            return Y0 + vector if vector else Y0, X0
        index, width = X0 + vector * self.lanes, self._patches.width
        return self.position("q", index / width), self.position("q", index % width)

    def _pixel_axes(self, row: int) -> tuple[Value, Value]:
        """(y, x) of a pixel, which may lie past the end of a map of odd sides."""
        (y, x), (down, right) = self._corner(row // SIDE**2), divmod(row % SIDE**2, SIDE)
        return y * SIDE + down, x * SIDE + right

    def pixel(self, row: int) -> Operand:
        """The index of the thread's pixel `row`; of one past the end, of the last in its row or column."""
        if (found := self._pixels.get(row)) is None:
            (y, x), domain = self._pixel_axes(row), self.domain
            if domain.height % SIDE:
                y = Operation("minimum", (y, domain.height - 1))
            if domain.width % SIDE:
                x = Operation("minimum", (x, domain.width - 1))
            found = self._pixels[row] = self.position("i", y * domain.width + x)
        return found

    def _store_at(self, row: int, statement: StoreTo) -> None:
        """Pixels past the end are not stored."""
        sides = zip(self._pixel_axes(row), (self.domain.height, self.domain.width), strict=True)
        inside = [self.position("k", Inside(place, size)) for place, size in sides if size % SIDE]
        if not inside:
            super()._store_at(row, statement)
            return
        with self.when(combined("both", inside)):
            self.add(statement)

    def _accumulate(self, node: Node, at: Slice) -> None:
        """Pack what the products need of one input slice."""
        source, padding = self.shape(node.inputs[0]), attributes_of(node, Conv2D).padding
        for vector in self._vectors:
            y, x = self._corner(vector)
            rows, columns = (
                [axis_at(self, base, SIDE, Index.of(k - before), size, patches - 1) for k in range(_READ)]
                for base, before, size, patches in (
                    (y, padding.top, source.height, self._patches.height),
                    (x, padding.left, source.width, self._patches.width),
                )
            )
            values = [[self.tap(node.inputs[0], at, row, column) for column in columns] for row in rows]
            across = [self._transformed([line[k] for line in values]) for k in range(_READ)]
            for i in range(_READ):
                for j, value in enumerate(self._transformed([column[i] for column in across])):
                    self.add(StoreTo(PANEL, self._place(node, at, _READ * i + j, vector), value))

    def _transformed(self, values: list[Name]) -> list[Name]:
        """The four values of a row or column, times B."""
        return self.declare([Operation(what, (values[one], values[other])) for one, other, what in _INPUTS])

    def _place(self, node: Node, at: Slice, product: int, vector: int) -> Sum:
        """Where it lies in the panel: product by product, so that a sum runs through what lies one behind the other."""
        texel = 4 * self.lanes
        start = product * _product_floats(self.body, node, len(self._vectors), self.lanes) + vector * texel
        step = len(self._vectors) * texel
        if at.index is not None:
            return Sum(((LANE, 1),), start + at.index * step)
        return Sum(((SLICE, step), (LANE, 1)), start)

    def _finish(self, node: Node) -> None:
        """Sum up each product over all input slices, and add it to the pixels that it counts for."""
        sources, out = self.shape(node.inputs[0]).slices, node.outputs[0]
        blocks = self.weights(node, "weights", lambda *of: _transformed_weights(constant_weights(*of)))
        held = self.held_slices(out)
        for product in range(_READ**2):
            sums = {(v, k): self.declare([ZEROS], "m")[0] for v in self._vectors for k in held}
            with self.loop(*([(SLICE, sources)] if sources > 1 else [])):
                at = Slice(SLICE) if sources > 1 else Slice(0)
                values = [self.once("v", LoadFrom(PANEL, self._place(node, at, product, v))) for v in self._vectors]
                for k in held:
                    texels = [blocks.texel(product, at, self.output_slice(k), lane) for lane in range(4)]
                    factors = self.declare(texels, "w") if len(values) > 1 else texels
                    for v, value in zip(self._vectors, values, strict=True):
                        self.add(AddTo(sums[v, k], self.products(node).of_block(value, factors)))
            for (v, k), total in sums.items():
                for pixel in range(SIDE**2):
                    sign = _OUTPUTS[pixel // SIDE][product // _READ] * _OUTPUTS[pixel % SIDE][product % _READ]
                    to = self.held(out, SIDE**2 * v + pixel, k)
                    if sign:
                        self.add(Assign(to, Operation("add" if sign > 0 else "subtract", (to, total))))


def _transformed_weights(weights_ohwi: Float32Array) -> Float32Array:
    """OHWI -> (16 products, input slices, output slices, 4 in, 4 out)."""
    found = np.einsum("ia,oabc,jb->oijc", _WEIGHTS, weights_ohwi.astype(np.float64), _WEIGHTS).astype(np.float32)
    return np.ascontiguousarray(convolution_blocks(found).swapaxes(0, 1))
