"""A graph goes in; the least and the greatest value of each tensor whose values are whole numbers for sure come out.

Kernels compute with float32, which has every integer below 2^24: what has a range here is computed exactly, in any
order, to the same bytes on every device. A range is what follows from constants, types, sizes and `Tensor.steps`, node
by node; a tensor that may hold anything else, or integers from 2^24 on, has none. Works on graphs as read and between
passes.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from ..model.graph import ABSENT, Activated, Attributes, Graph, Node, Opaque, Pad, Pool2D, SpaceToBatch, Steps, Tensor
from ..model.rewrite import END_OF_INTEGERS
from ..ops.matrix_product import MatrixProduct
from ..ops.nodes import has_role
from ..ops.requantize import AddSteps, HardSwishSteps, Requantize, RoundToSteps

_Range = Steps | None  # None: values that may be no whole numbers, or too large
_Rule = Callable[[Graph, Node, Sequence[_Range]], _Range]  # of the ranges of a node's inputs that of each output

_ZERO, _TRUTH = Steps(0, 0), Steps(0, 1)
_ANY = Steps(-(1 << 128), 1 << 128)  # whole numbers of any size, of which limits may make small ones
_SAMPLED = 64  # values of a constant of floats that are looked at before all are
_LIMITS: Mapping[str, tuple[int, int | None]] = MappingProxyType(
    {"RELU": (0, None), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1), "RELU_0_TO_1": (0, 1)}
)


def whole_ranges(graph: Graph) -> Mapping[int, Steps]:
    """The range of each tensor that has one, by its number."""
    found: dict[int, Steps] = {}
    for number, tensor in graph.tensors.items():
        own = own_range(tensor)
        if own is not None:
            found[number] = own
    for node in graph.nodes:
        inputs = [found.get(i) for i in node.inputs]
        for place, number in enumerate(node.outputs):
            made, known = _made(graph, node, inputs, place), found.get(number)
            if made is not None:
                found[number] = made if known is None else _common(made, known)
    return MappingProxyType({number: r for number, r in found.items() if _exact(r.low, r.high)})


def own_range(tensor: Tensor) -> _Range:
    """What a tensor says of itself: by its steps, its value or its type."""
    if tensor.steps is not None:
        return tensor.steps
    if tensor.data is not None:
        return _range_of_values(tensor.data)
    if tensor.dtype == "bool":
        return _TRUTH
    if tensor.dtype in ("int8", "uint8", "int16", "uint16"):
        limits = np.iinfo(tensor.dtype)
        return Steps(int(limits.min), int(limits.max))
    return None


def _range_of_values(values: npt.NDArray[Any]) -> _Range:
    """The range of a constant."""
    if not values.size or values.dtype.kind not in "biuf":
        return None
    if values.dtype.kind == "f" and not (_are_whole(values.ravel()[:_SAMPLED]) and _are_whole(values)):
        return None
    return _exact(int(values.min()), int(values.max()))


def _are_whole(values: npt.NDArray[Any]) -> bool:
    return bool(np.isfinite(values).all() and np.array_equal(values, np.rint(values)))


def _exact(low: int, high: int) -> _Range:
    """A range if float32 has all of its integers."""
    return Steps(low, high) if -END_OF_INTEGERS < low <= high < END_OF_INTEGERS else None


def _common(one: Steps, other: Steps) -> Steps:
    """What lies in both; the first where they contradict each other."""
    low, high = max(one.low, other.low), min(one.high, other.high)
    return Steps(low, high) if low <= high else one


def _union(ranges: Iterable[_Range]) -> _Range:
    """What lies in any; none where one is unknown."""
    known = list(ranges)
    if not known or None in known:
        return None
    return Steps(min(r.low for r in known if r), max(r.high for r in known if r))


def _made(graph: Graph, node: Node, inputs: Sequence[_Range], place: int) -> _Range:
    """What a node makes of values in these ranges, its fused activation included."""
    rule = _RULES.get(node.op, _moved if has_role(node, "movement") else None)
    rule = _SECOND.get(node.op, rule) if place else rule
    out = graph.tensors[node.outputs[place]]
    if rule is None or out.dtype not in ("float32", "int32", "int64", "bool"):  # integers of others have a scale
        return None
    if isinstance(node.attributes, Opaque) and rule not in (_positions, _sizes, _rank, _truths):
        return None
    if isinstance(node.attributes, Activated):
        return _activated(rule(graph, node, inputs), node.attributes)
    return rule(graph, node, inputs)


def _activated(found: _Range, attributes: Activated) -> _Range:
    if attributes.activation == "NONE" or found is None:
        return found
    limits = _LIMITS.get(attributes.activation)
    return None if limits is None else _clamped(found, *limits)


def _clamped(found: Steps, low: int, high: int | None) -> Steps:
    least, greatest = max(found.low, low), max(found.high, low)
    return Steps(least, greatest) if high is None else Steps(min(least, high), min(greatest, high))


# Value by value -------------------------------------------------------------------------------------------------------


def _kept(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    """An op whose values are some of its first input's."""
    return inputs[0]


