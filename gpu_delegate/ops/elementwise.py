"""Elementwise ops: options and constants of an operator go in, its GLSL on vec4 operands comes out; a row for each op.

The GLSL functions they call are in shaders/elementwise.glsl, or in the file that the row names. To add an op: a row
here, a function there if no built-in fits, and a row in tests/tables/arithmetic_cases.py.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..model.graph import Activated, Alpha, Attributes, Graph, Node, Shape
from ..model.layout import aligned_channels, shape_of
from ..model.operators import ACTIVATION_CODES, MAX_OPERANDS, EncodedOperator, Operator, attributes_of
from .record import NO_RULES, ONE_SCALE, ByteRules, ConstantTexels, Example, FileForm, OpRecord, no_texels

MOST_BROADCAST = 4  # dimensions; TensorFlow Lite aborts the process where it broadcasts in 5 or 6, depending on the op


def read_plain(operator: Operator) -> Attributes:
    operator.expect(operator.shape(0))
    return Attributes()


def read_densify(operator: Operator) -> Attributes:
    """The reader makes sparse constants dense, so the op changes nothing; the writer leaves it out."""
    operator.expect(operator.shape(0))
    if operator.inputs[0] is None or not operator.inputs[0].is_constant:
        operator.unsupported("an input that is not a constant")
    return Attributes()


def write_plain(graph: Graph, node: Node) -> EncodedOperator:
    return EncodedOperator(node.inputs)


def read_leaky_relu(operator: Operator) -> Attributes:
    operator.expect(operator.shape(0))
    alpha = float(operator.options("LeakyReluOptions").Alpha())
    if not math.isfinite(alpha):
        operator.damaged(f"a slope of {alpha}")
    return Alpha(alpha)


def write_leaky_relu(graph: Graph, node: Node) -> EncodedOperator:
    return EncodedOperator(node.inputs, "LeakyReluOptions", {"Alpha": attributes_of(node, Alpha).alpha})


def _leaky_relu(node: Node) -> str:
    return f"max({{0}}, 0.0) + {attributes_of(node, Alpha).alpha!r} * min({{0}}, 0.0)"


@dataclass(frozen=True)
class Gelu(Attributes):
    """GELU: x * P(X <= x), or its approximation with a hyperbolic tangent."""

    approximate: bool = False


def read_gelu(operator: Operator) -> Attributes:
    operator.expect(operator.shape(0))
    return Gelu(bool(operator.options("GeluOptions").Approximate()))


def write_gelu(graph: Graph, node: Node) -> EncodedOperator:
    return EncodedOperator(node.inputs, "GeluOptions", {"Approximate": attributes_of(node, Gelu).approximate})


def _gelu(node: Node) -> str:
    return "gelu_tanh({0})" if attributes_of(node, Gelu).approximate else "gelu({0})"


def broadcast_shape(operator: Operator) -> Shape:
    """The shape that an operator's inputs have together. Raises ModelError, UnsupportedError."""
    shapes = [operator.shape(i) for i in range(len(operator.inputs))]
    listed = " and ".join(str(list(shape)) for shape in shapes)
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        operator.damaged(f"shapes {listed} do not broadcast")
    if len(set(shapes)) > 1 and len(shape) > MOST_BROADCAST:
        operator.unsupported(f"operands of shapes {listed}, repeated in {len(shape)} dimensions")
    return shape


def read_broadcasting(operator: Operator) -> Attributes:
    operator.expect(broadcast_shape(operator))
    return Attributes()


def read_prelu(operator: Operator) -> Attributes:
    shape, alpha = broadcast_shape(operator), operator.shape(1)
    if shape != operator.shape(0):
        operator.damaged(f"slopes of shape {list(alpha)} for an input of shape {list(operator.shape(0))}")
    if _one_for_all(alpha, shape) and not (operator.inputs[1] and operator.inputs[1].is_constant):
        operator.unsupported("one slope for all channels that is computed")
    operator.expect(shape)
    return Attributes()


