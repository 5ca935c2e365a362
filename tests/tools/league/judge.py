"""Compares the outputs of two ways to compute a model."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .runs import Arrays


def compared(found: Sequence[Arrays], wanted: Sequence[Arrays]) -> dict[str, Any]:
    """Of outputs, run by run.

    error: the largest of floats, in parts of the range of all that was wanted of that output; None without floats, inf
    where one is finite and the other is not. equal, step: the share of whole numbers that are equal, and how far apart
    the others are at most. bytes, same: how many outputs are 8-bit, and how many of these are equal in all values.
    flat: whether nothing but one value was wanted of each output, which says little.
    """
    errors, steps, same, bytes_of, equal, count, is_flat = list[float](), list[int](), 0, 0, 0, 0, True
    for ours, theirs in zip(_by_output(found), _by_output(wanted), strict=True):
        if [a.shape for a in ours] != [a.shape for a in theirs] or ours[0].dtype != theirs[0].dtype:
            return {"apart": f"an output is {_said(ours[0])}, not {_said(theirs[0])}"}
        one, other = (np.concatenate([array.ravel() for array in arrays]) for arrays in (ours, theirs))
        is_flat = is_flat and bool(other.size and (other == other[0]).all())
        if one.dtype.kind in "fc":
            errors.append(float_error(one, other))
            continue
        equals = int((one == other).sum())
        equal, count = equal + equals, count + one.size
        steps.append(_largest_step(one, other))
        if one.dtype.itemsize == 1 and one.dtype.kind in "iu":
            bytes_of, same = bytes_of + 1, same + (equals == one.size)
    return {
        "error": max(errors, default=None), "equal": equal / count if count else None,
        "step": max(steps, default=None), "bytes": bytes_of, "same": same, "flat": is_flat,
    }  # fmt: skip


def float_error(found: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> float:
    """The largest difference, in parts of the range of what is wanted, or of its magnitude where all are equal."""
    if not wanted.size:
        return 0.0
    finite = np.isfinite(wanted)
    if not np.array_equal(found[~finite], wanted[~finite], equal_nan=True) or not np.isfinite(found[finite]).all():
        return float("inf")
    if not finite.any():
        return 0.0
    values = wanted[finite].astype(np.float64)
    apart = float(np.abs(found[finite].astype(np.float64) - values).max())
    return apart / (float(np.ptp(values)) or float(np.abs(values).max()) or 1.0)


def _by_output(runs: Sequence[Arrays]) -> list[list[npt.NDArray[Any]]]:
    return [[*arrays] for arrays in zip(*runs, strict=True)]


def _largest_step(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> int:
    if not one.size or one.dtype.kind not in "iub":
        return 0
    return int(np.abs(one.astype(np.float64) - other.astype(np.float64)).max())


def _said(array: npt.NDArray[Any]) -> str:
    return f"{'x'.join(map(str, array.shape))} {array.dtype}"
