"""Reading through maps: what plans ask of nodes that move data, and how much code a read through their maps is.

What an op moves where is in its record (gpu_delegate/ops/record.py, Movement); kernels/moved_values.py writes the code.
"""

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..code.indices import Index
from ..code.text_length import length_within, text_length
from ..code.vocabulary import (
    X0,
    Y0,
    Z0,
    Name,
    Value,
)
from ..model.graph import Graph, Node
from ..model.layout import ceil_div
from ..ops.nodes import record_of
from ..ops.record import Coordinates, Movement

if TYPE_CHECKING:
    pass

READ_LENGTH = 60  # characters of a read and of its name, the place aside
LOOKUP_LENGTH = 120  # of the read of a coordinate
_COORDINATE = Name("j10", "int")
NAME_LENGTH = 24  # of the declaration of a coordinate, its expression aside


def movement_of(node: Node) -> Movement:
    """The map of a node that moves data."""
    movement = record_of(node).movement
    assert movement is not None, f"{node.op} moves no data"
    return movement


def knows_lanes(graph: Graph, node: Node) -> bool:
    """Whether slices are put together lane by lane, and which lanes of what these are depends on the slice alone."""
    movement = movement_of(node)
    if movement.together(graph, node) or movement.lookup(node) is not None:
        return False
    batch, height, width, _ = graph.tensors[node.outputs[0]].shape
    place = (("b", batch), ("y", height), ("x", width))
    b, y, x = (Index.variable(Name(name, "int"), 0, size - 1) for name, size in place)
    return all(source.at[3].value is not None for source in movement.sources(graph, node, (b, y, x, Index.of(0))))


def length_of_read(graph: Graph, node: Node, through: Mapping[int, Node], is_known: bool = False) -> int:
    """About how many characters read one slice of a node's output at one pixel; is_known: one that has a number.

    An example: REVERSE_V2 along x of a map with 6 rows, 6 columns and 8 channels reads one texel,
    READ(in0, (z0 * 36 + x0 * -1 + 5)) in row 0. Its coordinates as text and READ_LENGTH are 84 characters. A
    CONCATENATION of 3 and 8 channels reads a value for each of the four lanes, from either input: 787.
    """
    batch, height, width, channels = graph.tensors[node.outputs[0]].shape
    slices, names = ceil_div(channels, 4), set[Value]()
    b, y = Index.variable(Y0 / 99, 0, batch - 1), Index.variable(Y0 % 99 if batch > 1 else Y0, 0, height - 1)
    x, channel = Index.variable(X0, 0, width - 1), Index.variable(Z0, 0, slices - 1).times(4)
    channel = Index.of(slices // 2 * 4) if is_known else channel
    total = _slice_length(graph, node, (b, y, x, channel), through, names)
    return total + sum(length_within(value) + NAME_LENGTH for value in names)


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
        total += 0 if source.when is True else text_length(source.when)
        if inner is None:
            total += sum(length_within(index.code) for index in (b, y, x, c)) + (0 if whole else length_within(c.code))
            total += READ_LENGTH
        elif whole:
            total += _slice_length(graph, inner, (b, y, x, c), through, names)
        else:
            total += _length(graph, inner, (b, y, x, c), False, through, names)
    return total


def _named(names: set[Value], value: Value) -> Name:
    names.add(value)
    return _COORDINATE
