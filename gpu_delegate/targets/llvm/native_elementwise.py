"""Elementwise ops: an op and vectors of floats go in, LLVM's instructions for it come out; a function for each op.

What they compute is what the GLSL of the ops' records says (gpu_delegate/ops/elementwise.py), by vector_math.py.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import Protocol

import numpy as np

from ...base.errors import UnsupportedError
from ...model.graph import Alpha, Attributes
from ...ops.cast import Cast
from ...ops.division import divides_integers
from ...ops.elementwise import Gelu
from ...ops.fake_quant import FakeQuant
from .ir import Function, Register
from .steps_code import add_steps, hard_swish_steps, requantize, round_to_steps
from .vector_math import FloatMath, OwnNumbers, math_of

SQRT_HALF = 0.7071067812
GELU_SCALE, GELU_CUBE = 0.7978845608, 0.044715


class ElementwiseOp(Protocol):
    """A node of a graph, or a value of a kernel, that is an elementwise op."""

    @property
    def op(self) -> str: ...

    @property
    def attributes(self) -> Attributes: ...


def elementwise_vectors(
    function: Function, node: ElementwiseOp, operands: Sequence[Register], numbers: OwnNumbers | None = None
) -> Register:
    """What an op makes of vectors of one type; its own `numbers` are read from memory, or stand in the text.

    Raises UnsupportedError for an op that has no code here.
    """
    code = _CODE.get(node.op)
    if code is None:
        raise UnsupportedError(f"{node.op} has no code for the CPU")
    return code(math_of(function, operands, numbers), node.attributes, *operands)


def _leaky_relu(m: FloatMath, attributes: Attributes, x: Register) -> Register:
    assert isinstance(attributes, Alpha)
    return m.fma(m.smaller(0.0, x), attributes.alpha, m.larger(0.0, x))


def _prelu(m: FloatMath, _: Attributes, x: Register, slope: Register) -> Register:
    return m.choose(m.compare("oge", x, 0.0), x, m.mul(slope, x))


def _elu(m: FloatMath, _: Attributes, x: Register) -> Register:
    return m.choose(m.compare("oge", x, 0.0), x, m.sub(m.exp_of_limited(x), 1.0))


def _gelu(m: FloatMath, attributes: Attributes, x: Register) -> Register:
    half = m.mul(x, 0.5)
    if isinstance(attributes, Gelu) and attributes.approximate:
        cube = m.mul(m.mul(m.mul(x, GELU_CUBE), x), x)
        return m.fma(half, m.tanh(m.mul(m.add(x, cube), GELU_SCALE)), half)
    return m.fma(half, m.erf(m.mul(x, SQRT_HALF)), half)


def _hard_swish(m: FloatMath, _: Attributes, x: Register) -> Register:
    return m.mul(x, m.clamp(m.fma(x, 1.0 / 6.0, 0.5), 0.0, 1.0))


def _logistic(m: FloatMath, _: Attributes, x: Register) -> Register:
    return m.div(1.0, m.add(m.exp_of_limited(m.neg(x)), 1.0))


def _quotient(rounding: str, of_floats: Callable[[FloatMath, Register, Register], Register]) -> "Code":
    """Of whole numbers below 2^24 a quotient that is rounded to nearest is never rounded to another whole number."""

    def code(m: FloatMath, attributes: Attributes, x: Register, y: Register) -> Register:
        if not divides_integers(attributes):
            return of_floats(m, x, y)
        return m.call(rounding, m.div(x, _not_zero(m, y)))

    return code


def _floor_mod(m: FloatMath, attributes: Attributes, x: Register, y: Register) -> Register:
    return m.floor_mod(x, _not_zero(m, y) if divides_integers(attributes) else y)


def _not_zero(m: FloatMath, divisor: Register) -> Register:
    """Zero counts as one."""
    return m.choose(m.compare("oeq", divisor, 0.0), m.of(1.0), divisor)


def _squared_difference(m: FloatMath, _: Attributes, x: Register, y: Register) -> Register:
    difference = m.sub(x, y)
    return m.mul(difference, difference)


def _cast(m: FloatMath, attributes: Attributes, x: Register) -> Register:
    assert isinstance(attributes, Cast)
    if attributes.target == "bool":
        return m.truth(m.compare("une", x, 0.0))
    return m.call("trunc", x) if attributes.cuts_off else x


def _fake_quant(m: FloatMath, attributes: Attributes, x: Register) -> Register:
    assert isinstance(attributes, FakeQuant)
    low, high, step = attributes.levels
    levels = m.mul(m.sub(m.clamp(x, low, high), low), float(np.float32(1) / np.float32(step)))
    return m.add(m.mul(m.call("floor", m.add(levels, 0.5)), step), low)


def _select(m: FloatMath, _: Attributes, condition: Register, value: Register, other: Register) -> Register:
    return m.choose(m.compare("une", condition, 0.0), value, other)


Code = Callable[..., Register]


def _clamped(low: float, high: float) -> Code:
    return lambda m, _, x: m.clamp(x, low, high)


def _compared(how: str) -> Code:
    return lambda m, _, x, y: m.truth(m.compare(how, x, y))


def _called(name: str) -> Code:
    return lambda m, _, x: m.call(name, x)


_CODE: Mapping[str, Code] = MappingProxyType(
    {
        "RELU": lambda m, _, x: m.larger(0.0, x),
        "RELU6": _clamped(0.0, 6.0),
        "RELU_N1_TO_1": _clamped(-1.0, 1.0),
        "RELU_0_TO_1": _clamped(0.0, 1.0),
        "LEAKY_RELU": _leaky_relu,
        "PRELU": _prelu,
        "ELU": _elu,
        "GELU": _gelu,
        "HARD_SWISH": _hard_swish,
        "LOGISTIC": _logistic,
        "TANH": lambda m, _, x: m.tanh(x),
        "ABS": _called("fabs"),
        "NEG": lambda m, _, x: m.neg(x),
        "SIGN": lambda m, _, x: m.sign(x),
        "CEIL": _called("ceil"),
        "FLOOR": _called("floor"),
        "ROUND": _called("roundeven"),
        "SIN": lambda m, _, x: m.sin(x),
        "COS": lambda m, _, x: m.sin(x, quarters=1),
        "EXP": lambda m, _, x: m.exp(x),
        "LOG": lambda m, _, x: m.log(x),
        "SQRT": _called("sqrt"),
        "RSQRT": lambda m, _, x: m.div(1.0, m.call("sqrt", x)),
        "SQUARE": lambda m, _, x: m.mul(x, x),
        "ADD": lambda m, _, x, y: m.add(x, y),
        "SUB": lambda m, _, x, y: m.sub(x, y),
        "MUL": lambda m, _, x, y: m.mul(x, y),
        "DIV": _quotient("trunc", lambda m, x, y: m.div(x, y)),
        "ADD_N": lambda m, _, *terms: reduce(m.add, terms),
        "MAXIMUM": lambda m, _, x, y: m.larger(y, x),
        "MINIMUM": lambda m, _, x, y: m.smaller(y, x),
        "SQUARED_DIFFERENCE": _squared_difference,
        "POW": lambda m, _, x, y: m.power(x, y),
        "FLOOR_DIV": _quotient("floor", lambda m, x, y: m.floor_div(x, y)),
        "FLOOR_MOD": _floor_mod,
        "ATAN2": lambda m, _, y, x: m.atan2(y, x),
        "DEQUANTIZE": lambda m, _, x: x,
        "DENSIFY": lambda m, _, x: x,
        "EQUAL": _compared("oeq"),
        "NOT_EQUAL": _compared("une"),
        "GREATER": _compared("ogt"),
        "GREATER_EQUAL": _compared("oge"),
        "LESS": _compared("olt"),
        "LESS_EQUAL": _compared("ole"),
        "LOGICAL_AND": lambda m, _, x, y: m.mul(x, y),
        "LOGICAL_OR": lambda m, _, x, y: m.larger(y, x),
        "LOGICAL_NOT": lambda m, _, x: m.sub(1.0, x),
        "CAST": _cast,
        "FAKE_QUANT": _fake_quant,
        "REQUANTIZE": requantize,
        "ROUND_TO_STEPS": round_to_steps,
        "ADD_STEPS": add_steps,
        "HARD_SWISH_STEPS": hard_swish_steps,
        "SELECT": _select,
        "SELECT_V2": _select,
    }
)