def _limited(low: int, high: int | None) -> _Rule:
    return lambda graph, node, inputs: None if inputs[0] is None else _clamped(inputs[0], low, high)


def _truths(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    return _TRUTH


def _of_corners(function: Callable[[int, int], int]) -> _Rule:
    """A function of two numbers that has its extremes where both have theirs."""

    def rule(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
        first, second = inputs
        if first is None or second is None:
            return None
        corners = [function(a, b) for a in (first.low, first.high) for b in (second.low, second.high)]
        return _exact(min(corners), max(corners))

    return rule


def _either(choose: Callable[[int, int], int]) -> _Rule:
    """The larger or the smaller of two numbers."""

    def rule(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
        first, second = inputs
        if first is None or second is None:
            return None
        return Steps(choose(first.low, second.low), choose(first.high, second.high))

    return rule


def _rounded(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    return inputs[0] or _ANY


def _sign(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    return _clamped(inputs[0], -1, 1) if inputs[0] else Steps(-1, 1)


def _of_one(function: Callable[[int], int]) -> _Rule:
    """A function of one number that has its extremes at both ends or, if it lies between, at zero."""

    def rule(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
        (found,) = inputs
        if found is None:
            return None
        ends = [found.low, found.high, *([0] if found.low < 0 < found.high else [])]
        values = [function(end) for end in ends]
        return _exact(min(values), max(values))

    return rule


def _squared_difference(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    return _of_one(lambda x: x * x)(graph, node, [_of_corners(lambda a, b: a - b)(graph, node, inputs)])


def _summed(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    """The sum of all inputs, and what it is on the way."""
    known = [found for found in inputs if found is not None]
    if len(known) < len(inputs):
        return None
    return _exact(sum(min(r.low, 0) for r in known), sum(max(r.high, 0) for r in known))


def _quotient(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    """Quotients of integers are never further from zero than what is divided, and zero for a divisor of zero."""
    divided, by = inputs
    is_whole = node.op == "FLOOR_DIV" or graph.tensors[node.outputs[0]].dtype in ("int32", "int64")
    if divided is None or by is None or not is_whole:
        return None
    if graph.tensors[node.outputs[0]].dtype == "float32" and by.low <= 0 <= by.high:
        return None
    if by.low > 0 and divided.low >= 0:
        return Steps(divided.low // by.high, divided.high // by.low)
    most = max(abs(divided.low), abs(divided.high))
    return Steps(-most, most)


def _remainder(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    """The remainder has the sign of what it is divided by."""
    divided, by = inputs
    if divided is None or by is None:
        return None
    if graph.tensors[node.outputs[0]].dtype == "float32" and by.low <= 0 <= by.high:
        return None
    if by.low > 0 and divided.low >= 0:
        return Steps(0, min(divided.high, by.high - 1))
    return Steps(min(0, by.low + 1), max(0, by.high - 1))


def _power(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    base, exponent = inputs
    if base is None or exponent is None or exponent.low < 0 or exponent.high >= END_OF_INTEGERS.bit_length():
        return None
    most = max(abs(base.low), abs(base.high), 1) ** exponent.high
    return _exact(0 if base.low >= 0 else -most, most)


def _chosen(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    return _union(inputs[1:3])


def _cast(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    """Whole numbers stay what they are, unless the type is too small for them; fractions are cut off."""
    found, to = inputs[0], np.dtype(graph.tensors[node.outputs[0]].dtype)
    if to.kind == "b":
        return _TRUTH
    if to.kind == "f" or (found is None and graph.tensors[node.inputs[0]].dtype != "float32"):
        return found
    limits = np.iinfo(to)
    return _common(found or _ANY, Steps(int(limits.min), int(limits.max)))


# Places ---------------------------------------------------------------------------------------------------------------


def _moved(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    """An op that moves the values of its inputs of the output's type, and what it puts between them."""
    dtype = graph.tensors[node.outputs[0]].dtype
    sources = [r for i, r in zip(node.inputs, inputs, strict=True) if i != ABSENT and graph.tensors[i].dtype == dtype]
    sources = sources[:1] if node.op in _LOOKING_UP else sources
    return _union([*sources, *_filled(node.attributes)])


def _filled(attributes: Attributes) -> list[_Range]:
    """What lies around or between what is moved."""
    if isinstance(attributes, Pad):
        return [_range_of_values(np.array(attributes.value))]
    return [_ZERO] if isinstance(attributes, SpaceToBatch) else []


def _one_hot(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    """Its last two inputs."""
    return _union(inputs[-2:])


def _scattered(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    """Sums of as many values as have one place, of all of them at most; zeros elsewhere."""
    indices, updates = (graph.tensors[i].shape for i in node.inputs[:2])
    return _times(inputs[1], math.prod(indices[:-1])) if updates else None


def _positions(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    """Positions along some dimension of the input."""
    return Steps(0, max(0, max(graph.tensors[node.inputs[0]].shape, default=1) - 1))


def _places_in_window(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    """The numbers of places in a window; floats have more than whole numbers."""
    pool, out = node.attributes, graph.tensors[node.outputs[-1]]
    is_whole = node.op == "MAX_POOL_PLACE" or out.dtype != "float32"
    return Steps(0, math.prod(pool.kernel) - 1) if isinstance(pool, Pool2D) and is_whole else None


def _sizes(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    shape = graph.tensors[node.inputs[0]].shape
    return _exact(min(shape, default=0), max(shape, default=0))


def _rank(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    rank = len(graph.tensors[node.inputs[0]].shape)
    return Steps(rank, rank)


# Many values ----------------------------------------------------------------------------------------------------------


def _count(graph: Graph, node: Node) -> int:
    """How many values of the input one of the output is made of."""
    sizes = [math.prod(graph.tensors[i].shape) for i in (node.inputs[0], node.outputs[0])]
    return sizes[0] // max(1, sizes[1])


def _times(found: _Range, count: int) -> _Range:
    """The sum of up to so many values, in any order."""
    return None if found is None else _exact(min(0, found.low * count), max(0, found.high * count))


def _total(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    return _times(inputs[0], _count(graph, node))


def _running(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    return _times(inputs[0], max(graph.tensors[node.inputs[0]].shape, default=1))


def _product(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    (found,), count = inputs[:1], _count(graph, node)
    if found is None:
        return None
    most = max(abs(found.low), abs(found.high), 1)
    if most > 1 and count >= END_OF_INTEGERS.bit_length():
        return None
    return _exact(0 if found.low >= 0 else -(most**count), most**count)


def _matrix_product(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    """Sums of as many products as a matrix of x has columns, or rows."""
    product = _of_corners(lambda a, b: a * b)(graph, node, inputs)
    is_adjoint = isinstance(node.attributes, MatrixProduct) and node.attributes.adj_x
    return _times(product, graph.tensors[node.inputs[0]].shape[-2 if is_adjoint else -1])


def _contracted(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    """A sum of products with constant weights, whichever part of it comes first, and a constant bias."""
    x, weights = inputs[0], graph.tensors[node.inputs[1]]
    if x is None or not _exact(x.low, x.high) or weights.data is None or own_range(weights) is None:
        return None
    along = 3 if weights.shape[:1] == (1,) and node.op == "DEPTHWISE_CONV_2D" else 0
    low, high = _bounds_of_products(weights.data, along, min(x.low, 0), max(x.high, 0))
    if len(node.inputs) > 2 and node.inputs[2] != ABSENT:
        bias = graph.tensors[node.inputs[2]].data
        if bias is None or not _are_whole(bias):
            return None
        values = bias.astype(np.int64).ravel()
        low, high = low + np.minimum(values, 0), high + np.maximum(values, 0)
    return _exact(int(low.min()), int(high.max()))


def _bounds_of_products(
    weights: npt.NDArray[Any], along: int, low: int, high: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The least and the greatest sum, for each output channel, of all weights times numbers from low to high."""
    others = tuple(axis for axis in range(weights.ndim) if axis != along)
    above = np.maximum(weights, 0).sum(axis=others, dtype=np.int64)
    below = np.minimum(weights, 0).sum(axis=others, dtype=np.int64)
    return above * low + below * high, above * high + below * low


def _limited_to_steps(graph: Graph, node: Node, inputs: Sequence[_Range]) -> _Range:
    assert isinstance(node.attributes, Requantize | RoundToSteps | AddSteps | HardSwishSteps)
    return node.attributes.limits


_LOOKING_UP = frozenset({"GATHER", "GATHER_ND", "REVERSE_SEQUENCE", "EMBEDDING_LOOKUP"})  # data, and where it is

_SECOND: Mapping[str, _Rule] = MappingProxyType(  # of further outputs than the first
    {"TOPK_V2": _positions, "MaxPoolingWithArgmax2D": _places_in_window}
)

_RULES: Mapping[str, _Rule] = MappingProxyType(
    {
        **{op: _limited(*limits) for op, limits in _LIMITS.items()},
        **dict.fromkeys(("CEIL", "FLOOR", "ROUND"), _rounded),
        **dict.fromkeys(("REDUCE_MAX", "REDUCE_MIN", "MAX_POOL_2D", "MaxPoolingWithArgmax2D"), _kept),
        **dict.fromkeys(("RESIZE_NEAREST_NEIGHBOR", "REVERSE_SEQUENCE", "TOPK_V2", "TOPK_VALUES"), _kept),
        **dict.fromkeys(("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"), _truths),
        **dict.fromkeys(("LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT", "REDUCE_ANY", "REDUCE_ALL"), _truths),
        "ABS": _of_one(abs),
        "NEG": _of_one(lambda x: -x),
        "SIGN": _sign,
        "SQUARE": _of_one(lambda x: x * x),
        "ADD": _of_corners(lambda a, b: a + b),
        "SUB": _of_corners(lambda a, b: a - b),
        "MUL": _of_corners(lambda a, b: a * b),
        "MAXIMUM": _either(max),
        "MINIMUM": _either(min),
        "SQUARED_DIFFERENCE": _squared_difference,
        "ADD_N": _summed,
        "DIV": _quotient,
        "FLOOR_DIV": _quotient,
        "FLOOR_MOD": _remainder,
        "POW": _power,
        **dict.fromkeys(("REQUANTIZE", "ROUND_TO_STEPS", "ADD_STEPS", "HARD_SWISH_STEPS"), _limited_to_steps),
        "CAST": _cast,
        **dict.fromkeys(("SELECT", "SELECT_V2"), _chosen),
        "ONE_HOT": _one_hot,
        "EMBEDDING_LOOKUP": lambda graph, node, inputs: inputs[-1],
        "SCATTER_ND": _scattered,
        "FILL": lambda graph, node, inputs: inputs[-1],
        "ZEROS_LIKE": lambda graph, node, inputs: _ZERO,
        **dict.fromkeys(("ARG_MAX", "ARG_MIN", "TOPK_INDICES"), _positions),
        "MAX_POOL_PLACE": _places_in_window,
        "SHAPE": _sizes,
        "RANK": _rank,
        "SUM": _total,
        "CUMSUM": _running,
        "REDUCE_PROD": _product,
        "BATCH_MATMUL": _matrix_product,
        **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"), _contracted),
        **dict.fromkeys(("TRANSPOSE_CONV", "Convolution2DTransposeBias"), _contracted),
    }
)
