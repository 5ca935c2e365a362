"""A seed goes in, a small network comes out that moves data as often as it computes: moves of moves, views, readers."""

from collections.abc import Callable

import numpy as np

from tests.generators.random_networks import LARGEST_SIDE, RandomNetwork, Step
from tests.model_files.sketch import Sketch
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

LARGEST_DEPTH = 64
LARGEST_MAP = 30_000  # values


def random_moves(seed: int, batch: int = 1) -> Sketch:
    """A network of some ops; `.build()` gives the .tflite file, and `.rng` goes on with the seed."""
    return MovingNetwork(seed, batch).grow()


class MovingNetwork(RandomNetwork):
    """Every map keeps its batch, so that any two can be resized to each other."""

    def steps(self) -> tuple[Step, ...]:
        moves: tuple[Callable[[int], int], ...] = (
            self.sliced, self.strided, self.reversed, self.concatenated, self.concatenated, self.divided_up,
            self.packed, self.reshaped, self.transposed_axes, self.tiled, self.mirrored, self.filled, self.deepened,
            self.flattened, self.spread, self.gathered, self.looked_up,
        )  # fmt: skip
        return (*super().steps(), *((3, self.bounded(move)) for move in moves))

    def bounded(self, move: Callable[[int], int]) -> Callable[[int], int]:
        """The move of a map of bounded size."""

        def moved(x: int) -> int:
            _, height, width, channels = self.shape(x)
            if max(height, width) > LARGEST_SIDE // 2:
                x = self.resize(x, (self.below(9), self.below(9)))
            if channels > LARGEST_DEPTH or height * width * channels > LARGEST_MAP:
                x = self.conv(x, self.below(24))
            out = self.remember(move(x), self.magnitude.get(x, 2.0))
            self.inner_outputs += [out] if self.chance(0.1) else []
            return self.conv(out, self.below(16)) if self.shape(out)[3] > LARGEST_DEPTH else out

        return moved

    def below(self, limit: int) -> int:
        """1 to limit - 1."""
        return int(self.rng.integers(1, limit))

    def inside(self, size: int, whole: int) -> int:
        """A place, often a multiple of four or the first."""
        place = int(self.rng.integers(0, size))
        return place // whole * whole if self.chance(0.6) else 0 if self.chance(0.5) else place

    def sliced(self, x: int) -> int:
        shape = self.shape(x)
        begin = [0, *(self.inside(size, whole) for size, whole in zip(shape[1:], (1, 1, 4), strict=True))]
        sizes = [
            size - b if self.chance(0.5) else self.below(size - b + 1) for b, size in zip(begin, shape, strict=True)
        ]
        return sliced(self, x, begin, [shape[0], *sizes[1:]])

    def strided(self, x: int) -> int:
        steps = [1, *(self.pick((1, 1, 2, -1, -2)) for _ in range(3))]
        begin = [0 if step > 0 else -1 for step in steps]
        return cut(self, x, begin, [0] * 4, steps, end_mask=15)

    def reversed(self, x: int) -> int:
        return self.op("REVERSE_V2", [x, ints(self, [self.pick((1, 2, 3))])], self.shape(x))

    def across(self, x: int, axis: int) -> list[int]:
        """The shape without one dimension."""
        return [size for k, size in enumerate(self.shape(x)) if k != axis]

    def concatenated(self, x: int) -> int:
        """Of one to five parts: maps of this size, what is computed from this one, constants."""
        axis, parts = self.pick((1, 2, 3, 3, 3)), [x]
        for _ in range(self.below(5)):
            same = [x, *(y for y in self.made if self.across(y, axis) == self.across(x, axis))]
            shape = list(self.shape(x))
            shape[axis] = self.below(6)
            parts.append(
                self.pick(same) if self.chance(0.4)
                else self.constant(self.rng.uniform(-1, 1, shape)) if self.chance(0.2)
                else self.conv(x, self.pick((1, 3, 4, 4, 8, 8, 9))) if axis == 3
                else self.unary("TANH", x)
            )  # fmt: skip
        return joined(self, axis, *(self.pick(parts) for _ in parts))

    def divided_up(self, x: int) -> int:
        """Parts of which some are computed with, and put together again in another order."""
        axis = self.pick((1, 2, 3))
        size = self.shape(x)[axis]
        count = self.pick([n for n in range(1, min(size, 6) + 1) if size % n == 0])
        shape = [size // count if k == axis else n for k, n in enumerate(self.shape(x))]
        parts = self.split("SPLIT", [ints(self, axis), x], [tuple(shape)] * count, num_splits=count)
        made = [self.unary("TANH", part) if self.chance(0.5) else part for part in parts]
        return joined(self, axis, *made[::-1])

    def packed(self, x: int) -> int:
        """Taken apart along one dimension and put together along another."""
        axis, to = self.pick((1, 2)), self.pick((1, 2, 3))
        shape = self.across(x, axis)
        count = self.shape(x)[axis]
        if count > 6:  # large parts take a storage buffer each, of which there are eight
            return self.sliced(x)
        parts = self.split("UNPACK", [x], [tuple(shape)] * count, axis=axis, num=count)
        return self.op("PACK", parts, tuple(np.insert(shape, to, count).tolist()), axis=to, values_count=count)

    def reshaped(self, x: int) -> int:
        batch, *sizes = self.shape(x)
        total, target = int(np.prod(sizes)), list[int]()
        for _ in range(2):
            target.append(self.pick([n for n in range(1, min(total, LARGEST_SIDE // 2) + 1) if total % n == 0]))
            total //= target[-1]
        order = self.rng.permutation([*target, total]).tolist()
        if max(order[:2]) > LARGEST_SIDE or order[2] > 4 * LARGEST_DEPTH:
            return self.reversed(x)
        if self.chance(0.3):  # through a table
            x = reshaped(self, x, batch, order[0] * order[1], order[2])
        return reshaped(self, x, batch, *order)

    def transposed_axes(self, x: int) -> int:
        return transposed(self, x, 0, *(self.rng.permutation(3) + 1).tolist())

    def tiled(self, x: int) -> int:
        return tiled(self, x, 1, self.below(3), self.below(3), self.pick((1, 1, 2, 3)))

    def mirrored(self, x: int) -> int:
        symmetric = self.chance(0.5)
        most = [min(3, size - (not symmetric)) for size in self.shape(x)[1:]]
        amounts = [(int(self.rng.integers(0, n + 1)), int(self.rng.integers(0, n + 1))) for n in most]
        return mirrored(self, x, (0, 0), *amounts, symmetric=symmetric)

    def filled(self, x: int) -> int:
        amounts = [(int(self.rng.integers(0, 5)), int(self.rng.integers(0, 5))) for _ in range(3)]
        return padded(self, x, self.pick((0.0, 0.0, -1.5)), (0, 0), *amounts)

    def deepened(self, x: int) -> int:
        batch, height, width, channels = self.shape(x)
        block = self.pick([n for n in (1, 2, 3) if height % n == width % n == 0])
        shape = (batch, height // block, width // block, channels * block * block)
        return self.op("SPACE_TO_DEPTH", [x], shape, block_size=block)

    def flattened(self, x: int) -> int:
        batch, height, width, _ = self.shape(x)
        block = self.pick((2, 3)) if max(height, width) <= LARGEST_SIDE // 3 else 1
        wide = self.conv(x, self.below(9) * block * block)
        shape = (batch, height * block, width * block, self.shape(wide)[3] // block**2)
        return self.op("DEPTH_TO_SPACE", [wide], shape, block_size=block)

    def spread(self, x: int) -> int:
        """Over batches, and back."""
        height, width = self.shape(x)[1:3]
        block = self.pick(((2, 2), (1, 3), (3, 2)))
        around = [(k, -(n + k) % b) for k, n, b in zip((0, 1), (height, width), block, strict=True)]
        x = batches(self, x, block, around[0], around[1])
        x = self.unary("TANH", x) if self.chance(0.5) else self.depthwise(x)
        return spaces(self, x, block, around[0], around[1])

    def gathered(self, x: int) -> int:
        axis = self.pick((1, 2, 3))
        return gathered(self, x, axis, *self.rng.integers(0, self.shape(x)[axis], self.below(7)).tolist())

    def looked_up(self, x: int) -> int:
        """At places that an input says: its values are between -2 and 2."""
        axis, count = self.pick((1, 2, 3)), self.below(6)
        if len(self.inputs) > 3 or self.shape(x)[axis] < 3:
            return self.gathered(x)
        places = self.op("CAST", [self.unary("ABS", self.input((count,)))], (count,), "int32")
        shape = (*self.shape(x)[:axis], count, *self.shape(x)[axis + 1 :])
        return self.op("GATHER", [x, places], shape, axis=axis)
