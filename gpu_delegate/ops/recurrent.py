"""What layers have in common that keep from run to run what they gave last: options, checks of shapes, counts."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ..model.graph import ABSENT, Attributes, Graph, Node, Shape
from ..model.layout import aligned_channels
from ..model.operators import ACTIVATION_CODES, ACTIVATIONS, EncodedOperator, Operator

MOST_STEPS = 256  # over time, which are written out one by one
OVER_TIME: Mapping[str, str] = MappingProxyType(  # the schema's classes of options
    {
        "UNIDIRECTIONAL_SEQUENCE_LSTM": "UnidirectionalSequenceLSTMOptions",
        "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
    }
)


@dataclass(frozen=True)
class Recurrent(Attributes):
    """RNN, LSTM in its full form, both over time, and SVDF."""

    activation: str = "TANH"  # any of ACTIVATIONS
    is_asymmetric: bool = False  # how TensorFlow Lite rounds inputs, if its weights are int8
    time_major: bool = True  # dimensions of what goes over time: (time, batch, depth), or the batch first


@dataclass(frozen=True)
class LongShortTerm(Recurrent):
    """LSTM in its full form, and over time."""

    cell_clip: float = 0.0  # the greatest magnitude of a cell, 0 for none
    projection_clip: float = 0.0  # of what a projection gives


def recurrent_activation(operator: Operator, options: Any) -> str:
    """The fused activation, which these kernels heed whichever it is."""
    code = options.FusedActivationFunction()
    if code not in ACTIVATIONS:
        operator.unsupported(f"fused activation {code}")
    return ACTIVATIONS[code]


def batch_over_time(operator: Operator, options: Any) -> int:
    """The batch of an input that goes over time; UnsupportedError for too many steps."""
    batch, steps, _ = operator.shape(0, rank=3)
    if options.TimeMajor():
        batch, steps = steps, batch
    if steps > MOST_STEPS:
        operator.unsupported(f"{steps} steps over time, at most {MOST_STEPS} are written out")
    return batch


def check_shapes(operator: Operator, wanted: Mapping[int, Shape]) -> None:
    """ModelError unless inputs, none of which changes, have these shapes."""
    for position, shape in wanted.items():
        if (tensor := operator.inputs[position]) is not None and tensor.is_variable:
            operator.unsupported(f"input {position} is a variable, which it does not keep")
        if operator.shape(position) != shape:
            operator.damaged(f"input {position} is {list(operator.shape(position))}, not {list(shape)}")


def check_kept(operator: Operator, wanted: Mapping[int, Shape]) -> None:
    """ModelError unless inputs are variables of as many values as such shapes have: the shapes are left to files."""
    for position, shape in wanted.items():
        found = operator.shape(position)
        tensor = operator.inputs[position]
        if tensor is None or not tensor.is_variable:
            operator.damaged(f"input {position}, which it keeps, is no variable")
        if math.prod(found) != math.prod(shape):
            operator.damaged(f"input {position}, which it keeps, is {list(found)}, not {list(shape)}")


def recurrent_options(attributes: Recurrent) -> dict[str, Any]:
    """Of a file."""
    found: dict[str, Any] = {
        "FusedActivationFunction": ACTIVATION_CODES[attributes.activation],
        "AsymmetricQuantizeInputs": attributes.is_asymmetric,
    }
    if isinstance(attributes, LongShortTerm):
        found |= {"CellClip": attributes.cell_clip, "ProjClip": attributes.projection_clip}
    return found


def write_over_time(graph: Graph, node: Node) -> EncodedOperator:
    """Of an op in OVER_TIME."""
    assert isinstance(node.attributes, Recurrent)
    options = recurrent_options(node.attributes) | {"TimeMajor": node.attributes.time_major}
    return EncodedOperator(node.inputs, OVER_TIME[node.op], options)


def _weights(graph: Graph, node: Node) -> Iterator[Shape]:
    """The shapes of constants of two dimensions."""
    for index in node.inputs[1:]:
        if index != ABSENT and graph.tensors[index].is_constant and len(graph.tensors[index].shape) == 2:
            yield graph.tensors[index].shape


def recurrent_macs(graph: Graph, node: Node) -> int:
    """A multiply-accumulate for each weight and each row."""
    rows = math.prod(graph.tensors[node.inputs[0]].shape[:-1])
    return rows * sum(map(math.prod, _weights(graph, node)))


def recurrent_bytes(graph: Graph, node: Node) -> int:
    """Of weights."""
    return sum(4 * math.prod(map(aligned_channels, shape)) for shape in _weights(graph, node))
