"""SLICE, STRIDED_SLICE and REVERSE_V2: file form, and where their values come from."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..code.evaluate import Values
from ..model.graph import Attributes, Axes, Graph, Node, Shape, StridedSlice, Tensor
from ..model.operators import EncodedOperator, Operator, attributes_of, integers
from .facts import broadcasts, expect_count
from .movement import MOVE, of_any_type, shape_in
from .record import Coordinates, Example, FileForm, Movement, OpRecord, OptionsStruct, Origin


def read_slice(operator: Operator) -> Attributes:
    shape, begin, sizes = operator.shape(0), operator.integers(1), operator.integers(2)
    if len(begin) != len(shape) or len(sizes) != len(shape):
        operator.damaged(f"{len(begin)} begins and {len(sizes)} sizes of {len(shape)} dimensions")
    taken = tuple(
        size - start if count == -1 else count for size, start, count in zip(shape, begin, sizes, strict=True)
    )
    if any(
        not (start >= 0 and 1 <= count <= size - start) for size, start, count in zip(shape, begin, taken, strict=True)
    ):
        operator.damaged(f"{list(sizes)} values from {list(begin)} on of {list(shape)}")
    operator.expect(taken)
    return StridedSlice(begin, taken, (1,) * len(shape))


def read_strided_slice(operator: Operator) -> Attributes:
    """The rules of NumPy's slices: masks leave out an end, negative positions count from the end."""
    options, shape = operator.options("StridedSliceOptions"), operator.shape(0)
    begin, end, strides = (operator.integers(position) for position in (1, 2, 3))
    if not len(begin) == len(end) == len(strides) or 0 in strides:
        operator.damaged(f"begin {list(begin)}, end {list(end)}, strides {list(strides)} of {len(shape)} dimensions")
    if getattr(options, "Offset", bool)():
        operator.unsupported("ends relative to the beginnings")
    if (options.NewAxisMask() | options.EllipsisMask() | options.ShrinkAxisMask()) >> len(begin):
        operator.unsupported(f"masks of more than {len(begin)} ranges")
    if any(stride < 0 and options.ShrinkAxisMask() >> k & 1 for k, stride in enumerate(strides)):
        operator.unsupported("a single value taken backwards")  # of which TensorFlow Lite writes none
    entries = _entries(operator, options, len(begin), len(shape))
    sides, ranges, out = iter(shape), list[range](), list[int]()
    for k in entries:
        if k is not None and options.NewAxisMask() >> k & 1:
            out.append(1)
            continue
        bounds = slice(None) if k is None else _bounds(k, begin[k], end[k], strides[k], options)
        ranges.append(range(*bounds.indices(next(sides))))
        if k is None or not options.ShrinkAxisMask() >> k & 1:
            out.append(len(ranges[-1]))
    if any(not found for found in ranges):
        operator.damaged(f"takes nothing of {list(shape)}")
    operator.expect(tuple(out))
    return StridedSlice(
        tuple(found.start for found in ranges),
        tuple(len(found) for found in ranges),
        tuple(found.step for found in ranges),
    )


def _entries(operator: Operator, options: Any, count: int, rank: int) -> list[int | None]:
    """Entries of the ends by number, for each dimension and each new one; None where a dimension is taken whole.

    An ellipsis is all dimensions that nothing else is about, as is the end of the list.
    """
    ellipses = [k for k in range(count) if options.EllipsisMask() >> k & 1]
    named = [k for k in range(count) if k not in ellipses and not options.NewAxisMask() >> k & 1]
    if len(ellipses) > 1 or len(named) > rank:
        operator.damaged(f"{len(named)} ranges and {len(ellipses)} ellipses of {rank} dimensions")
    place = ellipses[0] if ellipses else count
    return [*range(place), *[None] * (rank - len(named)), *range(place + 1, count)]


def _bounds(k: int, begin: int, end: int, stride: int, options: Any) -> slice:
    if options.ShrinkAxisMask() >> k & 1:
        return slice(begin, begin + 1 if begin != -1 else None, 1)
    return slice(None if options.BeginMask() >> k & 1 else begin, None if options.EndMask() >> k & 1 else end, stride)


def write_slice(graph: Graph, node: Node) -> EncodedOperator:
    cut = attributes_of(node, StridedSlice)
    return EncodedOperator((*node.inputs, integers(*cut.begin), integers(*cut.sizes)))


def write_strided_slice(graph: Graph, node: Node) -> EncodedOperator:
    """Ends behind the last value that is taken; dimensions that the output lacks are shrunk, those it adds are new."""
    cut, entries = attributes_of(node, StridedSlice), list[tuple[int, int, int]]()
    masks = {"EndMask": 0, "ShrinkAxisMask": 0, "NewAxisMask": 0}
    for entry, (k, is_kept) in enumerate(_matched(cut.sizes, graph.tensors[node.outputs[0]].shape)):
        begin, size, stride = (0, 1, 1) if k is None else (cut.begin[k], cut.sizes[k], cut.strides[k])
        end = begin + size * stride
        masks["EndMask"] |= (end < 0) << entry  # it would count from the other end
        masks["ShrinkAxisMask"] |= (not is_kept) << entry
        masks["NewAxisMask"] |= (k is None) << entry
        entries.append((begin, max(end, 0), stride))
    parameters = [integers(*column) for column in zip(*entries, strict=True)]
    return EncodedOperator((*node.inputs, *parameters), "StridedSliceOptions", masks)


