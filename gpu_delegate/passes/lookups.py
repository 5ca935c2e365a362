"""A pass that replaces look-ups (ONE_HOT, GATHER_ND, SCATTER_ND and others) by GATHER along one dimension."""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from ..base.errors import UnsupportedError
from ..model.graph import ABSENT, Attributes, Axis, Graph, Node, Pad, Reduce
from ..model.layout import RANK
from ..model.operators import attributes_of
from ..model.rewrite import END_OF_INTEGERS, Outcome, Rewriter
from ..ops.lookup import OVERWRITES, BatchGather, ReverseSequence
from ..ops.matrix_product import MatrixProduct
from .node_chain import NodeChain

MOST_SCATTERED = 1 << 22  # factors of the matrix that says which value goes where


def express_lookups(graph: Graph) -> tuple[Graph, Outcome]:
    """ONE_HOT, GATHER_ND, SCATTER_ND and the like -> GATHER along one dimension, comparisons, products of matrices."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        if node.op in _FORMS and ABSENT not in node.inputs:
            _FORMS[node.op](NodeChain(edit, graph, node))
        elif node.op == "DYNAMIC_UPDATE_SLICE":
            _update_slice(NodeChain(edit, graph, node), _replaces_state(graph, node))
    return edit.finish()


def _gather(chain: NodeChain) -> None:
    """Indices of several dimensions as a vector; those of a batch as places in all its maps."""
    x, indices = chain.node.inputs
    axis = attributes_of(chain.node, Axis).axis
    if not isinstance(chain.node.attributes, BatchGather):
        if len(chain.shape(indices)) != 1:
            chain.finish(chain.gather(x, chain.reshape(indices, math.prod(chain.shape(indices))), axis))
        return
    chain.finish(_gathered_of_batch(chain, x, indices, axis, chain.node.attributes.batch_dims))


def _gathered_of_batch(chain: NodeChain, x: int, indices: int, axis: int, batch_dims: int) -> int:
    """What lies between the batch and the axis is moved behind it, and back again."""
    shape, found = chain.shape(x), chain.shape(indices)[batch_dims:]
    batch, between, behind = shape[:batch_dims], shape[batch_dims:axis], shape[axis + 1 :]
    maps, size, count = math.prod(batch), shape[axis], math.prod(found)
    parts = chain.reshape(x, maps, math.prod(between), size, math.prod(behind))
    parts = chain.reshape(chain.transpose(parts, 0, 2, 1, 3), maps * size, math.prod(between) * math.prod(behind))
    places = _flat(chain, chain.reshape(indices, maps, count), size, maps)
    taken = chain.reshape(chain.gather(parts, places, 0), maps, count, math.prod(between), math.prod(behind))
    return chain.transpose(taken, 0, 2, 1, 3)


def _flat(chain: NodeChain, indices: int, size: int, maps: int) -> int:
    """Indices into each of several maps of so many places, a row for each, as one vector of indices into all."""
    _check(chain, maps * size)
    starts = chain.constant(size * np.arange(maps)[:, None], chain.dtype(indices))
    places = chain.op("ADD", chain.within(indices, size - 1), starts)
    return chain.reshape(places, math.prod(chain.shape(places)))


def _check(chain: NodeChain, places: int) -> None:
    """Raises UnsupportedError for more places than float32 can count."""
    if places >= END_OF_INTEGERS:
        raise UnsupportedError(f"{_called(chain)}: {places} places, at most {END_OF_INTEGERS - 1} can be told apart")


def _called(chain: NodeChain) -> str:
    return f"{chain.node.op} (operator {chain.node.index}, {chain.out.name}) does not run on the GPU"


def _embedding_lookup(chain: NodeChain) -> None:
    indices, x = chain.node.inputs
    chain.finish(chain.gather(x, indices, 0))


def _gather_nd(chain: NodeChain) -> None:
    x, indices = chain.node.inputs
    shape = chain.shape(x)
    sizes, behind = shape[: chain.shape(indices)[-1]], shape[chain.shape(indices)[-1] :]
    flat = chain.reshape(x, math.prod(sizes), math.prod(behind))
    chain.finish(chain.gather(flat, _numbers(chain, indices, sizes, limited=True), 0))


def _numbers(chain: NodeChain, indices: int, sizes: tuple[int, ...], limited: bool) -> int:
    """Indices of several dimensions, in the last one, as the numbers of places in the order of memory."""
    _check(chain, math.prod(sizes))
    count = math.prod(chain.shape(indices)[:-1])
    dtype, rows = chain.dtype(indices), chain.reshape(indices, count, len(sizes))
    if limited:
        above = chain.op("MAXIMUM", rows, chain.constant(0, dtype))
        rows = chain.op("MINIMUM", above, chain.constant(np.array(sizes) - 1, dtype))
    if len(sizes) == 1:
        return chain.reshape(rows, count)
    strides = np.cumprod((1, *sizes[:0:-1]))[::-1]
    products = chain.op("MUL", rows, chain.constant(strides, dtype))
    return chain.op("SUM", products, shape=(count,), attributes=Reduce((1,)))


def _one_hot(chain: NodeChain) -> None:
    indices, on, off = chain.node.inputs
    axis, shape = attributes_of(chain.node, Axis).axis, chain.out.shape
    before, behind = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    found = _is_at(chain, chain.reshape(indices, before, 1, behind), shape[axis])
    values = (chain.reshape(value) for value in (on, off))
    chain.finish(chain.op("SELECT_V2", found, *values, dtype=chain.out.dtype))


def _is_at(chain: NodeChain, indices: int, size: int) -> int:
    """[a, 1, c] indices -> [a, size, c]: whether each is that place."""
    places = chain.constant(np.arange(size)[:, None], chain.dtype(indices))
    return chain.op("EQUAL", indices, places, dtype="bool")


def _scatter_nd(chain: NodeChain) -> None:
    """A product with a matrix that has a one for each value where it belongs; several in one place are added."""
    indices, updates = chain.node.inputs
    sizes = chain.out.shape[: chain.shape(indices)[-1]]
    places, count = math.prod(sizes), math.prod(chain.shape(indices)[:-1])
    if places * count > MOST_SCATTERED:
        raise UnsupportedError(
            f"{_called(chain)}: {count} values in {places} places, the product of both may be {MOST_SCATTERED}"
        )
    dtype, depth = chain.dtype(updates), math.prod(chain.out.shape[len(sizes) :])
    rows = chain.reshape(_within_all(chain, indices, sizes), 1, 1, count)
    found = chain.reshape(_is_at(chain, rows, places), places, count)
    matrix = chain.op("SELECT_V2", found, chain.constant(1), chain.constant(0), dtype="float32")
    values = chain.reshape(updates, count, depth)
    product = chain.op("BATCH_MATMUL", matrix, values, shape=(places, depth), attributes=MatrixProduct(), dtype=dtype)
    chain.finish(product)


def _within_all(chain: NodeChain, indices: int, sizes: tuple[int, ...]) -> int:
    """The numbers of places, -1 for those that lie outside in any dimension."""
    count = math.prod(chain.shape(indices)[:-1])
    numbers, dtype = _numbers(chain, indices, sizes, limited=True), chain.dtype(indices)
    rows = chain.reshape(indices, count, len(sizes))
    above = chain.op("GREATER_EQUAL", rows, chain.constant(0, dtype), dtype="bool")
    below = chain.op("LESS", rows, chain.constant(sizes, dtype), dtype="bool")
    inside = chain.op("LOGICAL_AND", above, below, dtype="bool")
    inside = chain.op("REDUCE_ALL", inside, shape=(count,), attributes=Reduce((1,)))
    return chain.op("SELECT_V2", inside, numbers, chain.constant(-1, dtype), dtype=dtype)


def _reverse_sequence(chain: NodeChain) -> None:
    """Value s of a map is value length - 1 - s, if that is not negative; each map looks its values up."""
    (x, lengths), reverse = chain.node.inputs, attributes_of(chain.node, ReverseSequence)
    shape, dtype = chain.shape(x), chain.dtype(lengths)
    order = (
        reverse.batch,
        reverse.sequence,
        *(k for k in range(len(shape)) if k not in (reverse.batch, reverse.sequence)),
    )
    maps, size = shape[reverse.batch], shape[reverse.sequence]
    places = chain.constant(np.arange(size)[None], dtype)
    columns = chain.reshape(lengths, maps, 1)
    last = chain.op("SUB", chain.within(columns, size), chain.constant(1, dtype))
    mirrored = chain.op("SUB", last, places)
    is_inside = chain.op("GREATER_EQUAL", mirrored, chain.constant(0, dtype), dtype="bool")
    indices = chain.op("SELECT_V2", is_inside, mirrored, places, dtype=dtype)
    first = chain.transpose(x, *order)
    rows = chain.reshape(first, maps * size, math.prod(shape) // (maps * size))
    taken = chain.reshape(chain.gather(rows, _flat(chain, indices, size, maps), 0), *chain.shape(first))
    chain.finish(chain.transpose(taken, *(order.index(k) for k in range(len(order)))))


def _select(chain: NodeChain) -> None:
    """A condition for each map of a batch."""
    condition, *values = chain.node.inputs
    shape = chain.out.shape
    if len(chain.shape(condition)) == 1 < len(shape) and chain.shape(condition) == shape[:1]:
        each = chain.reshape(condition, *shape[:1], *(1,) * (len(shape) - 1))
        chain.finish(chain.op("SELECT_V2", each, *values, dtype=chain.out.dtype))


def _fill(chain: NodeChain) -> None:
    """One computed value everywhere."""
    value = chain.reshape(chain.node.inputs[-1], *(1,) * len(chain.out.shape))
    chain.finish(chain.op("BROADCAST_TO", value, shape=chain.out.shape, attributes=Attributes()))


def _update_slice(chain: NodeChain, is_last_of_state: bool) -> None:
    """The update where it lies, else what was there.

    What nothing else reads of what is kept from run to run is overwritten, if the result takes its place.
    """
    x, update, starts = chain.node.inputs
    known = chain.values(starts)
    axes = [k for k, sizes in enumerate(zip(chain.shape(update), chain.out.shape, strict=True)) if len({*sizes}) > 1]
    rank = len(chain.out.shape)
    if known is None and is_last_of_state and len(axes) == 1 and axes[0] < rank - 1 < RANK:
        start = chain.within(chain.part(starts, 0, axes[0]), chain.out.shape[axes[0]] - chain.shape(update)[axes[0]])
        attributes = Axis(RANK - rank + axes[0])  # of tensors with four dimensions, as the kernel has them
        chain.finish(chain.op(OVERWRITES, update, start, x, shape=chain.out.shape, attributes=attributes))
        return
    found = _moved_update(chain, update, starts) if known is None else _padded_update(chain, update, known.tolist())
    inside, moved = found
    chain.finish(chain.op("SELECT_V2", inside, moved, x) if inside != ABSENT else moved)


def _replaces_state(graph: Graph, node: Node) -> bool:
    """Whether it alone reads what is kept from run to run, and makes what is kept then, of floats."""
    x, (out,) = node.inputs[0], node.outputs
    is_kept = any((state.read, state.written) == (x, out) for state in graph.states)
    once = sum(each.inputs.count(x) for each in graph.nodes) == 1 and x not in graph.outputs
    return is_kept and once and graph.tensors[x].dtype == "float32" and graph.outputs.count(out) == 1


def _padded_update(chain: NodeChain, update: int, starts: Sequence[int]) -> tuple[int, int]:
    """A mask of where the update lies, and the update with something around it."""
    amounts = []
    for start, size, whole in zip(starts, chain.shape(update), chain.out.shape, strict=True):
        before = min(max(start, 0), whole - size)
        amounts.append((before, whole - size - before))
    mask = np.pad(np.ones(chain.shape(update), bool), amounts)
    around = chain.op("PAD", update, shape=chain.out.shape, attributes=Pad(tuple(amounts)))
    return chain.constant(mask, "bool"), around


def _moved_update(chain: NodeChain, update: int, starts: int) -> tuple[int, int]:
    """The same where starts are computed: each place of a dimension looks up its own place in the update.

    A dimension in which the update has all places, or one that is repeated, needs no look-up.
    """
    inside, moved, rank, dtype = ABSENT, update, len(chain.out.shape), chain.dtype(starts)
    for axis, (size, whole) in enumerate(zip(chain.shape(update), chain.out.shape, strict=True)):
        if size == whole:
            continue
        start = chain.within(chain.part(starts, 0, axis), whole - size)
        places = chain.op("SUB", chain.constant(np.arange(whole), dtype), start)
        if size > 1:
            moved = chain.gather(moved, places, axis)
        behind = chain.op("GREATER_EQUAL", places, chain.constant(0, dtype), dtype="bool")
        before = chain.op("LESS", places, chain.constant(size, dtype), dtype="bool")
        both = chain.op("LOGICAL_AND", behind, before, dtype="bool")
        both = chain.reshape(both, *(whole if k == axis else 1 for k in range(rank)))
        inside = both if inside == ABSENT else chain.op("LOGICAL_AND", inside, both, dtype="bool")
    return inside, moved


_FORMS: Mapping[str, Callable[[NodeChain], None]] = MappingProxyType(
    {
        "GATHER": _gather,
        "GATHER_ND": _gather_nd,
        "EMBEDDING_LOOKUP": _embedding_lookup,
        "ONE_HOT": _one_hot,
        "SCATTER_ND": _scatter_nd,
        "REVERSE_SEQUENCE": _reverse_sequence,
        "SELECT": _select,
        "FILL": _fill,
    }
)
