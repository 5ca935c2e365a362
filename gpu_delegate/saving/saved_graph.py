"""Writes a CompiledGraph as bytes, and reads it back with checks.

Packed weights are in the kernels; constants that are no outputs and that no kernel reads as tensors are left out, so
that tensors that were constants have no data. The cache on disk checks bytes by a checksum (disk_cache.py); here all
places are checked against the buffers that there are, so that no kernel is given anything beyond them.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ..base.errors import UnsupportedError
from ..model.graph import ABSENT, Graph, KeptState, Tensor
from ..model.layout import PHWC4, TEXEL_BYTES, shape_of
from ..plan.memory.memory_plan import BufferPlace
from ..plan.placement import MAX_ARENA_BYTES
from ..targets.glsl.compiled_graph import CompiledGraph
from ..targets.glsl.glsl_kernel import Kernel
from .typed_values import from_bytes, to_bytes

_NOTHING = Graph("", {}, (), (), ())


def save_graph(compiled: CompiledGraph) -> bytes:
    """All but the graph that it was compiled from. Raises ValueError for attributes that cannot be kept."""
    graph = replace(compiled.graph, tensors=_without_data(compiled.graph), original=b"")
    return to_bytes(replace(compiled, source=_NOTHING, graph=graph))


def restore_graph(data: bytes, source: Graph) -> CompiledGraph | None:
    """What save_graph was given, None for anything else. Whatever the bytes are, nothing is raised."""
    try:
        compiled = replace(from_bytes(CompiledGraph, data), source=source)
        return compiled if _is_sound(compiled) else None
    except (ValueError, KeyError, UnsupportedError):
        return None


def _without_data(graph: Graph) -> Mapping[int, Tensor]:
    return MappingProxyType({number: replace(tensor, data=None) for number, tensor in graph.tensors.items()})


def _is_sound(compiled: CompiledGraph) -> bool:
    """Whether all that the runtime looks up is there. Raises KeyError where something is missing altogether."""
    source, graph, plan = compiled.source, compiled.graph, compiled.plan
    stored = {*plan.places, *compiled.constants}
    return (
        graph.inputs[: len(source.inputs)] == source.inputs
        and graph.outputs[: len(source.outputs)] == source.outputs
        and {*graph.inputs[len(source.inputs) :], *graph.outputs[len(source.outputs) :]} <= _added(graph)
        and len(compiled.barriers) == len(compiled.kernels)
        and all(size >= 0 for size in plan.buffer_bytes)
        and plan.total_bytes <= MAX_ARENA_BYTES
        and all(_fits(compiled, tensor, place) for tensor, place in plan.places.items())
        and all(_is_whole(compiled, tensor) for tensor in compiled.constants)
        and all(_is_kept(compiled, state) for state in graph.states)
        and stored.issuperset((*graph.inputs, *graph.outputs))
        and all(_is_complete(kernel, stored, plan.places) for kernel in compiled.kernels)
    )


def _added(graph: Graph) -> set[int]:
    """The inputs and outputs that passes have added."""
    told = (graph.faults.tensor,) if graph.faults else ()
    return {*told, *(tensor for state in graph.states for tensor in (state.read, state.written))}


def _fits(compiled: CompiledGraph, tensor: int, place: BufferPlace) -> bool:
    """Whether a tensor lies within its buffer."""
    if not 0 <= place.buffer < len(compiled.plan.buffer_bytes) or place.offset_bytes < 0:
        return False
    size_bytes = compiled.storages[tensor].size_bytes(shape_of(compiled.graph.tensors[tensor]))
    return 0 <= size_bytes <= compiled.plan.buffer_bytes[place.buffer] - place.offset_bytes


def _is_whole(compiled: CompiledGraph, tensor: int) -> bool:
    """Whether a constant has as many texels as its tensor, in whose place it may go."""
    texels, size_bytes = compiled.constants[tensor], PHWC4.size_bytes(shape_of(compiled.graph.tensors[tensor]))
    is_alike = tensor not in compiled.plan.places or compiled.storages[tensor] == PHWC4
    return is_alike and texels.dtype == "float32" and math.prod(texels.shape) * texels.itemsize == size_bytes


def _is_kept(compiled: CompiledGraph, state: KeptState) -> bool:
    """Whether a state has all of a buffer, which is as large as it, and what takes its place is stored alike."""
    graph, plan, own = compiled.graph, compiled.plan, state.own
    sides = [each for each in (state.read, state.written) if each != ABSENT]
    stored = {(compiled.storages[each], shape_of(graph.tensors[each])) for each in sides}
    if len(stored) != 1 or (own.data is not None and (own.data.shape, own.data.dtype.name) != (own.shape, own.dtype)):
        return False
    ((storage, shape),) = stored
    place = plan.places.get(state.read)
    size_bytes = plan.buffer_bytes[place.buffer] if place else 0
    return place is None or (place.offset_bytes, size_bytes) == (0, storage.size_bytes(shape))


def _is_complete(kernel: Kernel, stored: set[int], written: Mapping[int, BufferPlace]) -> bool:
    """Whether what a kernel reads and writes is in memory, and its weights are texels."""
    weights = kernel.weights
    return (
        stored.issuperset(kernel.inputs)
        and written.keys() >= {*kernel.outputs}
        and len(kernel.fetches) == len(kernel.inputs)
        and min(*kernel.grid, *kernel.local) > 0
        and weights.dtype == "float32"
        and (not weights.size or (weights.ndim == 2 and weights.shape[1] * weights.itemsize == TEXEL_BYTES))
        and math.prod(weights.shape) * weights.itemsize <= MAX_ARENA_BYTES
    )
