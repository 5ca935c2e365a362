"""Estimates how long a kernel's source becomes, and how much work it is to compile.

Everything here follows what gpu_delegate/kernels/emit.py and gpu_delegate/ops write, without writing it: fusion and
tiling ask many plans. An operation is what a product of two vec4s, or the read of one, costs the compiler of a driver,
however often a loop repeats it; all else is counted in these. The numbers are a fit to the CPU times of 720 kernels of
29 models on llvmpipe, and to those of the GLSL of each elementwise op.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from ..code.vocabulary import Argument, Operation, Splat, values_in
from ..device.tile import Tile
from ..model.graph import Conv2D, DepthwiseConv2D, Node, Pool2D
from ..model.layout import ceil_div, shape_of
from ..ops.nodes import (
    Computed,
    computed_of,
    computed_weights,
    has_role,
    has_weights,
    is_contraction,
    is_elementwise,
    is_pixelwise_contraction,
    is_scatter,
    multiplies_rows,
    reads_memory,
    record_of,
)
from ..ops.sliding import is_long
from .body import Accumulate, Body, Hold, Phase, tensor_of
from .moves import length_of_read
from .split_k import is_shared_by_outputs

FRAME = 2000  # characters of shaders/kernel.comp and what it includes
FUNCTIONS = 1200  # of a file of functions that ops call
LITERAL, TEXEL = 88, 38  # of four weights as numbers, and of the read of a texel with them
DECLARATION = 20  # "vec4 w12 = ;" indented
PLACES = 150  # of where a tap lies in a loop, and whether inside, said for each by itself

# In operations:
KERNEL = 33  # what every program takes
LOOP = 28
STORE = 10
MOVE_CHARACTERS = 12  # of a move's conditions and places, which are one operation
SCATTERED = 4  # of each channel that is stored elsewhere
VECTOR_NODE = 40  # of a reduction kernel or prologue
_COSTS: Mapping[str, int] = MappingProxyType(  # of words that are more than an instruction
    {
        "hyperbolic tangent": 14,
        "error function": 19,
        "logistic": 6,
        "exponential": 5,
        "exponential less one": 9,
        "logarithm": 12,
        "power": 36,
        "sine": 22,
        "cosine": 22,
        "angle": 23,
        "floor quotient": 120,
        "whole floor quotient": 120,
        "floor remainder": 110,
        "whole floor remainder": 110,
        "hard swish": 4,
        "int32 product": 3,
        "int32 quotient": 10,
        "int32 floor quotient": 12,
        "int32 floor remainder": 12,
        "int64 product": 60,
        "int64 floor remainder": 600,
        "int32 value": 12,
        "int64 value": 30,
        "digit of halves": 3,
        "carry of halves": 3,
        "requantize": 13,
        "requantize once": 13,
        "requantize narrow": 4,
        "round to steps": 5,
        "add steps": 19,
        "hard swish steps": 21,
        "requantize wide": 60,
        "requantize wide once": 80,
        "requantize product": 40,
        "add short steps": 60,
        "softmax steps": 250,
    }
)
_WORDS = 2  # of others for each operation: most are half of a product and sum
_LIBRARIES: tuple[tuple[str, ...], ...] = (  # functions of which a kernel has all if it calls any
    ("error function",),
    ("power",),
    ("angle",),
    ("sine", "cosine"),
    ("floor quotient", "floor remainder", "whole floor quotient", "whole floor remainder"),
    (
        "int32 product",
        "int32 quotient",
        "int32 floor quotient",
        "int32 floor remainder",
        "int32 value",
        "int64 product",
        "int64 floor remainder",
        "int64 value",
        "digit of halves",
        "carry of halves",
    ),
    ("requantize", "requantize narrow", "requantize once", "round to steps", "add steps", "hard swish steps"),
    ("requantize wide", "requantize wide once", "requantize product", "add short steps", "softmax steps"),
)


@dataclass(frozen=True)
class SourceSize:
    """How long a kernel's source is."""

    characters: int = 0
    operations: int = 0  # of a driver's compiler

    def __add__(self, other: "SourceSize") -> "SourceSize":
        return SourceSize(self.characters + other.characters, self.operations + other.operations)

    def __mul__(self, times: int) -> "SourceSize":
        return SourceSize(self.characters * times, self.operations * times)


