"""Rounding ops of models with 16-bit activations, which only passes make: REQUANTIZE_WIDE and others.

TensorFlow Lite's kernels for int16 have sums of 64 bits. They multiply by an integer of 15 bits, add half of a power of
two, and shift (MultiplyByQuantizedMultiplier for int64 in its kernels' common.h). Float32 does not hold such sums, but
those of digits: x is a * base^2 + b * base + c, and REQUANTIZE_WIDE puts together what convolutions make of each digit.
Products of two tensors and long sums have 32 bits, and are rounded as bytes are: REQUANTIZE_PRODUCT.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..code.vocabulary import ZEROS, FunctionWord, Operation, Value
from ..model.graph import Attributes, Node, Steps
from ..model.operators import attributes_of
from .elementwise import calls, elementwise
from .record import ConstantTexels, Example
from .requantize import HALF, LOW_BITS, MULTIPLIER_BITS, FixedPoint, FixedPoints

SHORT_SUM_BITS = 15  # of a step, to which ADD brings its inputs
WIDE_BITS = 15  # of a multiplier of sums of 64 bits
LOWER_BITS = 24  # of a bias, in the lower of its two parts
LEAST_SUM, SUM_LOW_BITS = 1 << 19, 10  # of powers: one, in 2^-19; bits of the lower of its two parts
SHORTS = Steps(-(1 << 15), (1 << 15) - 1)
_Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class RequantizeWide(Attributes):
    """REQUANTIZE_WIDE: inputs (sums of two or three digits, upper and lower part of a bias, multiplier, shift).

    Fully connected layers are rounded once.
    """

    limits: Steps = SHORTS
    base: int = 256  # of the digits
    is_once: bool = False  # by a multiplier of 31 bits in two parts, halves away from zero


@dataclass(frozen=True)
class RequantizeProduct(Attributes):
    """REQUANTIZE_PRODUCT: inputs (a, b, c, high, low, shift), of a * b + c; a shift below 0 is to the left."""

    limits: Steps = SHORTS


@dataclass(frozen=True)
class AddShortSteps(Attributes):
    """ADD_SHORT_STEPS: inputs (a, b), steps of two scales."""

    of_inputs: tuple[FixedPoint, FixedPoint] = (HALF, HALF)
    of_sum: FixedPoint = field(default_factory=lambda: FixedPoint(1 << 30, SHORT_SUM_BITS - 2))
    is_difference: bool = False
    limits: Steps = SHORTS


@dataclass(frozen=True)
class SoftmaxSteps(Attributes):
    """SOFTMAX_STEPS: inputs (high, low, upper, lower), a power in parts of 16 bits and a sum in parts of 10."""

    bits: int = 16  # of the result

    @property
    def limits(self) -> Steps:
        """Of the result."""
        return Steps(0, (1 << self.bits) - 1)


def wide_factors(points: FixedPoints, is_once: bool = False) -> tuple[_Floats, ...]:
    """(multiplier, shift) of each, as REQUANTIZE_WIDE takes them: the last bit of the shift is the rounding's own."""
    if is_once:
        high, low, _ = points.in_floats
        return high, low, (points.shifts + MULTIPLIER_BITS - LOW_BITS - 1).astype(np.float32)
    rounded = (points.multipliers + (1 << (LOW_BITS - 1))) >> LOW_BITS
    multipliers = np.minimum(rounded, (1 << WIDE_BITS) - 1)
    return multipliers.astype(np.float32), (points.shifts + WIDE_BITS - 1).astype(np.float32)


def bias_parts(values: npt.NDArray[np.int64]) -> tuple[_Floats, _Floats]:
    """The upper and the lower part of whole numbers below 2^47, both of which float32 has."""
    upper, lower = np.divmod(values, 1 << LOWER_BITS)
    return upper.astype(np.float32), lower.astype(np.float32)


def _wide(attributes: RequantizeWide, *operands: Value) -> Value:
    word: FunctionWord = "requantize wide once" if attributes.is_once else "requantize wide"
    has_three = len(operands) == (9 if attributes.is_once else 8)
    return Operation(word, operands if has_three else (ZEROS, *operands))


def _of_wide(node: Node) -> ConstantTexels:
    wide = attributes_of(node, RequantizeWide)
    return ((float(wide.limits.low), float(wide.limits.high), float(wide.base), 0.0),)


def _of_product(node: Node) -> ConstantTexels:
    limits = attributes_of(node, RequantizeProduct).limits
    return ((float(limits.low), float(limits.high), 0.0, 0.0),)


def _of_softmax(node: Node) -> ConstantTexels:
    softmax = attributes_of(node, SoftmaxSteps)
    return ((float(softmax.limits.low), float(softmax.limits.high), float(softmax.bits), 0.0),)


def _added(attributes: AddShortSteps, a: Value, b: Value, *factors: Value) -> Value:
    """The input whose scale is the greater one comes first: it is but shifted."""
    first, _ = attributes.of_inputs
    return Operation("add short steps", (a, b, *factors) if first == HALF else (b, a, *factors))


def _of_sum(node: Node) -> ConstantTexels:
    add = attributes_of(node, AddShortSteps)
    signs = (1.0, -1.0 if add.is_difference else 1.0)
    (first, second), of_sum = add.of_inputs, add.of_sum
    if first != HALF:
        first, second, signs = second, first, signs[::-1]
    assert first == HALF, "the greater scale is half of twice itself"
    parts = (divmod(each.multiplier, 1 << LOW_BITS) for each in (second, of_sum))
    (high, low), (sum_high, sum_low) = parts
    return (
        (float(high), float(low), float(second.shift), 0.0),
        (float(sum_high), float(sum_low), float(of_sum.shift), 0.0),
        (signs[0] * 2 ** (SHORT_SUM_BITS - 1), signs[1], float(add.limits.low), float(add.limits.high)),
    )


RECORDS = (
    elementwise(
        "REQUANTIZE_WIDE",
        _wide,
        None,
        Example(shapes=((1, 8, 8, 8), (1, 8, 8, 8)), constants=((8,), (8,), (8,), (8,)), attributes=RequantizeWide()),
        constants=_of_wide,
    ),
    elementwise(
        "REQUANTIZE_PRODUCT",
        calls("requantize product"),
        None,
        Example(
            shapes=((1, 8, 8, 8), (1, 8, 8, 8)), constants=((8,), (8,), (8,), (8,)), attributes=RequantizeProduct()
        ),
        constants=_of_product,
    ),
    elementwise(
        "ADD_SHORT_STEPS",
        _added,
        None,
        Example(shapes=((1, 8, 8, 8), (1, 8, 8, 8)), attributes=AddShortSteps()),
        constants=_of_sum,
    ),
    elementwise(
        "SOFTMAX_STEPS",
        calls("softmax steps"),
        None,
        Example(shapes=((1, 8, 8, 8),) * 4, attributes=SoftmaxSteps()),
        constants=_of_softmax,
    ),
)
