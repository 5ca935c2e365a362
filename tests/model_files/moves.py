"""Ops that move data, added to a sketch with the shapes that NumPy gives them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.model_files.sketch import Sketch


def ints(m: Sketch, values: Any) -> int:
    return m.constant(np.array(values), "int32")


def cut(m: Sketch, x: int, begin: Sequence[int], end: Sequence[int], strides: Sequence[int], **masks: int) -> int:
    """STRIDED_SLICE with the shape that NumPy gives."""
    names = ("begin_mask", "end_mask", "shrink_axis_mask", "ellipsis_mask", "new_axis_mask")
    bits = {name: masks.get(name, 0) for name in names}
    slices: list[Any] = []
    for k, (first, last, step) in enumerate(zip(begin, end, strides, strict=True)):
        open_begin, open_end, shrinks, rest, new = (bits[name] >> k & 1 for name in names)
        if rest or new:
            slices.append(... if rest else None)
        elif shrinks:
            slices.append(first)
        else:
            slices.append(slice(None if open_begin else first, None if open_end else last, step))
    shape = np.empty(m.shape(x))[tuple(slices)].shape
    options: dict[str, Any] = {**bits}
    return m.op(
        "STRIDED_SLICE", [x, *(ints(m, v) for v in (begin, end, strides))], shape, m.tensors[x].dtype, **options
    )


def sliced(m: Sketch, x: int, begin: Sequence[int], sizes: Sequence[int]) -> int:
    shape = tuple(n - b if s == -1 else s for n, b, s in zip(m.shape(x), begin, sizes, strict=True))
    return m.op("SLICE", [x, ints(m, begin), ints(m, sizes)], shape, m.tensors[x].dtype)


def joined(m: Sketch, axis: int, *xs: int) -> int:
    shape = list(m.shape(xs[0]))
    shape[axis] = sum(m.shape(x)[axis] for x in xs)
    return m.op("CONCATENATION", xs, tuple(shape), m.tensors[xs[0]].dtype, axis=axis)


def reshaped(m: Sketch, x: int, *shape: int) -> int:
    return m.op("RESHAPE", [x, ints(m, shape)], shape, m.tensors[x].dtype)


def transposed(m: Sketch, x: int, *order: int) -> int:
    return m.op("TRANSPOSE", [x, ints(m, order)], tuple(m.shape(x)[k] for k in order), m.tensors[x].dtype)


def tiled(m: Sketch, x: int, *repeats: int) -> int:
    shape = tuple(size * times for size, times in zip(m.shape(x), repeats, strict=True))
    return m.op("TILE", [x, ints(m, repeats)], shape, m.tensors[x].dtype)


def mirrored(m: Sketch, x: int, *amounts: tuple[int, int], symmetric: bool = False) -> int:
    shape = tuple(before + size + after for size, (before, after) in zip(m.shape(x), amounts, strict=True))
    return m.op("MIRROR_PAD", [x, ints(m, amounts)], shape, m.tensors[x].dtype, mode=int(symmetric))


def padded(m: Sketch, x: int, value: float, *amounts: tuple[int, int]) -> int:
    shape = tuple(before + size + after for size, (before, after) in zip(m.shape(x), amounts, strict=True))
    dtype = m.tensors[x].dtype
    return m.op("PADV2", [x, ints(m, amounts), m.constant(np.array(value), dtype)], shape, dtype)


def gathered(m: Sketch, x: int, axis: int, *places: int) -> int:
    shape = (*m.shape(x)[:axis], len(places), *m.shape(x)[axis + 1 :])
    return m.op("GATHER", [x, ints(m, places)], shape, m.tensors[x].dtype, axis=axis)


def batches(m: Sketch, x: int, block: tuple[int, int], *amounts: tuple[int, int]) -> int:
    b, h, w, c = m.shape(x)
    (top, bottom), (left, right) = amounts
    shape = (b * block[0] * block[1], (h + top + bottom) // block[0], (w + left + right) // block[1], c)
    return m.op("SPACE_TO_BATCH_ND", [x, ints(m, block), ints(m, amounts)], shape, m.tensors[x].dtype)


def spaces(m: Sketch, x: int, block: tuple[int, int], *crops: tuple[int, int]) -> int:
    b, h, w, c = m.shape(x)
    (top, bottom), (left, right) = crops
    shape = (b // (block[0] * block[1]), h * block[0] - top - bottom, w * block[1] - left - right, c)
    return m.op("BATCH_TO_SPACE_ND", [x, ints(m, block), ints(m, crops)], shape, m.tensors[x].dtype)