def source_size(body: Body, tile: Tile) -> SourceSize:
    """An estimate for one pixel kernel, without the vectors that it may compute first."""
    total = SourceSize(FRAME + FUNCTIONS * called_libraries(body.nodes), KERNEL)
    for phase in body.phases:
        times = _times(body, tile, phase)
        total += _phase(body, tile, phase) * times + SourceSize(0, LOOP if 1 == times < phase.slices else 0)
        for root in phase.roots:
            if isinstance(root, Accumulate):
                slices = _thread_slices(body, tile, root.node)
                total += SourceSize(slices * (DECLARATION + _weight(tile) + (tile.rows - 1) * 30), slices)
                if tile.parts > 1:  # sums go to shared memory and come back, each with a term for each part
                    total += SourceSize(slices * tile.rows * (150 + 35 * tile.parts), slices * tile.rows * tile.parts)
    return total


def _times(body: Body, tile: Tile, phase: Phase) -> int:
    """How often the text of a loop is repeated, for one slice each; 1 for a loop."""
    if tile.z_slices and not any(isinstance(root, Accumulate) for root in phase.roots):
        return tile.z_slices
    return phase.slices if phase.unrolled or (tile.baked and _has_weights(body, phase)) else 1


def _has_weights(body: Body, phase: Phase) -> bool:
    nodes = [body.producers.get(value) for value in phase.evaluates]
    nodes += [root.node for root in phase.roots if isinstance(root, Accumulate)]
    return any(node is not None and has_weights(node) for node in nodes)


def _phase(body: Body, tile: Tile, phase: Phase) -> SourceSize:
    """One slice of everything that a loop computes and writes."""
    values = {*phase.evaluates, *(tensor_of(root) for root in phase.roots if not isinstance(root, Accumulate))}
    nodes = [body.producers[value] for value in values if value in body.producers]
    read = {i for node in nodes if not reads_memory(body.graph, node) and not is_contraction(node) for i in node.inputs}
    read |= {root.node.inputs[0] for root in phase.roots if isinstance(root, Accumulate)}
    loads = [i for i in read | values if i not in body.producers and i >= 0]
    total = SourceSize(60 * tile.rows * len(loads), tile.rows * len(loads))
    for node in nodes:
        if node.outputs[0] in phase.evaluates or node.outputs[0] not in body.held:
            total += _streamed(body, tile, node, phase.unrolled and not tile.z_slices)
    for root in phase.roots:
        accumulated = _accumulated(body, tile, root.node) if isinstance(root, Accumulate) else None
        total += accumulated or SourceSize(60 * tile.rows, tile.rows * (1 if isinstance(root, Hold) else STORE))
    return total


