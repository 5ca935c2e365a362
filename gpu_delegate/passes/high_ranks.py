"""A pass that says ops on more than four dimensions by the same ops on at most four, between RESHAPEs.

Neighboring dimensions that an op treats alike are one: a RESHAPE keeps all values in their order. What moves values in
more places than four dimensions have does so one dimension after the other. A permutation of dimensions is merged to
those that move, and then done by exchanges of neighboring blocks: a, b, c, d -> a, c, b, d.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

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
    StridedSlice,
    Tensor,
    Transpose,
)
from ..model.layout import RANK
from ..model.rewrite import Outcome, Rewriter
from ..ops.nodes import is_elementwise, multiplies_rows
from .ranks import RESHAPES, fits_four_dimensions

MergedAxes = tuple[tuple[int, ...], ...]  # neighboring dimensions that become one


def merge_dimensions(graph: Graph) -> tuple[Graph, Outcome]:
    """Ops on more than four dimensions -> RESHAPE, the same ops on at most four, RESHAPE."""
    edit = Rewriter(graph)
    for node in graph.nodes:
        if node.op in RESHAPES or fits_four_dimensions(graph, node) or ABSENT in node.inputs:
            continue
        found = _Merged(edit, graph, node).nodes()
        if found:
            edit.replace(node, *found)
    return edit.finish()


class _Merged:
    """Nodes in place of one; tensors are numbers."""

    def __init__(self, edit: Rewriter, graph: Graph, node: Node) -> None:
        self.edit, self.node, self.found = edit, node, list[Node]()
        self.tensors = {i: graph.tensors[i] for i in (*node.inputs, *node.outputs)}
        self.x, self.out = (graph.tensors[i] for i in (node.inputs[0], node.outputs[0]))

    def nodes(self) -> list[Node]:
        """None where the op has no such form."""
        made = self.last()
        if made is None:
            return []
        self.found.append(Node("RESHAPE", (made,), (self.out.index,), Attributes(), self.node.index))
        return self.found

    def last(self) -> int | None:
        """The tensor that becomes the output."""
        node, shape, x = self.node, self.x.shape, self.x.index
        if is_elementwise(node):
            return self.repeated(0)
        if multiplies_rows(node):
            return self.repeated(2)
        match node.attributes:
            case Transpose(order):
                return self.transposed(x, shape, order)
            case Concatenation(axis=axis):
                parts = tuple(self.seen(i, _around(axis, len(shape))) for i in node.inputs)
                return self.op(parts, _merged(self.out.shape, _around(axis, len(shape))), Concatenation(axis=1))
            case Axis(axis) if node.op == "GATHER":
                outer, _, inner = _merged(shape, _around(axis, len(shape)))
                count = math.prod(self.tensors[node.inputs[1]].shape)
                inputs = self.seen(x, _around(axis, len(shape))), *node.inputs[1:]
                return self.op(inputs, (outer, count, inner), Axis(1))
            case Reduce(axes=axes):
                return self.reduced(axes)
            case StridedSlice(begin, sizes, strides):
                touched = [k for k, n in enumerate(shape) if (begin[k], sizes[k], strides[k]) != (0, n, 1)]
                return self.moved(
                    touched, lambda k: (StridedSlice((0, begin[k], 0), strides=(1, strides[k], 1)), sizes[k])
                )
            case Pad(amounts=amounts) | MirrorPad(amounts=amounts):
                kept = ((0, 0),)
                return self.moved(
                    [k for k, amount in enumerate(amounts) if any(amount)],
                    lambda k: (
                        replace(node.attributes, amounts=(*kept, amounts[k], *kept)),  # type: ignore[call-arg]
                        shape[k] + sum(amounts[k]),
                    ),
                )
            case Repeat(repeats):
                touched = [k for k, count in enumerate(repeats) if count != 1]
                return self.moved(touched, lambda k: (Repeat((1, repeats[k], 1)), shape[k] * repeats[k]))
            case Axes(axes):
                return self.moved(list(axes), lambda k: (Axes((1,)), shape[k]))
        return None

    # Kinds of ops -------------------------------------------------------------------------------------------------

    def repeated(self, kept: int) -> int:
        """Operands that are repeated along dimensions where they have one value; the last ones are kept as they are."""
        rank = max(len(self.tensors[i].shape) for i in (*self.node.inputs, self.out.index))
        out = _padded(self.out.shape, rank)
        inputs = list(self.node.inputs)
        while True:
            shapes = [_padded(self.shape(i), rank) for i in inputs]
            groups = _alike(shapes, out, rank - kept) + tuple((k,) for k in range(rank - kept, rank))
            if len(groups) <= RANK:
                break
            place = next(k for k, shape in enumerate(shapes) if shape[: rank - kept] != out[: rank - kept])
            inputs[place] = self.filled(
                inputs[place], shapes[place], (*out[: rank - kept], *shapes[place][rank - kept :])
            )
        read = tuple(self.reshaped(i, _merged(shape, groups)) for i, shape in zip(inputs, shapes, strict=True))
        return self.op(read, _merged(out, groups), self.node.attributes)

    def filled(self, x: int, shape: Shape, wanted: Shape) -> int:
        """A tensor with all its values where it is repeated."""
        tensor = self.tensors[x]
        if tensor.data is not None:
            return self.constant(tensor, np.broadcast_to(tensor.data.reshape(shape), wanted))
        for axis, (size, whole) in enumerate(zip(shape, wanted, strict=True)):
            if size != whole:
                outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
                shape = (*shape[:axis], whole, *shape[axis + 1 :])
                part = self.reshaped(x, (outer, size, inner))
                x = self.op((part,), (outer, whole, inner), Repeat((1, whole, 1)), "TILE")
        return self.reshaped(x, wanted)

    def reduced(self, axes: tuple[int, ...]) -> int:
        """Over one run of dimensions after the other, if they are too many for once."""
        attributes, shape, x = self.node.attributes, self.x.shape, self.x.index
        assert isinstance(attributes, Reduce)
        groups = _runs(len(shape), lambda k: k in axes)
        if len(groups) <= RANK:
            merged = tuple(k for k, group in enumerate(groups) if group[0] in axes)
            wanted = tuple(1 if k in merged else size for k, size in enumerate(_merged(shape, groups)))
            return self.op((self.seen(x, groups),), wanted, replace(attributes, axes=merged, keep_dims=True))
        for group in groups:
            if group[0] in axes:
                outer, inner = math.prod(shape[: group[0]]), math.prod(shape[group[-1] + 1 :])
                part = self.reshaped(x, (outer, math.prod(shape[k] for k in group), inner))
                x = self.op((part,), (outer, 1, inner), replace(attributes, axes=(1,), keep_dims=True))
                shape = tuple(1 if k in group else size for k, size in enumerate(shape))
        return x

    def moved(self, touched: Sequence[int], along: Callable[[int], tuple[Attributes, int]]) -> int:
        """Along one dimension after the other, as the middle of three; `along` has attributes and the new size."""
        x, shape = self.x.index, self.x.shape
        for axis in touched:
            attributes, size = along(axis)
            outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
            if isinstance(attributes, StridedSlice):
                attributes = replace(attributes, sizes=(outer, size, inner))
            part = self.reshaped(x, (outer, shape[axis], inner))
            x = self.op((part,), (outer, size, inner), attributes)
            shape = (*shape[:axis], size, *shape[axis + 1 :])
        return x

    def transposed(self, x: int, shape: Shape, order: tuple[int, ...]) -> int:
        """By exchanges of neighbors, after those are merged that stay neighbors."""
        places = [k for k in order if shape[k] != 1]
        runs = [[place] for place in places[:1]]
        for place in places[1:]:
            between = shape[runs[-1][-1] + 1 : place] if place > runs[-1][-1] else (2,)
            if math.prod(between) == 1:
                runs[-1].append(place)
            else:
                runs.append([place])
        sizes = [math.prod(shape[k] for k in run) for run in runs]
        now = sorted(range(len(runs)), key=lambda k: runs[k])  # of the runs in the order that is wanted, where each is
        if len(now) <= RANK:
            merged = tuple(now.index(k) for k in range(len(now)))
            return self.op((self.reshaped(x, tuple(sizes[k] for k in now)),), tuple(sizes), Transpose(merged))
        for target in range(len(now)):
            place = now.index(target)
            if place == target:
                continue
            blocks = now[:target], now[target:place], now[place : place + 1], now[place + 1 :]
            outer, first, second, inner = (math.prod(sizes[k] for k in block) for block in blocks)
            part = self.reshaped(x, (outer, first, second, inner))
            x = self.op((part,), (outer, second, first, inner), Transpose((0, 2, 1, 3)), "TRANSPOSE")
            now = [*blocks[0], *blocks[2], *blocks[1], *blocks[3]]
        return x

    # Nodes --------------------------------------------------------------------------------------------------------

    def shape(self, x: int) -> Shape:
        return self.tensors[x].shape

    def seen(self, x: int, groups: MergedAxes) -> int:
        return self.reshaped(x, _merged(self.shape(x), groups))

    def reshaped(self, x: int, shape: Shape) -> int:
        tensor = self.tensors[x]
        if tensor.shape == shape:
            return x
        if tensor.data is not None:
            return self.constant(tensor, tensor.data.reshape(shape))
        return self.op((x,), shape, Attributes(), "RESHAPE", tensor.dtype)

    def constant(self, tensor: Tensor, data: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]") -> int:
        made = replace(tensor, index=self.edit.next_index, shape=data.shape, data=np.ascontiguousarray(data))
        self.tensors[made.index] = made
        return self.edit.set_tensor(made)

    def op(self, inputs: tuple[int, ...], shape: Shape, attributes: Attributes, op: str = "", dtype: str = "") -> int:
        """A node, of the same op where no other is said."""
        dtype = dtype or (self.tensors[inputs[0]].dtype if op else self.out.dtype)
        number = self.edit.new_tensor(f"{self.out.name}:merged", shape, dtype)
        self.tensors[number] = Tensor(number, "", shape, dtype)
        self.found.append(Node(op or self.node.op, inputs, (number,), attributes, self.node.index))
        return number


def _merged(shape: Shape, groups: MergedAxes) -> Shape:
    return tuple(math.prod(shape[k] for k in group) for group in groups)


def _padded(shape: Shape, rank: int) -> Shape:
    return (1,) * (rank - len(shape)) + shape


def _around(axis: int, rank: int) -> MergedAxes:
    """What is before a dimension, the dimension, and what is behind it."""
    return tuple(range(axis)), (axis,), tuple(range(axis + 1, rank))


def _runs(rank: int, kind: Callable[[int], bool]) -> MergedAxes:
    """Neighbors of one kind."""
    groups: list[tuple[int, ...]] = []
    for k in range(rank):
        if groups and kind(groups[-1][0]) == kind(k):
            groups[-1] += (k,)
        else:
            groups.append((k,))
    return tuple(groups)


def _alike(shapes: Sequence[Shape], out: Shape, rank: int) -> MergedAxes:
    """Runs of the first dimensions along which each operand is repeated, or each time has all values."""
    groups, kinds = list[tuple[int, ...]](), dict[int, bool]()  # of operands: whether they have all values
    for k in range(rank):
        own = {place: shape[k] == out[k] for place, shape in enumerate(shapes)} if out[k] > 1 else {}
        if groups and all(kinds.get(place, has) == has for place, has in own.items()):
            groups[-1] += (k,)
            kinds |= own
        else:
            groups.append((k,))
            kinds = own
    return tuple(groups)
