"""LLVM's instructions for the words of ops of 16-bit integers, which shaders/wide.glsl has for GPUs."""

from collections.abc import Sequence
from typing import Any

from ...ops.requantize import LOW_BITS, MULTIPLIER_BITS
from ...ops.short_steps import LEAST_SUM, LOWER_BITS, SHORT_SUM_BITS, SUM_LOW_BITS
from .ir import Register, suffix
from .steps_code import AttributeNumbers
from .vector_math import FloatMath, Number


def requantize_wide(m: FloatMath, *operands: Any) -> Register:
    *sums, multiplier, shift, last = operands
    product = m.f.binary("mul", _sum_of_digits(m, sums, last), _long(m, multiplier))
    found = _halved(m, m.f.binary("ashr", product, _long(m, shift)))
    return _limited(m, m.f.convert("trunc", found, m.integers), last[0], last[1])


def requantize_wide_once(m: FloatMath, *operands: Any) -> Register:
    """The product has up to 78 bits: of 47 bits of the size, 16 are multiplied by themselves."""
    *sums, high, low, shift, last = operands
    total, multiplier = _sum_of_digits(m, sums, last), m.long(_joined(m, high, low))
    sign = m.f.binary("ashr", total, m.long_of(63))  # -1 below zero
    size = m.f.binary("sub", m.f.binary("xor", total, sign), sign)
    part = m.long_of(LOW_BITS)
    below = m.f.binary("mul", m.f.binary("and", size, m.long_of((1 << LOW_BITS) - 1)), multiplier)
    above = m.f.binary("mul", m.f.binary("lshr", size, part), multiplier)
    product = m.f.binary("add", above, m.f.binary("lshr", below, part))
    rounded = _halved(m, m.f.binary("lshr", product, _long(m, shift)))
    signed = m.f.binary("sub", m.f.binary("xor", rounded, sign), sign)
    return m.clamp(m.f.convert("sitofp", signed, m.kind), m.own(last[0]), m.own(last[1]))


def _sum_of_digits(m: FloatMath, sums: Sequence[Number], last: AttributeNumbers) -> Register:
    """Sums of products of digits in a base, the highest first, and a bias in two parts."""
    *digits, upper, lower = sums
    base, total = m.long_of(int(last[2])), m.long_of(0)
    for digit in digits:
        total = m.f.binary("add", m.f.binary("mul", total, base), _long(m, digit))
    bias = m.f.binary("shl", _long(m, upper), m.long_of(LOWER_BITS))
    return m.f.binary("add", total, m.f.binary("add", bias, _long(m, lower)))


def requantize_product(
    m: FloatMath,
    a: Register,
    b: Register,
    c: Register,
    high: Register,
    low: Register,
    shift: Register,
    last: AttributeNumbers,
) -> Register:
    zero = m.int_of(0)
    total = m.f.binary("add", m.f.binary("mul", m.whole(m.of(a)), m.whole(m.of(b))), m.whole(m.of(c)))
    bits = m.whole(m.of(shift))
    is_left = m.f.compare("icmp slt", bits, zero)
    left = m.f.choose(is_left, m.f.binary("sub", zero, bits), zero)
    right = m.f.choose(is_left, zero, bits)
    found = _fixed_product(m, m.f.binary("shl", total, left), _joined(m, high, low), right)
    return _limited(m, found, last[0], last[1])


def add_short_steps(
    m: FloatMath, a: Register, b: Register, other: AttributeNumbers, total: AttributeNumbers, last: AttributeNumbers
) -> Register:
    """The first input's multiplier is one half."""
    second = m.f.binary("shl", m.whole(b), m.int_of(SHORT_SUM_BITS))
    second = _fixed_product(m, second, *_own_factor(m, other))
    parts = [
        m.f.binary("mul", value, m.own_int(int(sign))) for value, sign in ((m.whole(a), last[0]), (second, last[1]))
    ]
    return _limited(m, _fixed_product(m, m.f.binary("add", *parts), *_own_factor(m, total)), last[2], last[3])


