"""Encodes arrays as TensorFlow Lite's sparse constants, for tests of what decodes them.

An encoder of TensorFlow Lite's sparse constants, for tests of what decodes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.reading.sparsity import SparseLayout, SparseLevel

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Traversal:
    """How a constant is traversed: `order` has the dimensions, those of blocks behind the array's own."""

    order: tuple[int, ...]
    compressed: tuple[bool, ...]  # whether each level is in compressed rows
    blocks: tuple[tuple[int, int], ...] = ()  # (dimension, size)


def encoded(dense: Array, traversal: Traversal) -> tuple[Array, SparseLayout]:
    """The values that are kept, in order, and the layout."""
    entries, levels = [_blocked(dense, traversal.blocks).transpose(traversal.order)], list[SparseLevel]()
    for compressed in traversal.compressed:
        if compressed:
            kept = [[k for k, part in enumerate(entry) if np.any(part)] for entry in entries]
            segments = np.cumsum([0, *map(len, kept)], dtype=np.int64)
            levels.append(SparseLevel(0, segments, np.array([*chain(*kept)], np.int64)))
            entries = [entry[k] for entry, indices in zip(entries, kept, strict=True) for k in indices]
        else:
            size = entries[0].shape[0] if entries else 1
            levels.append(SparseLevel(size))
            entries = [part for entry in entries for part in entry]
    layout = SparseLayout(traversal.order, tuple(dimension for dimension, _ in traversal.blocks), tuple(levels))
    return np.array(entries, dense.dtype), layout


def _blocked(dense: Array, blocks: Sequence[tuple[int, int]]) -> Array:
    """The array with each blocked dimension divided, the places in blocks as further dimensions at the end."""
    for dimension, size in blocks:
        shape = dense.shape
        split = dense.reshape(*shape[:dimension], shape[dimension] // size, size, *shape[dimension + 1 :])
        dense = np.moveaxis(split, dimension + 1, dense.ndim)
    return dense
