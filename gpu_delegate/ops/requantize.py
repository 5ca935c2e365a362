"""Rounding ops of quantized models, which only passes make, such as REQUANTIZE and ADD_STEPS.

TensorFlow Lite's reference kernels multiply by an integer of 31 bits, round halves up, divide by a power of two, round
halves away from zero, and limit the result to the output's type or to its fused activation
(MultiplyByQuantizedMultiplier in its kernels' common.h; arXiv 1712.05877, section 2.4). REQUANTIZE does the same with
integers of 64 bits, so its steps are theirs, to the bit, wherever the whole numbers are below 2^24. ADD_STEPS adds in
2^-20 of a step, and HARD_SWISH_STEPS computes in 16 bits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..code.vocabulary import Operation, Value
from ..model.graph import Attributes, Graph, Node, Steps
from ..model.layout import shape_of
from ..model.operators import attributes_of
from ..model.rewrite import float_data
from .elementwise import calls, elementwise
from .record import ConstantTexels, Example

MULTIPLIER_BITS, LOW_BITS = 31, 16
SUM_BITS = 20  # of a step, to which ADD brings its inputs
FRACTION_BITS = MULTIPLIER_BITS - SUM_BITS  # of the product of a step in such parts and a multiplier
END_OF_NARROW = 1 << 22  # of whole numbers whose products with multipliers float32 has to a quarter
_Floats = npt.NDArray[np.float32]
_Ints = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Requantize(Attributes):
    """REQUANTIZE: inputs (x, high, low, power), all but x constants for all channels or for each.

    The multiplier is high * 2^16 + low, in units of 2^-31, times the power of two.
    """

    limits: Steps = field(default_factory=lambda: Steps(-128, 127))
    is_once: bool = False  # rounded once, behind the power, halves away from zero
    is_narrow: bool = False  # whether what it is given lets requantize_narrow do it (`is_narrow`)


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


HALF = FixedPoint(1 << (MULTIPLIER_BITS - 1), 0)


def fixed_point(multiplier: float) -> FixedPoint:
    """A positive number (QuantizeMultiplier of TensorFlow Lite); to the left where the shift is negative."""
    return fixed_points([multiplier]).points[0]


@dataclass(frozen=True)
class FixedPoints:
    """Several multipliers, as arrays (N,)."""

    multipliers: npt.NDArray[np.int64]
    shifts: npt.NDArray[np.int64]

    @staticmethod
    def of(points: Sequence[FixedPoint]) -> "FixedPoints":
        pairs = np.array([(each.multiplier, each.shift) for each in points], np.int64)
        return FixedPoints(pairs[:, 0], pairs[:, 1])

    @property
    def points(self) -> list[FixedPoint]:
        """One by one."""
        return list(map(FixedPoint, self.multipliers.tolist(), self.shifts.tolist()))

    @property
    def in_floats(self) -> tuple[_Floats, _Floats, _Floats]:
        """(high, low, power) of each, as REQUANTIZE takes them."""
        high, low = self.multipliers >> LOW_BITS, self.multipliers & ((1 << LOW_BITS) - 1)
        return high.astype(np.float32), low.astype(np.float32), np.ldexp(np.float32(1), -self.shifts)


def fixed_points(multipliers: npt.ArrayLike) -> FixedPoints:
    """The same of several positive numbers (N,)."""
    mantissas, exponents = np.frexp(np.asarray(multipliers, np.float64))
    integers = np.rint(mantissas * 2**MULTIPLIER_BITS).astype(np.int64)
    is_one = integers == 2**MULTIPLIER_BITS  # of the mantissa, rounded
    is_lost = exponents < -MULTIPLIER_BITS
    shifts = -exponents.astype(np.int64) - is_one
    return FixedPoints(np.where(is_lost, 0, integers >> is_one), np.where(is_lost, 0, shifts))


def rounds_twice(node: Node) -> bool:
    """Whether it is a REQUANTIZE of which channel_rounding may know the multipliers, by the values of its inputs."""
    return isinstance(node.attributes, Requantize) and not node.attributes.is_once


def channel_rounding(graph: Graph, node: Node) -> tuple[_Ints, _Ints, Steps] | None:
    """The multipliers of REQUANTIZE in 2^-31, its shifts to the right, both of each channel, and its limits.

    None for other ops, and where it rounds once or shifts to the left.
    """
    attributes = node.attributes
    if not isinstance(attributes, Requantize) or not rounds_twice(node):
        return None
    channels = shape_of(graph.tensors[node.outputs[0]]).channels
    high, low, power = (
        np.broadcast_to(float_data(graph.tensors[i]).ravel(), channels).astype(np.float64) for i in node.inputs[1:]
    )
    multipliers, shifts = (high * (1 << LOW_BITS) + low).astype(np.int32), np.rint(-np.log2(power)).astype(np.int32)
    return (multipliers, shifts, attributes.limits) if shifts.min() >= 0 else None


def is_narrow(limits: Steps, most: int, least_power: float, greatest_power: float) -> bool:
    """Whether `requantize_narrow` does what `requantize` does: for whole numbers up to `most` away from zero.

    It needs products that float32 has to a quarter, or that the limits cut off even if they are wrong by 2.
    """
    if most * max(1.0, 2 * greatest_power) < END_OF_NARROW:
        return True
    is_cut = least_power * (END_OF_NARROW // 2 - 2) > max(-limits.low, limits.high) + 1
    return is_cut and greatest_power <= 1.0


def _requantized(attributes: Requantize, *operands: Value) -> Value:
    if attributes.is_once:
        return Operation("requantize once", operands)
    return Operation("requantize narrow" if attributes.is_narrow else "requantize", operands)


def _limits(node: Node) -> ConstantTexels:
    assert isinstance(node.attributes, Requantize | RoundToSteps)
    limits = node.attributes.limits
    return ((float(limits.low), float(limits.high), 0.0, 0.0),)


def _added(attributes: AddSteps, a: Value, b: Value, *factors: Value) -> Value:
    """The input whose scale is the greater one comes first: it is but shifted."""
    first, _ = attributes.of_inputs
    return Operation("add steps", (a, b, *factors) if first == HALF else (b, a, *factors))


def _factors(node: Node) -> ConstantTexels:
    """Of ADD_STEPS, all of them integers that float32 has; see shaders/requantize.glsl."""
    add = attributes_of(node, AddSteps)
    signs = (1.0, -1.0 if add.is_difference else 1.0)
    (first, second), of_sum = add.of_inputs, add.of_sum
    if first != HALF:
        first, second, signs = second, first, signs[::-1]
    assert first == HALF, "the greater scale is half of twice itself"
    assert of_sum.shift or not of_sum.multiplier, "the form refuses others"
    whole, fraction = divmod(second.multiplier, 1 << FRACTION_BITS) if second.shift else (second.multiplier >> 10, 0)
    high, low = divmod(of_sum.multiplier, 1 << LOW_BITS)
    shift, last = max(second.shift, 1), max(of_sum.shift, 1)
    return (
        (float(whole), float(fraction), 2.0 ** (shift - 1), float(shift)),
        (float(high), float(low), 2.0 ** (last - 1), float(last)),
        (signs[0] * 2**SUM_BITS, signs[1] * 2, float(add.limits.low), float(add.limits.high)),
    )


def _swish_factors(node: Node) -> ConstantTexels:
    swish = attributes_of(node, HardSwishSteps)
    return ((swish.multiplier, *swish.gates), (swish.power, float(swish.limits.low), float(swish.limits.high), 0.0))


RECORDS = (
    elementwise(
        "REQUANTIZE",
        _requantized,
        None,
        Example(constants=((8,), (8,), (8,)), attributes=Requantize()),
        constants=_limits,
    ),
    elementwise(
        "ROUND_TO_STEPS",
        calls("round to steps"),
        None,
        Example(constants=((8,),), attributes=RoundToSteps()),
        constants=_limits,
    ),
    elementwise(
        "ADD_STEPS",
        _added,
        None,
        Example(shapes=((1, 8, 8, 8), (1, 8, 8, 8)), attributes=AddSteps()),
        constants=_factors,
    ),
    elementwise(
        "HARD_SWISH_STEPS",
        calls("hard swish steps"),
        None,
        Example(attributes=HardSwishSteps()),
        constants=_swish_factors,
    ),
)