def _streamed(body: Body, tile: Tile, node: Node, is_known: bool) -> SourceSize:
    """One slice of a node's result for all of a thread's pixels; is_known: one that has a number in the source."""
    rows, attributes = tile.rows, node.attributes
    if isinstance(attributes, DepthwiseConv2D):
        height, width = _written(body.graph.tensors[node.inputs[1]].shape[1:3])
        loads = _window(tile, height, attributes.stride[0], attributes.dilation[0]) * width
        weights = sum((_reads(body, each, height * width) for each in computed_weights(node)), SourceSize())
        return _reads(body, node.inputs[0], loads) + _products(tile, height * width, 1) + weights
    if isinstance(attributes, Pool2D):
        height, width = _written(attributes.kernel)
        loads = _window(tile, height, attributes.stride[0], 1) * width
        size = _reads(body, node.inputs[0], loads) + SourceSize(40 * rows * (height * width + 2), rows * height * width)
        return size + SourceSize(PLACES * loads if is_long(math.prod(attributes.kernel)) else 0)
    if has_role(node, "movement"):
        characters = length_of_read(body.graph, node, body.through, is_known)
        return SourceSize(characters, max(4, characters // MOVE_CHARACTERS)) * rows
    if has_role(node, "window"):  # resizing
        return _reads(body, node.inputs[0], 2 * (rows + 1)) + SourceSize(250 * rows, 3 * rows)
    if is_contraction(node):
        slices = shape_of(body.graph.tensors[node.inputs[0]]).slices
        if computed_weights(node):
            return _computed(body, tile, node, slices)
        return _products(tile, slices, body.graph.tensors[node.inputs[1]].shape[3] / slices)
    if is_scatter(node):
        lanes = rows * shape_of(body.graph.tensors[node.inputs[0]]).channels
        return SourceSize(100 * lanes // 2, SCATTERED * lanes)
    if has_role(node, "reduction"):
        return SourceSize(max(200, 60 * record_of(node).text_taps(body.graph, node)) * rows, 2 * rows)
    return SourceSize(55 * rows, rows * elementwise_operations(node))


def elementwise_operations(node: Node) -> int:
    """Operations of an elementwise op on one vec4."""
    return _operations(computed_of(node))


@lru_cache(maxsize=4096)  # of few ops, asked for in every plan
def _operations(computed: Computed) -> int:
    words = {v for v in values_in(computed.arithmetic) if not isinstance(v, Argument | Splat)}
    functions = [_COSTS[v.operation] for v in words if isinstance(v, Operation) and v.operation in _COSTS]
    return max(1, sum(functions) + (len(words) - len(functions)) // _WORDS)


def called_libraries(nodes: Sequence[Node]) -> int:
    """How many of these elementwise nodes call."""
    words = {word for node in nodes if is_elementwise(node) for word in _called(computed_of(node))}
    return sum(not words.isdisjoint(names) for names in _LIBRARIES) if words else 0


@lru_cache(maxsize=4096)
def _called(computed: Computed) -> frozenset[str]:
    called = (v.operation for v in values_in(computed.arithmetic) if isinstance(v, Operation))
    return frozenset(called) & _COSTS.keys()


def _accumulated(body: Body, tile: Tile, node: Node) -> SourceSize:
    """One input slice of a contraction, or of a reduction of channels, added to all sums of a thread."""
    if not (has_weights(node) or computed_weights(node)):
        statements = max(1, record_of(node).text_taps(body.graph, node))
        return SourceSize(100 * tile.rows * statements, tile.rows * statements)
    if multiplies_rows(node):
        return _computed(body, tile, node, _thread_slices(body, tile, node))
    weights = body.graph.tensors[node.inputs[1]].shape
    height, width = _written(weights[1:3])
    taps, slices = height * width, ceil_div(weights[3], 4)  # of the input, or of a group of its channels
    lanes = (
        weights[3] / slices if tile.has_literals or slices == 1 else 4
    )  # a loop does not know the last slice from others
    places = taps * _thread_slices(body, tile, node)
    products = _computed(body, tile, node, places) if computed_weights(node) else _products(tile, places, lanes)
    if is_pixelwise_contraction(body.graph, node):
        return products
    stride, dilation = (
        (node.attributes.stride[0], node.attributes.dilation[0]) if isinstance(node.attributes, Conv2D) else (1, 1)
    )
    return _reads(body, node.inputs[0], _window(tile, height, stride, dilation) * width) + products


def _computed(body: Body, tile: Tile, node: Node, places: int) -> SourceSize:
    """At each of some places four texels of computed weights, and what each pixel of a thread makes of them."""
    (weights,), lanes = computed_weights(node), 4 * places
    channels = min(4, shape_of(body.graph.tensors[node.inputs[0]]).channels)
    characters = places * tile.rows * (40 + 40 * channels)
    return _reads(body, weights, lanes) + SourceSize(characters, lanes * tile.rows)


def _thread_slices(body: Body, tile: Tile, node: Node) -> int:
    slices = shape_of(body.graph.tensors[node.outputs[0]]).slices
    if tile.shares_pixels and is_shared_by_outputs(body, node):
        return ceil_div(slices, tile.parts)
    return tile.z_slices or slices


def _written(kernel: Sequence[int]) -> Sequence[int]:
    """(h, w) of the taps of a window that are written out: one of a loop."""
    return (1, 1) if is_long(math.prod(kernel)) else kernel


def _window(tile: Tile, height: int, stride: int, dilation: int) -> int:
    """Source rows under the windows of a thread's pixels."""
    return len({row * stride + k * dilation for row in range(tile.rows) for k in range(height)})


def _reads(body: Body, tensor: int, count: int) -> SourceSize:
    """Reads at places that may lie outside the map; what says where is written once for many, but not of maps."""
    length = 85
    if (node := body.through.get(tensor)) is not None:
        length += length_of_read(body.graph, node, body.through)
    return SourceSize(length * count, count)


def _weight(tile: Tile) -> int:
    return LITERAL if tile.has_literals else TEXEL


def _products(tile: Tile, places: int, lanes: float) -> SourceSize:
    """Sums of products with `lanes` vec4s of weights at each of some places, for all of a thread's pixels."""
    characters = 14 + lanes * (14 + _weight(tile))
    if tile.rows > 1:  # then weights have names
        characters = lanes * (DECLARATION + _weight(tile)) + tile.rows * (14 + 18 * lanes)
    return SourceSize(int(places * characters), int(places * lanes * (tile.rows + (not tile.has_literals))))
