"""RFFT2D, COMPLEX_ABS, REAL and IMAG: file forms; a pass makes products and arithmetic of floats of them."""

import math
from dataclasses import dataclass

from ..model.graph import Attributes, Graph, Node, Shape
from ..model.layout import aligned_channels
from ..model.operators import EncodedOperator, Operator, attributes_of, integers
from .record import Example, FileForm, OpRecord

COMPLEX = "complex64"
MOST_LENGTH = 1 << 14


@dataclass(frozen=True)
class Transform(Attributes):
    """RFFT2D: input (x,), cut or filled with zeros to these lengths of its last two dimensions."""

    lengths: tuple[int, int] = (1, 1)  # powers of two


def read_transform(operator: Operator) -> Attributes:
    shape, lengths = operator.shape(0), operator.integers(1)
    if len(shape) < 2 or len(lengths) != 2:
        operator.damaged(f"lengths {list(lengths)} for {list(shape)}")
    rows, columns = lengths
    if any(not 0 < length <= MOST_LENGTH or length & (length - 1) for length in (rows, columns)):
        operator.unsupported(f"lengths {list(lengths)}, which are no powers of two up to {MOST_LENGTH}")
    if columns == 1:
        operator.unsupported("one column, of which TensorFlow Lite's transform is another one")
    operator.expect((*shape[:-2], rows, columns // 2 + 1))
    return Transform((rows, columns))


def write_transform(graph: Graph, node: Node) -> EncodedOperator:
    return EncodedOperator((*node.inputs, integers(*attributes_of(node, Transform).lengths)), "Rfft2dOptions")


def read_part(operator: Operator) -> Attributes:
    operator.expect(operator.shape(0))
    return Attributes()


def write_part(graph: Graph, node: Node) -> EncodedOperator:
    return EncodedOperator(node.inputs)


def _sides(graph: Graph, node: Node) -> tuple[Shape, Shape]:
    """The last two dimensions of what is transformed, and of what becomes of them."""
    x, out = (graph.tensors[i].shape for i in (node.inputs[0], node.outputs[0]))
    return x[-2:], out[-2:]


def _transform_macs(graph: Graph, node: Node) -> int:
    """Of products with matrices, along one dimension and then, of what has rows, along the other."""
    (rows, columns), (out_rows, out_columns) = _sides(graph, node)
    count = math.prod(graph.tensors[node.inputs[0]].shape[:-2])
    along_rows = 0 if rows == out_rows == 1 else 4 * out_rows * rows * out_columns
    return count * (2 * rows * columns * out_columns + along_rows)


def _transform_bytes(graph: Graph, node: Node) -> int:
    (rows, columns), (out_rows, out_columns) = (map(aligned_channels, side) for side in _sides(graph, node))
    return 4 * (2 * columns * out_columns + 4 * rows * out_rows)


def _agrees(node: Node, inputs: list[Shape], output: Shape) -> bool:
    rows, columns = attributes_of(node, Transform).lengths
    return output == (*inputs[0][:-2], rows, columns // 2 + 1)


_PART = FileForm(read_part, write_part, dtypes=(COMPLEX,))

RECORDS = (
    OpRecord(
        "RFFT2D",
        "contraction",
        FileForm(read_transform, write_transform, count=(2, 2), out_dtypes=(COMPLEX,)),
        Example(shapes=((2, 3, 16),), out=(2, 4, 9), out_dtype=COMPLEX, attributes=Transform((4, 16))),
        macs=_transform_macs,
        weight_bytes=_transform_bytes,
        agrees=_agrees,
    ),
    *(
        OpRecord(name, "contraction", _PART, Example(((3, 1, 9),), (3, 1, 9), dtype=COMPLEX))
        for name in ("COMPLEX_ABS", "REAL", "IMAG")
    ),
)
