"""Ops on wide integers, one digit of each value at a time, which only passes make.

A wide integer is two or four tensors of digits of 16 bits, the least one first (gpu_delegate/model/digits.py). Operands
are the digits of the first integer, then those of the second one. Sums and comparisons are arithmetic of floats, which
have each sum of digits; products and quotients are words of the vocabulary, which have integers inside.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..code.vocabulary import (
    ChooseLanes,
    Compared,
    FunctionWord,
    Operation,
    Splat,
    Value,
    combined,
    larger,
)
from ..code.whole_numbers import TRUTH, WholeRange
from ..model.digits import DIGIT_BITS, END_OF_DIGITS
from ..model.graph import Attributes, Graph, Node, Steps
from .record import Example, OpRecord

DIGIT = Steps(0, END_OF_DIGITS - 1)
MOST_SUMMED = 256  # digits whose sum float32 has, with a carry
MOST_SUMMED_HALVES = 65_000
_HALF = 256.0
_EIGHT = (1, 8, 8, 8)


@dataclass(frozen=True)
class Digit(Attributes):
    """Which digit of the result is computed, and how many an integer has."""

    number: int = 0
    count: int = 2


def _shifted(x: Value) -> Value:
    """A number in units of the next digit."""
    return x * 2.0**-DIGIT_BITS


def _last_digit(x: Value) -> Value:
    """Of a whole number below 2^24, or above -2^24."""
    return Operation("fraction", (_shifted(x),)) * float(END_OF_DIGITS)


def _carry(x: Value) -> Value:
    return Operation("floor", (_shifted(x),))


def _with_carries(terms: Sequence[Value]) -> Value:
    """The last of some sums of digits as a digit, with what the sums before it carry over."""
    total = terms[0]
    for term in terms[1:]:
        total = term + _carry(total)
    return _last_digit(total)


def _pairs(operands: Sequence[Value]) -> list[tuple[Value, Value]]:
    half = len(operands) // 2
    return list(zip(operands[:half], operands[half:], strict=True))


def _sum(digit: Digit, *operands: Value) -> Value:
    return _with_carries([a + b for a, b in _pairs(operands)])


def _difference(digit: Digit, *operands: Value) -> Value:
    return _with_carries([a - b for a, b in _pairs(operands)])


def _of_sums(digit: Digit, *sums: Value) -> Value:
    """Of sums of many digits."""
    return _with_carries(sums)


def _of_sums_of_halves(digit: Digit, *sums: Value) -> Value:
    """Of sums of many halves of digits: all lower halves, then all upper ones."""
    carried: Value | float = 0.0
    *before, (lower, upper) = _pairs(sums)
    for pair in before:
        carried = Operation("carry of halves", (*pair, carried))
    return Operation("digit of halves", (lower, upper, carried))


def _half(digit: Digit, x: Value) -> Value:
    """The lower or the upper eight bits of a digit."""
    in_half = x * (1 / _HALF)
    return Operation("floor", (in_half,)) if digit.number else Operation("fraction", (in_half,)) * _HALF


def _in_order(x: Value) -> Value:
    """The digit with the sign, as a number that is the greater the greater the integer is."""
    return Operation("fraction", (_shifted(x) + 0.5,))


def _less(digit: Digit, *operands: Value) -> Value:
    *lower, (a, b) = _pairs(operands)
    pairs = [*lower, (_in_order(a), _in_order(b))]
    found: Value = Compared("less", *pairs[0])
    for a, b in pairs[1:]:
        found = ChooseLanes("equal", a, b, found, Compared("less", a, b))
    return found


def _equal(digit: Digit, *operands: Value) -> Value:
    return combined("multiply", [Compared("equal", a, b) for a, b in _pairs(operands)])


def _sign_digit(digit: Digit, last: Value) -> Value:
    """What follows behind the last digit of an integer in a longer one."""
    return Compared("at least", last, Splat(END_OF_DIGITS / 2)) * float(END_OF_DIGITS - 1)


def _of_float(digit: Digit, x: Value) -> Value:
    """Of a float without its fraction; the nearest integer of what is too large."""
    end = 2.0 ** (DIGIT_BITS * digit.count - 1)
    whole = Operation("truncate", (larger(x, -end),)) * 2.0 ** (-DIGIT_BITS * digit.number)
    most = END_OF_DIGITS - 1 if digit.number < digit.count - 1 else END_OF_DIGITS // 2 - 1
    return ChooseLanes("less", x, Splat(end), _last_digit(Operation("floor", (whole,))), Splat(float(most)))


def _value(digit: Digit, *digits: Value) -> Value:
    """The float nearest to an integer."""
    return Operation("int64 value" if digit.count > 2 else "int32 value", digits)


def _calls(name: FunctionWord, of_four: FunctionWord | None = None) -> Callable[..., Value]:
    def arithmetic(digit: Digit, *operands: Value) -> Value:
        word = name if digit.count == 2 or of_four is None else of_four
        return Operation(word, (*operands, float(digit.number)))

    return arithmetic


def _record(
    name: str, arithmetic: Callable[..., Value], operands: int = 4, made: WholeRange = DIGIT, finite: bool = True
) -> OpRecord:
    def ranges(graph: Graph, node: Node, inputs: Sequence[WholeRange]) -> WholeRange:
        return made

    example = Example(shapes=(_EIGHT,) * operands, attributes=Digit(), dtype="int32", out_dtype="int32")
    return OpRecord(name, "elementwise", None, example, arithmetic=arithmetic, finite=finite, ranges=(ranges,))


RECORDS = (
    _record("SUM_DIGIT", _sum, 2),
    _record("DIFFERENCE_DIGIT", _difference, 2),
    _record("PRODUCT_DIGIT", _calls("int32 product", "int64 product")),
    _record("QUOTIENT_DIGIT", _calls("int32 quotient")),
    _record("FLOOR_QUOTIENT_DIGIT", _calls("int32 floor quotient")),
    _record("FLOOR_REMAINDER_DIGIT", _calls("int32 floor remainder", "int64 floor remainder")),
    _record("DIGIT_OF_SUMS", _of_sums, 1),
    _record("DIGIT_OF_SUMS_OF_HALVES", _of_sums_of_halves, 2),
    _record("HALF_DIGIT", _half, 1, Steps(0, 255)),
    _record("SIGN_DIGIT", _sign_digit, 1),
    _record("DIGIT_OF_FLOAT", _of_float, 1),
    _record("FLOAT_OF_DIGITS", _value, 2, None),
    _record("LESS_DIGITS", _less, 4, TRUTH),
    _record("EQUAL_DIGITS", _equal, 4, TRUTH),
)
