"""Winograd's products: exact in fractions, near to it in float32."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from texelflow.gpu_delegate.targets.llvm.patches import MOST_POINTS
from texelflow.gpu_delegate.targets.llvm.toom_cook import WindowProducts, pixels_with_products, products_of

WINDOWS = range(2, 8)
ALL = [(pixels, window) for window in WINDOWS for pixels in pixels_with_products(window, max(MOST_POINTS))]
Values = npt.NDArray[Any]


def crossed(axis: WindowProducts, values: Values) -> Values:
    """Of each pair of lines the sum and the difference."""
    single = axis.points - 2 * axis.pairs
    found = values.copy()
    found[single::2] = values[single::2] + values[single + 1 :: 2]
    found[single + 1 :: 2] = values[single::2] - values[single + 1 :: 2]
    return found


def pixels_of(axis: WindowProducts, x: Values, w: Values, kind: Any) -> Values:
    """x is (points, channels), w (window, channels): sums over both."""
    inputs, outputs = (np.array(matrix).astype(kind) for matrix in (axis.inputs, axis.outputs))
    weights = (np.array(axis.weights) @ w if kind is object else np.array(axis.weights, np.float64) @ w).astype(kind)
    sums = (crossed(axis, inputs @ x) * weights).sum(1)
    found: Values = outputs @ crossed(axis, sums)
    return found


def expected(pixels: int, x: Values, w: Values) -> Sequence[Any]:
    return [(x[k : k + len(w)] * w).sum() for k in range(pixels)]


@pytest.mark.parametrize(("pixels", "window"), [*ALL, (1, 1), (1, 3)])
def test_products_are_those_of_the_window(pixels: int, window: int) -> None:
    axis, rng = products_of(pixels, window), np.random.default_rng(pixels)
    assert (axis.pixels, axis.points) == (pixels, pixels + window - 1)
    x, w = (np.vectorize(Fraction, otypes=[object])(rng.integers(-9, 9, (n, 2))) for n in (axis.points, window))
    assert list(pixels_of(axis, x, w, object)) == expected(pixels, x, w)


@pytest.mark.parametrize(("pixels", "window"), ALL)
def test_errors_are_small(pixels: int, window: int) -> None:
    """A tenth of what is admitted, of the largest sum; what values and sums are multiplied by is exact."""
    axis = products_of(pixels, window)
    for factor in (factor for matrix in (axis.inputs, axis.outputs) for line in matrix for factor in line):
        assert Fraction(float(np.float32(float(factor)))) == factor
    rng = np.random.default_rng(0)
    draws: Sequence[Callable[[tuple[int, int]], Values]] = (rng.standard_normal, lambda size: rng.uniform(-1, 1, size))
    for draw in draws:
        found, wanted = list[Values](), list[Sequence[Any]]()
        for _ in range(20):
            x, w = (draw((n, 64)).astype(np.float32) for n in (axis.points, window))
            found.append(pixels_of(axis, x, w.astype(np.float64), np.float32))
            wanted.append(expected(pixels, x.astype(np.float64), w.astype(np.float64)))
        assert np.abs(np.array(found) - wanted).max() <= 1e-5 * np.abs(wanted).max()


def test_there_are_products_for_all_pixels_up_to_the_most_points() -> None:
    assert pixels_with_products(1, 12) == range(0)
    assert pixels_with_products(3, 8) == range(2, 7)
    assert pixels_with_products(7, 12) == range(2, 7)
