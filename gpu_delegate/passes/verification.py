"""A graph goes in, nothing comes out if it holds together; else an error that names what is broken.

CHECKS has one function per op that relates the shapes of a node's tensors, as far as they say what it computes.
"""

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from ..base.errors import ModelError
from ..model.graph import (
    ABSENT,
    Axis,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    Graph,
    MirrorPad,
    Node,
    Pad,
    Pool2D,
    Reduce,
    Shape,
    StridedSlice,
    Transpose,
    TransposeConv2D,
)
from ..model.operators import attributes_of
from ..ops.extremum import EXTREMA
from ..ops.matrix_product import MatrixProduct, shape_of_product
from .evaluation import OF_SEVERAL, UNARY_FUNCTIONS

Check = Callable[[Node, list[Shape], Shape], bool]  # a node, its inputs' shapes and its output's: whether they agree


def verify(graph: Graph) -> None:
    """Raises ModelError for tensors that are missing, read too early or written twice, and for contradictory shapes."""
    written = set(graph.inputs)
    for tensor in (*graph.inputs, *graph.outputs):
        _expect(tensor in graph.tensors, f"tensor {tensor}, an input or output of the graph, is missing")
    for number, node in enumerate(graph.nodes):
        where = f"node {number} ({node.op})"
        _verify_order(graph, node, where, written)
        written.update(node.outputs)
        _verify_shapes(graph, node, where)
    for tensor in graph.outputs:
        _expect(tensor in written or graph.tensors[tensor].is_constant, f"nothing writes output tensor {tensor}")


def _expect(holds: bool, what: str) -> None:
    if not holds:
        raise ModelError(what)


def _verify_order(graph: Graph, node: Node, where: str, written: set[int]) -> None:
    for tensor in node.inputs:
        if tensor != ABSENT and not _is_known(graph, tensor, written):
            _expect(tensor in graph.tensors, f"{where} reads tensor {tensor}, which is missing")
            raise ModelError(f"{where} reads {_called(graph, tensor)} before anything has written it")
    _expect(len(set(node.outputs)) == len(node.outputs), f"{where} writes a tensor twice")
    for tensor in node.outputs:
        _expect(tensor in graph.tensors, f"{where} writes tensor {tensor}, which is missing")
        if _is_known(graph, tensor, written):
            raise ModelError(f"{where} writes {_called(graph, tensor)}, which has a value already")


def _is_known(graph: Graph, tensor: int, written: set[int]) -> bool:
    """Whether it is there, and has a value."""
    return tensor in graph.tensors and (tensor in written or graph.tensors[tensor].is_constant)


def _called(graph: Graph, tensor: int) -> str:
    return f"tensor {tensor} ({graph.tensors[tensor].name})"


def _verify_shapes(graph: Graph, node: Node, where: str) -> None:
    check = CHECKS.get(node.op)
    if check is None:
        return
    inputs = [graph.tensors[i].shape for i in node.inputs if i != ABSENT]
    output = graph.tensors[node.outputs[0]].shape
    try:
        holds = check(node, inputs, output)
    except (ValueError, IndexError, TypeError):  # of NumPy, or where anything is missing
        holds = False
    if not holds:
        shown = ", ".join(str(list(shape)) for shape in inputs)
        raise ModelError(f"{where} does not make {list(output)} from {shown} with {node.attributes}")


# Ops ------------------------------------------------------------------------------------------------------------------


def _broadcast(node: Node, inputs: list[Shape], output: Shape) -> bool:
    """The output may be larger than all inputs: kernels repeat what they read, as the original's do."""
    return np.broadcast_shapes(*inputs, output) == output


def _select(node: Node, inputs: list[Shape], output: Shape) -> bool:
    """A vector of conditions is one for each map of a batch."""
    condition, *values = inputs
    per_map = len(condition) == 1 and condition == output[:1]
    return _broadcast(node, values if per_map else inputs, output)


def _same_count(node: Node, inputs: list[Shape], output: Shape) -> bool:
    return math.prod(inputs[0]) == math.prod(output)


def _slid(size: int, kernel: int, stride: int, before: int, after: int, dilation: int = 1) -> int:
    return (size + before + after - (kernel - 1) * dilation - 1) // stride + 1


def _windows(node: Node, shape: Shape, kernel: Shape, output: Shape) -> bool:
    """Whether windows of (h, w) slide over a BHWC shape as often as the output has pixels."""
    window = node.attributes
    assert isinstance(window, Conv2D | Pool2D)
    pad, (spread_h, spread_w) = window.padding, window.dilation if isinstance(window, Conv2D) else (1, 1)
    height = _slid(shape[1], kernel[0], window.stride[0], pad.top, pad.bottom, spread_h)
    width = _slid(shape[2], kernel[1], window.stride[1], pad.left, pad.right, spread_w)
    return output[:3] == (shape[0], height, width)


