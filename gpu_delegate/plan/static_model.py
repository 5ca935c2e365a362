"""Estimates how long a kernel takes under a tile, in multiplications of vec4s.

It tells fusion whether a kernel costs more than its parts, and tuning which candidates cannot win: reads, stores and
multiplications of all threads, those past the edges included, and how much of a device is left without a thread. Reads
are weighted as GPUs and llvmpipe have them: about one texel of a buffer texture for eight multiplications of a vec4.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

from ..device.device import Tuning
from ..device.tile import Tile
from ..model.graph import Conv2D, Node, Pool2D, Reduce
from ..model.layout import aligned, ceil_div, shape_of
from ..ops.nodes import (
    computed_weights,
    has_role,
    has_weights,
    is_channel_reduction,
    is_contraction,
    is_elementwise,
    is_pixelwise_contraction,
    reads_memory,
    reads_window,
    record_of,
)
from .body import Accumulate, Body, Hold, Phase, tensor_of
from .source_size import elementwise_operations

_INPUT = 8.0  # multiplications that take as long as a read of an input ...
_STORE = 8.0  # ... and as a store
_WEIGHT = 4.0  # the same of weights, which neighbors share
_LITERAL = 0.4  # of such a read, for weights in the source
_THREAD = 16.0  # and of what each thread does once
_LANES = 4  # vec4s of weights for an input slice and an output slice


@dataclass(frozen=True)
class ThreadWork:
    """What one thread does."""

    inputs: float = 0.0  # texels read
    weights: float = 0.0  # texels of weights read
    products: float = 0.0  # of vec4s
    stores: float = 0.0  # of texels

    def __add__(self, other: "ThreadWork") -> "ThreadWork":
        return ThreadWork(
            self.inputs + other.inputs, self.weights + other.weights,
            self.products + other.products, self.stores + other.stores,
        )  # fmt: skip

    def __mul__(self, times: float) -> "ThreadWork":
        return ThreadWork(self.inputs * times, self.weights * times, self.products * times, self.stores * times)

    @property
    def cost(self) -> float:
        """In multiplications."""
        return _THREAD + _INPUT * self.inputs + _WEIGHT * self.weights + self.products + _STORE * self.stores


def estimate(body: Body, tile: Tile, least_threads: int) -> float:
    """The cost of a whole kernel where a device is filled by `least_threads` threads."""
    threads = thread_count(body, tile)
    return thread_work(body, tile).cost * max(threads, least_threads)


def whole_cost(body: Body, tile: Tile, tuning: Tuning) -> float:
    """The cost of a kernel and its dispatch, idle lanes included: in software rows fill them, on a GPU whole groups."""
    x, y, parts = tile.local
    in_rows = aligned(x, tuning.simd_width) * y * parts
    filled = in_rows if tuning.simd_width > 1 else aligned(tile.threads, tuning.wave_threads)
    return work_groups(body, tile) * filled * thread_work(body, tile).cost + dispatch_cost(tuning)


def dispatch_cost(tuning: Tuning) -> int:
    """In multiplications: 15 microseconds of a software renderer, 5 of a GPU."""
    return 60_000 if tuning.simd_width > 1 else 600_000


def grid_of(body: Body, tile: Tile) -> tuple[int, int, int]:
    """Work-groups of a body's kernel (x, y, z)."""
    return tile.grid(body.domain, shape_of(body.graph.tensors[body.outputs[0]]).slices)


def work_groups(body: Body, tile: Tile) -> int:
    """All that are dispatched."""
    return math.prod(grid_of(body, tile))


def thread_count(body: Body, tile: Tile) -> int:
    """All threads, also those past the edges."""
    return work_groups(body, tile) * tile.threads


def thread_work(body: Body, tile: Tile) -> ThreadWork:
    """What one thread of a kernel does in all its loops."""
    total = ThreadWork()
    for phase in body.phases:
        total += _slice_work(body, tile, phase) * _slices(tile, phase)
    stored = (shape_of(body.graph.tensors[tensor]).slices for tensor in body.outputs)
    stores = sum(tile.z_slices or ceil_div(slices, tile.parts) for slices in stored)
    return total + ThreadWork(stores=tile.rows * stores)


def held_texels(body: Body, tile: Tile) -> int:
    """vec4s that a thread holds at most for its sums and other held values."""
    slices = (tile.z_slices or shape_of(body.graph.tensors[tensor]).slices for tensor in body.held)
    return tile.rows * max(slices, default=1)


def _slices(tile: Tile, phase: Phase) -> int:
    """How many slices of a loop a thread computes."""
    accumulates = any(isinstance(root, Accumulate) for root in phase.roots)
    repeats = tile.shares_pixels and any(isinstance(root, Hold) for root in phase.roots)
    if accumulates or (tile.shares_pixels and not repeats):
        return ceil_div(phase.slices, tile.parts)
    return tile.z_slices or phase.slices


