"""LSTM in its basic form, whose states are inputs and outputs: file form; a pass makes layers and arithmetic of it."""

import math

import tflite

from ..model.graph import Attributes, Graph, Node
from ..model.layout import aligned_channels
from ..model.operators import ACTIVATION_CODES, EncodedOperator, Operator
from .record import ACTIVATED_STRUCT, Example, FileForm, OpRecord, OptionsStruct

GATES = 4  # in the order of the weights' rows: of the input, the new value, of forgetting, of the output
STATES = (1, 4)  # inputs: the last activation and the last state


def read_lstm(operator: Operator) -> Attributes:
    """Inputs (x, last activation, weights, bias, last state), outputs (activation, state, both inputs, gates)."""
    options = operator.options("LSTMOptions")
    if options.KernelType() != tflite.LSTMKernelType.BASIC:
        operator.unsupported("its states stay in TensorFlow Lite from run to run")
    if len(operator.inputs) != 5 or None in operator.inputs or len(operator.outputs) != 4:
        operator.damaged(f"{len(operator.inputs)} inputs and {len(operator.outputs)} outputs instead of 5 and 4")
    if options.FusedActivationFunction() != ACTIVATION_CODES["TANH"] or options.CellClip() or options.ProjClip():
        operator.unsupported("an activation other than TANH, or limits")
    shapes = [operator.shape(position) for position in range(5)]
    if any(len(shapes[position]) != 2 for position in (0, 1, 2, 4)):
        operator.unsupported(f"inputs of shapes {', '.join(str(list(shape)) for shape in shapes)}")
    for position in STATES:
        tensor = operator.inputs[position]
        if tensor is not None and tensor.is_constant:  # TensorFlow Lite writes the new one there
            operator.unsupported(f"input {position}, a state, is a constant")
    (batch, depth), (rows, units), weights, _, state = shapes
    if rows != batch or state != (batch, units) or weights != (GATES * units, depth + units):
        operator.damaged(f"inputs of shapes {', '.join(str(list(shape)) for shape in shapes)}")
    operator.check_bias(3, GATES * units)
    operator.expect((batch, units), (batch, units), (batch, depth + units), (batch, GATES * units))
    return Attributes()


def write_lstm(graph: Graph, node: Node) -> EncodedOperator:
    options = {"KernelType": tflite.LSTMKernelType.BASIC, "FusedActivationFunction": ACTIVATION_CODES["TANH"]}
    return EncodedOperator(node.inputs, "LSTMOptions", options)


def _lstm_macs(graph: Graph, node: Node) -> int:
    """A multiply-accumulate for each weight and each row."""
    return math.prod(graph.tensors[node.inputs[2]].shape) * graph.tensors[node.inputs[0]].shape[0]


def _lstm_bytes(graph: Graph, node: Node) -> int:
    weights = graph.tensors[node.inputs[2]]
    return 4 * math.prod(map(aligned_channels, weights.shape)) if weights.is_constant else 0


RECORDS = (
    OpRecord(
        "LSTM",
        "contraction",
        FileForm(
            read_lstm,
            write_lstm,
            (0, 1, 2, 3, 4),
            (1, 24),
            (1, 4),
            version=2,
            struct=OptionsStruct("LSTMOptions", f"{ACTIVATED_STRUCT} CellClip:f ProjClip:f KernelType:i"),
        ),
        Example(
            shapes=((2, 3), (2, 5), (20, 8), (20,), (2, 5)),
            out=(2, 5),
            others=((2, 5), (2, 8), (2, 20)),
        ),
        macs=_lstm_macs,
        weight_bytes=_lstm_bytes,
    ),
)