def _matched(sizes: Shape, out: Shape) -> list[tuple[int | None, bool]]:
    """Dimensions by number, and whether the output keeps them; None for one that it adds."""
    found, left = list[tuple[int | None, bool]](), list(out)
    for k, size in enumerate(sizes):
        while left and left[0] == 1 != size:
            found.append((None, True))
            left.pop(0)
        is_kept = left[:1] == [size]
        found.append((k, is_kept))
        del left[: int(is_kept)]
    return [*found, *[(None, True)] * len(left)]


def read_reverse(operator: Operator) -> Attributes:
    shape, axes = operator.shape(0), operator.integers(1)
    if not axes or any(not -len(shape) <= axis < len(shape) for axis in axes):
        operator.damaged(f"axes {list(axes)} of {len(shape)} dimensions")
    operator.expect(shape)
    return Axes(tuple(sorted({axis % len(shape) for axis in axes})))


def write_reverse(graph: Graph, node: Node) -> EncodedOperator:
    return EncodedOperator((*node.inputs, integers(*attributes_of(node, Axes).axes)))


def _cut(graph: Graph, node: Node, at: Coordinates) -> tuple[Origin, ...]:
    cut = attributes_of(node, StridedSlice)
    b, y, x, c = (
        index.times(stride).plus(begin) for index, begin, stride in zip(at, cut.begin, cut.strides, strict=True)
    )
    return (Origin(0, (b, y, x, c)),)


def _cuts_slices(graph: Graph, node: Node) -> bool:
    cut = attributes_of(node, StridedSlice)
    return cut.begin[3] % 4 == 0 and (cut.strides[3] == 1 or cut.sizes[3] == 1)


def _reversed(graph: Graph, node: Node, at: Coordinates) -> tuple[Origin, ...]:
    axes, shape = attributes_of(node, Axes).axes, shape_in(graph, node)
    b, y, x, c = (
        index.times(-1).plus(size - 1) if k in axes else index
        for k, (index, size) in enumerate(zip(at, shape, strict=True))
    )
    return (Origin(0, (b, y, x, c)),)


def _reverses_no_channel(graph: Graph, node: Node) -> bool:
    return 3 not in attributes_of(node, Axes).axes


def _cut_values(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    (x,), part = values, attributes_of(node, StridedSlice)
    expect_count(math.prod(part.sizes), output)
    ranges = []
    for length, begin, size, stride in zip(x.shape, part.begin, part.sizes, part.strides, strict=True):
        last = begin + stride * (size - 1)
        if not 0 < size <= length or not 0 <= min(begin, last) <= max(begin, last) < length:
            raise ValueError(f"positions {begin} to {last} of {length}")
        ranges.append(begin + stride * np.arange(size))
    return np.reshape(x[np.ix_(*ranges)], output.shape)


def _reversed_values(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    return np.flip(values[0], attributes_of(node, Axes).axes)


def _lies_within(node: Node, inputs: list[Shape], output: Shape) -> bool:
    part = attributes_of(node, StridedSlice)
    for length, begin, size, stride in zip(inputs[0], part.begin, part.sizes, part.strides, strict=True):
        last = begin + stride * (size - 1)
        if not (0 < size <= length and 0 <= begin < length and 0 <= last < length):
            return False
    return math.prod(part.sizes) == math.prod(output)


_CUT = Movement(_cut, _cuts_slices)
_INNER = StridedSlice((0, 1, 2, 0), (1, 4, 4, 8), (1, 1, 1, 1))

RECORDS = (
    OpRecord(
        "SLICE",
        "movement",
        of_any_type(FileForm(read_slice, write_slice, count=(3, 3))),
        Example(out=(1, 4, 4, 8), attributes=_INNER),
        emission=MOVE,
        movement=_CUT,
        evaluate=_cut_values,
        agrees=_lies_within,
    ),
    OpRecord(
        "STRIDED_SLICE",
        "movement",
        of_any_type(
            FileForm(
                read_strided_slice,
                write_strided_slice,
                count=(4, 4),
                struct=OptionsStruct(
                    "StridedSliceOptions",
                    "BeginMask:i EndMask:i EllipsisMask:i NewAxisMask:i ShrinkAxisMask:i Offset:b",
                ),
            )
        ),
        Example(out=(1, 4, 4, 8), attributes=StridedSlice((0, 7, 0, 0), (1, 4, 4, 8), (1, -2, 2, 1))),
        emission=MOVE,
        movement=_CUT,
        evaluate=_cut_values,
        agrees=_lies_within,
    ),
    OpRecord(
        "REVERSE_V2",
        "movement",
        of_any_type(FileForm(read_reverse, write_reverse, count=(2, 2))),
        Example(attributes=Axes((1,))),
        emission=MOVE,
        movement=Movement(_reversed, _reverses_no_channel),
        evaluate=_reversed_values,
        agrees=broadcasts,
    ),
)
