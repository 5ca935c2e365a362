"""What is asked of a program's memory goes in: the strategy that plans it comes out, or one line with the choices."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from ..errors import UsageError
from ..wording import meant
from .registry import STRATEGIES, PlanKind, Strategy

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

    @property
    def strategy(self) -> Strategy:
        """What plans the memory. Raises UsageError for a planner that the mode does not have."""
        if self.mode == "naive":
            if self.planner not in ("", NAIVE):
                raise UsageError(f"planner {self.planner}: naive memory is planned by no other than {NAIVE}")
            return strategy_of("offsets", NAIVE)
        return strategy_of(_KINDS[self.mode], self.planner)


def strategy_of(kind: PlanKind, name: str = "") -> Strategy:
    """The strategy of that name, without one the default of its kind. Raises UsageError with the choices."""
    found = {strategy.name: strategy for strategy in STRATEGIES if strategy.kind == kind}
    chosen = name or _DEFAULT
    if chosen not in found:
        raise UsageError(f"planner {chosen}: one of {_listed(found)} is needed for {kind}{meant(chosen, found)}")
    return found[chosen]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


ARENA = MemoryOptions()
REWRITTEN = MemoryOptions(keeps_inputs=False)
