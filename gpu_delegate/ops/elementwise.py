"""Elementwise ops: a row for each, with what it computes in the words of gpu_delegate/code/vocabulary.py.

That is all that is said of an op's values: GLSL, the CPU's code, constants that are computed before a run, ranges of
whole numbers, and costs are read from it.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..code.evaluate import Values
from ..code.vocabulary import ZEROS, Arithmetic, ChooseLanes, FunctionWord, Operation, Value, combined, larger, smaller
from ..model.graph import Activated, Alpha, Attributes, Graph, Node, Shape, Tensor
from ..model.layout import aligned_channels, shape_of
from ..model.operators import ACTIVATION_CODES, MAX_OPERANDS, EncodedOperator, Operator, attributes_of
from .facts import reshaped_values
from .record import (
    ACTIVATED_STRUCT,
    NO_RULES,
    ONE_SCALE,
    ByteRules,
    ConstantTexels,
    Evaluation,
    Example,
    FileForm,
    OpRecord,
    OptionsStruct,
    ShapeCheck,
    no_texels,
)

MOST_BROADCAST = 4  # dimensions; TensorFlow Lite aborts the process where it broadcasts in 5 or 6, depending on the op


def read_plain(operator: Operator) -> Attributes:
    operator.expect(operator.shape(0))
    return Attributes()


def read_quantize(operator: Operator) -> Attributes:
    """int32 is made of int16 alone."""
    operator.expect(operator.shape(0))
    (x,), (out,) = operator.inputs, operator.outputs
    assert x is not None, "the reader counts inputs"
    if out.dtype == "int32" and (x.dtype != "int16" or out.quantization is None):
        operator.unsupported(f"from {x.dtype} to int32")
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


def _leaky_relu(attributes: Alpha, x: Value) -> Value:
    return Operation("multiply add", (attributes.alpha, smaller(x, 0.0), larger(x, 0.0)))


@dataclass(frozen=True)
class Gelu(Attributes):
    """GELU: x * P(X <= x), or its approximation with a hyperbolic tangent."""

    approximate: bool = False


def read_gelu(operator: Operator) -> Attributes:
    operator.expect(operator.shape(0))
    return Gelu(bool(operator.options("GeluOptions").Approximate()))


def write_gelu(graph: Graph, node: Node) -> EncodedOperator:
    return EncodedOperator(node.inputs, "GeluOptions", {"Approximate": attributes_of(node, Gelu).approximate})


def _gelu(attributes: Gelu, x: Value) -> Value:
    if attributes.approximate:
        probability = Operation("hyperbolic tangent", ((x + x * 0.044715 * x * x) * 0.7978845608,))
    else:
        probability = Operation("error function", (x * 0.7071067812,))
    half = x * 0.5
    return Operation("multiply add", (half, probability, half))


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


Computation = Callable[..., Value]  # of an op's attributes and operands


def elementwise(
    name: str,
    arithmetic: Computation,
    file: FileForm | None = _PLAIN,
    example: Example = _ONE,
    short_name: str = "",
    finite: bool = True,
    quantized: ByteRules = NO_RULES,
    constants: Callable[[Node], ConstantTexels] = no_texels,
    evaluate: Evaluation | None = None,
    agrees: ShapeCheck | None = None,
    undone_by: tuple[str, ...] = (),
) -> OpRecord:
    """The record of an elementwise op."""
    return OpRecord(
        name, "elementwise", file, example, short_name=short_name, arithmetic=arithmetic, constants=constants,
        finite=finite, weight_bytes=operand_bytes, quantized=quantized, evaluate=evaluate, agrees=agrees,
        undone_by=undone_by,
    )  # fmt: skip


def calls(function: FunctionWord | Arithmetic) -> Computation:
    """The arithmetic of an op that is one word of the vocabulary."""
    return lambda _, *operands: Operation(function, operands)


def unchanged(_: Attributes, x: Value) -> Value:
    """The arithmetic of an op that changes nothing."""
    return x


def _limited(low: float, high: float) -> Computation:
    return lambda _, x: Operation("clamp", (x, low, high))


def _prelu(_: Attributes, x: Value, slope: Value) -> Value:
    return ChooseLanes("at least", x, ZEROS, x, slope * x)


def _elu(_: Attributes, x: Value) -> Value:
    return ChooseLanes("at least", x, ZEROS, x, Operation("exponential less one", (x,)))


def _binary(name: str, arithmetic: Computation, form: FileForm = BROADCAST, finite: bool = True) -> OpRecord:
    return elementwise(name, arithmetic, form, PAIR, finite=finite)


def _activated(name: str, arithmetic: Computation, more: str = "", finite: bool = True) -> OpRecord:
    form = replace(ARITHMETIC, struct=activated_struct(name, more))
    return elementwise(name, arithmetic, form, replace(PAIR, attributes=Activated()), finite=finite)


def activated_struct(name: str, more: str = "") -> OptionsStruct:
    """The options of an op of two inputs with a fused activation."""
    return OptionsStruct(f"{name.capitalize()}Options", f"{ACTIVATED_STRUCT} {more}".rstrip())


def _widened(node: Node, values: Sequence[Values], output: Tensor) -> Values:
    if values[0].dtype != np.float16:
        raise ValueError(f"{values[0].dtype.name} constants need scales")
    return values[0].astype(np.float32)


# Of an op that is not `finite`, values in padding lanes may become infinite or NaN, and a weight of zero would not
# remove that; so they are set to zero.
RECORDS = (
    elementwise("RELU", lambda _, x: larger(x, 0.0)),
    elementwise("RELU6", _limited(0.0, 6.0)),
    elementwise("RELU_N1_TO_1", _limited(-1.0, 1.0)),
    elementwise("RELU_0_TO_1", _limited(0.0, 1.0)),
    elementwise(
        "LEAKY_RELU",
        _leaky_relu,
        FileForm(read_leaky_relu, write_leaky_relu, struct=OptionsStruct("LeakyReluOptions", "Alpha:f")),
        Example(attributes=Alpha(0.5)),
    ),
    elementwise(
        "PRELU",
        _prelu,
        FileForm(read_prelu, write_prelu, (0, 1), (2, 2)),
        Example(constants=((1, 1, 8),)),
        finite=False,
    ),
    elementwise("ELU", _elu),
    elementwise(
        "GELU",
        _gelu,
        FileForm(read_gelu, write_gelu, struct=OptionsStruct("GeluOptions", "Approximate:b")),
        Example(attributes=Gelu()),
    ),
    elementwise("HARD_SWISH", calls("hard swish"), short_name="hswish"),
    elementwise("LOGISTIC", calls("logistic"), short_name="sigmoid", quantized=ByteRules(output=(1 / 256, -128))),
    elementwise("TANH", calls("hyperbolic tangent"), quantized=ByteRules(output=(1 / 128, 0))),
    elementwise("ABS", calls("absolute"), _NUMERIC),
    elementwise("NEG", lambda _, x: -x, _NUMERIC, undone_by=("NEG",)),
    elementwise("SIGN", calls("sign"), _NUMERIC),
    elementwise("CEIL", calls("ceiling")),
    elementwise("FLOOR", calls("floor")),
    elementwise("ROUND", calls("round even")),
    elementwise("SIN", calls("sine")),
    elementwise("COS", calls("cosine")),
    elementwise("EXP", calls("exponential"), finite=False),
    elementwise("LOG", calls("logarithm"), finite=False),
    elementwise("SQRT", calls("square root"), finite=False),
    elementwise("RSQRT", calls("inverse square root"), finite=False),
    elementwise("SQUARE", lambda _, x: x * x, finite=False),
    _activated("ADD", lambda _, x, y: x + y, "PotScaleInt16:b"),
    _activated("SUB", lambda _, x, y: x - y, "PotScaleInt16:b"),
    _activated("MUL", lambda _, x, y: x * y, finite=False),
    elementwise(
        "ADD_N",
        lambda _, *terms: combined("add", terms),
        with_integers(FileForm(read_alike, write_plain, None, (2, MAX_OPERANDS))),
        PAIR,
    ),
    elementwise("MAXIMUM", calls("maximum"), BROADCAST, PAIR, quantized=ONE_SCALE),
    elementwise("MINIMUM", calls("minimum"), BROADCAST, PAIR, quantized=ONE_SCALE),
    _binary("SQUARED_DIFFERENCE", lambda _, x, y: (x - y) * (x - y), finite=False),
    _binary("POW", calls("power"), _FLOATS, finite=False),
    elementwise("ATAN2", calls("angle"), FileForm(read_alike, write_plain, (0, 1), (2, 2)), PAIR),
    OpRecord(  # of bytes, which a pass makes a product
        "QUANTIZE",
        "elementwise",
        FileForm(read_quantize, write_plain, out_dtypes=("float32", "int32")),
        Example(out_dtype="int8"),
        arithmetic=unchanged,
        quantized=ByteRules(one_type=False),
        undone_by=("DEQUANTIZE",),
    ),
    OpRecord(  # of halves that are constant, which a pass folds; of bytes as QUANTIZE
        "DEQUANTIZE",
        "elementwise",
        FileForm(read_plain, write_plain, dtypes=("float16",), version=3),
        Example(shapes=(), constants=((1, 8, 8, 8),), dtype="float16"),
        arithmetic=unchanged,
        evaluate=_widened,
        undone_by=("QUANTIZE",),
    ),
    OpRecord(  # the same
        "DENSIFY",
        "elementwise",
        FileForm(read_densify, write_plain, dtypes=(), out_dtypes=()),
        Example(shapes=(), constants=((1, 8, 8, 8),)),
        arithmetic=unchanged,
        evaluate=reshaped_values,
    ),
)
