"""Ops that look values up by index, such as GATHER, ONE_HOT and SCATTER_ND: file form, and the kernel of GATHER.

Indices are constants or computed. A pass says all of them by GATHER along one dimension with a vector of indices, by
comparisons and products of matrices; only that GATHER has a kernel. TensorFlow Lite refuses to run where an index is
out of range; here such an index is the nearest in range, or nothing is stored, and passes/faults.py tells of it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..code.evaluate import Values
from ..code.expressions import Slice
from ..code.indices import Index
from ..code.kernel_writer import KernelWriter
from ..code.vocabulary import Lane, StoreTo, clamp, to_int
from ..code.whole_numbers import WholeRange, joined_range, repeated_sum
from ..model.graph import Attributes, Axis, Graph, Node, Tensor
from ..model.layout import shape_of
from ..model.operators import EncodedOperator, Operator, attributes_of, integers
from .facts import expect_count, first_range, last_range
from .movement import MOVE, MOVED_TYPES, of_any_type
from .record import Coordinates, Emission, Example, FileForm, Movement, OpRecord, OptionsStruct, Origin

OVERWRITES = "UPDATE_IN_PLACE"  # inputs (update, start, x); the output lies where x does
INDEX_TYPES = ("int32", "int64")


@dataclass(frozen=True)
class BatchGather(Axis):
    """GATHER: inputs (x, indices); the first dimensions of both, if any, are the same maps of a batch."""

    batch_dims: int = 0


@dataclass(frozen=True)
class ReverseSequence(Attributes):
    """REVERSE_SEQUENCE: inputs (x, lengths); the first values along a dimension are reversed, as many as each says."""

    sequence: int = 1  # the dimension along which values are reversed
    batch: int = 0  # that along which lengths change


def _axis_of(operator: Operator, axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        operator.damaged(f"axis {axis} of {rank} dimensions")
    return axis % rank


def read_gather(operator: Operator) -> Attributes:
    options, shape, indices = operator.options("GatherOptions"), operator.shape(0), operator.shape(1)
    axis, batch = _axis_of(operator, options.Axis(), len(shape)), options.BatchDims()
    batch += len(indices) if batch < 0 else 0
    if not 0 <= batch <= min(axis, len(indices)) or shape[:batch] != indices[:batch]:
        operator.damaged(f"{batch} common dimensions of {list(shape)} and {list(indices)}, axis {axis}")
    operator.expect((*shape[:axis], *indices[batch:], *shape[axis + 1 :]))
    _check_indices(operator, 1, (shape[axis],))
    return BatchGather(axis, batch) if batch else Axis(axis)


def read_gather_nd(operator: Operator) -> Attributes:
    shape, indices = operator.shape(0), operator.shape(1)
    if not indices or not 0 < indices[-1] <= len(shape):
        operator.damaged(f"indices of shape {list(indices)} into {list(shape)}")
    operator.expect((*indices[:-1], *shape[indices[-1] :]))
    _check_indices(operator, 1, shape[: indices[-1]])
    return Attributes()


def read_embedding_lookup(operator: Operator) -> Attributes:
    indices, shape = operator.shape(0, rank=1), operator.shape(1)
    if len(shape) < 2:
        operator.damaged(f"values of shape {list(shape)}")
    operator.expect((*indices, *shape[1:]))
    _check_indices(operator, 0, shape[:1])
    return Attributes()


def read_one_hot(operator: Operator) -> Attributes:
    """The axis is that of the output; -1 is the last."""
    indices, depth = operator.shape(0), operator.integers(1)
    if len(depth) != 1 or depth[0] < 1 or any(operator.shape(i) not in ((), (1,)) for i in (2, 3)):
        operator.damaged(f"a depth of {list(depth)} and values of {[list(operator.shape(i)) for i in (2, 3)]}")
    if len({tensor.dtype for tensor in (*operator.inputs[2:4], *operator.outputs) if tensor}) > 1:
        operator.damaged("values of several types")
    axis = _axis_of(operator, operator.options("OneHotOptions").Axis(), len(indices) + 1)
    operator.expect((*indices[:axis], *depth, *indices[axis:]))
    return Axis(axis)


def read_scatter_nd(operator: Operator) -> Attributes:
    indices, updates, shape = operator.shape(0), operator.shape(1), operator.integers(2)
    if not indices or not 0 < indices[-1] <= len(shape) or updates != (*indices[:-1], *shape[indices[-1] :]):
        operator.damaged(f"values of shape {list(updates)} at indices of shape {list(indices)} of {list(shape)}")
    operator.expect(shape)
    _check_indices(operator, 0, shape[: indices[-1]])
    return Attributes()


def read_reverse_sequence(operator: Operator) -> Attributes:
    options, shape, lengths = operator.options("ReverseSequenceOptions"), operator.shape(0), operator.shape(1)
    sequence, batch = options.SeqDim(), options.BatchDim()
    if not (0 <= sequence < len(shape) and 0 <= batch < len(shape)) or sequence == batch or lengths != (shape[batch],):
        operator.damaged(f"lengths of shape {list(lengths)} for dimensions {batch} and {sequence} of {list(shape)}")
    operator.expect(shape)
    _check_indices(operator, 1, (shape[sequence] + 1,), may_be_negative=True)
    return ReverseSequence(sequence, batch)


def read_update_slice(operator: Operator) -> Attributes:
    """Inputs (x, update, starts); a start that would let the update lie outside is the nearest that does not."""
    shape, update, starts = operator.shape(0), operator.shape(1), operator.shape(2)
    if len(shape) != len(update) or starts != (len(shape),) or any(a > b for a, b in zip(update, shape, strict=True)):
        operator.damaged(f"an update of shape {list(update)} at {list(starts)} starts of {list(shape)}")
    types = [tensor.dtype for tensor in operator.inputs if tensor]
    if types[0] != types[1] or types[2] not in INDEX_TYPES:
        operator.damaged(f"an update of {types[1]} at {types[2]} starts of {types[0]}")
    operator.expect(shape)
    return Attributes()


def _check_indices(operator: Operator, position: int, sizes: tuple[int, ...], may_be_negative: bool = False) -> None:
    """Constant ones; of several sizes, one for each place along the last dimension."""
    given = operator.inputs[position]
    if given is not None and given.data is not None and given.data.size:
        values = given.data.astype(np.int64).reshape(-1, len(sizes))
        if (not may_be_negative and (values < 0).any()) or (values >= sizes).any():
            operator.damaged(f"indices outside of 0 ... {', '.join(str(size - 1) for size in sizes)}")


def write_gather(graph: Graph, node: Node) -> EncodedOperator:
    gather = attributes_of(node, Axis)
    batch = gather.batch_dims if isinstance(gather, BatchGather) else 0
    return EncodedOperator(node.inputs, "GatherOptions", {"Axis": gather.axis, "BatchDims": batch})


def write_gather_nd(graph: Graph, node: Node) -> EncodedOperator:
    return EncodedOperator(node.inputs, "GatherNdOptions")


def write_embedding_lookup(graph: Graph, node: Node) -> EncodedOperator:
    return EncodedOperator(node.inputs)


def write_one_hot(graph: Graph, node: Node) -> EncodedOperator:
    axis, (indices, on, off) = attributes_of(node, Axis).axis, node.inputs
    depth = np.array(graph.tensors[node.outputs[0]].shape[axis], np.int32)
    return EncodedOperator((indices, depth, on, off), "OneHotOptions", {"Axis": axis})


def write_scatter_nd(graph: Graph, node: Node) -> EncodedOperator:
    return EncodedOperator((*node.inputs, integers(*graph.tensors[node.outputs[0]].shape)), "ScatterNdOptions")


def write_reverse_sequence(graph: Graph, node: Node) -> EncodedOperator:
    reverse = attributes_of(node, ReverseSequence)
    options = {"SeqDim": reverse.sequence, "BatchDim": reverse.batch}
    return EncodedOperator(node.inputs, "ReverseSequenceOptions", options)


def write_update_slice(graph: Graph, node: Node) -> EncodedOperator:
    return EncodedOperator(node.inputs)


def _gathered(graph: Graph, node: Node, at: Coordinates) -> tuple[Origin, ...]:
    return (Origin(0, at),)


def _gathers_no_channel(graph: Graph, node: Node) -> bool:
    return attributes_of(node, Axis).axis != 3


def _gather_axis(node: Node) -> int | None:
    return attributes_of(node, Axis).axis


def store_update(writer: KernelWriter, node: Node) -> None:
    """Each of the update's pixels into the map where it lies, as far along a dimension as the start says."""
    update, start, _ = node.inputs
    whole, axis = writer.shape(node.outputs[0]), attributes_of(node, Axis).axis
    sizes, zero = (whole.batch, whole.height, whole.width), Index.of(0)
    last = sizes[axis] - (writer.domain.batch, writer.domain.height, writer.domain.width)[axis]
    found = clamp(to_int(Lane(writer.texel_at(start, Slice(0), (zero, zero, zero)), 0)), 0, last)
    first = Index.variable(writer.once("j", found), 0, last)
    for row in writer.rows:
        b, y, x = (
            index.plus(first) if k == axis else index for k, index in enumerate(writer.place(writer.domain, row))
        )
        pixel = b.times(whole.height).plus(y).times(whole.width).plus(x).code
        for k in range(whole.slices):
            at = Slice(k)
            value = writer.masked(writer.held(update, row, k), whole.channels, at)
            writer.add(StoreTo(writer.target(node.outputs[0]), writer.texel(node.outputs[0], at, pixel), value))


