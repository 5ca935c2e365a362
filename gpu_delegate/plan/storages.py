"""Chooses how each tensor is stored (floats, halves or bytes), and which tensors lie inside others.

Between kernels a tensor of whole numbers of which there are at most 256 is stored as bytes: the number less the least
one. What is read is what was written, in a quarter of the bytes of float32. Lanes past the last channel hold zeros
there, too, so 0 is one of the numbers. What callers and passes read and write, inputs, outputs and constants, is
float32. What lies inside another tensor is stored as that is: bytes save memory, a view saves a kernel.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from ..device.device import Device
from ..model.graph import Graph, Steps, Tensor
from ..model.layout import BYTE_VALUES, PHWC4, PHWC4_HALVES, Precision, Storage, Storages, shape_of, stores_halves
from ..ops.nodes import is_scatter
from ..passes.integer_ranges import whole_ranges
from .views import Views, find_views, overwritten


def plan_storages(graph: Graph, device: Device, precision: Precision, uses_views: bool) -> tuple[Storages, Views]:
    """All in PHWC4, as kernels store it for other kernels; lower.py stores some outputs as plain tensors."""
    outside = {*graph.inputs, *graph.outputs}
    inside = {t: tensor for t, tensor in graph.tensors.items() if not tensor.is_constant and t not in outside}
    storages = dict.fromkeys(graph.tensors, PHWC4) | {t: storage_inside(inside[t], precision) for t in inside}
    find = partial(find_views, graph, device.offset_alignment_bytes, in_planes=device.in_planes)
    views = find(storages=storages) if uses_views else overwritten(graph)
    bytes_of = _as_bytes(graph, inside, storages, views, device) if device.tuning.stores_bytes else {}
    if not bytes_of:
        return storages, views
    storages |= bytes_of
    return storages, find(storages=storages) if uses_views else overwritten(graph)


def storage_inside(tensor: Tensor, precision: Precision) -> Storage:
    """How kernels store values of any kind; integers as float32, in which they are exact."""
    return PHWC4_HALVES if stores_halves(precision) and "int" not in tensor.dtype else PHWC4


def byte_storage(ranges: Sequence[Steps | None]) -> Storage | None:
    """Bytes for tensors that share memory; None where a byte does not hold all their numbers, and 0."""
    known = [steps for steps in ranges if steps]
    low, high = min(0, *(steps.low for steps in known), 0), max(0, *(steps.high for steps in known), 0)
    fits = len(known) == len(ranges) and high - low < BYTE_VALUES
    return Storage(value_bytes=1, low=low) if fits else None


def _floats_in_planes(graph: Graph) -> set[int]:
    """What is floats in any case where tensors are in planes: vectors, and what is stored at other pixels."""
    scattered = {tensor for node in graph.nodes if is_scatter(node) for tensor in (*node.inputs, *node.outputs)}
    return {t for t, tensor in graph.tensors.items() if t in scattered or shape_of(tensor).is_vector}


def _as_bytes(
    graph: Graph, inside: Iterable[int], storages: Storages, views: Views, device: Device
) -> Mapping[int, Storage]:
    """The tensors that are stored as bytes. Those that share memory are if all are, and begin where they may.

    None are in networks of floats, where the few positions and truth values are not worth other kernels.
    """
    if not any(tensor.steps for tensor in graph.tensors.values()):
        return {}
    known, apart = whole_ranges(graph), _floats_in_planes(graph)
    ranges = {tensor: known.get(tensor) for tensor in inside}
    together: dict[int, list[int]] = {}
    for tensor in graph.tensors:
        together.setdefault(views.place(tensor)[0], []).append(tensor)
    found: dict[int, Storage] = {}
    for tensors in together.values():
        storage = byte_storage([ranges.get(tensor) for tensor in tensors])
        if device.in_planes and not apart.isdisjoint(tensors):
            continue
        starts = ((views.inside[t].offset_bytes, storages[t]) for t in tensors if t in views.inside)
        if storage and not any(
            start // was.texel_bytes * storage.texel_bytes % device.offset_alignment_bytes for start, was in starts
        ):
            found |= dict.fromkeys(tensors, storage)
    return found
