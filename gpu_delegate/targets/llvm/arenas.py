"""The memory between inputs and outputs that networks of one WeightsCache use in turns.

A run has an arena to itself from its beginning until its outputs have been read. Runs one after another have the same
one; another is made only for a run on another thread meanwhile, so that no thread waits for another.
"""

import contextlib
import weakref
from collections.abc import Iterator

from ...model.packing import Float32Array
from .planes import reserve_floats


class Arenas:
    """As many as there have been runs at the same time. May be used from several threads."""

    def __init__(self) -> None:
        self._free = list[Float32Array]()  # its pop and append need no lock, which a fork could leave locked
        self._made = list[weakref.ref[Float32Array]]()

    @property
    def size_bytes(self) -> int:
        """Of all of them."""
        return sum(arena.nbytes for made in self._made if (arena := made()) is not None)

    @contextlib.contextmanager
    def lent(self, floats: int) -> Iterator[Float32Array]:
        """At least so many floats that nobody else has before the end of the block; what is in them is left over."""
        arena = self._taken(floats)
        if arena is None:
            arena = reserve_floats(floats)
            self._made.append(weakref.ref(arena))
        try:
            yield arena
        finally:
            self._free.append(arena)

    def _taken(self, floats: int) -> Float32Array | None:
        """A free one; one that is too small is forgotten."""
        try:
            arena = self._free.pop()
        except IndexError:
            return None
        return arena if arena.size >= floats else None
