"""Reductions (means, sums, products, extrema): how files say them; their code in pixel kernels.

One over channels is a loop over slices, so what it reduces is computed on the way, and what reads it follows in the
same kernel. One over rows, columns or a batch is a loop over pixels in memory; where it leaves one pixel of all, as in
squeeze and excite, gpu_delegate/kernels/vector_emitter.py has a work-group share the loop.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial

from ..code.expressions import Slice
from ..code.indices import Index, Validity
from ..code.kernel_writer import KernelWriter
from ..code.vocabulary import (
    PART,
    PART_SUMS,
    PIXEL,
    THREAD,
    AcrossLanes,
    Assign,
    Declare,
    Name,
    Operation,
    Shared,
    Splat,
    StoreShared,
    Synchronize,
    Value,
    Vector,
)
from ..model.graph import Attributes, Graph, Node, Reduce, Shape
from ..model.layout import ceil_div
from ..model.operators import EncodedOperator, Operator, attributes_of, integers
from .elementwise import with_integers
from .record import NO_RULES, ONE_SCALE, ByteRules, Emission, Example, FileForm, OpRecord, OptionsStruct, Reducer

CHANNELS = 3  # the dimension of BHWC tensors
MOST_FOLD_PARTS = 64  # threads that share a loop: the third side of a work-group, as all devices have it


_SUM = Reducer("sum", 0.0, "add")
_GREATEST = Reducer("greatest", -math.inf, "maximum")
_LEAST = Reducer("least", math.inf, "minimum")


def factor_of(fold: Reducer, graph: Graph, node: Node) -> float:
    """What a reduction multiplies its fold by in the end: a mean divides by the number of values."""
    sizes = [math.prod(graph.tensors[i].shape) for i in (node.inputs[0], node.outputs[0])]
    return 1.0 / (sizes[0] // sizes[1]) if fold.averages else 1.0


def averaged(fold: Reducer, graph: Graph, node: Node, total: Value) -> Value:
    """What a reduction makes of its fold in the end."""
    factor = factor_of(fold, graph, node)
    return total if factor == 1.0 else total * factor


def is_spatial_mean(graph: Graph, node: Node) -> bool:
    """A MEAN over rows and columns of a BHWC map."""
    attributes = node.attributes
    if node.op != "MEAN" or not isinstance(attributes, Reduce):
        return False
    return attributes.axes == (1, 2) and len(graph.tensors[node.inputs[0]].shape) == 4


def reduces_channels(graph: Graph, node: Node) -> bool:
    """Whether a reduction is one over channels of BHWC maps, and over nothing else."""
    attributes = node.attributes
    return isinstance(attributes, Reduce) and attributes.axes == (CHANNELS,) and _is_map(graph, node)


def reduces_pixels(graph: Graph, node: Node) -> bool:
    """Whether a reduction is one over batches, rows or columns of BHWC maps, and not over channels."""
    attributes = node.attributes
    return (
        isinstance(attributes, Reduce)
        and len(attributes.axes) > 0
        and CHANNELS not in attributes.axes
        and _is_map(graph, node)
    )


def _is_map(graph: Graph, node: Node) -> bool:
    return len(graph.tensors[node.inputs[0]].shape) == len(graph.tensors[node.outputs[0]].shape) == CHANNELS + 1


def _fits(graph: Graph, node: Node) -> bool:
    """A pass splits those over both."""
    return reduces_channels(graph, node) or reduces_pixels(graph, node)


# How files say them -------------------------------------------------------------------------------------------------


def read_reduction(operator: Operator) -> Attributes:
    shape, keep = operator.shape(0), bool(operator.options("ReducerOptions").KeepDims())
    axes = operator.integers(1)
    if any(not -len(shape) <= axis < len(shape) for axis in axes):
        operator.damaged(f"axes {list(axes)} of {len(shape)} dimensions")
    reduced = tuple(sorted({axis % len(shape) for axis in axes}))
    kept = ((i, 1 if i in reduced else size) for i, size in enumerate(shape))
    operator.expect(tuple(size for i, size in kept if keep or i not in reduced))
    return Reduce(reduced, keep)


def write_reduction(graph: Graph, node: Node) -> EncodedOperator:
    reduced = attributes_of(node, Reduce)
    return EncodedOperator((*node.inputs, integers(*reduced.axes)), "ReducerOptions", {"KeepDims": reduced.keep_dims})


# Code ---------------------------------------------------------------------------------------------------------------


def fold_pixels(fold: Reducer, writer: KernelWriter, node: Node, at: Slice) -> Sequence[Value]:
    """One slice of a reduction over pixels: loops over those that each of the thread's pixels stands for."""
    totals = writer.declare([Splat(fold.neutral) for _ in writer.rows], "m")
    for row, total in zip(writer.rows, totals, strict=True):
        with loops_over_pixels(writer, node, at, row) as (value, _):
            writer.add(fold.into(total, value))
    if writer.shares_folds:
        _join_parts(writer, fold, totals)
    return writer.declare([averaged(fold, writer.graph, node, total) for total in totals])


