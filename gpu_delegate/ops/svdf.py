"""SVDF, a layer over what its filters have found in the last steps: file form; a pass makes arithmetic of it."""

from ..model.graph import Attributes, Graph, Node
from ..model.operators import EncodedOperator, Operator, attributes_of
from .record import ACTIVATED_STRUCT, ByteRules, Example, FileForm, OpRecord, OptionsStruct
from .recurrent import (
    Recurrent,
    check_kept,
    check_shapes,
    recurrent_activation,
    recurrent_bytes,
    recurrent_macs,
    recurrent_options,
)

FOUND = 4  # the input that it keeps: what each filter has found in each of the last steps, for each row


def read_svdf(operator: Operator) -> Attributes:
    """Inputs (x, filters, weights over time, biases or none, what was found); a unit has filters by its rank."""
    options = operator.options("SVDFOptions")
    (batch, depth), (filters, steps), rank = operator.shape(0, 2), operator.shape(2, 2), options.Rank()
    if rank < 1 or filters % rank:
        operator.damaged(f"{filters} filters for units of rank {rank}")
    check_shapes(operator, {1: (filters, depth)})
    operator.check_bias(3, filters // rank)
    check_kept(operator, {FOUND: (batch, filters * steps)})
    operator.expect((batch, filters // rank))
    return Recurrent(recurrent_activation(operator, options), options.AsymmetricQuantizeInputs())


def write_svdf(graph: Graph, node: Node) -> EncodedOperator:
    filters, units = graph.tensors[node.inputs[2]].shape[0], graph.tensors[node.outputs[0]].shape[1]
    options = recurrent_options(attributes_of(node, Recurrent)) | {"Rank": filters // units}
    return EncodedOperator(node.inputs, "SVDFOptions", options)


RECORDS = (
    OpRecord(
        "SVDF",
        "contraction",
        FileForm(
            read_svdf, write_svdf, None, (1, 5), variables=(FOUND,), version=4,
            struct=OptionsStruct("SVDFOptions", f"Rank:i {ACTIVATED_STRUCT} AsymmetricQuantizeInputs:b"),
        ),
        Example(
            ((2, 3),), (2, 4), constants=((8, 3), (8, 5), (4,)), kept=((2, 40),), attributes=Recurrent("NONE")
        ),
        macs=recurrent_macs,
        weight_bytes=recurrent_bytes,
        quantized=ByteRules(one_type=False),
    ),
)  # fmt: skip