def write_prelu(graph: Graph, node: Node) -> EncodedOperator:
    """One slope without dimensions, since XNNPACK takes any with dimensions for as many as there are channels."""
    x, alpha = (graph.tensors[i] for i in node.inputs)
    if alpha.data is not None and _one_for_all(alpha.shape, x.shape):
        return EncodedOperator((x.index, alpha.data.reshape(())))
    return EncodedOperator(node.inputs)


def _one_for_all(alpha: Shape, x: Shape) -> bool:
    return len(alpha) > 0 and math.prod(alpha) == 1 and x[-1:] != (1,)


def read_alike(operator: Operator) -> Attributes:
    """Ops that do not broadcast."""
    if len({operator.shape(i) for i in range(len(operator.inputs))}) > 1:
        operator.damaged("its inputs have different shapes")
    return read_plain(operator)


def _sum(node: Node) -> str:
    return " + ".join(f"{{{i}}}" for i in range(len(node.inputs)))


def read_arithmetic(operator: Operator) -> Attributes:
    operator.expect(broadcast_shape(operator))
    return Activated(operator.activation(operator.options(f"{operator.op.capitalize()}Options")))


def write_arithmetic(graph: Graph, node: Node) -> EncodedOperator:
    code = ACTIVATION_CODES[attributes_of(node, Activated).activation]
    return EncodedOperator(node.inputs, f"{node.op.capitalize()}Options", {"FusedActivationFunction": code})


def operand_bytes(graph: Graph, node: Node) -> int:
    """Constant vectors are among a kernel's weights."""
    operands = [graph.tensors[i] for i in node.inputs if graph.tensors[i].is_constant]
    return sum(4 * aligned_channels(shape_of(t).channels) for t in operands if shape_of(t).is_vector)


def with_integers(form: FileForm) -> FileForm:
    """The form of an op that computes integers, too, wherever float32 has them all (passes/exact_integers.py)."""
    return replace(form, dtypes=NUMBERS, out_dtypes=NUMBERS, keeps_type=True)


NUMBERS = ("float32", "int32", "int64")
_PLAIN = FileForm(read_plain, write_plain)
_NUMERIC = with_integers(_PLAIN)
ARITHMETIC = with_integers(FileForm(read_arithmetic, write_arithmetic, (0, 1), (2, 2)))
_FLOATS = FileForm(read_broadcasting, write_plain, (0, 1), (2, 2))
BROADCAST = with_integers(_FLOATS)
_ONE = Example()
PAIR = Example(shapes=((1, 8, 8, 8), (1, 8, 8, 8)))


def elementwise(
    name: str,
    arithmetic: str | Callable[[Node], str],
    file: FileForm | None = _PLAIN,
    example: Example = _ONE,
    short_name: str = "",
    functions: str = "",
    finite: bool = True,
    quantized: ByteRules = NO_RULES,
    constants: Callable[[Node], ConstantTexels] = no_texels,
) -> OpRecord:
    """The record of an elementwise op."""
    return OpRecord(
        name, "elementwise", file, example, short_name=short_name, arithmetic=arithmetic, constants=constants,
        functions=functions, finite=finite, weight_bytes=operand_bytes, quantized=quantized,
    )  # fmt: skip


def _binary(
    name: str, arithmetic: str, form: FileForm = BROADCAST, functions: str = "", finite: bool = True
) -> OpRecord:
    return elementwise(name, arithmetic, form, PAIR, functions=functions, finite=finite)


def _activated(name: str, arithmetic: str, finite: bool = True) -> OpRecord:
    return elementwise(name, arithmetic, ARITHMETIC, replace(PAIR, attributes=Activated()), finite=finite)


