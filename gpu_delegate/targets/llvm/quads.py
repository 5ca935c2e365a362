"""Writes the last pixels of pointwise sums four at a time, with output channels in lanes, where others have pixels.

A map of 7x7 pixels is two groups of 24, and one pixel more, for which all vectors of a group would be computed again.
Weights of an output slice lie as a sum reads them, four outputs behind each other for each input: they fill a vector,
and the input of each pixel is spread to it. So the lanes of a vector are several inputs times four outputs, which are
added up at the end.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from ...code.expressions import Slice
from ...code.vocabulary import AddTo, Operand, StoreTo, Sum, Value, Weight
from ...device.tile import Tile
from ...kernels.emit import SLICE
from ...model.graph import Node
from ...model.layout import Storages, ceil_div, shape_of
from ...model.packing import Blob
from ...ops.convolution import packed_blocks
from ...ops.nodes import is_pixelwise_contraction
from ...plan.body import Body
from .ir import FLOAT, Function, Register, filled, lanes_of, number, vector
from .machine import CpuTarget
from .panels import LANE, PANEL, convolved
from .plane_emitter import PlaneEmitter

QUAD_PIXELS = 4
_SLICE_FLOATS = 4 * QUAD_PIXELS  # of the panel
_COST = 6  # of four pixels, in pixels that vectors of them compute meanwhile: by counted instructions
_FREE_REGISTERS = 6  # beside sums


@dataclass(frozen=True)
class QuadSum(Value):
    """A slice of four pixels: what a panel has of them, times weights."""

    panel: Sum  # the place of an input slice: four floats of each channel
    weights: Operand  # the place of the first texel for an input slice
    sources: int  # input slices
    lanes: int  # of vectors of weights
    type = "vec4"


def saved_by_quads(body: Body, rows: int, target: CpuTarget) -> int:
    """How many pixels less the last group of so many vectors takes if quads do it; 0 if they cannot."""
    group, graph, node = rows * target.lanes, body.graph, convolved(body)
    last = body.domain.pixels % group
    sums = QUAD_PIXELS * ceil_div(_SLICE_FLOATS, target.lanes)
    if not last or body.domain.pixels < group or sums > target.registers - _FREE_REGISTERS:
        return 0
    if (
        target.lanes <= QUAD_PIXELS
        or target.precision != "fp32"
        or node is None
        or not is_pixelwise_contraction(graph, node)
    ):
        return 0
    has_steps = any(graph.tensors[tensor].steps for tensor in (*body.inputs, *node.inputs[:1], *node.outputs))
    if has_steps or shape_of(graph.tensors[node.inputs[0]]).slices < 2:
        return 0
    return max(0, group - _COST * ceil_div(last, QUAD_PIXELS))


class QuadEmitter(PlaneEmitter):
    """Builds the code of four pixels; the tile has one vector of four lanes."""

    def __init__(self, body: Body, z_slices: int, target: CpuTarget, storages: Storages) -> None:
        """Weights lie as in the kernel of the other groups, which has as many slices in a block."""
        narrow = replace(target, lanes=QUAD_PIXELS)
        super().__init__(body, Tile(1, z_slices, (1, 1, 1), flat=True, loads_at_use=True), narrow, Blob(), storages)
        self._wide = target.lanes

    @property
    def panel_floats(self) -> int:
        node = convolved(self.body)
        assert node is not None
        return _SLICE_FLOATS * shape_of(self.graph.tensors[node.inputs[0]]).slices

    def _accumulate(self, node: Node, at: Slice) -> None:
        """Pack one input slice."""
        (value,) = self.value(node.inputs[0], at)
        self.add(StoreTo(PANEL, Sum(((SLICE, _SLICE_FLOATS), (LANE, 1)), 0), value))

    def _finish(self, node: Node) -> None:
        """Sum up all input slices."""
        out, sources = node.outputs[0], shape_of(self.graph.tensors[node.inputs[0]]).slices
        blocks = self.weights(node, "weights", packed_blocks(self.products(node)))
        for index in self.held_slices(out):
            first = blocks.texel(Slice(SLICE), 0, self.output_slice(index), 0)
            assert isinstance(first, Weight)
            value = QuadSum(Sum(((SLICE, _SLICE_FLOATS),), 0), first.at, sources, self._wide)
            self.add(AddTo(self.held(out, 0, index), value))


def quad_sum(
    f: Function, value: QuadSum, places: Callable[[Register], tuple[Register, Register]]
) -> tuple[Register, ...]:
    """Its four channels, of four pixels each.

    `places` gives the addresses of an input slice by its number: in the panel, and of the weights.
    """
    lanes, kind = value.lanes, vector(FLOAT, value.lanes)
    parts, pixels = range(_SLICE_FLOATS // lanes), range(QUAD_PIXELS)
    zeros = [filled(number(0.0), lanes)] * (QUAD_PIXELS * len(parts))
    with f.repeat(value.sources, zeros) as (index, current, following):
        panel, weights = ([f.load(kind, f.at(each, lanes * part)) for part in parts] for each in places(index))
        for pixel in pixels:
            spread = [lane // 4 * 4 + pixel for lane in range(lanes)]
            for part in parts:
                before = current[len(following)]
                following.append(f.fma(f.shuffle(panel[part], panel[part], spread), weights[part], before))
    return _turned(f, [_four_of(f, following[len(parts) * pixel : len(parts) * (pixel + 1)]) for pixel in pixels])


def _four_of(f: Function, sums: Sequence[Register]) -> Register:
    """Four outputs, of vectors that have each several times."""
    total = reduce(lambda left, right: f.binary("fadd", left, right), sums)
    while (half := lanes_of(total.type) // 2) >= 4:
        total = f.binary("fadd", f.shuffle(total, total, range(half)), f.shuffle(total, total, range(half, 2 * half)))
    return total


def _turned(f: Function, rows: Sequence[Register]) -> tuple[Register, ...]:
    """Four vectors of four lanes, transposed."""
    pairs = [f.shuffle(rows[k], rows[k + 1], lanes) for lanes in ((0, 4, 1, 5), (2, 6, 3, 7)) for k in (0, 2)]
    return tuple(f.shuffle(pairs[k], pairs[k + 1], lanes) for k in (0, 2) for lanes in ((0, 1, 4, 5), (2, 3, 6, 7)))
