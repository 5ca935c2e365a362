"""Epilogue reductions: which kernels add up the maps that they write, so that a later reduction reads only sums.

A mean of a map would be read by one work-group, or by each one that needs it: 1.3 MB for one of selfie's. Instead the
kernel that makes the map leaves a vec4 for each of its work-groups and channel slices, a map of its own of as many
pixels as there are groups, and the reduction reads that: 256 texels instead of 81,920.
"""

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from ..code.vocabulary import Z0, GridIndex, Operation
from ..device.device import Device, Tuning
from ..device.limits import Limits
from ..device.tile import Tile
from ..device.work_group_shapes import gpu_flat_group, gpu_map_group
from ..model.graph import Graph, Node, Tensor
from ..model.layout import TEXEL_BYTES, shape_of
from ..ops.nodes import fold_of, has_role, is_elementwise, is_scatter
from ..ops.record import Reducer
from ..ops.reduce import reduces_pixels
from .body import Accumulate, Body, Phase, too_many_bindings
from .split_k import shared_texels_of
from .vector_work import Range

LEAST_SAVED = 8  # pixels that a sum stands for, on average: it takes the kernel two barriers


@dataclass(frozen=True)
class EpilogueSum:
    """What one kernel leaves of one of its maps."""

    tensor: int  # (1, groups along y, groups along x, C), which a kernel makes, and no node
    source: int  # the map
    fold: Reducer
    scale: float  # of what a group adds up, such that the reduction of the whole tensor is that of the map


@dataclass(frozen=True)
class PartialSums:
    """All of a program: the graph and vector nodes that read them, and who leaves them."""

    graph: Graph
    vectors: Mapping[int, Node]  # by output
    left_by: Mapping[int, tuple[EpilogueSum, ...]]  # by the number of a body


def find_epilogue_sums(
    graph: Graph, bodies: Sequence[Body], tiles: Sequence[Tile], vectors: Mapping[int, Node], device: Device
) -> PartialSums:
    """Sums of all maps that vector nodes reduce, as far as the kernels of the bodies can leave them."""
    wanted: dict[int, dict[str, list[Node]]] = {}
    for node in vectors.values():
        if has_role(node, "reduction") and reduces_pixels(graph, node):
            wanted.setdefault(node.inputs[0], {}).setdefault(node.op, []).append(node)
    tensors, left_by, changed = dict(graph.tensors), dict[int, tuple[EpilogueSum, ...]](), dict[int, Node]()
    for number, (body, tile) in enumerate(zip(bodies, tiles, strict=True)):
        left: tuple[EpilogueSum, ...] = ()
        for source in _summed(body, tile, wanted):
            for nodes in wanted[source].values():
                sums = _sums_of(body, tile, source, nodes[0], max(graph.dropped_below, 1 + max(tensors)))
                if _fits(body, tile, (*left, sums), device.limits):
                    left = (*left, sums)
                    tensors[sums.tensor] = _tensor_of(body, tile, sums)
                    changed |= {node.outputs[0]: replace(node, inputs=(sums.tensor,)) for node in nodes}
        left_by[number] = left
    nodes_now = tuple(changed.get(node.outputs[0], node) for node in graph.nodes)
    graph = replace(graph, nodes=nodes_now, tensors=MappingProxyType(tensors))
    return PartialSums(graph, {**vectors, **changed}, left_by)


def _sums_of(body: Body, tile: Tile, source: int, node: Node, number: int) -> EpilogueSum:
    fold = fold_of(node)
    scale = math.prod(tile.groups(body.domain)) / body.domain.pixels if fold.averages else 1.0
    return EpilogueSum(number, source, fold, scale)


def _summed(body: Body, tile: Tile, wanted: Container[int]) -> Iterator[int]:
    """Those of the wanted maps that a body computes, pixel by pixel, in many more pixels than its kernel has groups."""
    columns, rows = tile.groups(body.domain)
    if tile.turned or LEAST_SAVED * columns * rows > body.domain.pixels:
        return
    for tensor in body.outputs:
        if tensor in wanted and not is_scatter(body.producers[tensor]):
            yield tensor


