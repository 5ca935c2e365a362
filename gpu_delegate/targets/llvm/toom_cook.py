"""Makes the matrices of Winograd's products: sums over a window at a few pixels at once, with fewer multiplications.

Pixels and a window's weights are taken for coefficients of polynomials, whose product is known by its values at as many
points as it has coefficients: a product for each (Winograd, "Arithmetic Complexity of Computations", 1980; Lavin,
Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016, section 4). Transposed, that gives the pixels:

    outputs @ ((weights @ w) * (inputs @ x))    with n = pixels + window - 1 points, x of n values, w of `window`

A point p / q is the pair (p, q), infinity (1, 0), so that what inputs and outputs are multiplied by is whole. Values at
p and -p have sums over even and odd places in common, which are computed once. Which points keep errors small was
measured, among fractions of numbers up to four (after Barabasz, Anderson, Soodhalter, Gregg, "Error Analysis and
Improving the Accuracy of Winograd Convolution for Deep Neural Networks", ACM TOMS 2020).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from math import prod
from types import MappingProxyType

Point = tuple[int, int]
FactorMatrix = tuple[tuple[Fraction, ...], ...]

_ZERO, _INFINITY, _ONE = (0, 1), (1, 0), (1, 1)
# By their number: points without an opposite, then those that have one.
_POINTS: Mapping[int, tuple[tuple[Point, ...], tuple[Point, ...]]] = MappingProxyType(
    {
        3: ((_ZERO, _INFINITY, _ONE), ()),
        4: ((_ZERO, _INFINITY), (_ONE,)),
        5: ((_ZERO,), (_ONE, (2, 1))),
        6: ((_ZERO, _INFINITY), (_ONE, (3, 2))),
        7: ((_INFINITY,), (_ONE, (1, 2), (3, 2))),
        8: ((_ZERO, _INFINITY), (_ONE, (2, 1), (1, 2))),
        9: ((_INFINITY,), (_ONE, (2, 1), (1, 4), (3, 4))),
        10: ((_ZERO, _INFINITY), (_ONE, (3, 1), (1, 3), (3, 4))),
        11: ((_INFINITY,), (_ONE, (2, 1), (1, 2), (1, 4), (4, 3))),
        12: ((_ZERO, _INFINITY), (_ONE, (3, 1), (1, 3), (3, 4), (4, 3))),
    }
)


@dataclass(frozen=True)
class WindowProducts:
    """How sums over a window along one axis become products.

    The last points are pairs of opposites. In place of their rows, `inputs` has half the sum and half the difference of
    these, and `outputs` has that of their columns: what comes out there, and goes in here, is added and subtracted.
    """

    pixels: int
    inputs: FactorMatrix  # (points, points)
    weights: FactorMatrix  # (points, window)
    outputs: FactorMatrix  # (pixels, points)
    pairs: int

    @property
    def points(self) -> int:
        return len(self.weights)

    @cached_property
    def input_steps(self) -> int:
        """Additions and multiply-adds of one transform of inputs."""
        return sum(map(_steps, self.inputs)) + 2 * self.pairs

    @cached_property
    def output_steps(self) -> int:
        """The same of outputs."""
        return sum(map(_steps, self.outputs)) + 2 * self.pairs


def pixels_with_products(window: int, most_points: int) -> range:
    """Of how many pixels there are products for a window, of at most so many points."""
    return (
        range(max(2, min(_POINTS) - window + 1), min(most_points, max(_POINTS)) - window + 2)
        if window > 1
        else range(0)
    )


@cache
def products_of(pixels: int, window: int) -> WindowProducts:
    """F(pixels, window). Of one pixel it has the sum itself: a product for each place of the window."""
    if pixels == 1:
        unit = tuple(tuple(Fraction(i == k) for k in range(window)) for i in range(window))
        return WindowProducts(1, unit, unit, ((Fraction(1),) * window,), 0)
    single, paired = _POINTS[pixels + window - 1]
    points = (*single, *(point for p, q in paired for point in ((p, q), (-p, q))))
    inputs = tuple(_through_others(points, k) for k in range(len(points)))
    outputs = tuple(_powers(point, pixels) for point in points)
    weights = tuple(
        tuple(power / _distances(points, k) for power in _powers(point, window)) for k, point in enumerate(points)
    )
    halved = _halved(inputs, len(single)), _turned(_halved(outputs, len(single)))
    return WindowProducts(pixels, halved[0], weights, halved[1], len(paired))


def _powers(point: Point, count: int) -> tuple[Fraction, ...]:
    """1, x, x^2 ... at a point, times a power of its divisor that makes them whole."""
    p, q = point
    return tuple(Fraction(p**k * q ** (count - 1 - k)) for k in range(count))


def _through_others(points: Sequence[Point], k: int) -> tuple[Fraction, ...]:
    """The coefficients of the polynomial that is 0 at all points but the k-th."""
    found = [1]
    for p, q in (point for other, point in enumerate(points) if other != k):
        found = [q * high - p * low for high, low in zip([0, *found], [*found, 0], strict=True)]
    return tuple(map(Fraction, found))


def _distances(points: Sequence[Point], k: int) -> int:
    """What that polynomial is at the k-th point."""
    p, q = points[k]
    return prod(p * down - up * q for other, (up, down) in enumerate(points) if other != k)


def _halved(rows: FactorMatrix, single: int) -> FactorMatrix:
    """Half the sum and half the difference of each pair of rows behind the first ones."""
    pairs = zip(rows[single::2], rows[single + 1 :: 2], strict=True)
    halves = (
        tuple((one + sign * other) / 2 for one, other in zip(*pair, strict=True)) for pair in pairs for sign in (1, -1)
    )
    return (*rows[:single], *halves)


def _turned(rows: FactorMatrix) -> FactorMatrix:
    return tuple(zip(*rows, strict=True))


def _steps(row: Sequence[Fraction]) -> int:
    factors = [factor for factor in row if factor]
    return len(factors) - (1 in factors)
