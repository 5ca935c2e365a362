"""Ops of steps and vectors of floats go in, LLVM's instructions come out: for what shaders/requantize.glsl says.

Numbers that each layer has others of (limits, multipliers, shifts) are `m.own`'s, which may read them from memory, so
that layers of one shape have one text.
"""

from ...model.graph import Attributes, Steps
from ...ops.requantize import (
    LOW_BITS,
    MULTIPLIER_BITS,
    SUM_BITS,
    AddSteps,
    FixedPoint,
    HardSwishSteps,
    Requantize,
    RoundToSteps,
)
from .ir import Register
from .vector_math import FloatMath

HALF_UNIT = 1 << (MULTIPLIER_BITS - 1)
SHORT = (-32768.0, 32767.0)


def requantize(
    m: FloatMath, attributes: Attributes, x: Register, high: Register, low: Register, power: Register
) -> Register:
    assert isinstance(attributes, Requantize)
    upper = m.f.binary("shl", m.whole(high), m.int_of(LOW_BITS))
    multiplier, right = m.f.binary("add", upper, m.whole(low)), m.smaller(1.0, power)
    left = m.larger(1.0, power)
    if attributes.is_once:
        size = m.whole(m.mul(m.call("fabs", x), left))
        more = m.f.choose(m.compare("oge", power, 1.0), m.long_of(HALF_UNIT), m.long_of(0))
        rounded = m.call("floor", m.fma(m.float_of(_high_product(m, size, multiplier, more)), right, 0.5))
        found = m.call("copysign", rounded, x)
    else:
        product = m.float_of(_high_product(m, m.whole(m.mul(x, left)), multiplier, m.long_of(HALF_UNIT)))
        found = m.round_away(m.mul(product, right))
    return _limited(m, found, attributes.limits)


def _high_product(m: FloatMath, x: Register, y: Register, more: Register) -> Register:
    """The bits from 31 on of a product of two ints and what is added to it."""
    product = m.f.binary("add", m.f.binary("mul", m.long(x), m.long(y)), more)
    return m.f.convert("trunc", m.f.binary("ashr", product, m.long_of(MULTIPLIER_BITS)), m.integers)


def round_to_steps(m: FloatMath, attributes: Attributes, x: Register, multiplier: Register) -> Register:
    assert isinstance(attributes, RoundToSteps)
    return _limited(m, m.round_away(m.mul(x, multiplier)), attributes.limits)


def add_steps(m: FloatMath, attributes: Attributes, a: Register, b: Register) -> Register:
    assert isinstance(attributes, AddSteps)
    parts = [
        _times(m, m.f.binary("shl", m.whole(x), m.int_of(SUM_BITS)), factor)
        for x, factor in zip((a, b), attributes.of_inputs, strict=True)
    ]
    total = m.f.binary("sub" if attributes.is_difference else "add", *parts)
    return _limited(m, m.float_of(_times(m, total, attributes.of_sum)), attributes.limits)


def _times(m: FloatMath, x: Register, factor: FixedPoint) -> Register:
    """Rounded up behind the product, and away from zero behind the shift."""
    product = _high_product(m, x, m.own_int(factor.multiplier), m.long_of(HALF_UNIT))
    if not factor.shift:
        return product
    shift = m.own_int(factor.shift)
    one_less = m.f.convert("sext", m.f.compare("icmp slt", product, m.int_of(0)), m.integers)  # -1 below zero
    half = m.f.binary("add", product, m.own_int(1 << (factor.shift - 1)))
    return m.f.binary("ashr", m.f.binary("add", half, one_less), shift)


def hard_swish_steps(m: FloatMath, attributes: Attributes, x: Register) -> Register:
    """HARD_SWISH in 16 bits."""
    assert isinstance(attributes, HardSwishSteps)
    before, factor, behind = map(m.own, attributes.gates)
    value = _round_up(m, m.mul(x, m.own(attributes.multiplier)))
    gate = _round_up(m, m.mul(m.clamp(m.mul(x, before), *SHORT), factor))
    gate = m.clamp(m.round_away(m.mul(gate, behind)), *SHORT)
    gate = m.call("floor", m.mul(m.add(gate, 32768.0), 0.5))
    upper, size = m.call("floor", m.mul(gate, 1 / 128)), m.call("fabs", value)
    lower = m.mul(m.mul(m.sub(gate, m.mul(upper, 128.0)), size), 1 / 32768)
    upper = m.mul(m.mul(upper, size), 1 / 256)
    whole = m.call("floor", upper)
    product = m.add(whole, m.call("floor", m.add(m.sub(upper, whole), lower)))
    signed = m.mul(m.call("copysign", 1.0, value), m.mul(product, m.own(attributes.power)))
    return _limited(m, m.round_away(signed), attributes.limits)


def _limited(m: FloatMath, value: Register, limits: Steps) -> Register:
    return m.clamp(value, m.own(float(limits.low)), m.own(float(limits.high)))


def _round_up(m: FloatMath, x: Register) -> Register:
    whole = m.call("floor", x)
    return m.add(whole, m.call("floor", m.mul(m.sub(x, whole), 2.0)))
