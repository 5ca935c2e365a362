"""Kernel code of ops that move data: it reads each value from where the op's record says that it comes from.

Every op's map of coordinates is in its record (record.Movement). Where slices of four channels stay together a texel is
read as it is, else lane by lane. A map may read through further maps, see gpu_delegate/plan/reads.py.
"""

from collections.abc import Sequence
from dataclasses import replace

from ..code.expressions import Slice
from ..code.indices import Index, both
from ..code.kernel_writer import KernelWriter
from ..code.vocabulary import Value
from ..model.graph import Graph, Node, Shape
from .record import Coordinates, Emission, FileForm, Origin


def move(writer: KernelWriter, node: Node, at: Slice) -> Sequence[Value]:
    """One slice of a node that moves data, for each of the thread's pixels."""
    return writer.declare([writer.moved(node, row, at) for row in writer.rows])


MOVE = Emission(stream=move)
MOVED_TYPES = ("float32", "int32", "int64", "bool", "int8", "uint8", "int16", "uint16")  # which float32 has


def of_any_type(form: FileForm) -> FileForm:
    """The form of an op that moves values as they are, whatever their type."""
    first = MOVED_TYPES if form.dtypes == ("int32",) else ()  # indices follow
    dtypes = ("int32", "int64") if first else MOVED_TYPES
    return replace(form, dtypes=dtypes, first_dtypes=first, out_dtypes=MOVED_TYPES, keeps_type=True)


def of_complex_too(form: FileForm) -> FileForm:
    """The form of an op that may have complex numbers besides, of which a pass makes floats."""
    types = (*MOVED_TYPES, "complex64")
    return replace(form, dtypes=types, out_dtypes=types, keeps_type=True)


def same_channels(graph: Graph, node: Node) -> bool:
    """Whether the output has the input's channels, or both have whole slices."""
    source, target = (graph.tensors[i].shape[3] for i in (node.inputs[0], node.outputs[0]))
    return source == target or source % 4 == target % 4 == 0


def shape_in(graph: Graph, node: Node, operand: int = 0) -> Shape:
    """(b, h, w, c) of an input."""
    return graph.tensors[node.inputs[operand]].shape


def shape_out(graph: Graph, node: Node) -> Shape:
    """(b, h, w, c) of the output."""
    return graph.tensors[node.outputs[0]].shape


def within(position: Sequence[Index], shape: Shape, operand: int = 0) -> tuple[Origin, ...]:
    """The source at a position that may lie outside of the input; none if it always does."""
    conditions = [index.inside(0, size - 1) for index, size in zip(position, shape, strict=True)]
    when = both(conditions)
    if not when:
        return ()
    b, y, x, c = (index.clamped(0, size - 1) for index, size in zip(position, shape, strict=True))
    return (Origin(operand, (b, y, x, c), when),)


def flattened(position: Coordinates, shape: Shape) -> Index:
    """The number of a value in the order of memory of a file: BHWC."""
    b, y, x, c = position
    _, height, width, channels = shape
    return b.times(height).plus(y).times(width).plus(x).times(channels).plus(c)


def unflattened(number: Index, shape: Shape) -> Coordinates:
    """The position of the value with a number in that order."""
    _, height, width, channels = shape
    pixel = number.over(channels)
    row = pixel.over(width)
    return row.over(height), row.modulo(height), pixel.modulo(width), number.modulo(channels)
