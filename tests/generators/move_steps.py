"""Steps that move a tensor's values: of maps whose batch stays, or of tensors of any type and rank."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from tests.generators.map_steps import LARGEST_SIDE
from tests.generators.random_graphs import MapStep, RandomGraph, Step
from tests.model_files.moves import (
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

LARGEST_DEPTH = 64
LARGEST_MAP = 30_000  # values
NUMBERS = ("float32", "float32", "float32", "int32")
ANY = (*NUMBERS, "bool")  # types, likely ones more often


# Of maps and of any tensors -------------------------------------------------------------------------------------------


def _inside(graph: RandomGraph, size: int, whole: int) -> int:
    """A place, often a multiple of four or the first."""
    place = int(graph.rng.integers(0, size))
    return place // whole * whole if graph.chance(0.6) else 0 if graph.chance(0.5) else place


def _sliced(graph: RandomGraph, x: int) -> int:
    shape, free = graph.shape(x), graph.free_axes(x)
    wholes = [4 if k == 3 else 1 for k in range(len(shape))]
    begin = [_inside(graph, shape[k], wholes[k]) if k in free else 0 for k in range(len(shape))]
    sizes = [size - b if graph.chance(0.5) else graph.below(size - b + 1) for b, size in zip(begin, shape, strict=True)]
    return sliced(graph, x, begin, [size if k in free else shape[k] for k, size in enumerate(sizes)])


def _strided(graph: RandomGraph, x: int) -> int:
    rank, free = len(graph.shape(x)), graph.free_axes(x)
    steps = [graph.pick((1, 1, 2, -1, -2)) if k in free else 1 for k in range(rank)]
    return cut(graph, x, [0 if step > 0 else -1 for step in steps], [0] * rank, steps, end_mask=(1 << rank) - 1)


def _reversed(graph: RandomGraph, x: int) -> int:
    inputs = [x, ints(graph, [graph.pick(graph.free_axes(x))])]
    return graph.op("REVERSE_V2", inputs, graph.shape(x), graph.dtype(x))


def _transposed(graph: RandomGraph, x: int) -> int:
    free = graph.free_axes(x)
    kept = range(len(graph.shape(x)) - len(free))
    return transposed(graph, x, *kept, *(graph.rng.permutation(len(free)) + len(kept)).tolist())


def _tiled(graph: RandomGraph, x: int) -> int:
    rank, free = len(graph.shape(x)), graph.free_axes(x)
    repeats = [
        1 if k not in free else graph.below(3) if k < rank - 1 else graph.pick((1, 1, 2, 3)) for k in range(rank)
    ]
    return tiled(graph, x, *repeats)


def _mirrored(graph: RandomGraph, x: int) -> int:
    symmetric, free = graph.chance(0.5), graph.free_axes(x)
    most = [min(3, size - (not symmetric)) if k in free else 0 for k, size in enumerate(graph.shape(x))]
    return mirrored(graph, x, *_amounts(graph, most, free), symmetric=symmetric)


def _amounts(graph: RandomGraph, most: list[int], free: tuple[int, ...]) -> list[tuple[int, int]]:
    """Values before and behind, for each dimension."""

    def one(limit: int) -> int:
        return int(graph.rng.integers(0, limit + 1))

    return [(one(n), one(n)) if k in free else (0, 0) for k, n in enumerate(most)]


def _filled(graph: RandomGraph, x: int) -> int:
    amounts = _amounts(graph, [4] * len(graph.shape(x)), graph.free_axes(x))
    return padded(graph, x, graph.pick((0.0, 0.0, -1.5)), *amounts)


def _deepened(graph: RandomGraph, x: int) -> int:
    batch, height, width, channels = graph.shape(x)
    block = graph.pick([n for n in (1, 2, 3) if height % n == width % n == 0])
    shape = (batch, height // block, width // block, channels * block * block)
    return graph.op("SPACE_TO_DEPTH", [x], shape, graph.dtype(x), block_size=block)


def _gathered(graph: RandomGraph, x: int) -> int:
    axis = graph.pick(graph.free_axes(x))
    return gathered(graph, x, axis, *graph.rng.integers(0, graph.shape(x)[axis], graph.below(7)).tolist())


# Of maps --------------------------------------------------------------------------------------------------------------


def of_bounded_size(step: MapStep) -> MapStep:
    """The step on a map of bounded size; what it makes may be an output."""

    def made(graph: RandomGraph, x: int) -> int:
        _, height, width, channels = graph.shape(x)
        if max(height, width) > LARGEST_SIDE // 2:
            x = graph.resize(x, (graph.below(9), graph.below(9)))
        if channels > LARGEST_DEPTH or height * width * channels > LARGEST_MAP:
            x = graph.conv(x, graph.below(24))
        out = graph.remember(step(graph, x), graph.about(x))
        graph.inner_outputs += [out] if graph.chance(0.1) else []
        return graph.conv(out, graph.below(16)) if graph.shape(out)[3] > LARGEST_DEPTH else out

    return made


def _across(graph: RandomGraph, x: int, axis: int) -> list[int]:
    """The shape without one dimension."""
    return [size for k, size in enumerate(graph.shape(x)) if k != axis]


def _concatenated(graph: RandomGraph, x: int) -> int:
    """Of one to five parts: maps of this size, what is computed from this one, constants."""
    axis, parts = graph.pick((1, 2, 3, 3, 3)), [x]
    for _ in range(graph.below(5)):
        same = [x, *(y for y in graph.made if _across(graph, y, axis) == _across(graph, x, axis))]
        shape = list(graph.shape(x))
        shape[axis] = graph.below(6)
        parts.append(
            graph.pick(same) if graph.chance(0.4)
            else graph.constant(graph.rng.uniform(-1, 1, shape)) if graph.chance(0.2)
            else graph.conv(x, graph.pick((1, 3, 4, 4, 8, 8, 9))) if axis == 3
            else graph.unary("TANH", x)
        )  # fmt: skip
    return joined(graph, axis, *(graph.pick(parts) for _ in parts))


def _divided_up(graph: RandomGraph, x: int) -> int:
    """Parts of which some are computed with, and put together again in another order."""
    axis = graph.pick((1, 2, 3))
    size = graph.shape(x)[axis]
    count = graph.pick([n for n in range(1, min(size, 6) + 1) if size % n == 0])
    shape = [size // count if k == axis else n for k, n in enumerate(graph.shape(x))]
    parts = graph.split("SPLIT", [ints(graph, axis), x], [tuple(shape)] * count, num_splits=count)
    made = [graph.unary("TANH", part) if graph.chance(0.5) else part for part in parts]
    return joined(graph, axis, *made[::-1])


def _repacked(graph: RandomGraph, x: int) -> int:
    """Taken apart along one dimension and put together along another."""
    axis, to = graph.pick((1, 2)), graph.pick((1, 2, 3))
    shape = _across(graph, x, axis)
    count = graph.shape(x)[axis]
    if count > 6:  # large parts take a storage buffer each, of which there are eight
        return _sliced(graph, x)
    parts = graph.split("UNPACK", [x], [tuple(shape)] * count, axis=axis, num=count)
    return graph.op("PACK", parts, tuple(np.insert(shape, to, count).tolist()), axis=to, values_count=count)


def _reshaped_map(graph: RandomGraph, x: int) -> int:
    batch, *sizes = graph.shape(x)
    total, target = int(np.prod(sizes)), list[int]()
    for _ in range(2):
        target.append(graph.pick([n for n in range(1, min(total, LARGEST_SIDE // 2) + 1) if total % n == 0]))
        total //= target[-1]
    order = graph.rng.permutation([*target, total]).tolist()
    if max(order[:2]) > LARGEST_SIDE or order[2] > 4 * LARGEST_DEPTH:
        return _reversed(graph, x)
    if graph.chance(0.3):  # through a table
        x = reshaped(graph, x, batch, order[0] * order[1], order[2])
    return reshaped(graph, x, batch, *order)


def _flattened_map(graph: RandomGraph, x: int) -> int:
    batch, height, width, _ = graph.shape(x)
    block = graph.pick((2, 3)) if max(height, width) <= LARGEST_SIDE // 3 else 1
    wide = graph.conv(x, graph.below(9) * block * block)
    shape = (batch, height * block, width * block, graph.shape(wide)[3] // block**2)
    return graph.op("DEPTH_TO_SPACE", [wide], shape, block_size=block)


def _spread(graph: RandomGraph, x: int) -> int:
    """Over batches, and back."""
    height, width = graph.shape(x)[1:3]
    block = graph.pick(((2, 2), (1, 3), (3, 2)))
    around = [(k, -(n + k) % b) for k, n, b in zip((0, 1), (height, width), block, strict=True)]
    x = batches(graph, x, block, around[0], around[1])
    x = graph.unary("TANH", x) if graph.chance(0.5) else graph.depthwise(x)
    return spaces(graph, x, block, around[0], around[1])


def _looked_up(graph: RandomGraph, x: int) -> int:
    """At places that an input says: its values are between -2 and 2."""
    axis, count = graph.pick((1, 2, 3)), graph.below(6)
    if len(graph.inputs) > 3 or graph.shape(x)[axis] < 3:
        return _gathered(graph, x)
    places = graph.op("CAST", [graph.unary("ABS", graph.input((count,)))], (count,), "int32")
    shape = (*graph.shape(x)[:axis], count, *graph.shape(x)[axis + 1 :])
    return graph.op("GATHER", [x, places], shape, axis=axis)


MAP_MOVES: tuple[MapStep, ...] = tuple(
    map(
        of_bounded_size,
        (
            _sliced, _strided, _reversed, _concatenated, _concatenated, _divided_up, _repacked, _reshaped_map,
            _transposed, _tiled, _mirrored, _filled, _deepened, _flattened_map, _spread, _gathered, _looked_up,
        ),
    )
)  # fmt: skip


# Of any tensors -------------------------------------------------------------------------------------------------------


def _moved(move: Callable[[RandomGraph, int], int | None], *ranks: int, dtypes: tuple[str, ...] = ANY) -> Step:
    """A step that moves a tensor's values; it stays as exact as it was."""

    def step(graph: RandomGraph) -> int | None:
        x = graph.value(graph.pick(dtypes), ranks or (1, 2, 3, 4))
        found = move(graph, x)
        return None if found is None else graph.like(found, x)

    return step


