"""Computes the output of a node whose inputs are constants, with NumPy and as TensorFlow Lite does.

What is computed is what the op's record says: its arithmetic, how it folds values into one, where it moves them from,
or a function of its own for tensors of any rank. Shapes are those of the file, which may contradict the op: ValueError
is raised before more memory is taken than the output's shape says, and for values that TensorFlow Lite refuses.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from ..base.errors import UnsupportedError
from ..code.evaluate import Values, evaluate, evaluate_places
from ..code.indices import Index
from ..code.vocabulary import Name
from ..model.graph import Activated, Attributes, BatchToSpace, Graph, Node, Reduce, SpaceToBatch, Tensor
from ..model.layout import RANK
from ..model.operators import attributes_of
from ..ops.facts import COMPUTED_TYPES, expect_types
from ..ops.nodes import arithmetic_of, fold_of, record_of
from ..ops.record import OpRecord
from ..ops.registry import OPS
from .ranks import align_ranks

_MOVED = COMPUTED_TYPES | {"float16"}
_REDUCERS: Mapping[str, np.ufunc] = MappingProxyType(
    {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}
)


def follows_from_shape(node: Node) -> bool:
    """Whether a node's value follows from the shape of its input, whatever is in it."""
    return node.op in OPS and OPS[node.op].of_shape is not None


def can_fold(op: str) -> bool:
    """Whether an op's value is known where all its inputs are constant."""
    record = OPS.get(op)
    if record is None:
        return False
    return any(each is not None for each in (record.evaluate, record.arithmetic, record.reducer, record.movement))


def fold_value(node: Node, inputs: Sequence[Tensor], output: Tensor) -> Values:
    """The output's value in its shape and type, in C order. Raises ValueError where it cannot be computed."""
    record = record_of(node)
    if record.of_shape is not None:
        return np.asarray(record.of_shape(inputs[0].shape), output.dtype).reshape(output.shape)
    values = [tensor.data for tensor in inputs if tensor.data is not None]
    if not _takes_bits(record):
        expect_types(values, COMPUTED_TYPES if record.role in ("elementwise", "reduction") else _MOVED)
    with np.errstate(all="ignore"):
        value = _activated(node.attributes, _value(record, node, values, output))
    if value.shape != output.shape:
        raise ValueError(f"a value of shape {list(value.shape)} for {list(output.shape)}")
    return np.asarray(value, output.dtype, order="C")


def _takes_bits(record: OpRecord) -> bool:
    """Whether values may be of any type: they stay as they are, or the op's own function looks at the types."""
    return record.evaluate is not None and (record.role == "elementwise" or record.keeps_order)


def _value(record: OpRecord, node: Node, values: Sequence[Values], output: Tensor) -> Values:
    if record.evaluate is not None:
        return record.evaluate(node, values, output)
    if record.arithmetic is not None:
        if output.dtype not in COMPUTED_TYPES:
            raise ValueError(f"{output.dtype} results need scales")
        return evaluate(arithmetic_of(node), [np.broadcast_to(value, output.shape) for value in values])
    if record.reducer is not None:
        return _folded(node, values[0])
    return _moved(node, values, output)


def _activated(attributes: Attributes, value: Values) -> Values:
    activation = attributes.activation if isinstance(attributes, Activated) else "NONE"
    if activation == "NONE":
        return value
    return np.asarray(evaluate(arithmetic_of(Node(activation, (0,), ())), [value]), value.dtype)


def _folded(node: Node, value: Values) -> Values:
    reduced, fold = attributes_of(node, Reduce), fold_of(node)
    found = _REDUCERS[fold.operation].reduce(value, axis=reduced.axes, keepdims=reduced.keep_dims)
    if fold.averages:
        found = found / math.prod(value.shape[axis] for axis in reduced.axes)
    return np.asarray(found, value.dtype)


def _moved(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    """By the op's map, in four dimensions."""
    if isinstance(node.attributes, SpaceToBatch | BatchToSpace) and len(output.shape) != RANK:
        raise ValueError("its batches would be rows")
    tensors = {k: Tensor(k, "", value.shape, value.dtype.name, value) for k, value in enumerate(values)}
    out = Tensor(len(values), "", output.shape, output.dtype)
    alone = Node(node.op, tuple(tensors), (out.index,), node.attributes)
    try:
        graph, _ = align_ranks(Graph("", MappingProxyType({**tensors, out.index: out}), (alone,), (), (out.index,)))
    except UnsupportedError as error:
        raise ValueError(str(error)) from None
    moving = graph.nodes[0]
    movement, shape = record_of(moving).movement, graph.tensors[moving.outputs[0]].shape
    if movement is None or movement.lookup(moving) is not None:
        raise ValueError("its places are not known")
    axes = np.ogrid[tuple(slice(size) for size in shape)]
    names = dict(zip("byxc", axes, strict=True))
    b, y, x, c = (Index.variable(Name(name, "int"), 0, size - 1) for name, size in zip("byxc", shape, strict=True))
    found = np.full(shape, movement.fill(moving) if movement.fill else 0, values[0].dtype)
    for origin in reversed(movement.sources(graph, moving, (b, y, x, c))):
        data = graph.tensors[moving.inputs[origin.operand]].data
        assert data is not None, "all are constant"
        places = [np.clip(evaluate_places(i.code, names), 0, n - 1) for i, n in zip(origin.at, data.shape, strict=True)]
        found = np.where(evaluate_places(origin.when, names), data[tuple(places)], found)
    return found.reshape(output.shape)
