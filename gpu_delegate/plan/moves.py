"""Reading through maps: a node that moves data and a position of its output go in, the value there comes out.

What an op moves where is in its record (gpu_delegate/ops/record.py, Movement). Where slices of four channels stay
together a whole texel is read, else a value at a time. What a map reads may itself be such a tensor: maps are composed.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..code.expressions import Slice
from ..code.indices import Index
from ..code.vocabulary import (
    X0,
    Y0,
    Z0,
    Choose,
    Keep,
    Lane,
    LoadFrom,
    Name,
    Operand,
    Shared,
    Splat,
    Value,
    Vector,
    Weight,
    clamp,
    to_int,
)
from ..model.graph import Graph, Node
from ..model.layout import ceil_div
from ..model.packing import Float32Array
from ..model.rewrite import float_data
from ..ops.nodes import record_of
from ..ops.record import Coordinates, Movement
from ..targets.glsl.print_glsl import glsl, glsl_length

if TYPE_CHECKING:
    from ..kernels.emit import Emitter

Place = tuple[Index, Index, Index]  # (b, y, x) of a pixel

READ_LENGTH = 60  # characters of a read and of its name, the place aside
LOOKUP_LENGTH = 120  # of the read of a coordinate
_COORDINATE = Name("j10", "int")
NAME_LENGTH = 24  # of the declaration of a coordinate, its expression aside


def movement_of(node: Node) -> Movement:
    """The map of a node that moves data."""
    movement = record_of(node).movement
    assert movement is not None, f"{node.op} moves no data"
    return movement


def moved(emitter: "Emitter", node: Node, place: Place, at: Slice) -> Value:
    """The vec4 of slice `at` of a node's output at a pixel."""
    channels = emitter.graph.tensors[node.outputs[0]].shape[3]
    return _Reader(emitter).slice(node, place, _channel(at, channels), channels)


def _channel(at: Slice, channels: int) -> Index:
    """The first channel of a slice."""
    if at.index is not None:
        return Index.of(4 * at.index)
    last = ceil_div(channels, 4) - 1
    return Index.variable(Index.variable(at.at, 0, last).code, 0, last).times(4)  # a sum remains one part


def knows_lanes(graph: Graph, node: Node) -> bool:
    """Whether slices are put together lane by lane, and which lanes of what these are depends on the slice alone."""
    movement = movement_of(node)
    if movement.together(graph, node) or movement.lookup(node) is not None:
        return False
    batch, height, width, _ = graph.tensors[node.outputs[0]].shape
    place = (("b", batch), ("y", height), ("x", width))
    b, y, x = (Index.variable(Name(name, "int"), 0, size - 1) for name, size in place)
    return all(source.at[3].value is not None for source in movement.sources(graph, node, (b, y, x, Index.of(0))))


def text_length(graph: Graph, node: Node, through: Mapping[int, Node], is_known: bool = False) -> int:
    """About how many characters read one slice of a node's output at one pixel; is_known: one that has a number."""
    batch, height, width, channels = graph.tensors[node.outputs[0]].shape
    slices, names = ceil_div(channels, 4), set[Value]()
    b, y = Index.variable(Y0 / 99, 0, batch - 1), Index.variable(Y0 % 99 if batch > 1 else Y0, 0, height - 1)
    x, channel = Index.variable(X0, 0, width - 1), Index.variable(Z0, 0, slices - 1).times(4)
    channel = Index.of(slices // 2 * 4) if is_known else channel
    total = _slice_length(graph, node, (b, y, x, channel), through, names)
    return total + sum(glsl_length(value) + NAME_LENGTH for value in names)


def _slice_length(graph: Graph, node: Node, at: Coordinates, through: Mapping[int, Node], names: set[Value]) -> int:
    """As _Reader.slice writes it; the names that it gives to coordinates are added to `names`."""
    if movement_of(node).together(graph, node):
        return _length(graph, node, at, True, through, names)
    b, y, x, channel = at
    channels = graph.tensors[node.outputs[0]].shape[3]
    lanes = (channel.plus(lane).clamped(0, channels - 1) for lane in range(min(4, channels)))
    return 20 + sum(_length(graph, node, (b, y, x, lane), False, through, names) for lane in lanes)


def _length(
    graph: Graph, node: Node, at: Coordinates, whole: bool, through: Mapping[int, Node], names: set[Value]
) -> int:
    total = 0 if movement_of(node).lookup(node) is None else LOOKUP_LENGTH
    for source in movement_of(node).sources(graph, node, at):
        b, y, x, c = (index.with_names(functools.partial(_named, names)) for index in source.at)
        inner = through.get(node.inputs[source.operand])
        total += 0 if source.when is True else len(glsl(source.when))
        if inner is None:
            total += sum(glsl_length(index.code) for index in (b, y, x, c)) + (0 if whole else glsl_length(c.code))
            total += READ_LENGTH
        elif whole:
            total += _slice_length(graph, inner, (b, y, x, c), through, names)
        else:
            total += _length(graph, inner, (b, y, x, c), False, through, names)
    return total


def _named(names: set[Value], value: Value) -> Name:
    names.add(value)
    return _COORDINATE


class _Reader:
    """Reads tensors by position, in the words of one emitter."""

    def __init__(self, emitter: "Emitter") -> None:
        self.emitter = emitter
        self.graph = emitter.graph

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
        fill = movement.fill(node)
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
        return tensor in self.emitter.body.through and source % 4 != 0 and target > source

    def _position(self, value: Value) -> Name:
        """The name of a coordinate, computed once."""
        return self.emitter.once("j", value)

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
        node = self.emitter.body.through.get(tensor)
        if node is None:
            texel = self._texel(tensor, place, channel.over(4))
            return texel if whole else Lane(texel, channel.modulo(4).code)
        b, y, x = place
        if whole:
            return self.slice(node, (b, y, x), channel, self.graph.tensors[tensor].shape[3])
        return self._chosen(node, at, whole=False)

    def _texel(self, tensor: int, place: Sequence[Index], at: Index) -> Name:
        """The name of a texel in memory, loaded once."""
        emitter, shape = self.emitter, self.emitter.shape(tensor)
        b, y, x = place
        address = at.times(emitter.slice_stride(shape)).plus(b.times(shape.height).plus(y).times(shape.width)).plus(x)
        if tensor in emitter.vectors:
            load: Value = Shared(emitter.vectors[tensor], at.code)
        elif self.graph.tensors[tensor].is_constant and shape.is_vector:
            load = Weight(address.plus(emitter.blob.vector(self._constant(tensor))).code)
        else:
            load = LoadFrom(emitter.source(tensor), address.code)
        return emitter.once("v", load)

    def _constant(self, tensor: int) -> Float32Array:
        return float_data(self.graph.tensors[tensor])
