"""The memory options of a program, and the planner that they choose."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from ...base.errors import UsageError
from .strategies import PlanKind, Strategy, strategy_of

MemoryMode = Literal["arena", "objects", "naive"]  # offsets in one buffer, buffers used in turns, or nothing shared

_KINDS: Mapping[MemoryMode, PlanKind] = MappingProxyType({"arena": "offsets", "objects": "objects"})
_DEFAULT = "best"  # of either kind
NAIVE = "naive"  # the strategy that shares nothing


@dataclass(frozen=True)
class MemoryOptions:
    """How the tensors of a program share memory."""

    mode: MemoryMode = "arena"
    planner: str = ""  # the name of a strategy of the mode's kind; "": the default one
    keeps_inputs: bool = True  # run after run; else the caller writes all of them before each run
    uses_views: bool = True  # tensors may lie inside others
    in_place: bool = True  # kernels may write where they read, where that takes less memory
    reorders: bool = False  # kernels that do not depend on each other run in the order that takes the least memory
    shares: bool = False  # inputs and outputs have buffers of their own; programs that take turns may share the others

    @property
    def strategy(self) -> Strategy:
        """What plans the memory. Raises UsageError for a planner that the mode does not have."""
        if self.mode == "naive":
            if self.planner not in ("", NAIVE):
                raise UsageError(f"planner {self.planner}: naive memory is planned by no other than {NAIVE}")
            return strategy_of("offsets", NAIVE)
        kind = _KINDS[self.mode]
        return strategy_of(kind, self.planner or _DEFAULT)

    @property
    def replaces(self) -> bool:
        """Whether kernels may write where they read: under the naive strategy nothing is written over."""
        return self.in_place and self.strategy.name != NAIVE


ARENA = MemoryOptions()
REWRITTEN = MemoryOptions(keeps_inputs=False)