def _fits(body: Body, tile: Tile, sums: Sequence[EpilogueSum], limits: Limits) -> bool:
    """Whether the body's kernel has the bindings and the shared memory for these sums."""
    outputs = len(body.outputs) + len(sums)
    too_many = too_many_bindings(body.graph, body.nodes, body.inputs, outputs, limits)
    return not too_many and shared_bytes_of(body, tile, sums) <= limits.shared_memory_bytes


def shared_bytes_of(body: Body, tile: Tile, sums: Sequence[EpilogueSum]) -> int:
    """Shared memory of a kernel: what its parts need, and for its sums a vec4 for each thread of one and its slices."""
    slots = sum(slots_of(body, tile, each) for each in sums)
    return TEXEL_BYTES * (tile.local[0] * tile.local[1] * slots + shared_texels_of(body, tile))


def slots_of(body: Body, tile: Tile, sums: EpilogueSum) -> int:
    """Slices of the map that one thread computes."""
    return tile.z_slices or shape_of(body.graph.tensors[sums.source]).slices


def _tensor_of(body: Body, tile: Tile, sums: EpilogueSum) -> Tensor:
    columns, rows = tile.groups(body.domain)
    source = body.graph.tensors[sums.source]
    return Tensor(sums.tensor, f"{source.name}:sums", (1, rows, columns, shape_of(source).channels))


def with_few_groups(body: Body, tile: Tile, tuning: Tuning, limits: Limits) -> Tile:
    """The tile with larger work-groups, as long as it has more of them along x and y than a kernel with sums should.

    Each group leaves a sum, and each that reads sums reads all of them.
    """
    domain, most = body.domain, min(tuning.sum_threads, limits.work_group_invocations) if tile.parts == 1 else 0
    while math.prod(tile.groups(domain)) > tuning.sum_groups and 2 * tile.threads <= most and tile.leaves:
        if tile.flat:
            group = gpu_flat_group(domain.pixels, 2 * tile.threads, tuning.wave_threads)
        else:
            group = gpu_map_group(*tile.area(domain), tile.down, 2 * tile.threads, tuning.wave_threads)
        larger = replace(tile, local=(*group.local, 1))
        if larger.threads <= tile.threads:
            break
        tile = larger
    return tile


def needed_slices(body: Body, tile: Tile) -> tuple[Range, frozenset[int]]:
    """The slices that a work-group of a body computes, and the inputs of which it needs others, too."""
    slices = shape_of(body.graph.tensors[body.outputs[0]]).slices
    if not tile.z_slices:
        return Range(0, slices), frozenset(body.inputs)
    whole = frozenset(tensor for tensor in body.inputs if not _is_read_slice_by_slice(body, tensor, slices))
    if tile.deep:
        each = tile.local[0] * tile.z_slices
        group = Operation("minimum", (GridIndex("group", "x") * each, slices - each))
        return Range(group if each < slices else 0, min(each, slices)), whole
    is_sure = tile.sure_slices(slices) == tile.z_slices
    return Range(Z0 if is_sure else Operation("minimum", (Z0, slices - tile.z_slices)), tile.z_slices), whole


def _is_read_slice_by_slice(body: Body, tensor: int, slices: int) -> bool:
    """Whether a thread reads no other slices of an input than those of its outputs."""
    if shape_of(body.graph.tensors[tensor]).slices != slices:
        return False
    if any(tensor in phase.touches and _accumulates(phase) for phase in body.phases):
        return False
    readers = [node for node in (*body.nodes, *body.through.values()) if tensor in node.inputs]
    return all(is_elementwise(node) for node in readers)


def _accumulates(phase: Phase) -> bool:
    return any(isinstance(root, Accumulate) for root in phase.roots)
