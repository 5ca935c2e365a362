"""Draws inputs of a model for trials of the ways to run it."""

from collections.abc import Mapping
from typing import Any

import numpy as np


def drawn_input(detail: Mapping[str, Any]) -> Any:
    """Values for an input in a trial: floats of 0 to 1, all bytes, zeros of other numbers, which may be indices.

    Raises ValueError for texts.
    """
    dtype, shape = np.dtype(detail["dtype"]), tuple(int(size) for size in detail["shape"])
    rng = np.random.default_rng(0)
    if dtype.kind not in "fiub":
        raise ValueError(
            f"inputs of {'texts' if dtype.kind in 'OS' else dtype.name} are not drawn, so nothing is measured"
        )
    if dtype.kind == "f":
        return rng.random(shape, np.float32).astype(dtype)
    if dtype.itemsize == 1 and dtype.kind != "b":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
    return np.zeros(shape, dtype)