def _convolution(node: Node, inputs: list[Shape], output: Shape) -> bool:
    """Also of vectors, which passes make of FULLY_CONNECTED: their kernels have one pixel."""
    conv, (x, weights, *bias) = attributes_of(node, Conv2D), inputs
    outputs, channels = weights[0], weights[3]
    if isinstance(conv, DepthwiseConv2D):
        outputs, channels = weights[3], weights[3] // conv.multiplier
    slides = _windows(node, x, weights[1:3], output) if len(x) == 4 == len(output) else weights[1:3] == (1, 1)
    grouped = not isinstance(conv, DepthwiseConv2D) and x[-1] % channels == 0 and outputs % (x[-1] // channels) == 0
    fits = x[-1] == channels or grouped
    return slides and fits and output[-1] == outputs == math.prod(bias[0] if bias else (outputs,))


def _transposed(node: Node, inputs: list[Shape], output: Shape) -> bool:
    attributes_of(node, TransposeConv2D)
    x, weights = inputs[:2]
    return x[3] == weights[3] and output[3] == weights[0] and x[0] == output[0]


def _connected(node: Node, inputs: list[Shape], output: Shape) -> bool:
    x, (outputs, depth) = inputs[:2]
    return math.prod(x) // depth * outputs == math.prod(output) and output[-1] == outputs


def _product(node: Node, inputs: list[Shape], output: Shape) -> bool:
    product, (x, y) = attributes_of(node, MatrixProduct), inputs
    return output == shape_of_product(x, y, product)


def _pool(node: Node, inputs: list[Shape], output: Shape) -> bool:
    (x,), pool = inputs, attributes_of(node, Pool2D)
    return x[3] == output[3] and _windows(node, x, pool.kernel, output)


def _resize(node: Node, inputs: list[Shape], output: Shape) -> bool:
    x = inputs[0]
    return len(x) == len(output) == 4 and (x[0], x[3]) == (output[0], output[3])


def _reduction(node: Node, inputs: list[Shape], output: Shape) -> bool:
    (x,), reduce = inputs, attributes_of(node, Reduce)
    kept = tuple(1 if k in reduce.axes else size for k, size in enumerate(x))
    return output == (kept if reduce.keep_dims else tuple(n for k, n in enumerate(x) if k not in reduce.axes))


def _concatenation(node: Node, inputs: list[Shape], output: Shape) -> bool:
    axis = attributes_of(node, Concatenation).axis
    others = {(*shape[:axis], *shape[axis + 1 :]) for shape in (*inputs, output)}
    return len(others) == 1 and sum(shape[axis] for shape in inputs) == output[axis]


def _pad(node: Node, inputs: list[Shape], output: Shape) -> bool:
    pad = node.attributes
    assert isinstance(pad, Pad | MirrorPad)
    return output == tuple(before + n + after for n, (before, after) in zip(inputs[0], pad.amounts, strict=True))


def _strided_slice(node: Node, inputs: list[Shape], output: Shape) -> bool:
    part = attributes_of(node, StridedSlice)
    for length, begin, size, stride in zip(inputs[0], part.begin, part.sizes, part.strides, strict=True):
        last = begin + stride * (size - 1)
        if not (0 < size <= length and 0 <= begin < length and 0 <= last < length):
            return False
    return math.prod(part.sizes) == math.prod(output)


def _transpose(node: Node, inputs: list[Shape], output: Shape) -> bool:
    order = attributes_of(node, Transpose).order
    return sorted(order) == list(range(len(inputs[0]))) and output == tuple(inputs[0][k] for k in order)


def _pack(node: Node, inputs: list[Shape], output: Shape) -> bool:
    axis = attributes_of(node, Axis).axis
    return set(inputs) == {(*output[:axis], *output[axis + 1 :])} and output[axis] == len(inputs)


CHECKS: Mapping[str, Check] = MappingProxyType(
    {
        **dict.fromkeys((*UNARY_FUNCTIONS, *OF_SEVERAL, "LEAKY_RELU", "PRELU", "CAST", "DEQUANTIZE"), _broadcast),
        "SELECT": _select,
        **dict.fromkeys(("SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION", "REVERSE_V2", "CUMSUM"), _broadcast),
        **dict.fromkeys(("RESHAPE", "EXPAND_DIMS", "SQUEEZE"), _same_count),
        **dict.fromkeys(("DEPTH_TO_SPACE", "READ_DEPTH_TO_SPACE", "SPACE_TO_DEPTH"), _same_count),
        **dict.fromkeys(
            ("CONV_2D", "DEPTHWISE_CONV_2D", "COMPUTED_CONV_2D", "COMPUTED_DEPTHWISE_CONV_2D"), _convolution
        ),
        **dict.fromkeys(("TRANSPOSE_CONV", "Convolution2DTransposeBias", "COMPUTED_TRANSPOSE_CONV"), _transposed),
        "BATCH_MATMUL": _product,
        "FULLY_CONNECTED": _connected,
        **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D"), _pool),
        **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), _resize),
        **dict.fromkeys(
            ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY", "REDUCE_ALL", *EXTREMA), _reduction
        ),
        "CONCATENATION": _concatenation,
        **dict.fromkeys(("PAD", "PADV2", "MIRROR_PAD"), _pad),
        **dict.fromkeys(("SLICE", "STRIDED_SLICE"), _strided_slice),
        "TRANSPOSE": _transpose,
        "PACK": _pack,
    }
)
