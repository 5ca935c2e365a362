"""Memory planners of textures, as in TensorFlow Lite's GPU delegate.

A texture serves as a larger or smaller one only where it is at least as long on every side: bytes do not tell. Tensors
of one side are buffers (objects_in_order.py, objects_by_size.py). Rules: those of TensorFlow Lite's GPU delegate.
"""

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from texelflow.gpu_delegate.plan.memory.objects_in_order import by_first_task

TextureSides = tuple[int, ...]


@dataclass(frozen=True)
class TextureRecord:
    """A tensor as a texture of some width and height, and depth if it has three sides, alive over some tasks."""

    tensor: int
    sides: TextureSides
    first_task: int
    last_task: int


@dataclass(frozen=True)
class TexturePlan:
    """The object that each tensor has, and the objects' sides."""

    objects: Mapping[int, int]
    sides: tuple[TextureSides, ...]


def naive_textures(records: Sequence[TextureRecord]) -> TexturePlan:
    """A texture for each tensor."""
    numbers = {record.tensor: number for number, record in enumerate(records)}
    return TexturePlan(numbers, tuple(record.sides for record in records))


def equal_textures(records: Sequence[TextureRecord]) -> TexturePlan:
    """Each tensor into the first free texture of exactly its sides, else into a new one."""
    return _share(records, covering=False)


def covering_textures(records: Sequence[TextureRecord]) -> TexturePlan:
    """Each tensor into the free texture that covers it with the fewest texels to spare, else into a new one.

    This is greedy in order for textures.
    """
    return _share(records, covering=True)


def _share(records: Sequence[TextureRecord], covering: bool) -> TexturePlan:
    objects, sides = dict[int, int](), list[TextureSides]()
    free: list[int] = []  # sorted
    for record, freed in by_first_task(records, objects):
        for number in freed:
            insort(free, number)
        fitting = [k for k in free if sides[k] == record.sides or (covering and _covers(sides[k], record.sides))]
        if fitting:
            number = min(fitting, key=lambda k: prod(sides[k]))
            free.remove(number)
        else:
            number = len(sides)
            sides.append(record.sides)
        objects[record.tensor] = number
    return TexturePlan(objects, tuple(sides))


def _covers(sides: TextureSides, other: TextureSides) -> bool:
    return len(sides) == len(other) and all(side >= least for side, least in zip(sides, other, strict=True))
