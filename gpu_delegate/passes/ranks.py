"""The pass that gives every tensor four dimensions: BHWC.

Shapes are aligned as layout.aligned_shape says; attributes that speak of dimensions move along. Where an op on aligned
inputs does not give the aligned form of its output, it gets an output of its own and a RESHAPE behind it: a mean
[2, 5, 7, 3] -> [2, 3] becomes 2x5x7x3 -> 2x1x1x3 -> 1x1x2x3. Weights keep their form.
"""

import math
from dataclasses import dataclass, replace
from typing import TypeVar

from ..base.errors import UnsupportedError
from ..model.graph import (
    ABSENT,
    Attributes,
    Axes,
    Axis,
    Concatenation,
    Graph,
    MirrorPad,
    Node,
    Pad,
    Reduce,
    Repeat,
    Shape,
    Split,
    StridedSlice,
    Tensor,
    Transpose,
)
from ..model.layout import RANK, aligned_shape
from ..model.rewrite import Outcome, Rewriter
from ..ops.nodes import computed_weights, has_weights, is_elementwise, is_fold, multiplies_rows, place_in_file

Item = TypeVar("Item")

RESHAPES = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS"})  # ops that keep all values in their order
_OWN_POSITIONS = Transpose | Axis | StridedSlice | Reduce  # attributes of ops whose outputs have other dimensions


def align_ranks(graph: Graph) -> tuple[Graph, Outcome]:
    """Four dimensions for every tensor that is not a weight. Raises UnsupportedError for those that need more."""
    aligner = _Aligner(graph)
    for node in graph.nodes:
        aligner.align(node)
    return aligner.finish()


def fits_four_dimensions(graph: Graph, node: Node) -> bool:
    """Whether no node but RESHAPEs is needed for it: it has at most four dimensions, or those of size 1 can go."""
    tensors = [graph.tensors[i] for i in (*node.inputs, *node.outputs) if i != ABSENT]
    if max((len(tensor.shape) for tensor in tensors), default=0) <= RANK or has_weights(node):
        return True
    if _has_computed_weights(node) or not node.inputs or node.op == "FULLY_CONNECTED":
        return True
    count = 1 if isinstance(node.attributes, Axis) else len(node.inputs)
    inputs = [graph.tensors[i] for i in node.inputs[:count] if i != ABSENT]
    try:
        _dimensions(graph, node, inputs, [graph.tensors[i] for i in node.outputs])
    except UnsupportedError:
        return False
    return True


@dataclass(frozen=True)
class _Dimensions:
    """How the dimensions of a node's tensors become four: some are put in front, or some of size 1 are dropped."""

    rank: int  # of the tensor that the node's attributes speak of
    dropped: frozenset[int]  # dimensions, counted from the last one, -1

    def shape(self, shape: Shape) -> Shape:
        """A shape of at most this rank, in four dimensions."""
        count = max(self.rank, RANK)
        padded = (1,) * (count - len(shape)) + shape
        return tuple(size for k, size in enumerate(padded, -count) if k not in self.dropped)

    def items(self, values: tuple[Item, ...], fill: Item) -> tuple[Item, ...]:
        """One value per dimension, with `fill` for those in front."""
        kept = (value for k, value in enumerate(values, -self.rank) if k not in self.dropped)
        return (*(fill,) * (RANK - self.rank), *kept)

    def axes(self, axes: tuple[int, ...]) -> tuple[int, ...]:
        """Dimensions by number; those of size 1 that are dropped are left out."""
        moved = (axis - self.rank for axis in axes)
        return tuple(RANK + k + sum(gone > k for gone in self.dropped) for k in moved if k not in self.dropped)

    def axis(self, axis: int) -> int:
        """One dimension by number; an op along one of size 1 that is dropped does nothing along any."""
        return (*self.axes((axis,)), 0)[0]

    def order(self, order: tuple[int, ...]) -> tuple[int, ...]:
        """A permutation of the dimensions."""
        return (*range(RANK - self.rank), *self.axes(order))


