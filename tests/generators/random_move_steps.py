"""A graph that grows goes in, with another op that moves values it comes back: tensors of any type and rank."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from tests.generators.random_graphs import RandomGraph, Step
from tests.tables.move_cases import (
    batches,
    cut,
    gathered,
    ints,
    joined,
    mirrored,
    padded,
    reshaped,
    sliced,
    spaces,
    tiled,
    transposed,
)

NUMBERS = ("float32", "float32", "float32", "int32")
ANY = (*NUMBERS, "bool")  # types, likely ones more often


def _pairs(graph: RandomGraph, most: int, x: int, around_batch: bool = True) -> list[tuple[int, int]]:
    """Values before and behind, for each dimension."""
    pairs = [(int(graph.rng.integers(0, most + 1)), int(graph.rng.integers(0, most + 1))) for _ in graph.shape(x)]
    return pairs if around_batch and graph.chance(0.2) else [(0, 0), *pairs[1:]]


def _moved(move: Callable[[RandomGraph, int], int | None], *ranks: int, dtypes: tuple[str, ...] = ANY) -> Step:
    """A step that moves a tensor's values; it stays as exact as it was."""

    def step(graph: RandomGraph) -> int | None:
        x = graph.value(graph.pick(dtypes), ranks or (1, 2, 3, 4))
        found = move(graph, x)
        return None if found is None else graph.like(found, x)

    return step


def _padded(graph: RandomGraph, x: int) -> int:
    amounts = _pairs(graph, 2, x)
    shape = tuple(before + n + after for n, (before, after) in zip(graph.shape(x), amounts, strict=True))
    return graph.op("PAD", [x, ints(graph, amounts)], shape, graph.dtype(x))


def _filled(graph: RandomGraph, x: int) -> int:
    return padded(graph, x, graph.pick((0.0, -3.0, 2.0)), *_pairs(graph, 2, x))


def _mirrored(graph: RandomGraph, x: int) -> int:
    symmetric = graph.chance(0.5)
    amounts = [
        (min(before, size - (not symmetric)), min(after, size - (not symmetric)))
        for (before, after), size in zip(_pairs(graph, 2, x), graph.shape(x), strict=True)
    ]
    return mirrored(graph, x, *amounts, symmetric=symmetric)


def _joined(graph: RandomGraph, x: int) -> int:
    axis = int(graph.rng.integers(0, len(graph.shape(x))))

    def others(y: int) -> list[int]:
        return [n for k, n in enumerate(graph.shape(y)) if k != axis]

    fitting = [
        y for y in graph.made
        if graph.dtype(y) == graph.dtype(x) and len(graph.shape(y)) == len(graph.shape(x)) and others(y) == others(x)
        and graph.about(y) <= graph.about(x) and (y in graph.exact or x not in graph.exact)
    ]  # fmt: skip
    return joined(graph, axis, *(graph.pick([x, *fitting]) for _ in range(graph.pick((1, 2, 3, 4)))))


def _packed(graph: RandomGraph, x: int) -> int:
    axis, count = int(graph.rng.integers(0, len(graph.shape(x)) + 1)), graph.pick((1, 2, 3))
    same = [
        y for y in graph.made
        if (graph.shape(y), graph.dtype(y)) == (graph.shape(x), graph.dtype(x)) and y in graph.exact
    ]  # fmt: skip
    parts = [x, *(graph.pick([x, *same]) for _ in range(count - 1))]
    shape = tuple(np.insert(graph.shape(x), axis, count).tolist())
    return graph.op("PACK", parts, shape, graph.dtype(x), axis=axis, values_count=count)


def _unpacked(graph: RandomGraph, x: int) -> int | None:
    axis = int(graph.rng.integers(0, len(graph.shape(x))))
    count = graph.shape(x)[axis]
    shape = tuple(n for k, n in enumerate(graph.shape(x)) if k != axis)
    if count > 6:
        return None
    return _parts(graph, x, graph.split("UNPACK", [x], [shape] * count, graph.dtype(x), axis=axis, num=count))


def _parts(graph: RandomGraph, x: int, parts: tuple[int, ...]) -> int:
    for part in parts[1:]:
        graph.made.append(graph.like(part, x))
    return parts[0]


