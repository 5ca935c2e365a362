"""Ops of steps and vectors of floats go in, LLVM's instructions come out: for what shaders/requantize.glsl says."""

from ..graph import Attributes, Steps
from ..ops.requantize import AddSteps, HardSwishSteps, Requantize
from .ir import Register
from .vector_math import FloatMath

HALF = 4096.0  # of a sum of products: the greatest part and the rest have twelve bits each
SHORT = (-32768.0, 32767.0)


def requantize(
    m: FloatMath, attributes: Attributes, x: Register, multiplier: Register, rest: Register, power: Register
) -> Register:
    """Two roundings of a sum of products."""
    assert isinstance(attributes, Requantize)
    upper = m.mul(m.call("trunc", m.mul(x, 1 / HALF)), HALF)
    lower = m.mul(m.sub(x, upper), multiplier)
    whole = m.call("floor", lower)
    product = m.add(m.fma(upper, multiplier, whole), _round_up(m, m.fma(x, rest, m.sub(lower, whole))))
    return _limited(m, m.round_away(m.mul(product, power)), attributes.limits)


def add_steps(m: FloatMath, attributes: Attributes, x: Register, y: Register) -> Register:
    """The sum of values in scales of their own."""
    assert isinstance(attributes, AddSteps)
    (first, second), (first_rest, second_rest) = attributes.factors, attributes.rests
    total = m.fma(x, first, m.mul(y, second))
    rest = m.fma(x, first_rest, m.mul(y, second_rest))
    side, size = m.call("copysign", 1.0, total), m.call("fabs", total)
    whole = m.call("floor", size)
    part = m.add(m.fma(side, rest, m.sub(size, whole)), attributes.half)
    return _limited(m, m.mul(side, m.add(whole, m.call("floor", part))), attributes.limits)


def hard_swish_steps(m: FloatMath, attributes: Attributes, x: Register) -> Register:
    """HARD_SWISH in 16 bits."""
    assert isinstance(attributes, HardSwishSteps)
    before, factor, behind = attributes.gates
    value = _round_up(m, m.mul(x, attributes.multiplier))
    gate = _round_up(m, m.mul(m.clamp(m.mul(x, before), *SHORT), factor))
    gate = m.clamp(m.round_away(m.mul(gate, behind)), *SHORT)
    gate = m.call("floor", m.mul(m.add(gate, 32768.0), 0.5))
    upper, size = m.call("floor", m.mul(gate, 1 / 128)), m.call("fabs", value)
    lower = m.mul(m.mul(m.sub(gate, m.mul(upper, 128.0)), size), 1 / 32768)
    upper = m.mul(m.mul(upper, size), 1 / 256)
    whole = m.call("floor", upper)
    product = m.add(whole, m.call("floor", m.add(m.sub(upper, whole), lower)))
    signed = m.mul(m.call("copysign", 1.0, value), m.mul(product, attributes.power))
    return _limited(m, m.round_away(signed), attributes.limits)


def _limited(m: FloatMath, value: Register, limits: Steps) -> Register:
    return m.clamp(value, float(limits.low), float(limits.high))


def _round_up(m: FloatMath, x: Register) -> Register:
    whole = m.call("floor", x)
    return m.add(whole, m.call("floor", m.mul(m.sub(x, whole), 2.0)))