def softmax_steps(
    m: FloatMath, high: Register, low: Register, upper: Register, lower: Register, last: AttributeNumbers
) -> Register:
    """As shaders/wide.glsl says it."""
    parts = m.f.binary("shl", m.whole(m.of(upper)), m.int_of(SUM_LOW_BITS)), m.whole(m.of(lower))
    total = m.f.binary("add", *parts)
    total = m.f.choose(m.f.compare("icmp slt", total, m.int_of(LEAST_SUM)), m.int_of(LEAST_SUM), total)
    zeros = m.f.call(f"llvm.ctlz.{suffix(m.integers)}", m.integers, total, Register("false", "i1"))
    part = m.f.binary("shl", total, m.f.binary("sub", zeros, m.int_of(1)))
    x = m.f.binary("add", _high_product(m, part, m.int_of(-1010580540)), m.int_of(1515870810))
    for _ in range(3):
        rest = m.f.binary("sub", m.int_of(1 << 29), _high_product(m, part, x))
        x = m.f.binary("add", x, m.f.binary("shl", _high_product(m, x, rest), m.int_of(2)))
    is_one = m.f.compare("icmp sge", x, m.int_of(1 << 30))
    reciprocal = m.f.choose(is_one, m.int_of((1 << 31) - 1), m.f.binary("shl", x, m.int_of(1)))
    found = _high_product(m, _joined(m, high, low), reciprocal)
    bits = m.f.binary("sub", m.own_int(43 - int(last[2])), zeros)
    return _limited(m, _divided(m, found, bits), last[0], last[1])


def _own_factor(m: FloatMath, numbers: AttributeNumbers) -> tuple[Register, Register]:
    high, low, shift, _ = map(int, numbers)
    return m.own_int((high << LOW_BITS) + low), m.own_int(shift)


def _long(m: FloatMath, value: Number) -> Register:
    """Whole numbers as ints of 64 bits."""
    return m.long(m.whole(m.of(value)))


def _joined(m: FloatMath, high: Number, low: Number) -> Register:
    """A multiplier of two parts."""
    return m.f.binary("add", m.f.binary("shl", m.whole(m.of(high)), m.int_of(LOW_BITS)), m.whole(m.of(low)))


def _halved(m: FloatMath, value: Register) -> Register:
    """Divided by two, rounded up at one half."""
    return m.f.binary("ashr", m.f.binary("add", value, m.long_of(1)), m.long_of(1))


def _fixed_product(m: FloatMath, x: Register, multiplier: Register, bits: Register) -> Register:
    """Rounded up behind the product, and away from zero behind the shift."""
    return _divided(m, _high_product(m, x, multiplier), bits)


def _high_product(m: FloatMath, x: Register, y: Register) -> Register:
    """Of integers in 2^-31, rounded up."""
    product = m.f.binary("mul", m.long(x), m.long(y))
    found = _halved(m, m.f.binary("ashr", product, m.long_of(MULTIPLIER_BITS - 1)))
    return m.f.convert("trunc", found, m.integers)


def _divided(m: FloatMath, found: Register, bits: Register) -> Register:
    """By a power of two, rounded away from zero."""
    one = m.int_of(1)
    mask = m.f.binary("sub", m.f.binary("shl", one, bits), one)
    negative = m.f.binary("ashr", found, m.int_of(31))  # -1 below zero
    threshold = m.f.binary("sub", m.f.binary("ashr", mask, one), negative)
    rest = m.f.compare("icmp sgt", m.f.binary("and", found, mask), threshold)
    return m.f.binary("sub", m.f.binary("ashr", found, bits), m.f.convert("sext", rest, m.integers))


def _limited(m: FloatMath, value: Register, low: float, high: float) -> Register:
    return m.clamp(m.float_of(value), m.own(low), m.own(high))