class _Aligner:
    """The pass at work: what it does to each node, one after the other."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.edit = Rewriter(graph)
        self.constants: dict[tuple[int, Shape], int] = {}

    def finish(self) -> tuple[Graph, Outcome]:
        """The new graph, in which every runtime tensor is aligned."""
        runtime = {i for node in self.graph.nodes for i in (*node.inputs, *node.outputs) if i != ABSENT}
        for number in sorted(runtime | {*self.graph.inputs, *self.graph.outputs}):
            tensor = self.graph.tensors[number]
            if not tensor.is_constant and len(tensor.shape) != RANK:
                self.edit.set_tensor(replace(tensor, shape=_aligned(tensor)))
        return self.edit.finish()

    def align(self, node: Node) -> None:
        """Replace a node, with a RESHAPE for each input and output whose form differs from what the node takes."""
        tensors = self.graph.tensors
        count = 1 if isinstance(node.attributes, Axis) or node.op == "FULLY_CONNECTED" else len(node.inputs)
        if (
            has_weights(node) or _has_computed_weights(node) or not node.inputs or ABSENT in node.inputs[:count]
        ):  # such are ops without a kernel
            return
        inputs, outputs = ([tensors[i] for i in list_ if i != ABSENT] for list_ in (node.inputs[:count], node.outputs))
        if node.op in RESHAPES:
            inputs, wanted, results = inputs[:1], [_aligned(inputs[0])], [_aligned(outputs[0])]
            changed, count = replace(node, op="RESHAPE", attributes=Attributes()), len(node.inputs)
        elif node.op == "FULLY_CONNECTED":
            wanted, results = _connected(inputs[0], tensors[node.inputs[1]])
            changed = node
        else:
            dimensions = _dimensions(self.graph, node, inputs, outputs)
            wanted = [dimensions.shape(tensor.shape) for tensor in inputs]
            changed = replace(node, attributes=_moved(node.attributes, dimensions))
            results = [_result(self.graph, changed, wanted[0], dimensions, out) for out in outputs]
            if isinstance(changed.attributes, Reduce) and not changed.attributes.axes:
                changed, results = replace(node, op="RESHAPE", attributes=Attributes()), [_aligned(outputs[0])]
        before, read = self._reads(inputs, wanted)
        after, written = self._writes(outputs, results)
        changed = replace(changed, inputs=(*read, *node.inputs[count:]), outputs=tuple(written))
        if before or after or changed != node:
            self.edit.replace(node, *before, changed, *after)

    def _reads(self, inputs: list[Tensor], wanted: list[Shape]) -> tuple[list[Node], list[int]]:
        """RESHAPEs of a node's inputs, and the numbers of what it reads then."""
        before, read = list[Node](), list[int]()
        for tensor, shape in zip(inputs, wanted, strict=True):
            if tensor.is_constant:
                read.append(tensor.index if tensor.shape == shape else self._constant(tensor, shape))
            elif _aligned(tensor) == shape:
                read.append(tensor.index)
            else:
                read.append(self.edit.new_tensor(tensor.name + ":reshaped", shape, tensor.dtype))
                before.append(Node("RESHAPE", (tensor.index,), (read[-1],)))
        return before, read

    def _writes(self, outputs: list[Tensor], results: list[Shape]) -> tuple[list[Node], list[int]]:
        """RESHAPEs to a node's outputs, and the numbers of what it writes then."""
        after, written = list[Node](), list[int]()
        for tensor, shape in zip(outputs, results, strict=True):
            written.append(tensor.index)
            if _aligned(tensor) != shape:
                written[-1] = self.edit.new_tensor(tensor.name + ":whole", shape, tensor.dtype)
                after.append(Node("RESHAPE", (written[-1],), (tensor.index,)))
        return after, written

    def _constant(self, tensor: Tensor, shape: Shape) -> int:
        """The number of a constant in another shape, as a view of the same values; once for all its readers."""
        assert tensor.data is not None
        if (tensor.index, shape) not in self.constants:
            number = self.edit.new_tensor(tensor.name, shape, tensor.dtype)
            self.edit.set_tensor(replace(tensor, index=number, shape=shape, data=tensor.data.reshape(shape)))
            self.constants[tensor.index, shape] = number
        return self.constants[tensor.index, shape]


def _has_computed_weights(node: Node) -> bool:
    """Of a convolution: all its inputs have four dimensions. Matrices may have fewer, or more."""
    return bool(computed_weights(node)) and not multiplies_rows(node)


