"""TOPK_V2, the greatest values along the last dimension and their positions: file form and kernel code.

A pass makes two ops of it, one for each output. Each pixel's values are a sorted list in registers, into which the
channels are put one by one, all places of the list at once. Of equal values the first one comes first.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..code.expressions import Slice
from ..code.kernel_writer import KernelWriter
from ..code.vocabulary import ZEROS, Assign, ChooseLanes, Declare, Lane, Name, Operation, Splat, Value, Vector, to_float
from ..model.graph import Attributes, Graph, Node
from ..model.layout import ceil_div, shape_of
from ..model.operators import EncodedOperator, Operator, attributes_of, integers
from .elementwise import NUMBERS
from .extremum import positions
from .facts import first_range
from .record import ONE_SCALE, Emission, Example, FileForm, OpRecord, RangeRule, always

MOST_TOP = 64  # values that a list in registers may have
LEAST_FLOAT = Splat(-3.4028234663852886e38)
VALUES, INDICES = "TOPK_VALUES", "TOPK_INDICES"


@dataclass(frozen=True)
class Top(Attributes):
    """TOPK_V2 and its halves: input (x,); how many values of the last dimension."""

    count: int = 1


def read_top(operator: Operator) -> Attributes:
    shape, counts = operator.shape(0), operator.integers(1)
    if len(counts) != 1 or not shape or not 1 <= counts[0] <= shape[-1]:
        operator.damaged(f"the greatest {list(counts)} values of shape {list(shape)}")
    operator.expect(*[(*shape[:-1], counts[0])] * 2)
    values, places = operator.outputs
    if operator.inputs[0] is not None and values.dtype != operator.inputs[0].dtype:
        operator.damaged(f"values of type {values.dtype} of {operator.inputs[0].dtype}")
    if places.dtype != "int32":
        operator.unsupported(f"positions of type {places.dtype}")
    if counts[0] > MOST_TOP:
        operator.unsupported(f"the greatest {counts[0]} values, {MOST_TOP} are allowed")
    return Top(counts[0])


def write_top(graph: Graph, node: Node) -> EncodedOperator:
    return EncodedOperator((*node.inputs, integers(attributes_of(node, Top).count)), "TopKV2Options")


# Code ---------------------------------------------------------------------------------------------------------------


def _lists(writer: KernelWriter, node: Node, row: int) -> tuple[list[Name], list[Name]]:
    """The registers of one of the thread's pixels: values, greatest first, and where they are; behind the output's
    slices those that the other half has as its output."""
    out = node.outputs[0]
    count = writer.shape(out).slices
    own, others = ([writer.held(out, row, first + k) for k in range(count)] for first in (0, count))
    return (own, []) if node.op == VALUES else (others, own)


def start_lists(writer: KernelWriter, node: Node) -> None:
    for row in writer.rows:
        values, places = _lists(writer, node, row)
        for register in values:
            writer.add(Declare(register, Splat(-math.inf)))
        for register in places:
            writer.add(Declare(register, ZEROS))


def put_slice(writer: KernelWriter, node: Node, at: Slice) -> None:
    """Put one slice's channels into the lists; lanes past the last channel are as little as places that are free."""
    channels = writer.shape(node.inputs[0]).channels
    for row, value in zip(writer.rows, writer.value(node.inputs[0], at), strict=True):
        values, places = _lists(writer, node, row)
        taken = Operation("maximum", (value, LEAST_FLOAT)) if places else value  # negative infinity has a place, too
        (taken,) = writer.declare([writer.lanes_or(taken, channels, at, -math.inf)])
        for lane in range(min(4, channels)):
            (each,) = writer.declare([Vector((Lane(taken, lane),) * 4)])
            _put(writer, values, places, each, _channel(at, lane))


def _channel(at: Slice, lane: int) -> Value:
    """The number of a channel, in all lanes."""
    if isinstance(at.at, int):
        return Splat(4.0 * at.at + lane)
    return ZEROS + (to_float(at.at) * 4.0 + float(lane))


def _put(writer: KernelWriter, values: list[Name], places: list[Name], value: Name, where: Value) -> None:
    """Put a value into a list, from its end on: what is less moves on by one place."""
    for k in reversed(range(len(values))):
        (before,) = writer.declare([_moved_on(values, k, math.inf)])
        if places:
            moved = ChooseLanes("at least", before, value, where, _moved_on(places, k, 0.0))
            writer.add(Assign(places[k], ChooseLanes("at least", values[k], value, places[k], moved)))
        writer.add(Assign(values[k], Operation("maximum", (values[k], Operation("minimum", (before, value))))))


def _moved_on(registers: Sequence[Name], k: int, first: float) -> Vector:
    """What stands one place before that of each lane of a register; `first` before all."""
    carried = Lane(registers[k - 1], 3) if k else first
    return Vector((carried, *(Lane(registers[k], lane) for lane in range(3))))


def finish_lists(writer: KernelWriter, node: Node) -> None:
    """Zeros behind the last place."""
    channels = writer.shape(node.outputs[0]).channels
    for row in writer.rows:
        values, places = _lists(writer, node, row)
        last, at = (places or values)[-1], Slice(len(values) - 1)
        if channels % 4:
            writer.add(Assign(last, writer.masked(last, channels, at)))


def _text_taps(graph: Graph, node: Node) -> int:
    """Statements for one slice."""
    return 4 * (2 if node.op == VALUES else 4) * ceil_div(shape_of(graph.tensors[node.outputs[0]]).channels, 4)


def _half(name: str, ranges: RangeRule) -> OpRecord:
    return OpRecord(
        name,
        "reduction",
        example=Example(out=(1, 8, 8, 3), attributes=Top(3)),
        emission=Emission(start=start_lists, accumulate=put_slice, finish=finish_lists),
        pixelwise=always,
        text_taps=_text_taps,
        ranges=(ranges,),
    )


RECORDS = (
    OpRecord(
        "TOPK_V2",
        "reduction",
        FileForm(read_top, write_top, count=(2, 2), outputs=(2, 2), dtypes=NUMBERS, out_dtypes=NUMBERS),
        Example(out=(1, 8, 8, 3), others=((1, 8, 8, 3),), others_dtype="int32", attributes=Top(3)),
        quantized=ONE_SCALE,
        ranges=(first_range, positions),
        chooses=True,
    ),
    _half(VALUES, first_range),
    _half(INDICES, positions),
)
