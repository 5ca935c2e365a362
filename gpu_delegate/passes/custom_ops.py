"""A pass that replaces MediaPipe's custom ops by ops that have kernels."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from ..base.errors import UnsupportedError
from ..model.graph import Graph, Node, Pool2D, Unpool2D
from ..model.operators import attributes_of
from ..model.rewrite import END_OF_INTEGERS, Outcome, Rewriter
from .node_chain import NodeChain

_Places = npt.NDArray[np.int64]
PlacesBeside = tuple[tuple[int, int], tuple[int, int]]  # before and behind: a tensor of places, and one of weights

PLACE_OFFSET = 0.1  # of places as floats: they are cut off where they are read


def express_custom_ops(graph: Graph) -> tuple[Graph, Outcome]:
    """MaxPoolingWithArgmax2D -> MAX_POOL_2D, MAX_POOL_PLACE; MaxUnpooling2D, Resampler -> GATHER and arithmetic."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        if node.op == "MaxPoolingWithArgmax2D":
            edit.replace(node, *_pooled(edit, graph, node))
        elif node.op in _FORMS:
            _FORMS[node.op](NodeChain(edit, graph, node))
    return edit.finish()


def _pooled(edit: Rewriter, graph: Graph, node: Node) -> list[Node]:
    """The greatest values, and where they are: of a float, a little more."""
    (values, places), pool = node.outputs, attributes_of(node, Pool2D)
    found = Node("MAX_POOL_PLACE", node.inputs, (places,), replace(pool, activation="NONE"), node.index)
    greatest = replace(node, op="MAX_POOL_2D", outputs=(values,))
    if graph.tensors[places].dtype != "float32":
        return [greatest, found]
    chain = NodeChain(edit, graph, replace(found, inputs=node.inputs))
    whole = chain.op("MAX_POOL_PLACE", *node.inputs, shape=graph.tensors[places].shape, attributes=found.attributes)
    chain.op("ADD", whole, chain.constant(PLACE_OFFSET))
    chain.nodes[-1] = replace(chain.nodes[-1], outputs=(places,), index=node.index)
    return [greatest, *chain.nodes]


def _unpooled(chain: NodeChain) -> None:
    """Each pixel looks into the window that it lies in whether the value there belongs to it."""
    (x, places), unpool = chain.node.inputs, attributes_of(chain.node, Unpool2D)
    _, height, width, _ = chain.out.shape
    rows, taps_y = _windows(height, chain.shape(x)[1], unpool.kernel[0], unpool.stride[0], unpool.padding.top)
    columns, taps_x = _windows(width, chain.shape(x)[2], unpool.kernel[1], unpool.stride[1], unpool.padding.left)
    own = np.where(np.minimum(taps_y[:, None], taps_x) < 0, -1, taps_y[:, None] * unpool.kernel[1] + taps_x)
    whole = chain.op("FLOOR", places) if chain.dtype(places) == "float32" else places
    spread = []
    for tensor in (whole, x):
        found = chain.gather(tensor, chain.constant(rows, "int32"), 1)
        spread.append(chain.gather(found, chain.constant(columns, "int32"), 2))
    pattern = chain.constant(own[None, :, :, None], chain.dtype(places))
    is_there = chain.op("EQUAL", spread[0], pattern, dtype="bool")
    chain.finish(chain.op("SELECT_V2", is_there, spread[1], chain.constant(0.0)))


def _windows(size: int, count: int, taps: int, step: int, before: int) -> tuple[_Places, _Places]:
    """For each place along a dimension the window in which it lies, and its place there; -1 if it lies in none."""
    places = np.arange(size) + before
    windows = np.minimum(places // step, count - 1)
    own = places - windows * step
    return windows, np.where(own < taps, own, -1)


def _resampled(chain: NodeChain) -> None:
    """Four neighbors of each position, by how near they are; what lies outside of the map is zero."""
    x, positions = chain.node.inputs
    batch, height, width, channels = chain.shape(x)
    pixels = batch * height * width
    if pixels >= END_OF_INTEGERS:
        raise UnsupportedError(f"Resampler (operator {chain.node.index}): {pixels} pixels, too many to tell them apart")
    flat = chain.reshape(x, pixels, channels)
    maps = chain.constant(height * width * np.arange(batch).reshape(-1, 1, 1, 1))
    columns, rows = (neighbors(chain, chain.part(positions, 3, k), size) for k, size in enumerate((width, height)))
    chain.finish(sampled(chain, flat, width, columns, rows, maps))


def neighbors(chain: NodeChain, position: int, size: int) -> PlacesBeside:
    """Along one dimension: the place before and the one behind, limited to the map, and what each counts.

    A place that the limit moves counts nothing.
    """
    first = chain.op("FLOOR", position)
    share = chain.op("SUB", position, first)
    rest = chain.op("SUB", chain.constant(1.0), share)
    second = chain.op("ADD", first, chain.constant(1.0))
    found = []
    for place, weight in ((first, rest), (second, share)):
        inside = chain.op("EQUAL", limited := chain.within(place, size - 1), place, dtype="bool")
        found.append((limited, chain.op("SELECT_V2", inside, weight, chain.constant(0.0))))
    return found[0], found[1]


def sampled(
    chain: NodeChain, flat: int, width: int, columns: PlacesBeside, rows: PlacesBeside, maps: int | None = None
) -> int:
    """The pixels of the node's output, each between four pixels of a map, which are `flat`, in rows of so many.

    `maps` are the places of the first pixels of several maps.
    """
    terms = list[int]()
    for row, near_row in rows:
        for column, near_column in columns:
            place = chain.op("ADD", chain.op("MUL", row, chain.constant(width)), column)
            place = place if maps is None else chain.op("ADD", place, maps)
            indices = chain.reshape(place, int(np.prod(chain.shape(place))))
            value = chain.reshape(chain.gather(flat, indices, 0), *chain.out.shape)
            terms.append(chain.op("MUL", value, chain.op("MUL", near_row, near_column)))
    return chain.op("ADD_N", *terms)


_FORMS: Mapping[str, Callable[[NodeChain], None]] = MappingProxyType(
    {"MaxUnpooling2D": _unpooled, "Resampler": _resampled}
)
