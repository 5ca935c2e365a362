"""The kernel of a DEPTH_TO_SPACE alone: interleaves rows of several planes into one.

What print_llvm.py makes of it holds all channels of a pixel and stores each at a place of its own: of a thousand
channels LLVM makes code for ten seconds. Here loops run over output planes and rows, and lanes are pixels.
"""

from collections.abc import Sequence

from ...device.tile import Tile
from ...model.layout import Storages, ceil_div, plane_floats, shape_of
from ...ops.nodes import record_of
from ...plan.body import Body
from .ir import FLOAT, I64, POINTER, Function, Module, Register, filled, integer, number, vector
from .native_kernel import PARAMETERS, LlvmKernel

PLANES = 4  # of a slice


def is_depth_to_space(body: Body) -> bool:
    """Whether a body is a DEPTH_TO_SPACE of a map in memory, and nothing else."""
    return [node.op for node in body.nodes] == ["DEPTH_TO_SPACE"] and body.inputs == body.nodes[0].inputs


def depth_to_space_function(module: Module, symbol: str, body: Body, lanes: int, storages: Storages) -> LlvmKernel:
    """Add the function of such a body to a module: row groups are rows of the input, slice blocks output slices."""
    (node,) = body.nodes
    out = shape_of(body.graph.tensors[node.outputs[0]])
    _Writer(module.function(symbol, PARAMETERS), body, lanes, storages[node.outputs[0]].lanes).write()
    return LlvmKernel(
        name=record_of(node).kernel_name,
        symbol=symbol,
        nodes=body.nodes,
        inputs=body.inputs,
        outputs=body.outputs,
        weights=(),
        row_groups=body.domain.rows,
        rows=1,
        slice_blocks=out.slices,
        macs=0,
        tile=Tile(1, 1, (1, 1, 1)),
        group_pixels=body.domain.width,
    )


class _Writer:
    """Channel (i * block + j) * C + c of pixel (y, x) goes to c of (y * block + i, x * block + j)."""

    def __init__(self, function: Function, body: Body, lanes: int, stored_planes: int) -> None:
        (node,) = body.nodes
        self.f = function
        self.lanes = lanes
        self.kind = vector(FLOAT, lanes)
        self.source, self.out = (shape_of(body.graph.tensors[t]) for t in (node.inputs[0], node.outputs[0]))
        self.block = self.out.width // self.source.width
        self.stored_planes = stored_planes  # of each slice: one alone of a plain output
        self.steps = plane_floats(self.source), plane_floats(self.out)

    def write(self) -> None:
        """The whole function."""
        tensors, _, *limits = self.f.parameters
        source, out = (self.f.load(POINTER, self.f.at(tensors, k, POINTER), 8) for k in range(2))
        y0, y1, z0, z1 = (self.f.convert("sext", limit, I64) for limit in limits)
        with self.f.loop(z0, z1) as slice_, self.f.loop(y0, y1) as row:
            for plane in range(self.stored_planes):
                channel = self._plus(self._times(slice_, PLANES), plane)
                for i in range(self.block):
                    self._row(source, out, channel, row, i)
        self.f.give_back()

    def _times(self, value: Register, factor: int) -> Register:
        return self.f.binary("mul nsw", value, integer(factor, I64))

    def _plus(self, value: Register, other: Register | int) -> Register:
        right = integer(other, I64) if isinstance(other, int) else other
        return self.f.binary("add nsw", value, right)

    def _row(self, source: Register, out: Register, channel: Register, row: Register, i: int) -> None:
        """Row `i` of those that a row of the input becomes, of one output plane: zeros past the last channel."""
        channels, block, width = self.out.channels, self.block, self.source.width
        exists = self.f.compare("icmp slt", channel, integer(channels, I64))
        read = self.f.call("llvm.smin.i64", I64, channel, integer(channels - 1, I64))
        places = [
            self._plus(
                self._times(self._plus(read, (i * block + j) * channels), self.steps[0]), self._times(row, width)
            )
            for j in range(block)
        ]
        sources = [self.f.at(source, place) for place in places]
        below = self._plus(self._times(row, block), i)
        start = self._plus(self._times(channel, self.steps[1]), self._times(below, self.out.width))
        target = self.f.at(out, start)
        if width <= self.lanes:
            self._columns(sources, target, integer(0, I64), exists)
            return
        with self.f.loop(integer(0, I64), integer(ceil_div(width, self.lanes), I64)) as number_of_block:
            x = self.f.call(
                "llvm.smin.i64", I64, self._times(number_of_block, self.lanes), integer(width - self.lanes, I64)
            )
            self._columns(sources, target, x, exists)

    def _columns(self, sources: Sequence[Register], target: Register, x: Register, exists: Register) -> None:
        """As many columns as there are lanes, or all of a narrower map: a value of each source, then the next ones."""
        zeros = filled(number(0.0), self.lanes)
        values = [self.f.choose(exists, self.f.load(self.kind, self.f.at(each, x)), zeros) for each in sources]
        count, place = min(self.lanes, self.source.width) * self.block, self._times(x, self.block)
        for first in range(0, count, self.lanes):
            stored = self._interleaved(values, first, min(self.lanes, count - first))
            self.f.store(stored, self.f.at(target, self._plus(place, first)))

    def _interleaved(self, values: Sequence[Register], first: int, count: int) -> Register:
        """Some of the lanes of all values, those with the same number side by side."""
        at = [divmod(first + lane, self.block) for lane in range(count)]  # lane, value
        found = self.f.shuffle(values[0], values[0], [lane if value == 0 else 0 for lane, value in at])
        for number_of_value, each in enumerate(values[1:], 1):
            whole = each if count == self.lanes else self.f.shuffle(each, each, [lane for lane, _ in at])
            places = [
                count + (lane if count == self.lanes else k) if value == number_of_value else k
                for k, (lane, value) in enumerate(at)
            ]
            found = self.f.shuffle(found, whole, places)
        return found