def _aligned(tensor: Tensor) -> Shape:
    try:
        return aligned_shape(tensor.shape)
    except UnsupportedError as error:
        raise UnsupportedError(f"{tensor.name}: {error}") from None


def _connected(source: Tensor, weights: Tensor) -> tuple[list[Shape], list[Shape]]:
    """What FULLY_CONNECTED reads and writes as a 1x1 convolution: its rows are pixels."""
    outputs, depth = weights.shape
    rows = (1, 1, math.prod(source.shape) // depth, depth)
    wanted = rows if _aligned(source)[-1] != depth else _aligned(source)
    return [wanted], [(*wanted[:-1], outputs)]


def _dimensions(graph: Graph, node: Node, inputs: list[Tensor], outputs: list[Tensor]) -> _Dimensions:
    """The dimensions of a node whose attributes speak of those of its first input."""
    own = isinstance(node.attributes, _OWN_POSITIONS)
    alike = inputs[:1] if own else [*inputs, *outputs]
    rank = len(inputs[0].shape) if own else max(len(tensor.shape) for tensor in alike)
    kept = _kept(node, rank)
    units = [
        k
        for k in range(-rank, 0)
        if k not in kept and all(-k > len(tensor.shape) or tensor.shape[k] == 1 for tensor in alike)
    ]
    if len(units) < rank - RANK:
        largest = max(alike, key=lambda tensor: len(tensor.shape))
        raise UnsupportedError(
            f"{node.op} ({place_in_file(graph, node)}, {largest.name}) does not run on the GPU: "
            f"shape {list(largest.shape)}, at most {RANK} dimensions are allowed"
        )
    return _Dimensions(rank, frozenset(units[: max(0, rank - RANK)]))


def _kept(node: Node, rank: int) -> tuple[int, ...]:
    """Dimensions, counted from the last one, that are not dropped even if their size is 1."""
    match node.attributes:
        case Axis(axis=axis):
            return (axis - rank,)
        case Reduce(axes=(axis,)) if not is_fold(node):  # a position of 0 is no value
            return (axis - rank,)
    if multiplies_rows(node):
        return -2, -1
    return (-1,) if _is_along_last(node) else ()


def _is_along_last(node: Node) -> bool:
    """Whether an op may treat the last dimension differently from others without saying so."""
    named = _OWN_POSITIONS | Pad | MirrorPad | Split | Concatenation | Axes | Repeat
    return not is_elementwise(node) and not isinstance(node.attributes, named)


def _moved(attributes: Attributes, to: _Dimensions) -> Attributes:
    """The attributes of an op on tensors with four dimensions."""
    match attributes:
        case Reduce(axes=axes):
            return replace(attributes, axes=to.axes(axes), keep_dims=True)
        case Pad(amounts=amounts) | MirrorPad(amounts=amounts):
            return replace(attributes, amounts=to.items(amounts, (0, 0)))
        case StridedSlice(begin, sizes, strides):
            return StridedSlice(to.items(begin, 0), to.items(sizes, 1), to.items(strides, 1))
        case Split(axis=axis) | Axis(axis=axis) | Concatenation(axis=axis):
            return replace(attributes, axis=to.axis(axis))
        case Transpose(order):
            return Transpose(to.order(order))
        case Axes(axes):
            return Axes(to.axes(axes))
        case Repeat(repeats):
            return Repeat(to.items(repeats, 1))
    return attributes


def _result(graph: Graph, node: Node, source: Shape, dimensions: _Dimensions, out: Tensor) -> Shape:
    """What an op with moved attributes gives for its (first) input in four dimensions."""
    match node.attributes:
        case Reduce(axes=axes):
            return tuple(1 if k in axes else size for k, size in enumerate(source))
        case StridedSlice(sizes=sizes):
            return sizes
        case Transpose(order):
            return tuple(source[k] for k in order)
        case Axis(axis) if node.op == "GATHER":
            count = math.prod(graph.tensors[node.inputs[1]].shape)
            return (*source[:axis], count, *source[axis + 1 :])
        case Axis():
            return _aligned(out)
    return dimensions.shape(out.shape)
