"""Writes the code of one pixel kernel for the CPU: tensors lie in planes, and lanes are pixels."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...code.expressions import Slice, Weights
from ...code.vocabulary import X0, Element, Name, Operand, Value, Weight
from ...device.tile import Tile
from ...kernels.emit import Emitter
from ...kernels.epilogue_reduction import GroupSums
from ...model.graph import Node, Size2
from ...model.layout import MapShape, Storages, ceil_div, plane_floats, shape_of
from ...model.packing import Blob, Float32Array
from ...plan.body import Body

MOST_TAPS_IN_ROWS = 25  # of windows without loops: those of 7x7 take a quarter less time with one, and LLVM a tenth
MOST_COLUMNS = 32  # of a window that are written out one by one
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

    def __init__(self, body: Body, tile: Tile, lanes: int, blob: Blob, storages: Storages) -> None:
        names = {tensor: f"in{k}" for k, tensor in enumerate(body.inputs)}
        super().__init__(body, tile, names, {}, blob, storages, GroupSums(body, tile, (), len(body.outputs)))
        self.lanes = lanes

    @staticmethod
    def slice_stride(shape: MapShape) -> int:
        """In planes, whose slices are four of them; vectors count in whole slices."""
        return 1 if shape.is_vector else 4 * plane_floats(shape)

    def looped_axes(self, kernel: Size2) -> tuple[bool, bool]:
        """Rows first: where a lane's column is known, what neighbors read lies in a row."""
        height, width = kernel
        return height * width > MOST_TAPS_IN_ROWS, width > MOST_COLUMNS

    def pixel(self, row: int) -> Operand:
        """The index of the thread's pixel `row`, where lanes count from the first one."""
        if self.tile.flat:
            return self.position("i", X0 + row * self.lanes)
        return super().pixel(row)

    def _added(self, node: Node, what: str, values: Float32Array) -> Weights:
        """Those of a convolution lie block by block, each in the order in which it is read."""
        if what != "weights" or not self.splits or values.ndim != 5 or node.outputs[0] not in self.body.held:
            return super()._added(node, what, values)
        starts = block_starts(shape_of(self.graph.tensors[self.body.outputs[0]]).slices, self.tile.z_slices)
        base = self.blob.add(np.stack([values[:, :, start : start + self.tile.z_slices] for start in starts]))
        sources, taps, _, *rest = values.shape
        layout = np.empty((sources, taps, self.tile.z_slices, *rest), np.float32)
        return BlockWeights(layout, base)


def block_starts(slices: int, together: int) -> Sequence[int]:
    """The first slice of each block: the last block ends with the last slice."""
    return [min(block * together, slices - together) for block in range(ceil_div(slices, together))]
