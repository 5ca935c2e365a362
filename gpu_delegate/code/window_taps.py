"""The taps of a sliding window, and the rows and columns of the input map that they read.

Each tap of a short window is written out; a long one is a loop (ops/sliding.py).
"""

from collections.abc import Iterator
from itertools import product

from ..model.graph import Size2
from .indices import Index
from .kernel_writer import KernelWriter
from .vocabulary import Inside, Name, OnGrid, SourceIndex, Value, clamp

VARIABLES = Name("ky", "int"), Name("kx", "int")  # of loops
TapIndex = tuple[Index, Index]  # row and column


def taps_of(writer: KernelWriter, kernel: Size2) -> Iterator[TapIndex]:
    """Each tap of a window of (h, w). What is emitted meanwhile is repeated, or is the body of a loop."""
    axes = [*zip(VARIABLES, kernel, writer.looped_axes(kernel), strict=True)]
    rows, columns = (
        [Index.variable(name, 0, size - 1)] if is_loop else [Index.of(tap) for tap in range(size)]
        for name, size, is_loop in axes
    )
    over = [(name, size) for name, size, is_loop in axes if is_loop]
    if not over:
        yield from product(rows, columns)
        return
    with writer.window_loop(*over):
        yield from product(rows, columns)


def axis_at(writer: KernelWriter, base: Value, stride: int, offset: Index, size: int, last: int) -> SourceIndex:
    """Source coordinate base * stride + offset along one axis, clamped, and its validity.

    base runs from 0 to `last`.
    """
    place = base * stride + offset.code
    if offset.low >= 0 and last * stride + offset.high < size:
        return writer.position("p", place), None
    return writer.position("p", clamp(place, 0, size - 1)), writer.position("k", Inside(place, size))


def strided_axis_at(writer: KernelWriter, base: Value, stride: int, offset: Index, size: int) -> SourceIndex:
    """Source coordinate (base + offset) / stride of a transposed convolution, clamped, and its validity."""
    place = base + offset.code
    at = writer.position("p", clamp(place / stride, 0, size - 1))
    return at, writer.position("k", OnGrid(place, stride, size))