def loop_turns(body: Body, tile: Tile) -> int:
    """How many turns a thread takes in all its loops, each turn of nested ones counted, as if no compiler unrolled."""
    total = 0
    for phase in body.phases:
        _, nodes, summed = _of_phase(body, phase)
        total += _slices(tile, phase) * (1 + sum(_turns_of_slice(body, tile, node) for node in (*nodes, *summed)))
    return total


def _turns_of_slice(body: Body, tile: Tile, node: Node) -> int:
    """Of the loops over the pixels that a reduction reads, for each of a thread's, or over taps, for all together."""
    attributes, shape = node.attributes, body.graph.tensors[node.inputs[0]].shape
    if has_role(node, "reduction") and not is_channel_reduction(body.graph, node):
        axes = attributes.axes if isinstance(attributes, Reduce) else range(len(shape) - 1)
        return tile.rows * _nested_turns([shape[axis] for axis in axes])
    if not reads_window(body.graph, node) or record_of(node).taps(body.graph, node) <= tile.written_taps:
        return 0
    if isinstance(attributes, Pool2D):
        return _nested_turns(attributes.kernel)
    return _nested_turns(body.graph.tensors[node.inputs[1]].shape[1:3])


def _nested_turns(counts: Iterable[int]) -> int:
    """Of loops inside each other, the outermost first."""
    return sum(accumulate(counts, mul))


def _of_phase(body: Body, phase: Phase) -> tuple[set[int], list[Node], list[Node]]:
    """What a phase evaluates for each slice, the nodes that make it, and those that sum it up."""
    values = {*phase.evaluates, *(tensor_of(root) for root in phase.roots if not isinstance(root, Accumulate))}
    nodes = [body.producers[value] for value in values if value in body.producers]
    return values, nodes, [root.node for root in phase.roots if isinstance(root, Accumulate)]


def _slice_work(body: Body, tile: Tile, phase: Phase) -> ThreadWork:
    values, nodes, summed = _of_phase(body, phase)
    read = {i for node in nodes if not reads_memory(body.graph, node) and not is_contraction(node) for i in node.inputs}
    read |= {node.inputs[0] for node in summed if not _reads_window(body, node)}
    loads = [i for i in read | values if i in body.inputs and i not in body.producers]
    of_all = sum(shape_of(body.graph.tensors[i]).is_vector for i in loads)  # pixels of a thread
    total = ThreadWork(inputs=tile.rows * (len(loads) - of_all) + of_all)
    for node in nodes:
        if node.outputs[0] in phase.evaluates or node.outputs[0] not in body.held:
            total += _streamed(body, tile, node)
    for node in summed:
        total += _summed(body, tile, node)
    return total


def _streamed(body: Body, tile: Tile, node: Node) -> ThreadWork:
    """One slice of a node's result for all pixels of a thread."""
    if is_contraction(node):  # over held values
        texels = _LANES * shape_of(body.graph.tensors[node.inputs[0]]).slices
        if computed_weights(node):
            return ThreadWork(texels, 0, texels * tile.rows)
        return ThreadWork(0, _weights(tile, texels), texels * tile.rows)
    if reads_memory(body.graph, node):
        taps = record_of(node).taps(body.graph, node)
        own = taps if has_weights(node) else 0
        read_at = _window_reads(tile, node, taps) + taps * len(computed_weights(node))
        return ThreadWork(read_at, _weights(tile, own), taps * tile.rows)
    return ThreadWork(products=tile.rows * (elementwise_operations(node) if is_elementwise(node) else 2))


def _summed(body: Body, tile: Tile, node: Node) -> ThreadWork:
    """One input slice added to all sums of a thread."""
    if not (has_weights(node) or computed_weights(node)):
        return ThreadWork(products=tile.rows)
    taps = record_of(node).taps(body.graph, node)
    slices = tile.z_slices or shape_of(body.graph.tensors[node.outputs[0]]).slices
    texels = _LANES * taps * slices
    reads = _window_reads(tile, node, taps) if _reads_window(body, node) else 0
    if computed_weights(node):
        return ThreadWork(reads + texels, 0, texels * tile.rows)
    return ThreadWork(reads, _weights(tile, texels), texels * tile.rows)


def _reads_window(body: Body, node: Node) -> bool:
    return is_contraction(node) and not is_pixelwise_contraction(body.graph, node)


def _weights(tile: Tile, texels: float) -> float:
    """Reads of weights; literals are part of the instructions, which are read as well."""
    return texels * _LITERAL if tile.baked and not tile.z_slices else texels


def _window_reads(tile: Tile, node: Node, taps: int) -> float:
    """Texels under the windows of a thread's column of pixels, which overlap."""
    attributes = node.attributes
    if has_role(node, "movement") or taps <= 1:
        return float(tile.rows)
    height = round(math.sqrt(taps))
    if isinstance(attributes, Pool2D):
        height = attributes.kernel[0]
    stride, dilation = (attributes.stride[0], attributes.dilation[0]) if isinstance(attributes, Conv2D) else (1, 1)
    rows = len({row * stride + k * dilation for row in range(tile.rows) for k in range(height)})
    return rows * taps / height
