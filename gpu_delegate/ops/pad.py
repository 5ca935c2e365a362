"""PAD, PADV2 and MIRROR_PAD: file form, and where their values come from."""

import math
from collections.abc import Sequence

import numpy as np
import tflite

from ..code.evaluate import Values
from ..model.graph import Attributes, Graph, MirrorPad, Node, Pad, Shape, Tensor
from ..model.operators import MAX_STRIDE, EncodedOperator, Operator, attributes_of
from .facts import expect_count
from .movement import MOVE, of_any_type, shape_in, within
from .record import Coordinates, Example, FileForm, Movement, OpRecord, OptionsStruct, Origin

Amounts = tuple[tuple[int, int], ...]  # (before, after) of each dimension


def _read_amounts(operator: Operator, shape: Shape) -> Amounts:
    flat = operator.integers(1)
    if len(flat) != 2 * len(shape) or any(not 0 <= amount <= MAX_STRIDE for amount in flat):
        operator.damaged(f"paddings {list(flat)} of {len(shape)} dimensions")
    amounts = tuple(zip(flat[::2], flat[1::2], strict=True))
    operator.expect(tuple(before + size + after for size, (before, after) in zip(shape, amounts, strict=True)))
    return amounts


def read_pad(operator: Operator) -> Attributes:
    amounts = _read_amounts(operator, operator.shape(0))
    return Pad(amounts, _pad_value(operator) if operator.op == "PADV2" else 0.0)


def _pad_value(operator: Operator) -> float:
    value = operator.inputs[2]
    if value is None or value.data is None or value.data.size != 1:
        operator.unsupported("a padding value that is not one constant")
    if value.dtype != operator.outputs[0].dtype:
        operator.damaged(f"a padding value of type {value.dtype}")
    meaning, wanted = value.quantization, operator.outputs[0].quantization
    if wanted and (meaning is None or (meaning.scales, meaning.zero_points) != (wanted.scales, wanted.zero_points)):
        operator.unsupported("a padding value in another scale than the output's")
    return float(value.data.ravel()[0])


def write_pad(graph: Graph, node: Node) -> EncodedOperator:
    pad = attributes_of(node, Pad)
    value = (np.array(pad.value, graph.tensors[node.inputs[0]].dtype),) if node.op == "PADV2" else ()
    return EncodedOperator((*node.inputs, np.array(pad.amounts, np.int32), *value))


def read_mirror_pad(operator: Operator) -> Attributes:
    shape = operator.shape(0)
    amounts = _read_amounts(operator, shape)
    mode = operator.options("MirrorPadOptions").Mode()
    if mode not in (tflite.MirrorPadMode.REFLECT, tflite.MirrorPadMode.SYMMETRIC):
        operator.damaged(f"mode {mode} is neither REFLECT nor SYMMETRIC")
    symmetric = mode == tflite.MirrorPadMode.SYMMETRIC
    most = [size - (not symmetric) for size in shape]
    if any(max(pair) > limit for pair, limit in zip(amounts, most, strict=True)):
        operator.damaged(f"paddings {[list(pair) for pair in amounts]} mirror more than {list(shape)} has")
    return MirrorPad(amounts, symmetric)


def write_mirror_pad(graph: Graph, node: Node) -> EncodedOperator:
    pad = attributes_of(node, MirrorPad)
    mode = tflite.MirrorPadMode.SYMMETRIC if pad.symmetric else tflite.MirrorPadMode.REFLECT
    return EncodedOperator((*node.inputs, np.array(pad.amounts, np.int32)), "MirrorPadOptions", {"Mode": mode})


def _padded(graph: Graph, node: Node, at: Coordinates) -> tuple[Origin, ...]:
    amounts = attributes_of(node, Pad).amounts
    shifted = [index.plus(-before) for index, (before, _) in zip(at, amounts, strict=True)]
    return within(shifted, shape_in(graph, node))


def _mirrored(graph: Graph, node: Node, at: Coordinates) -> tuple[Origin, ...]:
    pad = attributes_of(node, MirrorPad)
    b, y, x, c = (
        index.plus(-before).mirrored(size, pad.symmetric)
        for index, (before, _), size in zip(at, pad.amounts, shape_in(graph, node), strict=True)
    )
    return (Origin(0, (b, y, x, c)),)


def _fill(node: Node) -> float:
    return attributes_of(node, Pad).value


def _zeros_after(graph: Graph, node: Node) -> bool:
    """Whether slices stay together: lanes behind the last channel hold zeros, as padding with zeros does."""
    pad = attributes_of(node, Pad)
    before, after = pad.amounts[3]
    return before % 4 == 0 and (not after or pad.value == 0.0 or shape_in(graph, node)[3] % 4 == 0)


def _pads_no_channel(graph: Graph, node: Node) -> bool:
    return attributes_of(node, Pad).amounts[-1] == (0, 0)


def _mirrors_no_channel(graph: Graph, node: Node) -> bool:
    return attributes_of(node, MirrorPad).amounts[3] == (0, 0)


def _pad_values(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    pad = attributes_of(node, Pad)
    _expect_padded(values[0].shape, pad.amounts, output)
    return np.pad(values[0], pad.amounts, constant_values=pad.value)


def _mirror_values(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    pad = attributes_of(node, MirrorPad)
    _expect_padded(values[0].shape, pad.amounts, output)
    return np.pad(values[0], pad.amounts, mode="symmetric" if pad.symmetric else "reflect")


def _expect_padded(shape: Shape, amounts: tuple[tuple[int, int], ...], output: Tensor) -> None:
    expect_count(math.prod(before + n + after for n, (before, after) in zip(shape, amounts, strict=True)), output)


def _grows(node: Node, inputs: list[Shape], output: Shape) -> bool:
    pad = node.attributes
    assert isinstance(pad, Pad | MirrorPad)
    return output == tuple(before + n + after for n, (before, after) in zip(inputs[0], pad.amounts, strict=True))


_AROUND = ((0, 0), (1, 1), (1, 1), (0, 0))
_ZEROS = Movement(_padded, _zeros_after, fill=_fill)

RECORDS = (
    OpRecord(
        "PAD",
        "movement",
        of_any_type(FileForm(read_pad, write_pad, count=(2, 2))),
        Example(out=(1, 10, 10, 8), attributes=Pad(_AROUND)),
        emission=MOVE,
        movement=_ZEROS,
        evaluate=_pad_values,
        channels_stay=_pads_no_channel,
        agrees=_grows,
    ),
    OpRecord(
        "PADV2",
        "movement",
        of_any_type(FileForm(read_pad, write_pad, count=(3, 3))),
        Example(out=(1, 10, 10, 8), attributes=Pad(_AROUND, 1.0)),
        emission=MOVE,
        movement=_ZEROS,
        evaluate=_pad_values,
        channels_stay=_pads_no_channel,
        agrees=_grows,
    ),
    OpRecord(
        "MIRROR_PAD",
        "movement",
        of_any_type(
            FileForm(
                read_mirror_pad, write_mirror_pad, count=(2, 2), struct=OptionsStruct("MirrorPadOptions", "Mode:e")
            )
        ),
        Example(out=(1, 10, 10, 8), attributes=MirrorPad(_AROUND)),
        emission=MOVE,
        movement=Movement(_mirrored, _mirrors_no_channel),
        evaluate=_mirror_values,
        agrees=_grows,
    ),
)
