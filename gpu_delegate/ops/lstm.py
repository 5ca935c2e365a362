"""LSTM in both its forms, and over time: file forms; passes make layers and arithmetic of them."""

import math
from typing import Any

import tflite

from ..model.graph import Attributes, Graph, Node, Shape
from ..model.layout import aligned_channels
from ..model.operators import ACTIVATION_CODES, EncodedOperator, Operator
from .record import ACTIVATED_STRUCT, Example, FileForm, OpRecord, OptionsStruct
from .recurrent import (
    LongShortTerm,
    batch_over_time,
    check_kept,
    check_shapes,
    recurrent_activation,
    recurrent_bytes,
    recurrent_macs,
    recurrent_options,
    write_over_time,
)

GATES = 4
BASIC_STATES = (1, 4)  # inputs: the last activation and the last cell, of which others are outputs
# Inputs of the full form, and over time: the first of each kind, of which each gate has one, in this order: of the
# input, of forgetting, of the new value, of the output. Peepholes have no new value.
INPUT_WEIGHTS, LAST_WEIGHTS, PEEPHOLES, BIASES, NORMS = 1, 5, 9, 12, 20
PROJECTION, PROJECTION_BIAS, LAST_ACTIVATION, LAST_CELL = 16, 17, 18, 19
NEW = 2  # the gate that is a value
FULL_INPUTS = (20, 24)  # without normalization and with it


def peephole_of(gate: int) -> int:
    """The input that has a gate's peephole."""
    return PEEPHOLES + min(gate, NEW)


def read_lstm(operator: Operator) -> Attributes:
    options = operator.options("LSTMOptions")
    if options.KernelType() == tflite.LSTMKernelType.BASIC:
        return _read_basic(operator, options)
    batch, depth = operator.shape(0, rank=2)
    operator.expect((batch, _verify_full(operator, batch, depth)))
    return _full_attributes(operator, options)


def _read_basic(operator: Operator, options: Any) -> Attributes:
    """Inputs (x, last activation, weights, bias, last cell), outputs (activation, cell, both inputs, gates)."""
    if len(operator.inputs) != 5 or None in operator.inputs or len(operator.outputs) != 4:
        operator.damaged(f"{len(operator.inputs)} inputs and {len(operator.outputs)} outputs instead of 5 and 4")
    if options.FusedActivationFunction() != ACTIVATION_CODES["TANH"] or options.CellClip() or options.ProjClip():
        operator.unsupported("an activation other than TANH, or limits")
    shapes = [operator.shape(position) for position in range(5)]
    if any(len(shapes[position]) != 2 for position in (0, 1, 2, 4)):
        operator.unsupported(f"inputs of shapes {', '.join(str(list(shape)) for shape in shapes)}")
    for position in BASIC_STATES:
        tensor = operator.inputs[position]
        if tensor is not None and tensor.is_constant:  # TensorFlow Lite writes the new one there
            operator.unsupported(f"input {position}, a state, is a constant")
    if len({tensor.is_variable for k, tensor in enumerate(operator.inputs) if tensor and k in BASIC_STATES}) > 1:
        operator.unsupported("it keeps one state, and not the other")
    (batch, depth), (rows, units), weights, _, state = shapes
    if rows != batch or state != (batch, units) or weights != (GATES * units, depth + units):
        operator.damaged(f"inputs of shapes {', '.join(str(list(shape)) for shape in shapes)}")
    operator.check_bias(3, GATES * units)
    operator.expect((batch, units), (batch, units), (batch, depth + units), (batch, GATES * units))
    return Attributes()


def read_lstm_over_time(operator: Operator) -> Attributes:
    options = operator.options("UnidirectionalSequenceLSTMOptions")
    if getattr(options, "DiagonalRecurrentTensors", bool)():
        operator.unsupported("weights that are diagonals")
    shape, batch = operator.shape(0, rank=3), batch_over_time(operator, options)
    operator.expect((*shape[:2], _verify_full(operator, batch, shape[2])))
    return _full_attributes(operator, options, options.TimeMajor())


def _full_attributes(operator: Operator, options: Any, time_major: bool = True) -> LongShortTerm:
    cell, projection = options.CellClip(), options.ProjClip()
    if not (0 <= cell < math.inf and 0 <= projection < math.inf):
        operator.unsupported(f"limits of {cell:g} and {projection:g}")
    activation = recurrent_activation(operator, options)
    if activation == "NONE":  # with which TensorFlow Lite's kernel multiplies what memory has from before
        operator.unsupported("no activation")
    return LongShortTerm(activation, options.AsymmetricQuantizeInputs(), time_major, cell, projection)


