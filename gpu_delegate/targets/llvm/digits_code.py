"""LLVM's instructions for the words on the digits of wide integers, which shaders/digits.glsl has for GPUs.

All are computed with 64 bits. The digit that is asked for is a number, the last operand.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from ...model.digits import DIGIT_BITS, END_OF_DIGITS
from .ir import Register
from .vector_math import FloatMath, Number

_LONG_BITS = 64


def _joined(m: FloatMath, digits: Sequence[Number]) -> Register:
    """The integer of these digits."""
    total = m.long_of(0)
    for k, digit in enumerate(digits):
        shifted = m.f.binary("shl", m.long(m.whole(m.of(digit))), m.long_of(DIGIT_BITS * k))
        total = m.f.binary("or", total, shifted)
    unused = m.long_of(_LONG_BITS - DIGIT_BITS * len(digits))
    return m.f.binary("ashr", m.f.binary("shl", total, unused), unused)


def _digit(compute: Callable[[FloatMath, Register, Register], Register]) -> Callable[..., Register]:
    def word(m: FloatMath, *operands: Number) -> Register:
        *digits, number = operands
        assert isinstance(number, float), "it stands in the arithmetic"
        half = len(digits) // 2
        found = compute(m, _joined(m, digits[:half]), _joined(m, digits[half:]))
        shifted = m.f.binary("lshr", found, m.long_of(DIGIT_BITS * int(number)))
        last = m.f.binary("and", shifted, m.long_of(END_OF_DIGITS - 1))
        return m.float_of(m.f.convert("trunc", last, m.integers))

    return word


def _product(m: FloatMath, a: Register, b: Register) -> Register:
    return m.f.binary("mul", a, b)


def _quotient(m: FloatMath, a: Register, b: Register) -> Register:
    return m.f.binary("sdiv", a, _divisor(m, b))


def _floor_quotient(m: FloatMath, a: Register, b: Register) -> Register:
    """One less where something is left and the quotient is negative."""
    quotient = _quotient(m, a, b)
    rest = m.f.binary("sub", a, m.f.binary("mul", quotient, _divisor(m, b)))
    less = m.f.binary("sub", quotient, m.long_of(1))
    return m.f.choose(_is_other_side(m, rest, b), less, quotient)


def _floor_remainder(m: FloatMath, a: Register, b: Register) -> Register:
    """With the sign of the divisor; by -1, where CPUs stop at the least integer, as by 1."""
    is_minus_one = m.f.compare("icmp eq", b, m.long_of(-1))
    rest = m.f.binary("srem", a, m.f.choose(is_minus_one, m.long_of(1), _divisor(m, b)))
    return m.f.choose(_is_other_side(m, rest, b), m.f.binary("add", rest, b), rest)


def _divisor(m: FloatMath, b: Register) -> Register:
    """Zero counts as one."""
    return m.f.choose(m.f.compare("icmp eq", b, m.long_of(0)), m.long_of(1), b)


def _is_other_side(m: FloatMath, rest: Register, b: Register) -> Register:
    """Whether something is left that has another sign than the divisor."""
    differs = m.f.compare("icmp slt", m.f.binary("xor", rest, b), m.long_of(0))
    is_left = m.f.compare("icmp ne", rest, m.long_of(0))
    return m.f.binary("and", differs, is_left)


def _value(m: FloatMath, *digits: Number) -> Register:
    return m.f.convert("sitofp", _joined(m, digits), m.kind)


def _of_halves(m: FloatMath, lower: Number, upper: Number, carried: Number) -> Register:
    """A sum of digits by those of their lower and upper eight bits."""
    low, high, more = (m.whole(m.of(each)) for each in (lower, upper, carried))
    return m.f.binary("add", m.f.binary("add", low, m.f.binary("shl", high, m.int_of(DIGIT_BITS // 2))), more)


DIGIT_WORDS: Mapping[str, Callable[..., Register]] = MappingProxyType(
    {
        "int32 product": _digit(_product),
        "int32 quotient": _digit(_quotient),
        "int32 floor quotient": _digit(_floor_quotient),
        "int32 floor remainder": _digit(_floor_remainder),
        "int64 product": _digit(_product),
        "int64 floor remainder": _digit(_floor_remainder),
        "int32 value": _value,
        "int64 value": _value,
        "digit of halves": lambda m, *sums: m.float_of(
            m.f.binary("and", _of_halves(m, *sums), m.int_of(END_OF_DIGITS - 1))
        ),
        "carry of halves": lambda m, *sums: m.float_of(m.f.binary("lshr", _of_halves(m, *sums), m.int_of(DIGIT_BITS))),
    }
)
