"""Normalizations such as SOFTMAX: file form; a pass makes reductions, a matrix and arithmetic of them.

SOFTMAX, LOG_SOFTMAX, L2_NORMALIZATION, LOCAL_RESPONSE_NORMALIZATION, and MEAN_STDDEV_NORMALIZATION, which no file has:
passes make it where a layer is normalized.
"""

import math
from dataclasses import dataclass

from ..model.graph import Attributes, Graph, Node, Softmax
from ..model.operators import EncodedOperator, Operator, attributes_of
from .elementwise import read_plain, write_plain
from .facts import broadcasts
from .record import ACTIVATED_STRUCT, ByteRules, Example, FileForm, OpRecord, OptionsStruct

MOST_NEIGHBORS = 1 << 10  # channels of LOCAL_RESPONSE_NORMALIZATION: what it adds up is a square matrix of them


@dataclass(frozen=True)
class LocalResponse(Attributes):
    """LOCAL_RESPONSE_NORMALIZATION: input (x BHWC); x (bias + alpha * the sum of x^2 over channels around) ^ -beta.

    Those are `radius` channels on both sides: TensorFlow Lite's reference kernel leaves out the last one.
    """

    radius: int = 0
    bias: float = 0.0
    alpha: float = 0.0
    beta: float = 0.0


@dataclass(frozen=True)
class MeanStddev(Attributes):
    """MEAN_STDDEV_NORMALIZATION over the last dimension: input (x,); (x - mean) / sqrt(variance + epsilon)."""

    epsilon: float = 1e-8


def read_local_response(operator: Operator) -> Attributes:
    options, shape = operator.options("LocalResponseNormalizationOptions"), operator.shape(0, rank=4)
    operator.expect(shape)
    factors = [float(value()) for value in (options.Bias, options.Alpha, options.Beta)]
    if options.Radius() < 0 or not all(map(math.isfinite, factors)):
        operator.damaged(f"a radius of {options.Radius()} and factors {factors}")
    if shape[3] > MOST_NEIGHBORS:
        operator.unsupported(f"{shape[3]} channels, {MOST_NEIGHBORS} are allowed")
    return LocalResponse(options.Radius(), *factors)


def write_local_response(graph: Graph, node: Node) -> EncodedOperator:
    local = attributes_of(node, LocalResponse)
    options = {"Radius": local.radius, "Bias": local.bias, "Alpha": local.alpha, "Beta": local.beta}
    return EncodedOperator(node.inputs, "LocalResponseNormalizationOptions", options)


def read_softmax(operator: Operator) -> Attributes:
    operator.expect(operator.shape(0))
    beta = float(operator.options("SoftmaxOptions").Beta())
    if not math.isfinite(beta):
        operator.damaged(f"a beta of {beta}")
    return Softmax(beta)


def write_softmax(graph: Graph, node: Node) -> EncodedOperator:
    return EncodedOperator(node.inputs, "SoftmaxOptions", {"Beta": attributes_of(node, Softmax).beta})


def read_l2_normalization(operator: Operator) -> Attributes:
    if (activation := operator.activation(operator.options("L2NormOptions"))) != "NONE":
        operator.unsupported(f"fused activation {activation}")  # TensorFlow Lite passes over it
    return read_plain(operator)


RECORDS = (
    OpRecord(
        "SOFTMAX",
        "reduction",
        FileForm(read_softmax, write_softmax, struct=OptionsStruct("SoftmaxOptions", "Beta:f")),
        Example(attributes=Softmax()),
        quantized=ByteRules(output=(1 / 256, -128), may_widen=True),
        bounds=(0.0, 1.0),
        agrees=broadcasts,
    ),
    OpRecord(
        "LOG_SOFTMAX",
        "reduction",
        FileForm(read_plain, write_plain),
        quantized=ByteRules(output=(1 / 16, 127)),
        bounds=(-math.inf, 0.0),
        agrees=broadcasts,
    ),
    OpRecord(
        "L2_NORMALIZATION",
        "reduction",
        FileForm(read_l2_normalization, write_plain, struct=OptionsStruct("L2NormOptions", ACTIVATED_STRUCT)),
        quantized=ByteRules(output=(1 / 128, 0)),
        bounds=(-1.0, 1.0),
        agrees=broadcasts,
    ),
    OpRecord(
        "LOCAL_RESPONSE_NORMALIZATION",
        "reduction",
        FileForm(
            read_local_response,
            write_local_response,
            struct=OptionsStruct("LocalResponseNormalizationOptions", "Radius:i Bias:f Alpha:f Beta:f"),
        ),
        Example(attributes=LocalResponse(2, 1.0, 0.5, 0.75)),
    ),
    OpRecord("MEAN_STDDEV_NORMALIZATION", "reduction", example=Example(attributes=MeanStddev())),
)
