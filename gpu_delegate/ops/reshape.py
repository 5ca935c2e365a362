"""RESHAPE, EXPAND_DIMS and SQUEEZE: file form, and where their values come from."""

import math

from ..model.graph import Attributes, Graph, Node, Shape
from ..model.operators import MAX_OPERANDS, EncodedOperator, Operator, integers
from .facts import keeps_count, reshaped_values
from .movement import MOVE, flattened, of_complex_too, same_channels, shape_in, shape_out, unflattened
from .record import Coordinates, Example, FileForm, Movement, OpRecord, OptionsStruct, Origin


def read_reshape(operator: Operator) -> Attributes:
    """One size may be -1: whatever is left for it."""
    shape = operator.shape(0)
    wanted = (
        operator.integers(1) if len(operator.inputs) == 2 and operator.inputs[1] is not None else _new_shape(operator)
    )
    known = math.prod(size for size in wanted if size != -1)
    out = tuple(math.prod(shape) // known if size == -1 and known > 0 else size for size in wanted)
    if wanted.count(-1) > 1 or math.prod(shape) != math.prod(out):
        operator.damaged(f"cannot make {list(shape)} into {list(wanted)}")
    operator.expect(out)
    return Attributes()


def _new_shape(operator: Operator) -> Shape:
    """The shape in the options of an old RESHAPE, which newer ones have as an input."""
    options = operator.options("ReshapeOptions")
    count = options.NewShapeLength()
    if count > MAX_OPERANDS:
        operator.damaged(f"a new shape of {count} dimensions")
    return tuple(int(size) for size in options.NewShapeAsNumpy()) if count else ()


def write_reshape(graph: Graph, node: Node) -> EncodedOperator:
    """The new shape as an input; a scalar's in the options, because a constant has at least one value."""
    shape = graph.tensors[node.outputs[0]].shape
    return EncodedOperator(
        (*node.inputs, *((integers(*shape),) if shape else ())), "ReshapeOptions", {"NewShape": shape}
    )


def read_expand(operator: Operator) -> Attributes:
    shape, axes = operator.shape(0), operator.integers(1)
    rank = len(shape) + 1
    if len(axes) != 1 or not -rank <= axes[0] < rank:
        operator.damaged(f"axis {list(axes)} of {rank} dimensions")
    axis = axes[0] % rank
    operator.expect((*shape[:axis], 1, *shape[axis:]))
    return Attributes()


def read_squeeze(operator: Operator) -> Attributes:
    shape, options = operator.shape(0), operator.options("SqueezeOptions")
    count = options.SqueezeDimsLength()
    if count > MAX_OPERANDS:
        operator.damaged(f"{count} dimensions to remove")
    given = [int(axis) for axis in options.SqueezeDimsAsNumpy()] if count else []
    if any(not -len(shape) <= axis < len(shape) for axis in given):
        operator.damaged(f"axes {given} of {len(shape)} dimensions")
    axes = {axis % len(shape) for axis in given} if given else {k for k, size in enumerate(shape) if size == 1}
    if any(shape[axis] != 1 for axis in axes):
        operator.damaged(f"axes {given} of {list(shape)} cannot be removed")
    operator.expect(tuple(size for k, size in enumerate(shape) if k not in axes))
    return Attributes()


def _reshaped(graph: Graph, node: Node, at: Coordinates) -> tuple[Origin, ...]:
    """Where channels stay, pixels are numbered alone; where both have whole slices, what is numbered is the slice."""
    source, target = shape_in(graph, node), shape_out(graph, node)
    b, y, x, c = at
    if source[:3] == target[:3]:
        return (Origin(0, at),)
    if source[3] == target[3]:
        places, around = (flattened((b, y, x, c.times(0)), (*target[:3], 1)), (*source[:3], 1))
        return (Origin(0, (*unflattened(places, around)[:3], c)),)
    return (Origin(0, unflattened(flattened(at, target), source)),)


_RESHAPE = Movement(_reshaped, same_channels, in_order=True)

RECORDS = (
    OpRecord(
        "RESHAPE",
        "movement",
        of_complex_too(
            FileForm(read_reshape, write_reshape, count=(1, 2), struct=OptionsStruct("ReshapeOptions", "NewShape:l"))
        ),
        Example(out=(1, 4, 16, 8)),
        emission=MOVE,
        movement=_RESHAPE,
        evaluate=reshaped_values,
        agrees=keeps_count,
    ),
    OpRecord(
        "EXPAND_DIMS",
        "movement",
        of_complex_too(FileForm(read_expand, write_reshape, count=(2, 2), builtin="RESHAPE")),
        Example(shapes=((8, 8, 8),), out=(1, 8, 8, 8)),
        emission=MOVE,
        movement=_RESHAPE,
        evaluate=reshaped_values,
        agrees=keeps_count,
    ),
    OpRecord(
        "SQUEEZE",
        "movement",
        of_complex_too(
            FileForm(
                read_squeeze, write_reshape, builtin="RESHAPE", struct=OptionsStruct("SqueezeOptions", "SqueezeDims:l")
            )
        ),
        Example(shapes=((1, 8, 8, 8),), out=(8, 8, 8)),
        emission=MOVE,
        movement=_RESHAPE,
        evaluate=reshaped_values,
        agrees=keeps_count,
    ),
)
