"""What was measured on a device: the fastest tile of a kernel and the fastest fusion settings of a graph.

Compilation takes a kernel's tile from here instead of the family's rules (tiling.py), wherever its signature is known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from .tile import Tile


@dataclass(frozen=True)
class Gain:
    """Milliseconds of what was chosen and of the family's default, both measured one after the other."""

    ms: float
    default_ms: float


@dataclass(frozen=True)
class Choice(Gain):
    """The fastest tile of one kernel; with the default's milliseconds where nothing was faster by enough."""

    tile: Tile
    same_bits: bool  # results as the default's; else within the tolerance that models are checked with
    searched: int  # kinds of choices that were tried, of tuning/candidates.py


@dataclass(frozen=True)
class FusionChoice(Gain):
    """The fastest settings of those in Tuning that decide which ops become one kernel, for one graph."""

    settings: Mapping[str, int]  # field to value


@dataclass(frozen=True)
class Choices:
    """All that is known of a device."""

    kernels: Mapping[str, Choice] = field(default_factory=lambda: MappingProxyType({}))
    graphs: Mapping[str, FusionChoice] = field(default_factory=lambda: MappingProxyType({}))

    def __bool__(self) -> bool:
        return bool(self.kernels or self.graphs)

    def with_kernel(self, signature: str, choice: Choice) -> "Choices":
        """The same with one more kernel, or another choice for it."""
        return Choices(MappingProxyType({**self.kernels, signature: choice}), self.graphs)

    def with_graph(self, signature: str, choice: FusionChoice) -> "Choices":
        """The same with one more graph, or another choice for it."""
        return Choices(self.kernels, MappingProxyType({**self.graphs, signature: choice}))

    def updated(self, others: "Choices") -> "Choices":
        """These and others, which win where both know a signature."""
        kernels, graphs = {**self.kernels, **others.kernels}, {**self.graphs, **others.graphs}
        return Choices(MappingProxyType(kernels), MappingProxyType(graphs))


UNMEASURED = Choices()