# Of an op that is not `finite`, values in padding lanes may become infinite or NaN, and a weight of zero would not
# remove that; so they are set to zero.
RECORDS = (
    elementwise("RELU", "max({0}, 0.0)"),
    elementwise("RELU6", "clamp({0}, 0.0, 6.0)"),
    elementwise("RELU_N1_TO_1", "clamp({0}, -1.0, 1.0)"),
    elementwise("RELU_0_TO_1", "clamp({0}, 0.0, 1.0)"),
    elementwise("LEAKY_RELU", _leaky_relu, FileForm(read_leaky_relu, write_leaky_relu), Example(attributes=Alpha(0.5))),
    elementwise(
        "PRELU",
        "mix({1} * {0}, {0}, greaterThanEqual({0}, vec4(0.0)))",
        FileForm(read_prelu, write_prelu, (0, 1), (2, 2)),
        Example(constants=((1, 1, 8),)),
        finite=False,
    ),
    elementwise("ELU", "mix(exp({0}) - 1.0, {0}, greaterThanEqual({0}, vec4(0.0)))"),
    elementwise("GELU", _gelu, FileForm(read_gelu, write_gelu), Example(attributes=Gelu()), functions="gelu.glsl"),
    elementwise("HARD_SWISH", "hard_swish({0})", short_name="hswish"),
    elementwise("LOGISTIC", "logistic({0})", short_name="sigmoid", quantized=ByteRules(output=(1 / 256, -128))),
    elementwise("TANH", "tanh_exact({0})", quantized=ByteRules(output=(1 / 128, 0))),
    elementwise("ABS", "abs({0})", _NUMERIC),
    elementwise("NEG", "-{0}", _NUMERIC),
    elementwise("SIGN", "sign({0})", _NUMERIC),
    elementwise("CEIL", "ceil({0})"),
    elementwise("FLOOR", "floor({0})"),
    elementwise("ROUND", "roundEven({0})"),
    elementwise("SIN", "sin({0})"),
    elementwise("COS", "cos({0})"),
    elementwise("EXP", "exp({0})", finite=False),
    elementwise("LOG", "log({0})", finite=False),
    elementwise("SQRT", "sqrt({0})", finite=False),
    elementwise("RSQRT", "inversesqrt({0})", finite=False),
    elementwise("SQUARE", "{0} * {0}", finite=False),
    _activated("ADD", "{0} + {1}"),
    _activated("SUB", "{0} - {1}"),
    _activated("MUL", "{0} * {1}", finite=False),
    elementwise("ADD_N", _sum, with_integers(FileForm(read_alike, write_plain, None, (2, MAX_OPERANDS))), PAIR),
    elementwise("MAXIMUM", "max({0}, {1})", BROADCAST, PAIR, quantized=ONE_SCALE),
    elementwise("MINIMUM", "min({0}, {1})", BROADCAST, PAIR, quantized=ONE_SCALE),
    _binary("SQUARED_DIFFERENCE", "({0} - {1}) * ({0} - {1})", finite=False),
    _binary("POW", "power({0}, {1})", _FLOATS, "power.glsl", finite=False),
    elementwise(
        "ATAN2", "atan2({0}, {1})", FileForm(read_alike, write_plain, (0, 1), (2, 2)), PAIR, functions="atan2.glsl"
    ),
    OpRecord(  # of bytes, which a pass makes a product
        "QUANTIZE",
        "elementwise",
        FileForm(read_plain, write_plain),
        Example(out_dtype="int8"),
        arithmetic="{0}",
        quantized=ByteRules(one_type=False),
    ),
    OpRecord(  # of halves that are constant, which a pass folds; of bytes as QUANTIZE
        "DEQUANTIZE",
        "elementwise",
        FileForm(read_plain, write_plain, dtypes=("float16",), version=3),
        Example(shapes=(), constants=((1, 8, 8, 8),), dtype="float16"),
        arithmetic="{0}",
    ),
    OpRecord(  # the same
        "DENSIFY",
        "elementwise",
        FileForm(read_densify, write_plain, dtypes=(), out_dtypes=()),
        Example(shapes=(), constants=((1, 8, 8, 8),)),
        arithmetic="{0}",
    ),
)
