"""SHAPE, RANK, ZEROS_LIKE, RANGE and FILL: file form; sizes are known, so passes replace these ops by their values."""

import math
from collections.abc import Sequence

import numpy as np
import tflite

from ..code.evaluate import Values
from ..code.whole_numbers import ONLY_ZERO, WholeRange, exact
from ..model.graph import Attributes, Graph, Node, Steps, Tensor
from ..model.operators import EncodedOperator, Operator, integers
from .elementwise import read_plain, with_integers, write_plain
from .facts import last_range
from .movement import MOVED_TYPES
from .record import Example, FileForm, OpRecord, OptionsStruct


def read_shape(operator: Operator) -> Attributes:
    operator.expect_type(operator.options("ShapeOptions").OutType())
    operator.expect((len(operator.shape(0)),))
    return Attributes()


def read_rank(operator: Operator) -> Attributes:
    operator.shape(0)
    operator.expect(())
    return Attributes()


def read_range(operator: Operator) -> Attributes:
    """How many values there are is known if all inputs are constants."""
    values = [tensor.data for tensor in operator.inputs if tensor is not None and tensor.data is not None]
    if len(values) < len(operator.inputs):
        operator.unsupported("dynamic shapes: an input is not a constant")
    if any(value.size != 1 for value in values):
        operator.damaged("its inputs are not one value each")
    start, limit, step = (float(value.ravel()[0]) for value in values)
    count = math.ceil((limit - start) / step) if step and math.isfinite((limit - start) / step) else -1
    if count < 1:
        operator.damaged(f"values from {start:g} to {limit:g} in steps of {step:g}")
    operator.expect((count,))
    return Attributes()


def read_fill(operator: Operator) -> Attributes:
    if math.prod(operator.shape(1)) != 1:
        operator.damaged(f"a value of shape {list(operator.shape(1))}")
    operator.expect(operator.integers(0))
    return Attributes()


def write_fill(graph: Graph, node: Node) -> EncodedOperator:
    return EncodedOperator((integers(*graph.tensors[node.outputs[0]].shape), node.inputs[-1]))


def write_shape(graph: Graph, node: Node) -> EncodedOperator:
    kind = getattr(tflite.TensorType, graph.tensors[node.outputs[0]].dtype.upper())
    return EncodedOperator(node.inputs, "ShapeOptions", {"OutType": kind})


def _filled_values(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    return np.broadcast_to(values[-1].reshape(()), output.shape)


def _counted_values(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    """Each value is the one before it plus the step, rounded each time."""
    start, _, step = (value.reshape(()) for value in values)
    steps = np.full(output.shape, step, step.dtype)
    steps[:1] = start
    return np.cumsum(steps, dtype=step.dtype)


def _sizes(graph: Graph, node: Node, inputs: Sequence[WholeRange]) -> WholeRange:
    shape = graph.tensors[node.inputs[0]].shape
    return exact(min(shape, default=0), max(shape, default=0))


def _rank(graph: Graph, node: Node, inputs: Sequence[WholeRange]) -> WholeRange:
    rank = len(graph.tensors[node.inputs[0]].shape)
    return Steps(rank, rank)


def _zero(graph: Graph, node: Node, inputs: Sequence[WholeRange]) -> WholeRange:
    return ONLY_ZERO


RECORDS = (
    OpRecord(
        "SHAPE",
        "folded",
        FileForm(
            read_shape,
            write_shape,
            dtypes=(),
            out_dtypes=("int32", "int64"),
            struct=OptionsStruct("ShapeOptions", "OutType:t"),
        ),
        Example(out=(4,), out_dtype="int32"),
        of_shape=np.array,
        ranges=(_sizes,),
    ),
    OpRecord(
        "RANK",
        "folded",
        FileForm(read_rank, write_plain, dtypes=(), out_dtypes=("int32",)),
        Example(out=(), out_dtype="int32"),
        of_shape=lambda shape: np.array(len(shape)),
        ranges=(_rank,),
    ),
    OpRecord(
        "ZEROS_LIKE", "folded", with_integers(FileForm(read_plain, write_plain)), of_shape=np.zeros, ranges=(_zero,)
    ),
    OpRecord(
        "RANGE",
        "folded",
        with_integers(FileForm(read_range, write_plain, (0, 1, 2), (3, 3))),
        Example(shapes=(), out=(1,), constants=((), (), ())),
        evaluate=_counted_values,
    ),
    OpRecord(
        "FILL",
        "movement",
        FileForm(read_fill, write_fill, (1,), (2, 2), dtypes=MOVED_TYPES, out_dtypes=MOVED_TYPES, keeps_type=True),
        Example(shapes=((),), out=(1, 4, 3, 5)),
        evaluate=_filled_values,
        ranges=(last_range,),
    ),
)
