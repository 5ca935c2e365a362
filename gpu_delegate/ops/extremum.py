"""ARG_MAX and ARG_MIN: file form and kernel code, which keeps the best value so far and its position.

Of equal values the first one counts. NaN is less, or greater, than everything else. Over channels it is a loop over
slices, with what it reads computed on the way; over rows, columns or a batch a loop over pixels in memory.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import tflite

from ..code.evaluate import Values
from ..code.expressions import Slice
from ..code.kernel_writer import KernelWriter
from ..code.vocabulary import (
    ZEROS,
    AcrossLanes,
    Arithmetic,
    Assign,
    ChooseLanes,
    Declare,
    LaneComparison,
    Name,
    Operand,
    Splat,
    Value,
    Vector,
    to_float,
)
from ..code.whole_numbers import WholeRange
from ..model.graph import Attributes, Graph, Node, Reduce, Steps, Tensor
from ..model.operators import EncodedOperator, Operator, attributes_of, integers
from .elementwise import NUMBERS
from .record import Emission, Example, FileForm, OpRecord, OptionsStruct
from .reduce import loops_over_pixels, reduces_channels, reduces_pixels, reduces_shape

POSITION_TYPES = ("int32", "int64")


@dataclass(frozen=True)
class Extremum:
    """What ARG_MAX or ARG_MIN looks for."""

    worst: float
    operation: Arithmetic
    best_is: LaneComparison  # to all others
    reduction: str  # the op that gives the value itself


EXTREMA: Mapping[str, Extremum] = MappingProxyType(
    {
        "ARG_MAX": Extremum(-math.inf, "maximum", "at least", "REDUCE_MAX"),
        "ARG_MIN": Extremum(math.inf, "minimum", "at most", "REDUCE_MIN"),
    }
)


def read_extremum(operator: Operator) -> Attributes:
    shape, axes = operator.shape(0), operator.integers(1)
    if len(axes) != 1 or not -len(shape) <= axes[0] < len(shape):
        operator.damaged(f"axis {list(axes)} of {len(shape)} dimensions")
    axis = axes[0] % len(shape)
    operator.expect_type(operator.options(_options_table(operator.op)).OutputType())
    operator.expect((*shape[:axis], *shape[axis + 1 :]))
    return Reduce((axis,), keep_dims=False)


def write_extremum(graph: Graph, node: Node) -> EncodedOperator:
    (axis,), dtype = attributes_of(node, Reduce).axes, graph.tensors[node.outputs[0]].dtype
    said = {"OutputType": getattr(tflite.TensorType, dtype.upper())}
    return EncodedOperator((*node.inputs, integers(axis)), _options_table(node.op), said)


def _options_table(op: str) -> str:
    return "ArgMaxOptions" if op == "ARG_MAX" else "ArgMinOptions"


# Code ---------------------------------------------------------------------------------------------------------------


def _update(writer: KernelWriter, node: Node, best: tuple[Name, Name], value: Value, number: Operand) -> None:
    """Take a value and its number, lane by lane, where it is better than the best so far."""
    place, most = best
    before, after = (most, value) if node.op == "ARG_MAX" else (value, most)
    writer.add(Assign(place, ChooseLanes("less", before, after, _number(number), place)))
    writer.add(Assign(most, ChooseLanes("less", before, after, value, most)))


def _number(number: Operand) -> Value:
    return Splat(float(number)) if isinstance(number, int) else ZEROS + to_float(number)


def _best(writer: KernelWriter, node: Node, row: int) -> tuple[Name, Name]:
    """The registers of one of the thread's pixels: the numbers of the best slices so far, and the best values."""
    out = node.outputs[0]
    return writer.held(out, row, 0), writer.held(out, row, 1)


def start_extremum(writer: KernelWriter, node: Node) -> None:
    for row in writer.rows:
        place, most = _best(writer, node, row)
        writer.add(Declare(place, ZEROS))
        writer.add(Declare(most, Splat(EXTREMA[node.op].worst)))


