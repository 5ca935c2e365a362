"""LLVM's instructions for the words of ops of 16-bit integers, which shaders/wide.glsl has for GPUs."""

from collections.abc import Sequence
from typing import Any

from ...ops.requantize import LOW_BITS, MULTIPLIER_BITS
from ...ops.short_steps import LOWER_BITS, SHORT_SUM_BITS
from .ir import Register
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
    product = m.f.binary("mul", m.long(x), m.long(multiplier))
    found = _halved(m, m.f.binary("ashr", product, m.long_of(MULTIPLIER_BITS - 1)))
    found = m.f.convert("trunc", found, m.integers)
    one = m.int_of(1)
    mask = m.f.binary("sub", m.f.binary("shl", one, bits), one)
    negative = m.f.binary("ashr", found, m.int_of(31))  # -1 below zero
    threshold = m.f.binary("sub", m.f.binary("ashr", mask, one), negative)
    rest = m.f.compare("icmp sgt", m.f.binary("and", found, mask), threshold)
    return m.f.binary("sub", m.f.binary("ashr", found, bits), m.f.convert("sext", rest, m.integers))


def _limited(m: FloatMath, value: Register, low: float, high: float) -> Register:
    return m.clamp(m.float_of(value), m.own(low), m.own(high))
