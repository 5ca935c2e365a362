"""Estimates the memory and time that TensorFlow Lite takes for a graph, and refuses too much.

Both are upper bounds as measured on TensorFlow Lite 2.14, of its own operators and XNNPACK's, in one thread. XNNPACK
keeps a table of pointers for each convolution and pool, and its weights packed for several outputs at once; TensorFlow
Lite's own convolutions copy their input once for each tap.
"""

import math
from dataclasses import dataclass
from types import MappingProxyType

from ..base.errors import UnsupportedError
from ..model.graph import (
    ABSENT,
    Conv2D,
    DepthwiseConv2D,
    Graph,
    Node,
    Opaque,
    Pool2D,
    Resize,
    Shape,
    Size2,
    Tensor,
    TransposeConv2D,
    constant_location,
)
from ..model.layout import aligned, ceil_div

MOST_BYTES = 2 << 30
MOST_SECONDS = 15.0  # for one run; many times as long as a frame may take on any machine
FLOAT_BYTES, POINTER_BYTES = 4, 8
ITEM_BYTES = MappingProxyType({"float64": 8, "int64": 8, "uint64": 8, "complex64": 8, "complex128": 16})
AT_ONCE = 16  # pixels and channels of outputs that convolutions compute at once, even if there are fewer
QUICK_WINDOW = 25  # window sizes for which XNNPACK has fast depthwise convolutions
NODE_BYTES = 1 << 17  # if XNNPACK runs every other one: each switch away from it takes as much again
VALUE_NS, TAP_NS, MAC_NS = 12.0, 6.0, 0.2  # per value read or written, tap of a pixel, multiply-accumulate
DEPTHWISE_MAC_NS, SLOW_DEPTHWISE_MAC_NS = 1.5, 6.0


@dataclass(frozen=True)
class Footprint:
    """What an interpreter may need."""

    memory_bytes: int  # including the file as read and as written
    run_s: float


@dataclass(frozen=True)
class _Need:
    """What a node needs in addition to the graph's tensors."""

    kept_bytes: int = 0  # for the lifetime of the interpreter
    scratch_bytes: int = 0  # while the node runs
    time_ns: float = 0.0


def check_footprint(graph: Graph, keep_all_tensors: bool) -> None:
    """Raises UnsupportedError for a graph that might take TensorFlow Lite too much memory, or too long for one run."""
    found = footprint_of(graph, keep_all_tensors)
    if found.memory_bytes > MOST_BYTES:
        what = f"might need {found.memory_bytes >> 20} MiB of memory, at most {MOST_BYTES >> 20}"
    elif found.run_s > MOST_SECONDS:
        what = f"might run for {found.run_s:.0f} s, at most {MOST_SECONDS:.0f}"
    else:
        return
    raise UnsupportedError(f"{graph.name}: TensorFlow Lite {what} are granted; use a smaller model")


def footprint_of(graph: Graph, keep_all_tensors: bool) -> Footprint:
    """Upper bounds for a graph as the reader made it."""
    needs = [_need(graph, node, keep_all_tensors) for node in graph.nodes]
    beside_bytes = sum(need.kept_bytes for need in needs) + max((need.scratch_bytes for need in needs), default=0)
    return Footprint(
        _bytes_of_tensors(graph, keep_all_tensors) + beside_bytes, sum(need.time_ns for need in needs) / 1e9
    )


def _bytes_of_tensors(graph: Graph, keep_all: bool) -> int:
    """Constants as read and as written, and the most of other tensors at one time; inputs and outputs twice."""
    sizes = {i: 0 if tensor.is_constant else _tensor_bytes(tensor) for i, tensor in graph.tensors.items()}
    places = {constant_location(tensor.data) for tensor in graph.tensors.values() if tensor.data is not None}
    ends = (*graph.inputs, *graph.outputs)
    always = sum(2 * size_bytes for _, size_bytes in places) + sum(2 * sizes[i] for i in ends)
    if keep_all:
        return always + sum(sizes.values())
    read = (node for node in graph.nodes if node.op == "DEQUANTIZE" and not isinstance(node.attributes, Opaque))
    kept = [i for node in read if graph.tensors[node.inputs[0]].is_constant for i in node.outputs]
    return always + sum(sizes[i] for i in kept) + _most_alive(graph, sizes | dict.fromkeys((*ends, *kept), 0))


def _most_alive(graph: Graph, sizes: dict[int, int]) -> int:
    """The most bytes of tensors that are needed at the same time."""
    last = {i: place for place, node in enumerate(graph.nodes) for i in (*node.inputs, *node.outputs) if i != ABSENT}
    freed = [0] * len(graph.nodes)
    for i, place in last.items():
        freed[place] += sizes[i]
    alive = most = 0
    for node, bytes_freed in zip(graph.nodes, freed, strict=True):
        alive += sum(sizes[i] for i in node.outputs)
        most = max(most, alive)
        alive -= bytes_freed
    return most