def _split(graph: RandomGraph, x: int) -> int:
    axis = int(graph.rng.integers(0, len(graph.shape(x))))
    size = graph.shape(x)[axis]
    count = graph.pick([n for n in range(1, min(size, 5) + 1) if size % n == 0])
    shape = tuple(n // count if k == axis else n for k, n in enumerate(graph.shape(x)))
    made = graph.split("SPLIT", [ints(graph, axis), x], [shape] * count, graph.dtype(x), num_splits=count)
    return _parts(graph, x, made)


def _split_unevenly(graph: RandomGraph, x: int) -> int | None:
    axis = int(graph.rng.integers(0, len(graph.shape(x))))
    size = graph.shape(x)[axis]
    if size < 2:
        return None
    first = int(graph.rng.integers(1, size))
    shapes = [tuple(part if k == axis else n for k, n in enumerate(graph.shape(x))) for part in (first, size - first)]
    inputs = [x, ints(graph, [first, size - first]), ints(graph, axis)]
    return _parts(graph, x, graph.split("SPLIT_V", inputs, shapes, graph.dtype(x), num_splits=2))


def _reshaped(graph: RandomGraph, x: int) -> int:
    left, target = graph.total(x), list[int]()
    for _ in range(graph.pick((0, 1, 2, 3))):
        target.append(graph.pick([n for n in range(1, min(left, 12) + 1) if left % n == 0]))
        left //= target[-1]
    shape = [*target, left]
    return reshaped(graph, x, *graph.rng.permutation(shape).tolist())


def _expanded(graph: RandomGraph, x: int) -> int:
    axis = int(graph.rng.integers(0, len(graph.shape(x)) + 1))
    shape = tuple(np.insert(graph.shape(x), axis, 1).tolist())
    return graph.op("EXPAND_DIMS", [x, ints(graph, axis)], shape, graph.dtype(x))


def _squeezed(graph: RandomGraph, x: int) -> int | None:
    ones = [k for k, n in enumerate(graph.shape(x)) if n == 1]
    if not ones and len(graph.shape(x)) == 4:
        return None
    if not ones:
        x, ones = reshaped(graph, x, 1, *graph.shape(x)), [0]
    gone = graph.pick(ones)
    shape = tuple(n for k, n in enumerate(graph.shape(x)) if k != gone)
    return graph.op("SQUEEZE", [x], shape, graph.dtype(x), squeeze_dims=(gone,))


def _sliced(graph: RandomGraph, x: int) -> int:
    begin = [int(graph.rng.integers(0, n)) if graph.chance(0.5) else 0 for n in graph.shape(x)]
    sizes = [int(graph.rng.integers(1, n - b + 1)) for n, b in zip(graph.shape(x), begin, strict=True)]
    return sliced(graph, x, begin, sizes)


def _strided(graph: RandomGraph, x: int) -> int:
    steps = [graph.pick((1, 1, 2, -1, -2)) for _ in graph.shape(x)]
    rank = len(steps)
    return cut(graph, x, [0 if step > 0 else -1 for step in steps], [0] * rank, steps, end_mask=(1 << rank) - 1)


def _reversed(graph: RandomGraph, x: int) -> int:
    axis = int(graph.rng.integers(0, len(graph.shape(x))))
    return graph.op("REVERSE_V2", [x, ints(graph, [axis])], graph.shape(x), graph.dtype(x))


def _repeated(graph: RandomGraph, x: int) -> int:
    """BROADCAST_TO a larger shape."""
    shape = tuple(graph.pick((1, 2, 3)) if n == 1 else n for n in graph.shape(x))
    return graph.op("BROADCAST_TO", [x, ints(graph, shape)], shape, graph.dtype(x))


def _gathered(graph: RandomGraph, x: int) -> int:
    axis = int(graph.rng.integers(0, len(graph.shape(x))))
    return gathered(graph, x, axis, *graph.rng.integers(0, graph.shape(x)[axis], graph.pick((1, 2, 5))).tolist())


def _deepened(graph: RandomGraph, x: int) -> int:
    batch, height, width, channels = graph.shape(x)
    block = graph.pick([n for n in (1, 2, 3) if height % n == width % n == 0])
    shape = (batch, height // block, width // block, channels * block * block)
    return graph.op("SPACE_TO_DEPTH", [x], shape, graph.dtype(x), block_size=block)


def _flattened(graph: RandomGraph, x: int) -> int:
    batch, height, width, channels = graph.shape(x)
    block = graph.pick([n for n in (1, 2, 3) if channels % (n * n) == 0])
    shape = (batch, height * block, width * block, channels // block**2)
    return graph.op("DEPTH_TO_SPACE", [x], shape, graph.dtype(x), block_size=block)


def _to_batches(graph: RandomGraph, x: int) -> int:
    block = graph.pick(((2, 2), (1, 3), (3, 2)))
    around = [(k, -(n + k) % b) for k, n, b in zip((0, 1), graph.shape(x)[1:3], block, strict=True)]
    return batches(graph, x, block, around[0], around[1])


def _to_spaces(graph: RandomGraph, x: int) -> int | None:
    block = graph.pick(((1, 2), (3, 1), (2, 1), (1, 1)))
    return spaces(graph, x, block, (0, 0), (0, 0)) if graph.shape(x)[0] % (block[0] * block[1]) == 0 else None


MOVE_STEPS: Mapping[str, Step] = MappingProxyType(
    {
        "PAD": _moved(_padded, dtypes=NUMBERS),
        "PADV2": _moved(_filled, dtypes=NUMBERS),
        "MIRROR_PAD": _moved(_mirrored, dtypes=NUMBERS),
        "CONCATENATION": _moved(_joined),
        "PACK": _moved(_packed, 1, 2, 3, dtypes=NUMBERS),
        "UNPACK": _moved(_unpacked, 2, 3, 4),
        "SPLIT": _moved(_split, dtypes=NUMBERS),
        "SPLIT_V": _moved(_split_unevenly, dtypes=NUMBERS),
        "RESHAPE": _moved(_reshaped),
        "EXPAND_DIMS": _moved(_expanded, 1, 2, 3),
        "SQUEEZE": _moved(_squeezed, 2, 3, 4),
        "SLICE": _moved(_sliced),
        "STRIDED_SLICE": _moved(_strided),
        "REVERSE_V2": _moved(_reversed),
        "TRANSPOSE": _moved(
            lambda graph, x: transposed(graph, x, *graph.rng.permutation(len(graph.shape(x))).tolist())
        ),
        "TILE": _moved(lambda graph, x: tiled(graph, x, *(graph.pick((1, 1, 2, 3)) for _ in graph.shape(x)))),
        "BROADCAST_TO": _moved(_repeated),
        "GATHER": _moved(_gathered),
        "SPACE_TO_DEPTH": _moved(_deepened, 4, dtypes=NUMBERS),
        "DEPTH_TO_SPACE": _moved(_flattened, 4, dtypes=("float32",)),
        "SPACE_TO_BATCH_ND": _moved(_to_batches, 4, dtypes=NUMBERS),
        "BATCH_TO_SPACE_ND": _moved(_to_spaces, 4, dtypes=NUMBERS),
    }
)
