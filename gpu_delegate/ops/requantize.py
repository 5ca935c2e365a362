"""What passes alone make of 8-bit ops: whole numbers in some scale go in, steps of the output's scale come out.

TensorFlow Lite's reference kernels multiply by an integer of 31 bits, round halves up, divide by a power of two, round
halves away from zero, and limit the result to the output's type or to its fused activation
(MultiplyByQuantizedMultiplier in its kernels' common.h; arXiv 1712.05877, section 2.4). REQUANTIZE does the same with
integers of 64 bits, so its steps are theirs, to the bit, wherever the whole numbers are below 2^24. ADD_STEPS adds in
2^-20 of a step, and HARD_SWISH_STEPS computes in 16 bits.
"""

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..graph import Attributes, Node, Steps
from ..operators import attributes_of
from .elementwise import elementwise
from .record import Example

MULTIPLIER_BITS, LOW_BITS = 31, 16
SUM_BITS = 20  # of a step, to which ADD brings its inputs
_Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Requantize(Attributes):
    """REQUANTIZE: inputs (x, high, low, power), all but x constants for all channels or for each.

    The multiplier is high * 2^16 + low, in units of 2^-31, times the power of two.
    """

    limits: Steps = field(default_factory=lambda: Steps(-128, 127))
    is_once: bool = False  # rounded once, behind the power, halves up


@dataclass(frozen=True)
class RoundToSteps(Attributes):
    """ROUND_TO_STEPS: inputs (x, multiplier), of real numbers."""

    limits: Steps = field(default_factory=lambda: Steps(-128, 127))


@dataclass(frozen=True)
class FixedPoint:
    """A multiplier below one: an integer in units of 2^-31, then a shift to the right."""

    multiplier: int
    shift: int


@dataclass(frozen=True)
class AddSteps(Attributes):
    """ADD_STEPS: inputs (a, b), steps of two scales."""

    of_inputs: tuple[FixedPoint, FixedPoint] = (FixedPoint(1 << 30, 0), FixedPoint(1 << 30, 0))
    of_sum: FixedPoint = field(default_factory=lambda: FixedPoint(1 << 30, SUM_BITS - 2))
    is_difference: bool = False
    limits: Steps = field(default_factory=lambda: Steps(-128, 127))


@dataclass(frozen=True)
class HardSwishSteps(Attributes):
    """HARD_SWISH_STEPS: input (x,). Numbers of 16 bits, as factors of the steps."""

    multiplier: float = 64.0  # of x, in the output's scale before the last shift
    gates: tuple[float, float, float] = (128.0, 0.5, 1.0)  # of x, up to 1 being 32768: with a rounding behind each
    power: float = 2.0**-7  # the last shift
    limits: Steps = field(default_factory=lambda: Steps(-128, 127))


def fixed_point(multiplier: float) -> FixedPoint:
    """A positive number (QuantizeMultiplier of TensorFlow Lite); to the left where the shift is negative."""
    mantissa, exponent = math.frexp(multiplier)
    if exponent < -MULTIPLIER_BITS:
        return FixedPoint(0, 0)
    integer = round(mantissa * 2**MULTIPLIER_BITS)
    return FixedPoint(integer >> 1, -exponent - 1) if integer == 2**MULTIPLIER_BITS else FixedPoint(integer, -exponent)


def in_floats(multipliers: list[FixedPoint]) -> tuple[_Floats, _Floats, _Floats]:
    """(high, low, power) of each, as REQUANTIZE takes them."""
    integers = [each.multiplier for each in multipliers]
    high, low = ([integer >> LOW_BITS for integer in integers], [integer % (1 << LOW_BITS) for integer in integers])
    powers = [2.0**-each.shift for each in multipliers]
    return np.array(high, np.float32), np.array(low, np.float32), np.array(powers, np.float32)


def _limits(limits: Steps) -> str:
    return f"{float(limits.low)!r}, {float(limits.high)!r}"


def _requantized(node: Node) -> str:
    attributes = attributes_of(node, Requantize)
    function = "requantize_once" if attributes.is_once else "requantize"
    return f"{function}({{0}}, {{1}}, {{2}}, {{3}}, {_limits(attributes.limits)})"


def _rounded(node: Node) -> str:
    return f"round_to_steps({{0}}, {{1}}, {_limits(attributes_of(node, RoundToSteps).limits)})"


def _added(node: Node) -> str:
    attributes = attributes_of(node, AddSteps)
    factors = (*attributes.of_inputs, attributes.of_sum)
    said = ", ".join(f"ivec2({each.multiplier}, {each.shift})" for each in factors)
    sign = -1 if attributes.is_difference else 1
    return f"add_steps({{0}}, {{1}}, {said}, {sign}, {_limits(attributes.limits)})"


def _vector(values: tuple[float, ...]) -> str:
    return f"vec{len(values)}({', '.join(map(repr, map(float, values)))})"


def _swished(node: Node) -> str:
    swish = attributes_of(node, HardSwishSteps)
    factors = f"{swish.multiplier!r}, {_vector(swish.gates)}, {swish.power!r}"
    return f"hard_swish_steps({{0}}, {factors}, {_limits(swish.limits)})"


RECORDS = (
    elementwise(
        "REQUANTIZE",
        _requantized,
        None,
        Example(constants=((8,), (8,), (8,)), attributes=Requantize()),
        functions="requantize.glsl",
    ),
    elementwise(
        "ROUND_TO_STEPS",
        _rounded,
        None,
        Example(constants=((8,),), attributes=RoundToSteps()),
        functions="requantize.glsl",
    ),
    elementwise(
        "ADD_STEPS",
        _added,
        None,
        Example(shapes=((1, 8, 8, 8), (1, 8, 8, 8)), attributes=AddSteps()),
        functions="requantize.glsl",
    ),
    elementwise("HARD_SWISH_STEPS", _swished, None, Example(attributes=HardSwishSteps()), functions="requantize.glsl"),
)