@contextmanager
def loops_over_pixels(writer: KernelWriter, node: Node, at: Slice, row: int) -> Iterator[tuple[Value, list[Name]]]:
    """Loops over the pixels that one of the thread's stands for: slice `at` of each, and the loops' variables."""
    (source, *_), axes = node.inputs, attributes_of(node, Reduce).axes
    sizes, names = writer.graph.tensors[source].shape, [Name(name, "int") for name in "nij"]
    place = writer.place(writer.shape(node.outputs[0]), row)
    inner = [Index.variable(names[k], 0, sizes[k] - 1) if k in axes else where for k, where in enumerate(place)]
    counts = {axis: sizes[axis] for axis in axes}
    is_there: Validity = True
    if writer.shares_folds:  # each part has every n-th place along one dimension
        parts, (axis, size) = writer.tile.parts, shared_dimension(writer.graph, node)
        index, counts[axis] = names[axis] * parts + PART, ceil_div(size, parts)
        inner[axis] = Index.variable(index, 0, size - 1)
        is_there = size % parts == 0 or Operation("less", (index, size))
    with writer.loop(*((names[axis], count) for axis, count in counts.items())), ExitStack() as stack:
        if is_there is not True:
            stack.enter_context(writer.when(is_there))
        yield writer.texel_at(source, at, (inner[0], inner[1], inner[2])), [names[axis] for axis in axes]


def shared_dimension(graph: Graph, node: Node) -> tuple[int, int]:
    """A dimension of those that a reduction reduces, and its size: the last one of those that are long, or as long."""
    sizes = graph.tensors[node.inputs[0]].shape
    _, axis = max((min(sizes[axis], MOST_FOLD_PARTS), axis) for axis in attributes_of(node, Reduce).axes)
    return axis, sizes[axis]


def _join_parts(writer: KernelWriter, fold: Reducer, totals: Sequence[Name]) -> None:
    """Fold what the parts of each pixel have found, in all of them."""
    x, y, parts = writer.tile.local
    threads, number = x * y * parts, Name("e", "int")
    writer.share_array(PART_SUMS, threads * len(totals))
    for k, total in enumerate(totals):
        writer.add(StoreShared(PART_SUMS, THREAD + k * threads, total))
    writer.add(Synchronize())
    for k, total in enumerate(totals):
        writer.add(Assign(total, Shared(PART_SUMS, PIXEL + k * threads)))
        with writer.loop((number, parts - 1)):
            writer.add(fold.into(total, Shared(PART_SUMS, number * (x * y) + (PIXEL + (k * threads + x * y)))))


def start_fold(fold: Reducer, writer: KernelWriter, node: Node) -> None:
    """Declare the values that lanes of channels are folded into."""
    for row in writer.rows:
        writer.add(Declare(writer.held(node.outputs[0], row, 0), Splat(fold.neutral)))


def fold_slice(fold: Reducer, writer: KernelWriter, node: Node, at: Slice) -> None:
    """Fold one slice, lane by lane; lanes past the last channel count for nothing."""
    channels = writer.shape(node.inputs[0]).channels
    for row, value in zip(writer.rows, writer.value(node.inputs[0], at), strict=True):
        lanes = writer.lanes_or(value, channels, at, fold.neutral)
        writer.add(fold.into(writer.held(node.outputs[0], row, 0), lanes))


def fold_lanes(fold: Reducer, writer: KernelWriter, node: Node) -> None:
    """Fold the four lanes into one."""
    for row in writer.rows:
        total = writer.held(node.outputs[0], row, 0)
        one = averaged(fold, writer.graph, node, AcrossLanes(fold.operation, total))
        writer.add(Assign(total, Vector((one, 0.0, 0.0, 0.0))))


def reduces_shape(node: Node, inputs: list[Shape], output: Shape) -> bool:
    """Whether the output has the input's shape without the dimensions that are reduced, or with 1 for each."""
    (x,), reduced = inputs, attributes_of(node, Reduce)
    kept = tuple(1 if k in reduced.axes else size for k, size in enumerate(x))
    return output == (kept if reduced.keep_dims else tuple(n for k, n in enumerate(x) if k not in reduced.axes))


_NUMBERS = FileForm(read_reduction, write_reduction, count=(2, 2), struct=OptionsStruct("ReducerOptions", "KeepDims:b"))
_INTEGERS_TOO = with_integers(_NUMBERS)
_TRUTHS = replace(_NUMBERS, dtypes=("bool",), out_dtypes=("bool",))
_OVER_PIXELS = Example(out=(1, 1, 1, 8), attributes=Reduce((1, 2), True))
_TRUTHS_OVER_PIXELS = replace(_OVER_PIXELS, dtype="bool", out_dtype="bool")


def reduction(
    name: str,
    fold: Reducer,
    file: FileForm | None = _INTEGERS_TOO,
    example: Example = _OVER_PIXELS,
    quantized: ByteRules = NO_RULES,
) -> OpRecord:
    """The record of an op that folds values along dimensions into one."""
    return OpRecord(
        name,
        "reduction",
        file,
        example,
        emission=Emission(
            stream=partial(fold_pixels, fold),
            start=partial(start_fold, fold),
            accumulate=partial(fold_slice, fold),
            finish=partial(fold_lanes, fold),
        ),
        reducer=fold,
        agrees=reduces_shape,
        fits=_fits,
        pixelwise=reduces_channels,
        quantized=quantized,
    )


RECORDS = (
    reduction("MEAN", replace(_SUM, averages=True), _NUMBERS),
    reduction("SUM", _SUM),
    reduction("REDUCE_PROD", Reducer("product", 1.0, "multiply")),
    reduction("REDUCE_MAX", _GREATEST, quantized=ONE_SCALE),
    reduction("REDUCE_MIN", _LEAST, quantized=ONE_SCALE),
    # of truth values, 0.0 and 1.0
    reduction("REDUCE_ANY", replace(_GREATEST, neutral=0.0), _TRUTHS, _TRUTHS_OVER_PIXELS),
    reduction("REDUCE_ALL", replace(_LEAST, neutral=1.0), _TRUTHS, _TRUTHS_OVER_PIXELS),
)
