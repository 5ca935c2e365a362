"""Compares what two kernels computed: to the bit, or within a model's tolerance."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..cpu.compare import HALF_ERROR, TOLERANCE

Results = Sequence[npt.NDArray[Any]]


def same_bits(found: Results | None, wanted: Results | None) -> bool:
    """Whether there are both, and all values are equal, NaN included."""
    if found is None or wanted is None:
        return False
    return all(np.array_equal(mine, other, equal_nan=mine.dtype.kind == "f") for mine, other in _pairs(found, wanted))


def agrees(found: Results | None, wanted: Results | None, halves: bool) -> bool:
    """Whether they differ no more than the GPU may from the CPU: by TOLERANCE of the magnitude, HALF_ERROR for halves.

    Results of different shapes (partial sums of more or fewer work-groups) are not compared; one of the same shape is
    needed.
    """
    if found is None or wanted is None:
        return False
    pairs, share = _pairs(found, wanted), HALF_ERROR if halves else TOLERANCE
    return bool(pairs) and all(_is_near(mine, other, share) for mine, other in pairs)


def _pairs(found: Results, wanted: Results) -> list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    return [(mine, other) for mine, other in zip(found, wanted, strict=True) if mine.shape == other.shape]


def _is_near(mine: npt.NDArray[Any], other: npt.NDArray[Any], share: float) -> bool:
    finite = other[np.isfinite(other)]
    scale = max(1.0, float(np.abs(finite).max(initial=0.0)))
    return np.allclose(mine, other, rtol=0.0, atol=share * scale, equal_nan=True)
