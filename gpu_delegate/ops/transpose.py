"""TRANSPOSE, TILE and BROADCAST_TO: file form, and where their values come from."""

import math
from collections.abc import Sequence

import numpy as np

from ..code.evaluate import Values
from ..code.indices import Index
from ..model.graph import Attributes, Graph, Node, Repeat, Shape, Tensor, Transpose
from ..model.operators import EncodedOperator, Operator, attributes_of, integers
from .facts import expect_count
from .movement import MOVE, of_any_type, shape_in
from .record import Coordinates, Example, FileForm, Movement, OpRecord, Origin


def read_transpose_order(operator: Operator) -> Attributes:
    shape, order = operator.shape(0), operator.integers(1)
    order = tuple(axis + len(shape) if axis < 0 else axis for axis in order)
    if sorted(order) != list(range(len(shape))):
        operator.damaged(f"order {list(order)} of {len(shape)} dimensions")
    operator.expect(tuple(shape[axis] for axis in order))
    return Transpose(order)


def write_transpose_order(graph: Graph, node: Node) -> EncodedOperator:
    return EncodedOperator((*node.inputs, integers(*attributes_of(node, Transpose).order)), "TransposeOptions")


def read_tile(operator: Operator) -> Attributes:
    shape, repeats = operator.shape(0), operator.integers(1)
    if len(repeats) != len(shape) or any(times < 1 for times in repeats):
        operator.damaged(f"{list(repeats)} repeats of {len(shape)} dimensions")
    operator.expect(tuple(size * times for size, times in zip(shape, repeats, strict=True)))
    return Repeat(repeats)


def write_tile(graph: Graph, node: Node) -> EncodedOperator:
    return EncodedOperator((*node.inputs, integers(*attributes_of(node, Repeat).repeats)), "TileOptions")


def read_broadcast_to(operator: Operator) -> Attributes:
    shape, wanted = operator.shape(0), operator.integers(1)
    try:
        fits = np.broadcast_shapes(shape, wanted) == wanted
    except ValueError:
        fits = False
    if not fits:
        operator.damaged(f"{list(shape)} does not broadcast to {list(wanted)}")
    operator.expect(wanted)
    return Attributes()


def write_broadcast_to(graph: Graph, node: Node) -> EncodedOperator:
    shape = graph.tensors[node.outputs[0]].shape
    return EncodedOperator((*node.inputs, integers(*shape)), "BroadcastToOptions")


def _transposed(graph: Graph, node: Node, at: Coordinates) -> tuple[Origin, ...]:
    order = attributes_of(node, Transpose).order
    b, y, x, c = (at[order.index(axis)] for axis in range(4))
    return (Origin(0, (b, y, x, c)),)


def _keeps_channels(graph: Graph, node: Node) -> bool:
    return attributes_of(node, Transpose).order[3] == 3


def _tiled(graph: Graph, node: Node, at: Coordinates) -> tuple[Origin, ...]:
    b, y, x, c = (index.modulo(size) for index, size in zip(at, shape_in(graph, node), strict=True))
    return (Origin(0, (b, y, x, c)),)


def _tiles_slices(graph: Graph, node: Node) -> bool:
    return attributes_of(node, Repeat).repeats[3] == 1 or shape_in(graph, node)[3] % 4 == 0


def _broadcast(graph: Graph, node: Node, at: Coordinates) -> tuple[Origin, ...]:
    b, y, x, c = (Index.of(0) if size == 1 else index for index, size in zip(at, shape_in(graph, node), strict=True))
    return (Origin(0, (b, y, x, c)),)


def _broadcasts_no_channel(graph: Graph, node: Node) -> bool:
    return graph.tensors[node.outputs[0]].shape[3] == shape_in(graph, node)[3]


def _transposed_values(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    return values[0].transpose(attributes_of(node, Transpose).order)


def _tiled_values(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    repeats = attributes_of(node, Repeat).repeats
    expect_count(values[0].size * math.prod(repeats), output)
    return np.tile(values[0], repeats)


def _broadcast_values(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    return np.broadcast_to(values[0], output.shape)


def _permutes(node: Node, inputs: list[Shape], output: Shape) -> bool:
    order = attributes_of(node, Transpose).order
    return sorted(order) == list(range(len(inputs[0]))) and output == tuple(inputs[0][k] for k in order)


RECORDS = (
    OpRecord(
        "TRANSPOSE",
        "movement",
        of_any_type(FileForm(read_transpose_order, write_transpose_order, count=(2, 2))),
        Example(shapes=((1, 4, 8, 8),), out=(1, 8, 8, 4), attributes=Transpose((0, 3, 2, 1))),
        emission=MOVE,
        movement=Movement(_transposed, _keeps_channels),
        evaluate=_transposed_values,
        agrees=_permutes,
    ),
    OpRecord(
        "TILE",
        "movement",
        of_any_type(FileForm(read_tile, write_tile, count=(2, 2))),
        Example(out=(1, 16, 24, 8), attributes=Repeat((1, 2, 3, 1))),
        emission=MOVE,
        movement=Movement(_tiled, _tiles_slices),
        evaluate=_tiled_values,
    ),
    OpRecord(
        "BROADCAST_TO",
        "movement",
        of_any_type(FileForm(read_broadcast_to, write_broadcast_to, count=(2, 2), version=2)),
        Example(shapes=((1, 8, 1, 8),), attributes=Attributes()),
        emission=MOVE,
        movement=Movement(_broadcast, _broadcasts_no_channel),
        evaluate=_broadcast_values,
    ),
)