def _verify_full(operator: Operator, batch: int, depth: int) -> int:
    """Refuse what contradicts itself; how many values an activation has."""
    if len(operator.inputs) not in FULL_INPUTS or len(operator.outputs) != 1:
        operator.damaged(f"{len(operator.inputs)} inputs and {len(operator.outputs)} outputs instead of 20 or 24 and 1")
    there = [tensor is not None for tensor in operator.inputs]
    last = GATES - 1
    units, (_, outputs) = operator.shape(INPUT_WEIGHTS + last, 2)[0], operator.shape(LAST_WEIGHTS + last, 2)
    wanted: dict[int, Shape] = {}
    for gate in range(GATES):
        if gate == 0 and not there[INPUT_WEIGHTS]:  # that of forgetting says what is new, too
            continue
        wanted |= {INPUT_WEIGHTS + gate: (units, depth), LAST_WEIGHTS + gate: (units, outputs), BIASES + gate: (units,)}
        if len(there) > NORMS and there[NORMS + last]:
            wanted[NORMS + gate] = (units,)
        if gate != NEW and there[peephole_of(last)]:
            wanted[peephole_of(gate)] = (units,)
    if there[PROJECTION]:
        wanted |= {PROJECTION: (outputs, units)} | ({PROJECTION_BIAS: (outputs,)} if there[PROJECTION_BIAS] else {})
    elif outputs != units:
        operator.damaged(f"{units} units give {outputs} values without a projection")
    check_shapes(operator, wanted)
    kept = {LAST_ACTIVATION: (batch, outputs), LAST_CELL: (batch, units)}
    check_kept(operator, kept)
    if others := {position for position, is_there in enumerate(there) if is_there} - wanted.keys() - kept.keys() - {0}:
        operator.damaged(f"input {min(others)} is there, and others that belong to it are not")
    return outputs


def write_lstm(graph: Graph, node: Node) -> EncodedOperator:
    if isinstance(node.attributes, LongShortTerm):
        return EncodedOperator(node.inputs, "LSTMOptions", recurrent_options(node.attributes))
    options = {"KernelType": tflite.LSTMKernelType.BASIC, "FusedActivationFunction": ACTIVATION_CODES["TANH"]}
    return EncodedOperator(node.inputs, "LSTMOptions", options)


def _lstm_macs(graph: Graph, node: Node) -> int:
    """A multiply-accumulate for each weight and each row."""
    if isinstance(node.attributes, LongShortTerm):
        return recurrent_macs(graph, node)
    return math.prod(graph.tensors[node.inputs[2]].shape) * graph.tensors[node.inputs[0]].shape[0]


def _lstm_bytes(graph: Graph, node: Node) -> int:
    if isinstance(node.attributes, LongShortTerm):
        return recurrent_bytes(graph, node)
    weights = graph.tensors[node.inputs[2]]
    return 4 * math.prod(map(aligned_channels, weights.shape)) if weights.is_constant else 0


_LIMITS = f"{ACTIVATED_STRUCT} CellClip:f ProjClip:f"

RECORDS = (
    OpRecord(
        "LSTM",
        "contraction",
        FileForm(
            read_lstm,
            write_lstm,
            None,
            (1, FULL_INPUTS[-1]),
            (1, 4),
            variables=(*BASIC_STATES, LAST_ACTIVATION, LAST_CELL),
            version=4,
            struct=OptionsStruct("LSTMOptions", f"{_LIMITS} KernelType:i AsymmetricQuantizeInputs:b"),
        ),
        Example(
            shapes=((2, 3), (2, 5), (20, 8), (20,), (2, 5)),
            out=(2, 5),
            others=((2, 5), (2, 8), (2, 20)),
        ),
        macs=_lstm_macs,
        weight_bytes=_lstm_bytes,
    ),
    OpRecord(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "contraction",
        FileForm(
            read_lstm_over_time,
            write_over_time,
            None,
            (1, FULL_INPUTS[-1]),
            variables=(LAST_ACTIVATION, LAST_CELL),
            version=3,
            struct=OptionsStruct(
                "UnidirectionalSequenceLSTMOptions", f"{_LIMITS} TimeMajor:b AsymmetricQuantizeInputs:b"
            ),
        ),
        Example(
            shapes=((4, 2, 3),),
            out=(4, 2, 5),
            constants=(*((6, 3),) * 4, *((6, 5),) * 4, *((6,),) * 7, (5, 6), (5,)),
            kept=((2, 5), (2, 6)),
            attributes=LongShortTerm(),
        ),
        macs=recurrent_macs,
        weight_bytes=recurrent_bytes,
    ),
)
