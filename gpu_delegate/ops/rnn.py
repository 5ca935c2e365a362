"""RNN, of one step and over time: file forms; a pass makes layers of them."""

from ..model.graph import Attributes, Graph, Node
from ..model.operators import EncodedOperator, Operator
from .record import ACTIVATED_STRUCT, Example, FileForm, OpRecord, OptionsStruct
from .recurrent import (
    OVER_TIME,
    Recurrent,
    batch_over_time,
    check_kept,
    check_shapes,
    recurrent_activation,
    recurrent_bytes,
    recurrent_macs,
    recurrent_options,
    write_over_time,
)

RNN_STATE = 4  # the input that is the last activation; before it x, weights, weights of that, and biases


def read_rnn(operator: Operator) -> Attributes:
    options, (batch, depth) = operator.options("RNNOptions"), operator.shape(0, rank=2)
    operator.expect((batch, _verify(operator, batch, depth)))
    return Recurrent(recurrent_activation(operator, options), options.AsymmetricQuantizeInputs())


def read_rnn_over_time(operator: Operator) -> Attributes:
    options = operator.options(OVER_TIME["UNIDIRECTIONAL_SEQUENCE_RNN"])
    shape, batch = operator.shape(0, rank=3), batch_over_time(operator, options)
    operator.expect((*shape[:2], _verify(operator, batch, shape[2])))
    activation = recurrent_activation(operator, options)
    return Recurrent(activation, options.AsymmetricQuantizeInputs(), options.TimeMajor())


def _verify(operator: Operator, batch: int, depth: int) -> int:
    """Refuse what contradicts itself; how many units there are."""
    units = operator.shape(1, rank=2)[0]
    check_shapes(operator, {1: (units, depth), 2: (units, units), 3: (units,)})
    check_kept(operator, {RNN_STATE: (batch, units)})
    return units


def write_rnn(graph: Graph, node: Node) -> EncodedOperator:
    assert isinstance(node.attributes, Recurrent)
    return EncodedOperator(node.inputs, "RNNOptions", recurrent_options(node.attributes))


_WEIGHTS = ((5, 3), (5, 5), (5,))

RECORDS = (
    OpRecord(
        "RNN",
        "contraction",
        FileForm(
            read_rnn, write_rnn, None, (5, 5), variables=(RNN_STATE,), version=3,
            struct=OptionsStruct("RNNOptions", f"{ACTIVATED_STRUCT} AsymmetricQuantizeInputs:b"),
        ),
        Example(((2, 3),), (2, 5), constants=_WEIGHTS, kept=((2, 5),), attributes=Recurrent()),
        macs=recurrent_macs,
        weight_bytes=recurrent_bytes,
    ),
    OpRecord(
        "UNIDIRECTIONAL_SEQUENCE_RNN",
        "contraction",
        FileForm(
            read_rnn_over_time, write_over_time, None, (5, 5), variables=(RNN_STATE,), version=3,
            struct=OptionsStruct("SequenceRNNOptions", f"TimeMajor:b {ACTIVATED_STRUCT} AsymmetricQuantizeInputs:b"),
        ),
        Example(((4, 2, 3),), (4, 2, 5), constants=_WEIGHTS, kept=((2, 5),), attributes=Recurrent()),
        macs=recurrent_macs,
        weight_bytes=recurrent_bytes,
    ),
)  # fmt: skip
