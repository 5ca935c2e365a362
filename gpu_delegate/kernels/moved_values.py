"""Reading through maps: the value that a node which moves data has at a position of its output.

What an op moves where is in its record (gpu_delegate/ops/record.py, Movement). Where slices of four channels stay
together a whole texel is read, else a value at a time. What a map reads may itself be such a tensor: maps are composed.
"""

from collections.abc import Sequence

from ..code.expressions import Slice
from ..code.indices import Index, Place
from ..code.vocabulary import (
    Choose,
    Keep,
    Lane,
    Name,
    Operand,
    Splat,
    Value,
    Vector,
    clamp,
    to_int,
)
from ..model.graph import Node
from ..model.layout import ceil_div
from ..ops.record import Coordinates
from ..plan.moves import movement_of
from .part_writer import PartWriter


def moved(writer: PartWriter, node: Node, place: Place, at: Slice) -> Value:
    """The vec4 of slice `at` of a node's output at a pixel.

    An example: the node is a CONCATENATION of in0 with 3 channels and in1 with 8, maps of 6x6 pixels. In slice 1, lane
    k is channel 4 + k, which is channel 1 + k of in1. These lie in two texels, each of which is loaded once. In GLSL:

        vec4 v5 = READ(in1, (y0 * 6 + x0));
        vec4 v6 = READ(in1, (y0 * 6 + x0 + 36));
        vec4(v5.y, v5.z, v5.w, v6.x)

    Where slices stay together, as in PAD of rows and columns by 1, a slice is one texel, and a condition says where it
    counts. In row 2 of the output, which is row 1 of the input:

        vec4 v2 = READ(in0, (z0 * 36 + clamp((x0 - 1), 0, 5) + 6));
        ((x0 - 1) >= 0 && (x0 - 1) <= 5 ? v2 : vec4(0.0))
    """
    channels = writer.graph.tensors[node.outputs[0]].shape[3]
    return _Reader(writer).slice(node, place, _channel(at, channels), channels)


def _channel(at: Slice, channels: int) -> Index:
    """The first channel of a slice."""
    if at.index is not None:
        return Index.of(4 * at.index)
    last = ceil_div(channels, 4) - 1
    return Index.variable(Index.variable(at.at, 0, last).code, 0, last).times(4)  # a sum remains one part


class _Reader:
    """Reads tensors by position, in the words of one kernel."""

    def __init__(self, writer: PartWriter) -> None:
        self.writer = writer
        self.graph = writer.graph

    def slice(self, node: Node, place: Place, channel: Index, channels: int) -> Value:
        """A vec4 from a channel on."""
        if movement_of(node).together(self.graph, node):
            whole = self._chosen(node, (*place, channel), whole=True)
            assert isinstance(whole, Value)
            return whole
        lanes: list[Operand] = []
        for lane in range(4):
            at = channel.plus(lane)
            known = at.low < channels
            lanes.append(self._chosen(node, (*place, at.clamped(0, channels - 1)), whole=False) if known else 0.0)
        return Vector(tuple(lanes))

    def _chosen(self, node: Node, at: Coordinates, whole: bool) -> Operand:
        """The value from the first source whose condition holds."""
        movement, position = movement_of(node), self._looked_up(node, at)
        fill = movement.fill(node) if movement.fill else 0.0
        found: Operand = Splat(fill) if whole else fill
        for source in reversed(movement.sources(self.graph, node, position)):
            b, y, x, c = (index.with_names(self._position) for index in source.at)
            value = self._value(node.inputs[source.operand], (b, y, x, c), whole)
            if whole and self._shows_lanes(node, node.inputs[source.operand]):
                assert isinstance(value, Value)
                value = Keep(value, self.graph.tensors[node.inputs[source.operand]].shape[3], c.over(4).code)
            found = Choose(source.when, value, found) if isinstance(source.when, Value) else value
        return found

    def _shows_lanes(self, node: Node, tensor: int) -> bool:
        """Whether lanes behind the last channel of what is read through another map, which need not hold zeros, are
        channels of the node's output."""
        source, target = (self.graph.tensors[i].shape[3] for i in (tensor, node.outputs[0]))
        return tensor in self.writer.body.through and source % 4 != 0 and target > source

    def _position(self, value: Value) -> Name:
        """The name of a coordinate, computed once."""
        return self.writer.once("j", value)

    def _looked_up(self, node: Node, at: Coordinates) -> Coordinates:
        """The position with the coordinate that the node's second input gives in place of the output's own."""
        axis = movement_of(node).lookup(node)
        if axis is None:
            return at
        size = self.graph.tensors[node.inputs[0]].shape[axis]
        zero = Index.of(0)
        found = self._value(node.inputs[1], (zero, zero, zero, at[axis]), whole=False)
        name = self._position(clamp(to_int(found), 0, size - 1))
        b, y, x, c = (Index.variable(name, 0, size - 1) if k == axis else index for k, index in enumerate(at))
        return b, y, x, c

    def _value(self, tensor: int, at: Coordinates, whole: bool) -> Operand:
        """The texel, or the one value, at a position of a tensor."""
        *place, channel = at
        node = self.writer.body.through.get(tensor)
        if node is None:
            pixel = self._pixel(tensor, place)
            return self._texel(tensor, channel.over(4), pixel) if whole else self._one(tensor, channel, pixel)
        b, y, x = place
        if whole:
            return self.slice(node, (b, y, x), channel, self.graph.tensors[tensor].shape[3])
        return self._chosen(node, at, whole=False)

    def _pixel(self, tensor: int, place: Sequence[Index]) -> Index:
        """The index of a pixel in its map."""
        shape, (b, y, x) = self.writer.shape(tensor), place
        return b.times(shape.height).plus(y).times(shape.width).plus(x)

    def _texel(self, tensor: int, at: Index, pixel: Index) -> Name:
        """The name of a texel in memory, loaded once."""
        return self.writer.once("v", self.writer.in_memory(tensor, at, pixel))

    def _one(self, tensor: int, channel: Index, pixel: Index) -> Value:
        """A value in memory: a lane of a texel, unless channels may be read by number."""
        found = self.writer.channel_in_memory(tensor, channel, pixel)
        return found or Lane(self._texel(tensor, channel.over(4), pixel), channel.modulo(4).code)
