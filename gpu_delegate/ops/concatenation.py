"""CONCATENATION and PACK: file form, and where their values come from; passes turn PACK into CONCATENATION."""

from collections.abc import Sequence

import numpy as np

from ..code.evaluate import Values
from ..model.graph import Attributes, Axis, Concatenation, Graph, Node, Shape, Tensor
from ..model.operators import ACTIVATION_CODES, MAX_OPERANDS, EncodedOperator, Operator, attributes_of
from .facts import expect_count
from .movement import MOVE, of_any_type, shape_in
from .record import (
    ACTIVATED_STRUCT,
    NO_RULES,
    Coordinates,
    Example,
    FileForm,
    Movement,
    OpRecord,
    OptionsStruct,
    Origin,
)


def read_concatenation(operator: Operator) -> Attributes:
    options = operator.options("ConcatenationOptions")
    shapes, axis = [operator.shape(i) for i in range(len(operator.inputs))], options.Axis()
    rank = len(shapes[0])
    if not -rank <= axis < rank:
        operator.damaged(f"axis {axis} of {rank} dimensions")
    axis %= rank
    if len({(*shape[:axis], *shape[axis + 1 :]) for shape in shapes}) > 1 or {len(shape) for shape in shapes} != {rank}:
        operator.damaged(f"shapes {[list(shape) for shape in shapes[:4]]} do not fit together along axis {axis}")
    operator.expect((*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :]))
    return Concatenation(operator.activation(options), axis)


def write_concatenation(graph: Graph, node: Node) -> EncodedOperator:
    concatenation = attributes_of(node, Concatenation)
    code = ACTIVATION_CODES[concatenation.activation]
    options = {"Axis": concatenation.axis, "FusedActivationFunction": code}
    return EncodedOperator(node.inputs, "ConcatenationOptions", options)


def read_pack(operator: Operator) -> Attributes:
    options = operator.options("PackOptions")
    shapes, axis = [operator.shape(i) for i in range(len(operator.inputs))], options.Axis()
    rank = len(shapes[0]) + 1
    if not -rank <= axis < rank or options.ValuesCount() != len(shapes):
        operator.damaged(f"{options.ValuesCount()} values along axis {axis} of {rank} dimensions")
    if len(set(shapes)) > 1:
        operator.damaged(f"shapes {[list(shape) for shape in shapes[:4]]} differ")
    axis %= rank
    operator.expect((*shapes[0][:axis], len(shapes), *shapes[0][axis:]))
    return Axis(axis)


def write_pack(graph: Graph, node: Node) -> EncodedOperator:
    axis = attributes_of(node, Axis).axis
    return EncodedOperator(node.inputs, "PackOptions", {"Axis": axis, "ValuesCount": len(node.inputs)})


def _joined(graph: Graph, node: Node, at: Coordinates) -> tuple[Origin, ...]:
    """Each part where it ends behind the position; the last one where no other does."""
    axis, found, start = attributes_of(node, Concatenation).axis, list[Origin](), 0
    for operand, tensor in enumerate(node.inputs):
        size = graph.tensors[tensor].shape[axis]
        when = at[axis].below(start + size)
        if when and at[axis].high >= start:
            inside = at[axis].plus(-start).clamped(0, size - 1)
            b, y, x, c = (inside if k == axis else index for k, index in enumerate(at))
            found.append(Origin(operand, (b, y, x, c), when))
            if when is True:
                break
        start += size
    return tuple(found)


def _whole_slices(graph: Graph, node: Node) -> bool:
    """Whether every part but the last has whole slices, or other axes are joined."""
    sizes = [shape_in(graph, node, operand)[3] for operand in range(len(node.inputs))]
    return attributes_of(node, Concatenation).axis != 3 or all(size % 4 == 0 for size in sizes[:-1])


def _joins_no_channels(graph: Graph, node: Node) -> bool:
    return attributes_of(node, Concatenation).axis != len(shape_in(graph, node)) - 1


def _joined_values(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    expect_count(sum(value.size for value in values), output)
    return np.concatenate(values, attributes_of(node, Concatenation).axis)


def _packed_values(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    expect_count(sum(value.size for value in values), output)
    return np.stack(values, attributes_of(node, Axis).axis)


def _adds_up(node: Node, inputs: list[Shape], output: Shape) -> bool:
    axis = attributes_of(node, Concatenation).axis
    others = {(*shape[:axis], *shape[axis + 1 :]) for shape in (*inputs, output)}
    return len(others) == 1 and sum(shape[axis] for shape in inputs) == output[axis]


def _stacks(node: Node, inputs: list[Shape], output: Shape) -> bool:
    axis = attributes_of(node, Axis).axis
    return set(inputs) == {(*output[:axis], *output[axis + 1 :])} and output[axis] == len(inputs)


_TWO = ((1, 8, 8, 8), (1, 8, 8, 8))

RECORDS = (
    OpRecord(
        "CONCATENATION",
        "movement",
        of_any_type(
            FileForm(
                read_concatenation,
                write_concatenation,
                None,
                (1, MAX_OPERANDS),
                struct=OptionsStruct("ConcatenationOptions", f"Axis:i {ACTIVATED_STRUCT}"),
            )
        ),
        Example(shapes=_TWO, out=(1, 8, 8, 16), attributes=Concatenation(axis=3)),
        emission=MOVE,
        movement=Movement(_joined, _whole_slices),
        quantized=NO_RULES,  # uint8 may have a scale for each part
        evaluate=_joined_values,
        channels_stay=_joins_no_channels,
        agrees=_adds_up,
    ),
    OpRecord(
        "PACK",
        "movement",
        of_any_type(
            FileForm(
                read_pack,
                write_pack,
                None,
                (1, MAX_OPERANDS),
                struct=OptionsStruct("PackOptions", "ValuesCount:i Axis:i"),
            )
        ),
        Example(shapes=((1, 8, 8), (1, 8, 8)), out=(1, 8, 8, 2), attributes=Axis(3)),
        evaluate=_packed_values,
        agrees=_stacks,
    ),
)
