"""SPLIT, SPLIT_V and UNPACK: file form; passes turn them into slices, one for each output."""

from ..model.graph import Attributes, Axis, Graph, Node, Split
from ..model.operators import MAX_OPERANDS, EncodedOperator, Operator, attributes_of, integers
from .movement import of_any_type
from .record import Example, FileForm, OpRecord, OptionsStruct


def read_split(operator: Operator) -> Attributes:
    """The axis comes first, the input second; SPLIT_V has its input first, then the sizes, then the axis."""
    count = operator.options("SplitOptions").NumSplits()
    shape, axis = operator.shape(1), _axis(operator, 0, len(operator.shape(1)))
    if count < 1 or shape[axis] % count:
        operator.damaged(f"{count} equal parts of {shape[axis]} values")
    return _parts(operator, axis, 1, (shape[axis] // count,) * count)


def read_split_v(operator: Operator) -> Attributes:
    shape, sizes, axis = operator.shape(0), list(operator.integers(1)), _axis(operator, 2, len(operator.shape(0)))
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = shape[axis] - sum(sizes) - 1
    if any(size < 1 for size in sizes) or sum(sizes) != shape[axis]:
        operator.damaged(f"parts of {sizes} values of {shape[axis]}")
    return _parts(operator, axis, 0, tuple(sizes))


def _axis(operator: Operator, position: int, rank: int) -> int:
    axes = operator.integers(position)
    if len(axes) != 1 or not -rank <= axes[0] < rank:
        operator.damaged(f"axis {list(axes)} of {rank} dimensions")
    return axes[0] % rank


def _parts(operator: Operator, axis: int, position: int, sizes: tuple[int, ...]) -> Attributes:
    shape = operator.shape(position)
    if len(operator.outputs) != len(sizes):
        operator.damaged(f"{len(operator.outputs)} outputs of {len(sizes)} parts")
    operator.expect(*((*shape[:axis], size, *shape[axis + 1 :]) for size in sizes))
    return Split(axis, sizes)


def read_unpack(operator: Operator) -> Attributes:
    options, shape = operator.options("UnpackOptions"), operator.shape(0)
    axis = options.Axis()
    if not -len(shape) <= axis < len(shape):
        operator.damaged(f"axis {axis} of {len(shape)} dimensions")
    axis %= len(shape)
    if not options.Num() == shape[axis] == len(operator.outputs):
        operator.damaged(f"{len(operator.outputs)} outputs, {options.Num()} expected, of {shape[axis]} values")
    operator.expect(*[(*shape[:axis], *shape[axis + 1 :])] * len(operator.outputs))
    return Axis(axis)


def write_split(graph: Graph, node: Node) -> EncodedOperator:
    split = attributes_of(node, Split)
    return EncodedOperator((integers(split.axis), *node.inputs), "SplitOptions", {"NumSplits": len(split.sizes)})


def write_split_v(graph: Graph, node: Node) -> EncodedOperator:
    split = attributes_of(node, Split)
    parameters = (integers(*split.sizes), integers(split.axis))
    return EncodedOperator((*node.inputs, *parameters), "SplitVOptions", {"NumSplits": len(split.sizes)})


def write_unpack(graph: Graph, node: Node) -> EncodedOperator:
    axis = attributes_of(node, Axis).axis
    return EncodedOperator(node.inputs, "UnpackOptions", {"Axis": axis, "Num": len(node.outputs)})


_PARTS = (1, MAX_OPERANDS)
_HALVES = Example(out=(1, 8, 8, 4), others=((1, 8, 8, 4),), attributes=Split(3, (4, 4)))

RECORDS = (
    OpRecord(
        "SPLIT",
        "movement",
        of_any_type(
            FileForm(
                read_split,
                write_split,
                (1,),
                (2, 2),
                outputs=_PARTS,
                struct=OptionsStruct("SplitOptions", "NumSplits:i"),
            )
        ),
        _HALVES,
    ),
    OpRecord(
        "SPLIT_V",
        "movement",
        of_any_type(
            FileForm(
                read_split_v,
                write_split_v,
                (0,),
                (3, 3),
                outputs=_PARTS,
                struct=OptionsStruct("SplitVOptions", "NumSplits:i"),
            )
        ),
        _HALVES,
    ),
    OpRecord(
        "UNPACK",
        "movement",
        of_any_type(
            FileForm(read_unpack, write_unpack, outputs=_PARTS, struct=OptionsStruct("UnpackOptions", "Num:i Axis:i"))
        ),
        Example(shapes=((1, 8, 8, 2),), out=(1, 8, 8), others=((1, 8, 8),), attributes=Axis(3)),
    ),
)