def take_slice(writer: KernelWriter, node: Node, at: Slice) -> None:
    """Compare one slice, lane by lane; lanes past the last channel never win."""
    channels = writer.shape(node.inputs[0]).channels
    for row, value in zip(writer.rows, writer.value(node.inputs[0], at), strict=True):
        (compared,) = writer.declare([writer.lanes_or(value, channels, at, EXTREMA[node.op].worst)])
        _update(writer, node, _best(writer, node, row), compared, at.at)


def best_of_lanes(writer: KernelWriter, node: Node) -> None:
    """The first channel that has the best value of all lanes."""
    kind = EXTREMA[node.op]
    for row in writer.rows:
        place, most = _best(writer, node, row)
        (best,) = writer.declare([AcrossLanes(kind.operation, most)])
        channels = place * 4.0 + Vector((0.0, 1.0, 2.0, 3.0))
        found = writer.declare([ChooseLanes(kind.best_is, most, Vector((best,) * 4), channels, Splat(math.inf))])[0]
        writer.add(Assign(place, Vector((AcrossLanes("minimum", found), 0.0, 0.0, 0.0))))


def best_of_pixels(writer: KernelWriter, node: Node, at: Slice) -> Sequence[Value]:
    """One slice of the positions along rows, columns or a batch."""
    places = writer.declare([ZEROS for _ in writer.rows], "m")
    values = writer.declare([Splat(EXTREMA[node.op].worst) for _ in writer.rows], "m")
    for row, best in enumerate(zip(places, values, strict=True)):
        with loops_over_pixels(writer, node, at, row) as (value, names):
            _update(writer, node, best, value, names[0])
    return places


def _fits(graph: Graph, node: Node) -> bool:
    return reduces_channels(graph, node) or reduces_pixels(graph, node)


def _text_taps(graph: Graph, node: Node) -> int:
    """Statements for a pixel."""
    return 7


def _greatest_at(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    (axis,), x = attributes_of(node, Reduce).axes, values[0]
    return _first_greatest(x, axis).astype(output.dtype)


def _least_at(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    (axis,), x = attributes_of(node, Reduce).axes, values[0]
    return _first_greatest(-x if x.dtype.kind == "f" else np.invert(x), axis).astype(output.dtype)


def _first_greatest(x: Values, axis: int) -> Values:
    """Nothing is greater than NaN in the first place, and NaN elsewhere is greater than nothing."""
    if x.dtype.kind == "f":
        first = np.arange(x.shape[axis]).reshape(-1, *(1,) * (x.ndim - 1 - axis)) == 0
        x = np.where(np.isnan(x), np.where(first, np.inf, -np.inf), x)
    return np.asarray(np.argmax(x, axis))


def positions(graph: Graph, node: Node, inputs: Sequence[WholeRange]) -> WholeRange:
    """Positions along some dimension of the input."""
    return Steps(0, max(0, max(graph.tensors[node.inputs[0]].shape, default=1) - 1))


_EMISSION = Emission(stream=best_of_pixels, start=start_extremum, accumulate=take_slice, finish=best_of_lanes)

RECORDS = tuple(
    OpRecord(
        name,
        "reduction",
        FileForm(
            read_extremum,
            write_extremum,
            count=(2, 2),
            dtypes=NUMBERS,
            out_dtypes=POSITION_TYPES,
            struct=OptionsStruct(table, "OutputType:t"),
        ),
        Example(out=(1, 8, 8), out_dtype="int32", attributes=Reduce((3,))),
        emission=_EMISSION,
        fits=_fits,
        pixelwise=reduces_channels,
        text_taps=_text_taps,
        evaluate=evaluate,
        agrees=reduces_shape,
        ranges=(positions,),
    )
    for name, table, evaluate in (("ARG_MAX", "ArgMaxOptions", _greatest_at), ("ARG_MIN", "ArgMinOptions", _least_at))
)
