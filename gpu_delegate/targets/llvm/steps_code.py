"""LLVM's instructions for the words of 8-bit ops, which shaders/requantize.glsl has for GPUs.

Numbers that each layer has others of (limits, multipliers, shifts) are `m.own`'s, which may read them from memory, so
that layers of one shape have one text.
"""

from collections.abc import Sequence

from ...ops.requantize import FRACTION_BITS, LOW_BITS, MULTIPLIER_BITS, SUM_BITS
from .ir import Register
from .vector_math import FloatMath

HALF_UNIT = 1 << (MULTIPLIER_BITS - 1)
SHORT = (-32768.0, 32767.0)
AttributeNumbers = tuple[
    float, float, float, float
]  # of an op's attributes, as gpu_delegate/ops/requantize.py has them


def requantize(
    m: FloatMath, x: Register, high: Register, low: Register, power: Register, limits: AttributeNumbers
) -> Register:
    multiplier, right, left = _multiplier(m, high, low, power)
    product = m.float_of(_high_product(m, m.whole(m.mul(x, left)), multiplier, m.long_of(HALF_UNIT)))
    return _limited(m, m.round_away(m.mul(product, right)), *limits[:2])


def requantize_once(
    m: FloatMath, x: Register, high: Register, low: Register, power: Register, limits: AttributeNumbers
) -> Register:
    multiplier, right, left = _multiplier(m, high, low, power)
    size = m.whole(m.mul(m.call("fabs", x), left))
    more = m.f.choose(m.compare("oge", power, 1.0), m.long_of(HALF_UNIT), m.long_of(0))
    rounded = m.call("floor", m.fma(m.float_of(_high_product(m, size, multiplier, more)), right, 0.5))
    return _limited(m, m.call("copysign", rounded, x), *limits[:2])


def _multiplier(m: FloatMath, high: Register, low: Register, power: Register) -> tuple[Register, Register, Register]:
    """An integer of two parts, and the power of two as factors behind and before it."""
    upper = m.f.binary("shl", m.whole(high), m.int_of(LOW_BITS))
    return m.f.binary("add", upper, m.whole(low)), m.smaller(1.0, power), m.larger(1.0, power)


def _high_product(m: FloatMath, x: Register, y: Register, more: Register) -> Register:
    """The bits from 31 on of a product of two ints and what is added to it."""
    product = m.f.binary("add", m.f.binary("mul", m.long(x), m.long(y)), more)
    return m.f.convert("trunc", m.f.binary("ashr", product, m.long_of(MULTIPLIER_BITS)), m.integers)


def round_to_steps(m: FloatMath, x: Register, multiplier: Register, limits: AttributeNumbers) -> Register:
    return _limited(m, m.round_away(m.mul(x, multiplier)), *limits[:2])


def add_steps(
    m: FloatMath, a: Register, b: Register, other: AttributeNumbers, total: AttributeNumbers, last: AttributeNumbers
) -> Register:
    """The first input's multiplier is one half; the sum's is in two parts, and so is the second's, if not one half."""
    second, of_sum, signs, limits = numbers_of_sum((other, total, last))
    parts = [
        _times(m, m.f.binary("shl", m.whole(x), m.int_of(SUM_BITS)), *each)
        for x, each in ((a, (HALF_UNIT, 0)), (b, second))
    ]
    parts = parts if signs[0] > 0 else parts[::-1]
    summed = m.f.binary("add" if signs[0] * signs[1] > 0 else "sub", *parts)
    return _limited(m, m.float_of(_times(m, summed, *of_sum)), *map(float, limits))


def numbers_of_sum(numbers: Sequence[AttributeNumbers]) -> tuple[tuple[int, int], ...]:
    """Of ADD_STEPS: multiplier and shift of the second input and of the sum, signs of both inputs, limits."""
    (whole, fraction, _, shift), (high, low, _, last_shift), last = (tuple(map(int, each)) for each in numbers)
    factor = (whole << FRACTION_BITS) + fraction
    second = (HALF_UNIT, 0) if factor == 2 * HALF_UNIT else (factor, shift)
    return second, ((high << LOW_BITS) + low, last_shift), (last[0], last[1]), (last[2], last[3])


def _times(m: FloatMath, x: Register, multiplier: int, shift: int) -> Register:
    """Rounded up behind the product, and away from zero behind the shift."""
    product = _high_product(m, x, m.own_int(multiplier), m.long_of(HALF_UNIT))
    if not shift:
        return product
    bits = m.own_int(shift)
    one_less = m.f.convert("sext", m.f.compare("icmp slt", product, m.int_of(0)), m.integers)  # -1 below zero
    half = m.f.binary("add", product, m.own_int(1 << (shift - 1)))
    return m.f.binary("ashr", m.f.binary("add", half, one_less), bits)


def hard_swish_steps(m: FloatMath, x: Register, gates: AttributeNumbers, last: AttributeNumbers) -> Register:
    """HARD_SWISH in 16 bits."""
    before, factor, behind = map(m.own, gates[1:])
    value = _round_up(m, m.mul(x, m.own(gates[0])))
    gate = _round_up(m, m.mul(m.clamp(m.mul(x, before), *SHORT), factor))
    gate = m.clamp(m.round_away(m.mul(gate, behind)), *SHORT)
    gate = m.call("floor", m.mul(m.add(gate, 32768.0), 0.5))
    upper, size = m.call("floor", m.mul(gate, 1 / 128)), m.call("fabs", value)
    lower = m.mul(m.mul(m.sub(gate, m.mul(upper, 128.0)), size), 1 / 32768)
    upper = m.mul(m.mul(upper, size), 1 / 256)
    whole = m.call("floor", upper)
    product = m.add(whole, m.call("floor", m.add(m.sub(upper, whole), lower)))
    signed = m.mul(m.call("copysign", 1.0, value), m.mul(product, m.own(last[0])))
    return _limited(m, m.round_away(signed), *last[1:3])


def _limited(m: FloatMath, value: Register, low: float, high: float) -> Register:
    return m.clamp(value, m.own(low), m.own(high))


def _round_up(m: FloatMath, x: Register) -> Register:
    whole = m.call("floor", x)
    return m.add(whole, m.call("floor", m.mul(m.sub(x, whole), 2.0)))
