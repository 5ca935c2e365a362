"""Finds tensors that need no memory, because the kernels that read them apply the move of data themselves."""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from ..model.graph import Graph, Node
from ..ops.convolution import SLICES_AT_ONCE
from ..ops.nodes import computed_weights, has_role, is_contraction, record_of
from .body import maps_of
from .body_keys import BodyKeys
from .moves import length_of_read, movement_of
from .vector_nodes import is_vector_node
from .views import NONE, Views

LANES = 4
MOST_READERS = 4  # each of them computes the positions again
MOST_MAPS = 8  # one behind the other: planning and emitting recurse through them
MOST_TEXT = 16000  # characters that they may add to a reader, which has a read of its own for each pixel of a window


def read_through(graph: Graph, keys: BodyKeys, views: Views = NONE) -> Mapping[int, Node]:
    """Outputs of nodes that move data from one place, by number, where pixel kernels alone read them.

    A slice of channels that comes from one place is one read at another position, so the map is put into the reads of a
    window, a convolution, an elementwise op or another map. Several places would be read each time, to choose one of
    them, and so would slices that are put together lane by lane: those are moved by a kernel, which what follows pixel
    by pixel joins. What moves data itself reads each value but once, so that it may read through any map.
    """
    consumers, outside = graph.consumers(), {*graph.inputs, *graph.outputs, *views.nodes, *views.inside}
    found: dict[int, Node] = {}
    maps = Counter[int]()  # that are read through for each tensor
    for node in graph.nodes:
        out = node.outputs[0]
        if not has_role(node, "movement") or len(node.inputs) != 1 or out in outside:
            continue
        readers, count = consumers.get(out, []), 1 + maps[node.inputs[0]]
        if count <= MOST_MAPS and _can_be_read(graph, node, readers, views):
            reads = max((_reads(graph, reader, out) for reader in readers), default=0)
            key = keys.key([node], maps_of([node], found), node.inputs, node.outputs)
            if reads * keys.once(length_of_read, key, partial(length_of_read, graph, node, found)) <= MOST_TEXT:
                found[out], maps[out] = node, count
    return MappingProxyType(found)


def _reads(graph: Graph, reader: Node, tensor: int) -> int:
    """Reads of a tensor that a node has in its source, for one pixel."""
    if has_role(reader, "movement"):
        return 1 if movement_of(reader).together(graph, reader) else LANES
    taps = record_of(reader).taps(graph, reader)
    is_matrix = is_contraction(reader) and tensor in computed_weights(reader)
    return LANES * SLICES_AT_ONCE * taps if is_matrix else taps


def _can_be_read(graph: Graph, node: Node, readers: list[Node], views: Views) -> bool:
    """Whether all readers read by position; reductions read memory from end to end, and views need some."""
    if len(readers) > MOST_READERS or any(reader.outputs[0] in views.nodes for reader in readers):
        return False
    if any(has_role(reader, "reduction") or is_vector_node(graph, reader) for reader in readers):
        return False
    return movement_of(node).together(graph, node) or all(has_role(reader, "movement") for reader in readers)