def _need(graph: Graph, node: Node, keep_all: bool) -> _Need:
    if isinstance(node.attributes, Opaque):
        return _opaque(graph, node)
    shapes = [graph.tensors[i].shape for i in (*node.inputs, *node.outputs) if i != ABSENT] or [()]
    x, weights, out = shapes[0], shapes[min(1, len(shapes) - 1)], shapes[-1]
    match node.attributes:
        case DepthwiseConv2D():
            need = _depthwise(weights, out, keep_all)
        case Conv2D():
            need = _convolution(weights, out)
        case TransposeConv2D(stride=stride):
            need = _transposed(x, weights, out, stride)
        case Pool2D() as pool:
            need = _pool(out, pool)
        case Resize():
            need = _resized(out)
        case _ if node.op == "FULLY_CONNECTED":
            packed = _packed_values(weights)
            need = _Need(packed * FLOAT_BYTES, 0, math.prod(out) // out[-1] * packed * MAC_NS)
        case _:
            need = _Need()
    return _Need(
        need.kept_bytes + NODE_BYTES, need.scratch_bytes, need.time_ns + VALUE_NS * sum(map(math.prod, shapes))
    )


def _opaque(graph: Graph, node: Node) -> _Need:
    """What is known of such an op are its tensors: constants may be kept once more and all may be copied, as floats.

    The process that runs it is limited, too.
    """
    tensors = [graph.tensors[i] for i in (*node.inputs, *node.outputs) if i != ABSENT]
    constants = sum(_values(tensor.shape) for tensor in tensors if tensor.is_constant)
    values = sum(_values(tensor.shape) for tensor in tensors)
    return _Need(constants * FLOAT_BYTES + NODE_BYTES, values * FLOAT_BYTES, VALUE_NS * values)


def _convolution(weights: Shape, out: Shape) -> _Need:
    taps, pixels = math.prod(weights[1:3]), math.prod(out[:3])
    packed, copied = _packed_values(weights), pixels * taps * weights[3]
    pointers = aligned(pixels, AT_ONCE) * taps
    time_ns = pixels * (taps * TAP_NS + packed * MAC_NS)
    return _Need(packed * FLOAT_BYTES + pointers * POINTER_BYTES, copied * FLOAT_BYTES, time_ns)


def _transposed(x: Shape, weights: Shape, out: Shape, stride: Size2) -> _Need:
    kernel, pixels = (weights[1], weights[2]), math.prod(x[:3])
    taps, packed = math.prod(kernel), _packed_values(weights)
    split = stride[0] <= kernel[0] and stride[1] <= kernel[1]  # into one convolution for each place in a stride
    read = ceil_div(kernel[0], stride[0]) * ceil_div(kernel[1], stride[1]) if split else taps
    pointers = (aligned(math.prod(out[:3]), AT_ONCE) + AT_ONCE * math.prod(stride) * split) * read
    time_ns = pixels * (taps * TAP_NS + packed * MAC_NS)
    kept_bytes = packed * FLOAT_BYTES + pointers * POINTER_BYTES
    return _Need(kept_bytes, pixels * taps * weights[0] * FLOAT_BYTES, time_ns)


def _depthwise(weights: Shape, out: Shape, keep_all: bool) -> _Need:
    _, height, width, channels = weights
    taps, pixels = height * width, math.prod(out[:3])
    mac_ns = SLOW_DEPTHWISE_MAC_NS if keep_all or taps > QUICK_WINDOW else DEPTHWISE_MAC_NS
    kept_bytes = taps * (aligned(channels, AT_ONCE) * FLOAT_BYTES + aligned(pixels, AT_ONCE) * POINTER_BYTES)
    return _Need(kept_bytes, 0, pixels * taps * (TAP_NS + channels * mac_ns))


def _pool(out: Shape, pool: Pool2D) -> _Need:
    """Neighbors in a row share the pointers of the columns that both read."""
    _, rows, columns, channels = out
    (height, width), (_, step) = pool.kernel, pool.stride
    pointers = rows * height * (width + aligned(columns, AT_ONCE) * min(step, width))
    kept_bytes = pointers * POINTER_BYTES + rows * columns * FLOAT_BYTES
    return _Need(kept_bytes, 0, math.prod(out[:3]) * height * width * (TAP_NS + channels * MAC_NS))


def _resized(out: Shape) -> _Need:
    """Four pointers and two weights for each pixel."""
    pixels = math.prod(out[1:3])
    return _Need(pixels * (4 * POINTER_BYTES + 2 * FLOAT_BYTES), 0, out[0] * pixels * 4 * TAP_NS)


def _packed_values(weights: Shape) -> int:
    """Weights (O, ..., I) with the outputs filled up."""
    return aligned(weights[0], AT_ONCE) * math.prod(weights[1:])


def _values(shape: Shape) -> int:
    """How many values a tensor has, as far as it is known."""
    return math.prod(max(size, 0) for size in shape)


def _tensor_bytes(tensor: Tensor) -> int:
    """Of floats even where they are smaller."""
    return max(FLOAT_BYTES, ITEM_BYTES.get(tensor.dtype, FLOAT_BYTES)) * _values(tensor.shape)