def _padded(graph: RandomGraph, x: int) -> int:
    amounts = _amounts(graph, [2] * len(graph.shape(x)), graph.free_axes(x))
    shape = tuple(before + n + after for n, (before, after) in zip(graph.shape(x), amounts, strict=True))
    return graph.op("PAD", [x, ints(graph, amounts)], shape, graph.dtype(x))


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


def _repeated(graph: RandomGraph, x: int) -> int:
    """BROADCAST_TO a larger shape."""
    shape = tuple(graph.pick((1, 2, 3)) if n == 1 else n for n in graph.shape(x))
    return graph.op("BROADCAST_TO", [x, ints(graph, shape)], shape, graph.dtype(x))


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
        "TRANSPOSE": _moved(_transposed),
        "TILE": _moved(_tiled),
        "BROADCAST_TO": _moved(_repeated),
        "GATHER": _moved(_gathered),
        "SPACE_TO_DEPTH": _moved(_deepened, 4, dtypes=NUMBERS),
        "DEPTH_TO_SPACE": _moved(_flattened, 4, dtypes=("float32",)),
        "SPACE_TO_BATCH_ND": _moved(_to_batches, 4, dtypes=NUMBERS),
        "BATCH_TO_SPACE_ND": _moved(_to_spaces, 4, dtypes=NUMBERS),
    }
)
