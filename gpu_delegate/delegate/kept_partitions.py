"""Keeps a partition in OpenGL for the shapes that it had before, as long as there is room for it."""

from collections.abc import Mapping

from ..model.graph import Shape
from .engine import DelegateEngine, LoadedPartition

MOST_KEPT = 3
MOST_KEPT_BYTES = 1 << 28

Shapes = Mapping[int, Shape]  # of inputs, by their tensors


class KeptPartitions:
    """Those that one kernel has had, with the same constants; the one that was used last is the last to go."""

    def __init__(self, engine: DelegateEngine) -> None:
        self._engine = engine
        self._kept: dict[tuple[tuple[int, Shape], ...], LoadedPartition] = {}

    def take(self, shapes: Shapes) -> LoadedPartition | None:
        """The one for some shapes, which is not kept here any more."""
        return self._kept.pop(tuple(sorted(shapes.items())), None)

    def keep(self, shapes: Shapes, loaded: LoadedPartition) -> None:
        """Keep one, and free what there is no room for."""
        self._kept[tuple(sorted(shapes.items()))] = loaded
        while len(self._kept) > MOST_KEPT or sum(map(_bytes, self._kept.values())) > MOST_KEPT_BYTES:
            self._engine.unload(self._kept.pop(next(iter(self._kept))))

    def clear(self) -> None:
        """Free all of them."""
        while self._kept:
            self._engine.unload(self._kept.popitem()[1])


def _bytes(loaded: LoadedPartition) -> int:
    return loaded.program.buffer_bytes + loaded.io.buffer_bytes