def _update_text(graph: Graph, node: Node) -> int:
    return shape_of(graph.tensors[node.inputs[0]]).slices


_LOOKED_UP = of_any_type(
    FileForm(
        read_gather,
        write_gather,
        (0, 1),
        (2, 2),
        dtypes=("int32",),
        struct=OptionsStruct("GatherOptions", "Axis:i BatchDims:i"),
    )
)


def _gathered_values(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    x, indices = values
    if isinstance(node.attributes, BatchGather):
        raise ValueError("maps of a batch with indices of their own")
    axis = attributes_of(node, Axis).axis
    expect_count(x.size // x.shape[axis] * indices.size, output)
    if indices.size and not 0 <= indices.min() <= indices.max() < x.shape[axis]:
        raise ValueError(f"positions {indices.min()} to {indices.max()} of {x.shape[axis]}")
    return np.take(x, indices, axis)


def _sums_at_places(graph: Graph, node: Node, inputs: Sequence[WholeRange]) -> WholeRange:
    """Sums of as many values as have one place, of all of them at most; zeros elsewhere."""
    indices, updates = (graph.tensors[i].shape for i in node.inputs[:2])
    return repeated_sum(inputs[1], math.prod(indices[:-1])) if updates else None


def _last_two(graph: Graph, node: Node, inputs: Sequence[WholeRange]) -> WholeRange:
    return joined_range(inputs[-2:])


_VALUES = ("float32", "int32", "int64")

RECORDS = (
    OpRecord(
        "GATHER",
        "movement",
        _LOOKED_UP,
        Example(constants=((8,),), constant_dtype="int32", attributes=Axis(1)),
        emission=MOVE,
        movement=Movement(_gathered, _gathers_no_channel, lookup=_gather_axis),
        evaluate=_gathered_values,
        where=1,
    ),
    OpRecord(
        "GATHER_ND",
        "movement",
        of_any_type(FileForm(read_gather_nd, write_gather_nd, (0, 1), (2, 2), dtypes=("int32",))),
        Example(out=(8, 8), constants=((2,),), constant_dtype="int32"),
        where=1,
    ),
    OpRecord(
        "EMBEDDING_LOOKUP",
        "movement",
        FileForm(read_embedding_lookup, write_embedding_lookup, (0, 1), (2, 2), first_dtypes=("int32",)),
        Example(shapes=((5,), (7, 8)), out=(5, 8)),
        where=0,
        ranges=(last_range,),
    ),
    OpRecord(
        "ONE_HOT",
        "movement",
        FileForm(
            read_one_hot,
            write_one_hot,
            (0, 2, 3),
            (4, 4),
            dtypes=MOVED_TYPES,
            first_dtypes=INDEX_TYPES,
            out_dtypes=MOVED_TYPES,
            struct=OptionsStruct("OneHotOptions", "Axis:i"),
        ),
        Example(shapes=((5,),), out=(5, 3), constants=((), ()), attributes=Axis(1)),
        where=0,
        ranges=(_last_two,),
    ),
    OpRecord(
        "SCATTER_ND",
        "reduction",
        FileForm(
            read_scatter_nd,
            write_scatter_nd,
            (0, 1),
            (3, 3),
            dtypes=_VALUES,
            first_dtypes=("int32",),
            out_dtypes=_VALUES,
        ),
        Example(shapes=((5, 1), (5, 8)), out=(7, 8)),
        where=0,
        ranges=(_sums_at_places,),
    ),
    OpRecord(
        "REVERSE_SEQUENCE",
        "movement",
        of_any_type(
            FileForm(
                read_reverse_sequence,
                write_reverse_sequence,
                (0, 1),
                (2, 2),
                dtypes=("int32",),
                struct=OptionsStruct("ReverseSequenceOptions", "SeqDim:i BatchDim:i"),
            )
        ),
        Example(
            shapes=((3, 8, 8),), out=(3, 8, 8), constants=((3,),), constant_dtype="int32", attributes=ReverseSequence()
        ),
        where=1,
        ranges=(first_range,),
    ),
    OpRecord(
        "DYNAMIC_UPDATE_SLICE",
        "movement",
        FileForm(
            read_update_slice,
            write_update_slice,
            (0, 1, 2),
            (3, 3),
            dtypes=MOVED_TYPES,
            first_dtypes=MOVED_TYPES,
            out_dtypes=MOVED_TYPES,
            keeps_type=True,
        ),
        Example(shapes=((1, 8, 8, 8), (1, 3, 2, 5)), constants=((4,),), constant_dtype="int32"),
        where=2,
    ),
    OpRecord(
        OVERWRITES,
        "scatter",
        example=Example(shapes=((1, 3, 8, 8), (1, 1, 1, 1), (1, 8, 8, 8)), attributes=Axis(1)),
        short_name="update",
        emission=Emission(store=store_update),
        from_memory=(1,),
        text_taps=_update_text,
        where=1,
    ),
)
