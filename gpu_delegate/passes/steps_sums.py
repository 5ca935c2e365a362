"""Scales of a sum of 8-bit integers go in; factors come out with which floats round as TensorFlow Lite's integers do.

Its kernels bring both values, shifted by 20 bits, to one scale, and round what they add three times. Floats that round
once differ where a sum is within a millionth of a half. There are no more than 65,536 pairs of values: all are computed
here in integers, and if one differs the factors are moved a little, or what is taken for a half.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from ..graph import Steps

FACTOR_BITS = 14  # of the factors: the sum of their products with steps, of 9 bits, is exact
SHIFT = 20  # of the values before they are scaled
NEAR = 1e-3  # of a half: sums farther away are rounded alike
NUDGE, NUDGES = 2.0**-22, 4  # by which factors and the half are moved, how often at most in either direction
MOST_RATIO = 64.0  # of scales; beyond it most sums lie outside the limits
_Integers = npt.NDArray[np.int64]
_Doubles = npt.NDArray[np.float64]
_Pair = tuple[float, float]


@dataclass(frozen=True)
class SumFactors:
    """Real factors of two values, and what is added to a sum's size before its fraction is cut off."""

    real: _Pair
    half: float = 0.5

    @property
    def factors(self) -> _Pair:
        """Multiples of one power of two, of FACTOR_BITS bits together with the greatest."""
        unit = 2.0 ** (max(0, int(np.ceil(np.log2(max(map(abs, self.real)))))) - FACTOR_BITS)
        return round(self.real[0] / unit) * unit, round(self.real[1] / unit) * unit

    @property
    def rests(self) -> _Pair:
        """What is left of them."""
        (one, other), factors = self.real, self.factors
        return float(np.float32(one - factors[0])), float(np.float32(other - factors[1]))

    def sums(self, x: _Doubles, y: _Doubles) -> _Doubles:
        """Of these values, as kernels round them."""
        (one, other), rests = self.factors, self.rests
        found = x * one + y * other + (x * rests[0] + y * rests[1])
        return np.asarray(np.copysign(np.floor(np.abs(found) + self.half), found))


def sum_factors(scales: _Pair, sign: int, out: float, ranges: tuple[Steps, Steps], limits: Steps) -> SumFactors:
    """For the sum (sign 1) or the difference (-1) of both values in steps of the output."""
    wanted = SumFactors((scales[0] / out, sign * scales[1] / out))
    if max(map(abs, wanted.real)) > MOST_RATIO:
        return wanted
    x, y = (np.arange(steps.low, steps.high + 1, dtype=np.float64) for steps in ranges)
    sums = x[:, None] * wanted.real[0] + y * wanted.real[1]
    inside = (sums > limits.low - 1) & (sums < limits.high + 1)
    near = np.nonzero((np.abs(np.abs(sums - np.trunc(sums)) - 0.5) < NEAR) & inside)
    x, y = x[near[0]], y[near[1]]
    right = reference_sums(x.astype(np.int64), y.astype(np.int64), scales, sign, out)
    best, fewest = wanted, len(x) + 1
    for candidate in _around(wanted):
        wrong = int(np.count_nonzero(candidate.sums(x, y) != right))
        if wrong < fewest:
            best, fewest = candidate, wrong
        if not wrong:
            break
    return best


def _around(middle: SumFactors) -> Iterator[SumFactors]:
    """The factors, then those nearby, the nearest first."""
    moves = range(-NUDGES, NUDGES + 1)
    for one, other, half in sorted(product(moves, repeat=3), key=lambda move: sum(map(abs, move))):
        real = middle.real[0] + one * NUDGE, middle.real[1] + other * NUDGE
        yield SumFactors(real, 0.5 + half * NUDGE)


def reference_sums(x: _Integers, y: _Integers, scales: _Pair, sign: int, out: float) -> _Integers:
    """The sums as TensorFlow Lite rounds them."""
    twice = 2 * max(scales)
    one, other = (_scaled(v << SHIFT, scale / twice) for v, scale in zip((x, y), scales, strict=True))
    return _scaled(one + sign * other, twice / out / 2**SHIFT)


def _scaled(values: _Integers, multiplier: float) -> _Integers:
    """MultiplyByQuantizedMultiplier, for multipliers below one: two roundings."""
    mantissa, exponent = np.frexp(multiplier)
    rounded = (values * round(float(mantissa) * 2**31) + (1 << 30)) >> 31
    shift = -int(exponent)
    if shift <= 0:
        return rounded << -shift
    above_half = (rounded & ((1 << shift) - 1)) > ((1 << shift) - 1 >> 1) + (rounded < 0)
    return (rounded >> shift) + above_half
