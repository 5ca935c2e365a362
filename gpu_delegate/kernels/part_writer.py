"""What the parts of the emitter ask of it, beyond what ops do: the plan behind the kernel, and who goes on."""

from typing import Protocol

from ..code.expressions import Slice
from ..code.indices import Index
from ..code.kernel_writer import KernelWriter
from ..code.vocabulary import Value
from ..plan.body import Body, Root


class PartWriter(KernelWriter, Protocol):
    """A KernelWriter whose plan is known."""

    own: int | None  # a held value of which each part computes slices of its own
    shares_folds: bool

    @property
    def body(self) -> Body: ...

    def leave(self, condition: Value) -> None:
        """Threads for which a condition holds do no more: they end, or pass by all that follows, up to the sums."""
        ...

    def root(self, root: Root, at: Slice) -> None:
        """What a loop computes for one slice."""
        ...

    def in_memory(self, tensor: int, at: Index, pixel: Index) -> Value:
        """Slice `at` of a tensor at a pixel, given by its index in the map, from where the kernel has it."""
        ...

    def channel_in_memory(self, tensor: int, channel: Index, pixel: Index) -> Value | None:
        """One channel of a tensor at a pixel, where reading it takes no texel; None elsewhere."""
        ...
