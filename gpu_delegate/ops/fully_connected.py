"""FULLY_CONNECTED: file form; a pass turns it into a 1x1 convolution."""

import math

import tflite

from ..model.graph import Activated, AsymmetricInputs, Attributes, Graph, Node, Shape
from ..model.operators import ACTIVATION_CODES, EncodedOperator, Operator, attributes_of
from .convolution import convolution_macs, dense_weight_bytes
from .record import ACTIVATED_STRUCT, ByteRules, Example, FileForm, OpRecord, OptionsStruct


def read_fully_connected(operator: Operator) -> Attributes:
    options = operator.options("FullyConnectedOptions")
    if options.WeightsFormat() != tflite.FullyConnectedOptionsWeightsFormat.DEFAULT:
        operator.unsupported("shuffled weights")
    x, (outputs, depth) = operator.shape(0), operator.shape(1, rank=2)
    if math.prod(x) % depth or (options.KeepNumDims() and x[-1:] != (depth,)):
        operator.damaged(f"weights for {depth} channels, input of shape {list(x)}")
    operator.check_bias(2, outputs)
    rows = (math.prod(x) // depth,)
    operator.expect((*(x[:-1] if options.KeepNumDims() else rows), outputs))
    kind = AsymmetricInputs if options.AsymmetricQuantizeInputs() else Activated
    return kind(operator.activation(options))


def write_fully_connected(graph: Graph, node: Node) -> EncodedOperator:
    x, out = (graph.tensors[i].shape for i in (node.inputs[0], node.outputs[0]))
    attributes = attributes_of(node, Activated)
    options = {
        "KeepNumDims": len(x) != 2 and out[:-1] == x[:-1],  # with two dimensions both mean the same
        "FusedActivationFunction": ACTIVATION_CODES[attributes.activation],
        "AsymmetricQuantizeInputs": isinstance(attributes, AsymmetricInputs),
    }
    return EncodedOperator(node.inputs, "FullyConnectedOptions", options)


def _connects(node: Node, inputs: list[Shape], output: Shape) -> bool:
    x, (outputs, depth) = inputs[:2]
    return math.prod(x) // depth * outputs == math.prod(output) and output[-1] == outputs


RECORDS = (
    OpRecord(
        "FULLY_CONNECTED",
        "contraction",
        FileForm(
            read_fully_connected,
            write_fully_connected,
            (0, 1, 2),
            (2, 3),
            version=5,
            struct=OptionsStruct(
                "FullyConnectedOptions", f"{ACTIVATED_STRUCT} WeightsFormat:i KeepNumDims:b AsymmetricQuantizeInputs:b"
            ),
        ),
        Example(shapes=((1, 8),), out=(1, 8), constants=((8, 8), (8,)), attributes=Activated()),
        macs=convolution_macs,
        weight_bytes=dense_weight_bytes,
        quantized=ByteRules(weights=0),
        agrees=_connects,
    ),
)
