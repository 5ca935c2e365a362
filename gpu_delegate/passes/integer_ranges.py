"""Integer range analysis: the least and greatest value of each tensor that surely holds whole numbers.

Kernels compute with float32, which has every integer below 2^24: what has a range here is computed exactly, in any
order, to the same bytes on every device. A range is what follows from constants, types, sizes and `Tensor.steps`, node
by node; a tensor that may hold anything else, or integers from 2^24 on, has none. Works on graphs as read and between
passes.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..code.whole_numbers import (
    TRUTH,
    WholeRange,
    are_whole,
    common_range,
    exact,
    joined_range,
    range_of,
    range_of_values,
    repeated_product,
    repeated_sum,
)
from ..model.graph import ABSENT, Activated, DepthwiseConv2D, Graph, Node, Opaque, Steps, Tensor
from ..ops.nodes import arithmetic_of, computed_of, record_of
from ..ops.record import Reducer
from ..ops.registry import OPS


def whole_ranges(graph: Graph) -> Mapping[int, Steps]:
    """The range of each tensor that has one, by its number."""
    return MappingProxyType({number: r for number, r in known_ranges(graph).items() if exact(r.low, r.high)})


def known_ranges(graph: Graph) -> Mapping[int, Steps]:
    """The same of tensors that float32 may not have: integers lie at least between the limits of their type."""
    found: dict[int, Steps] = {}
    for number, tensor in graph.tensors.items():
        own = own_range(tensor) or type_limits(tensor.dtype)
        if own is not None:
            found[number] = own
    for node in graph.nodes:
        inputs = [found.get(i) for i in node.inputs]
        for place, number in enumerate(node.outputs):
            made, known = _made(graph, node, inputs, place), found.get(number)
            if made is not None and not _overflows(made, type_limits(graph.tensors[number].dtype)):
                found[number] = made if known is None else common_range(made, known)
    return found


def type_limits(dtype: str) -> WholeRange:
    """The least and the greatest integer of a type that has no scale; None for others."""
    if dtype not in ("int32", "int64"):
        return None
    limits = np.iinfo(dtype)
    return Steps(int(limits.min), int(limits.max))


def _overflows(made: Steps, limits: WholeRange) -> bool:
    """Whether a type does not hold all of a range, so that others come out."""
    return limits is not None and not limits.low <= made.low <= made.high <= limits.high


def own_range(tensor: Tensor) -> WholeRange:
    """What a tensor says of itself: by its steps, its value or its type."""
    if tensor.steps is not None:
        return tensor.steps
    if tensor.data is not None:
        return range_of_values(tensor.data)
    if tensor.dtype == "bool":
        return TRUTH
    if tensor.dtype in ("int8", "uint8", "int16", "uint16"):
        limits = np.iinfo(tensor.dtype)
        return Steps(int(limits.min), int(limits.max))
    return None


def _made(graph: Graph, node: Node, inputs: Sequence[WholeRange], place: int) -> WholeRange:
    """What a node makes of values in these ranges, its fused activation included."""
    out, record = graph.tensors[node.outputs[place]], OPS.get(node.op)
    if record is None or out.dtype not in ("float32", "int32", "int64", "bool"):  # integers of others have a scale
        return None
    if out.dtype == "bool":
        return TRUTH
    rule = record.ranges[min(place, len(record.ranges) - 1)] if record.ranges else _said
    if isinstance(node.attributes, Opaque) and rule is _said:
        return None
    found = rule(graph, node, inputs)
    if isinstance(node.attributes, Activated) and node.attributes.activation != "NONE":
        return None if found is None else range_of(arithmetic_of(Node(node.attributes.activation, (0,), ())), [found])
    return found


def _said(graph: Graph, node: Node, inputs: Sequence[WholeRange]) -> WholeRange:
    """What follows from the arithmetic of an op, from how it folds values, or from where it moves them."""
    record = record_of(node)
    if record.arithmetic is not None:
        of_integers = graph.tensors[node.outputs[0]].dtype in ("int32", "int64")
        computed = computed_of(node)
        return range_of(computed.arithmetic, inputs, computed.numbers, of_integers)
    if record.reducer is not None:
        return _folded(graph, node, record.reducer, inputs[0])
    if record.role == "movement":
        return _moved(graph, node, inputs)
    is_recurrent = record.file is not None and bool(record.file.variables)
    multiplies = (record.weighted or record.role == "contraction") and not is_recurrent
    return _contracted(graph, node, inputs) if multiplies and len(node.inputs) > 1 else None  # spectra have one input


def _folded(graph: Graph, node: Node, reducer: Reducer, found: WholeRange) -> WholeRange:
    if reducer.operation in ("minimum", "maximum"):
        return found
    sizes = [math.prod(graph.tensors[i].shape) for i in (node.inputs[0], node.outputs[0])]
    count = sizes[0] // max(1, sizes[1])  # values of the input that one of the output is made of
    if reducer.averages:
        return None
    return repeated_sum(found, count) if reducer.operation == "add" else repeated_product(found, count)


def _moved(graph: Graph, node: Node, inputs: Sequence[WholeRange]) -> WholeRange:
    """What lies in the inputs of the output's type, but for one that says where, and what is put between them."""
    dtype, record = graph.tensors[node.outputs[0]].dtype, record_of(node)
    moved = [
        found
        for at, (i, found) in enumerate(zip(node.inputs, inputs, strict=True))
        if i != ABSENT and at != record.where and graph.tensors[i].dtype == dtype
    ]
    if record.movement is not None and record.movement.fill is not None:
        moved.append(range_of_values(np.array(record.movement.fill(node))))
    return joined_range(moved)


def _contracted(graph: Graph, node: Node, inputs: Sequence[WholeRange]) -> WholeRange:
    """A sum of products with constant weights, whichever part of it comes first, and a constant bias."""
    x, weights = inputs[0], graph.tensors[node.inputs[1]]
    if x is None or not exact(x.low, x.high) or weights.data is None or inputs[1] is None:
        return None
    along = 3 if weights.shape[:1] == (1,) and isinstance(node.attributes, DepthwiseConv2D) else 0
    low, high = _bounds_of_products(weights.data, along, min(x.low, 0), max(x.high, 0))
    if len(node.inputs) > 2 and node.inputs[2] != ABSENT:
        bias = graph.tensors[node.inputs[2]].data
        if bias is None or not are_whole(bias):
            return None
        values = bias.astype(np.int64).ravel()
        low, high = low + np.minimum(values, 0), high + np.maximum(values, 0)
    return exact(int(low.min()), int(high.max()))


def _bounds_of_products(
    weights: npt.NDArray[Any], along: int, low: int, high: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The least and the greatest sum, for each output channel, of all weights times numbers from low to high."""
    others = tuple(axis for axis in range(weights.ndim) if axis != along)
    total = weights.sum(axis=others, dtype=np.float64).astype(np.int64)
    sizes = np.abs(weights, dtype=np.float64).sum(axis=others, dtype=np.float64).astype(np.int64)
    above, below = (total + sizes) // 2, (total - sizes) // 2
    return above * low + below * high, above * high + below * low
