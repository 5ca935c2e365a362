"""What elementwise ops compute, as LLVM's instructions on vectors of floats: how this target reads those words.

Functions are those of vector_math.py and steps_code.py.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from ...base.errors import UnsupportedError
from ...code.vocabulary import Argument, ChooseLanes, Compared, Elementwise, Operand, Operation, Splat
from .digits_code import DIGIT_WORDS
from .ir import Function, Register
from .steps_code import add_steps, hard_swish_steps, requantize, requantize_once, round_to_steps
from .vector_math import FloatMath, Number, OwnNumbers, math_of
from .wide_code import add_short_steps, requantize_product, requantize_wide, requantize_wide_once, softmax_steps

Printed = Number | tuple[float, ...]  # a vector, a number in all its lanes, or four numbers of the op's attributes
FLOAT_CONDITIONS: Mapping[str, str] = MappingProxyType(
    {"less": "olt", "greater": "ogt", "at least": "oge", "at most": "ole", "equal": "oeq", "not equal": "une"}
)


def elementwise_vectors(
    function: Function, value: Elementwise, operands: Sequence[Register], numbers: OwnNumbers | None = None
) -> Register:
    """What an op makes of vectors of one type; its own `numbers` are read from memory, or stand in the text.

    Raises UnsupportedError for a word that has no code here.
    """
    reader = _Reader(math_of(function, operands, numbers), (*operands, *value.numbers))
    found = reader.part(value.arithmetic)
    assert isinstance(found, float | Register), "numbers of attributes are operands of functions"
    return reader.math.of(found)


class _Reader:
    """Prints what is computed of some parts, each value once."""

    def __init__(self, math: FloatMath, arguments: Sequence[Printed]) -> None:
        self.math = math
        self._arguments = arguments
        self._known: dict[Operand, Register] = {}

    def part(self, value: Operand) -> Printed:
        """A value that was printed, or a number."""
        if isinstance(value, Argument):
            return self._arguments[value.number]
        if isinstance(value, Splat):
            return value.value
        if isinstance(value, int | float):
            return float(value)
        if value not in self._known:
            self._known[value] = self._printed(value)
        return self._known[value]

    def _printed(self, value: Operand) -> Register:
        m = self.math
        if isinstance(value, Operation) and value.operation in WORDS:
            return WORDS[value.operation](m, *map(self.part, value.operands))
        if isinstance(value, Compared):
            return m.truth(m.compare(FLOAT_CONDITIONS[value.comparison], *self._numbers(value.left, value.right)))
        if isinstance(value, ChooseLanes):
            condition = m.compare(FLOAT_CONDITIONS[value.comparison], *self._numbers(value.left, value.right))
            return m.choose(condition, *self._numbers(value.value, value.other))
        word = value.operation if isinstance(value, Operation) else type(value).__name__
        raise UnsupportedError(f"{word} has no code for the CPU")

    def _numbers(self, left: Operand, right: Operand) -> tuple[Number, Number]:
        first, second = self.part(left), self.part(right)
        assert isinstance(first, float | Register), "numbers of attributes are operands of functions"
        assert isinstance(second, float | Register), "numbers of attributes are operands of functions"
        return first, second


def _whole(rounding: str) -> Callable[[FloatMath, Number, Number], Register]:
    """Of whole numbers below 2^24 a quotient that is rounded to nearest is never rounded to another whole number."""
    return lambda m, x, y: m.call(rounding, m.div(x, _not_zero(m, y)))


def _not_zero(m: FloatMath, divisor: Number) -> Register:
    """Zero counts as one."""
    return m.choose(m.compare("oeq", divisor, 0.0), 1.0, divisor)


def _called(name: str) -> Callable[[FloatMath, Number], Register]:
    return lambda m, x: m.call(name, x)


WORDS: Mapping[str, Callable[..., Register]] = MappingProxyType(
    {
        "add": FloatMath.add,
        "subtract": FloatMath.sub,
        "multiply": FloatMath.mul,
        "divide": FloatMath.div,
        "multiply add": lambda m, x, y, addend: m.fma(y, x, addend),
        "minimum": lambda m, x, y: m.smaller(y, x),
        "maximum": lambda m, x, y: m.larger(y, x),
        "clamp": FloatMath.clamp,
        "floor": _called("floor"),
        "fraction": lambda m, x: m.sub(x, m.call("floor", x)),
        "ceiling": _called("ceil"),
        "truncate": _called("trunc"),
        "round even": _called("roundeven"),
        "absolute": _called("fabs"),
        "square root": _called("sqrt"),
        "inverse square root": lambda m, x: m.div(1.0, m.call("sqrt", x)),
        "negate": lambda m, x: m.neg(m.of(x)),
        "sign": lambda m, x: m.sign(m.of(x)),
        "exponential": lambda m, x: m.exp(m.of(x)),
        "exponential less one": lambda m, x: m.sub(m.exp_of_limited(m.of(x)), 1.0),
        "logarithm": lambda m, x: m.log(m.of(x)),
        "power": lambda m, x, y: m.power(m.of(x), m.of(y)),
        "sine": lambda m, x: m.sin(m.of(x)),
        "cosine": lambda m, x: m.sin(m.of(x), quarters=1),
        "angle": lambda m, y, x: m.atan2(m.of(y), m.of(x)),
        "hyperbolic tangent": lambda m, x: m.tanh(m.of(x)),
        "error function": lambda m, x: m.erf(m.of(x)),
        "logistic": lambda m, x: m.div(1.0, m.add(m.exp_of_limited(m.neg(m.of(x))), 1.0)),
        "hard swish": lambda m, x: m.mul(x, m.clamp(m.fma(x, 1.0 / 6.0, 0.5), 0.0, 1.0)),
        "floor quotient": lambda m, x, y: m.floor_div(m.of(x), m.of(y)),
        "floor remainder": lambda m, x, y: m.floor_mod(m.of(x), m.of(y)),
        "whole quotient": _whole("trunc"),
        "whole floor quotient": _whole("floor"),
        "whole floor remainder": lambda m, x, y: m.floor_mod(m.of(x), _not_zero(m, y)),
        "requantize": requantize,
        "requantize narrow": requantize,
        "requantize once": requantize_once,
        "round to steps": round_to_steps,
        "add steps": add_steps,
        "hard swish steps": hard_swish_steps,
        "requantize wide": requantize_wide,
        "requantize wide once": requantize_wide_once,
        "requantize product": requantize_product,
        "add short steps": add_short_steps,
        "softmax steps": softmax_steps,
        **DIGIT_WORDS,
    }
)
