"""A dispatch, whatever its language: what the order of kernels and the plan of their memory need to know of one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ..device.tile import Tile
from ..model.graph import Graph
from ..model.layout import Fetch, Storages
from .body import Body
from .epilogue_sums import EpilogueSum
from .in_place import InPlacePair
from .memory.memory_plan import MemoryPlan
from .memory.records import UsageRecord
from .vector_work import VectorWork
from .views import Views


class PlannedDispatch(Protocol):
    """Tensors are numbers of the graph."""

    @property
    def inputs(self) -> tuple[int, ...]: ...

    @property
    def outputs(self) -> tuple[int, ...]: ...


class BoundDispatch(PlannedDispatch, Protocol):
    """One whose tensors are bound one by one, so that an output may lie where an input does."""

    @property
    def fetches(self) -> tuple[Fetch, ...]:
        """How each input is read."""
        ...

    @property
    def in_place(self) -> tuple[InPlacePair, ...]:
        """Outputs that may lie where an input does."""
        ...

    def with_replaced(self: "B", output: int, tensor: int) -> "B":
        """The same where an output lies in the place of an input, for one of the pairs that it has `in_place`."""
        ...


D = TypeVar("D", bound=PlannedDispatch)
D_co = TypeVar("D_co", bound=PlannedDispatch, covariant=True)
B = TypeVar("B", bound=BoundDispatch)


class KernelMaker(Protocol[D_co]):
    """Makes the kernels of one target: GLSL for a GPU, or LLVM's code for a CPU."""

    def pixel(
        self, body: Body, prologue: VectorWork, tile: Tile, left: Sequence[EpilogueSum], signature: str
    ) -> D_co: ...

    def vectors(self, work: VectorWork, outputs: Sequence[int]) -> Sequence[D_co]:
        """Kernels that store at least these outputs of vector nodes."""
        ...


@dataclass(frozen=True)
class LoweredGraph(Generic[D]):
    """Kernels in order, how each tensor is stored, and what fusion declined."""

    graph: Graph
    kernels: tuple[D, ...]
    declined: tuple[str, ...]
    storages: Storages
    views: Views


@dataclass(frozen=True)
class PlacedTensors(Generic[B]):
    """Kernels as they read and write their tensors where these lie."""

    kernels: tuple[B, ...]
    barriers: tuple[int, ...]  # before each of them
    records: tuple[UsageRecord, ...]
    plan: MemoryPlan
    in_place: Mapping[int, int]  # by output: the input of its kernel that it replaces
