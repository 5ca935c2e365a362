"""Makes sparse constants dense, and checks the tables that describe them.

The format is TensorFlow Lite's (lite/schema/schema.fbs, SparsityParameters): the dimensions in the order in which they
are traversed, each of them dense or compressed sparse rows; dimensions behind the tensor's own are those of blocks.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..base.errors import ModelError
from ..model.graph import Shape

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SparseLevel:
    """One dimension as it is traversed: dense where it has no segments."""

    size: int  # of a dense dimension
    segments: Integers | None = None  # entry k of the level above has indices[segments[k]:segments[k + 1]]
    indices: Integers | None = None


@dataclass(frozen=True)
class SparseLayout:
    """Where the values of a sparse constant stand."""

    order: tuple[int, ...]  # the dimension of each level; those from the rank on are blocks
    block_map: tuple[int, ...]  # the tensor's dimension of each block
    levels: tuple[SparseLevel, ...]


def dense_constant(values: npt.NDArray[np.generic], shape: Shape, layout: SparseLayout) -> npt.NDArray[np.generic]:
    """The constant of this shape, zero where no value stands. Raises ModelError for tables that contradict it.

    Memory is taken for the result and for 16 bytes per value, once the tables are known to fit.
    """
    steps = _steps(shape, layout)
    _check_counts(layout.levels, [size for size, _ in steps], values.size)
    places, entries = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for level, (size, step) in zip(layout.levels, steps, strict=True):
        if level.segments is None or level.indices is None:
            places = (places[:, None] + np.arange(size, dtype=np.int64) * step).reshape(-1)
            entries = (entries[:, None] * size + np.arange(size, dtype=np.int64)).reshape(-1)
            continue
        if level.indices.size and not 0 <= level.indices.min() <= level.indices.max() < size:
            raise ModelError(f"a sparse constant has an index outside its {size} places")
        places = np.repeat(places, np.diff(level.segments)) + level.indices * step
        entries = np.arange(level.indices.size, dtype=np.int64)
    dense = np.zeros(shape, values.dtype)
    dense.reshape(-1)[places] = values
    dense.flags.writeable = False
    return dense


def _steps(shape: Shape, layout: SparseLayout) -> Sequence[tuple[int, int]]:
    """(size, distance of neighbors in the dense constant) of each level. Raises ModelError."""
    rank, blocks = len(shape), len(layout.block_map)
    if sorted(layout.order) != list(range(rank + blocks)) or len(layout.levels) != rank + blocks:
        raise ModelError(f"a sparse constant of {rank} dimensions and {blocks} blocks is traversed {layout.order}")
    if len(set(layout.block_map)) != blocks or not set(layout.block_map) <= set(range(rank)):
        raise ModelError(f"blocks of the dimensions {layout.block_map}, of {rank}")
    level_of = dict(zip(layout.order, layout.levels, strict=True))
    block_size = {dimension: level_of[rank + k].size for k, dimension in enumerate(layout.block_map)}
    steps = dict[int, tuple[int, int]]()
    for dimension, places in enumerate(shape):
        size, stride = block_size.get(dimension, 1), math.prod(shape[dimension + 1 :])
        if size < 1 or places % size:
            raise ModelError(f"blocks of {size} in a dimension of {places}")
        steps[dimension] = (places // size, size * stride)
        if dimension in block_size:
            steps[rank + layout.block_map.index(dimension)] = (size, stride)
    for dimension, level in level_of.items():
        if level.segments is None and level.size != steps[dimension][0]:
            raise ModelError(f"a sparse constant has {level.size} places instead of {steps[dimension][0]}")
    return [steps[dimension] for dimension in layout.order]


def _check_counts(levels: Sequence[SparseLevel], sizes: Sequence[int], values: int) -> None:
    """ModelError unless each level has as many entries as the next one expects, and the last one has the values."""
    count, places = 1, 1
    for level, size in zip(levels, sizes, strict=True):
        places *= size
        if level.segments is None or level.indices is None:
            count *= size
            continue
        ends = level.segments
        if ends.size != count + 1 or ends[0] != 0 or ends[-1] != level.indices.size or (np.diff(ends) < 0).any():
            raise ModelError("the segments of a sparse constant do not fit its indices")
        count = level.indices.size
        if count > places:
            raise ModelError(f"a sparse constant has {count} indices for {places} places")
    if count != values:
        raise ModelError(f"a sparse constant of {count} places has {values} values")
