"""What a delegate has taken over of the model in an interpreter."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ..base.errors import UnsupportedError
from ..base.wording import counted
from ..model.graph import Hybrid
from ..model.reasons import BY_FUNCTION, CONSTANT_OF_CPU

ON_GPU = ("on the GPU", "on the CPU")
IN_NATIVE_CODE = ("in the CPU's own code", "in TensorFlow Lite")
_OF_THIS_PROCESS = "weights_cache"  # the argument that another process cannot have


class _Taken(Protocol):
    @property
    def nodes(self) -> tuple[int, ...]: ...
    @property
    def dispatches(self) -> int: ...
    @property
    def macs(self) -> int: ...


class AppliedDelegate(Protocol):
    """A GpuDelegate, as far as an interpreter has to do with it."""

    @property
    def places(self) -> tuple[str, str]:
        """Where its partitions run, and where the rest does, in words."""

    @property
    def partitions(self) -> Sequence[_Taken]: ...
    @property
    def reasons(self) -> Mapping[int, str]: ...
    @property
    def renderer(self) -> str: ...
    @property
    def buffer_bytes(self) -> int: ...
    @property
    def error(self) -> BaseException | None: ...
    def release(self) -> None: ...
    def _get_native_delegate_pointer(self) -> int: ...


@dataclass(frozen=True)
class DelegateMaker:
    """How an interpreter gets a delegate, in this process or in one of its own."""

    arguments: Mapping[str, Any]  # of the delegate
    make: Callable[[Mapping[str, Any]], AppliedDelegate]
    program: str  # in Python: serves an interpreter with such a delegate, as interpreter_child.py serves one without
    quick: bool = False  # whether what it leaves runs in the quickest runtime: `quick` of Reference

    @property
    def plain_arguments(self) -> dict[str, Any]:
        """Those that another process can have."""
        return {name: given for name, given in self.arguments.items() if name != _OF_THIS_PROCESS}

    def computing(self, hybrid: Hybrid) -> "DelegateMaker":
        """The same of a delegate that computes hybrid ops so."""
        return replace(self, arguments={**self.arguments, "hybrid": hybrid})


@dataclass(frozen=True)
class Delegation:
    """What a delegate has taken over of the model that its interpreter was given."""

    partitions: tuple[tuple[int, ...], ...]  # the operators of each, by their numbers in that model
    operators: int  # of the model
    dispatches: int  # of one run, on the GPU
    macs: int  # multiply-accumulates of one run
    buffer_bytes: int  # of GL buffers
    renderer: str
    reason: str = ""  # why it has taken nothing
    places: tuple[str, str] = ON_GPU  # of its partitions and of the rest
    by_functions: int = 0  # operators that are in no partition, of custom ops that the delegate computes

    @property
    def line(self) -> str:
        """What runs where."""
        (here, elsewhere), taken = self.places, sum(map(len, self.partitions))
        of_all = f"of {counted(self.operators, 'operator')} {here}"
        functions = f", {self.by_functions} by functions" * (self.by_functions > 0)
        if not taken:
            return f"none {of_all}{functions}, all {'others ' * bool(functions)}{elsewhere}: {self.reason}"
        line = f"{taken} {of_all} in {counted(len(self.partitions), 'partition')}{functions}"
        return line + f", the rest {elsewhere}" * (taken + self.by_functions < self.operators)

    def check_taken(self, why: object) -> None:
        """Raise UnsupportedError where there is no partition; `why` says why the model does not run there wholly."""
        if not self.partitions:
            raise UnsupportedError(f"{why}; {self.line}")


def delegation_of(delegate: AppliedDelegate, operators: int) -> Delegation:
    """What is known of a delegate once its interpreter has allocated its tensors.

    `operators` are those of the model, for a delegate that does not know any.
    """
    partitions, reasons, error = delegate.partitions, delegate.reasons, delegate.error
    known = sum(len(partition.nodes) for partition in partitions) + len(reasons)
    told = Counter(reasons.values())
    common = Counter({reason: told[reason] for reason in told if reason not in (CONSTANT_OF_CPU, BY_FUNCTION)})
    (most, _), *_ = [*common.most_common(1), ("the delegate was not asked", 0)]
    return Delegation(
        tuple(partition.nodes for partition in partitions),
        known or operators,
        sum(partition.dispatches for partition in partitions),
        sum(partition.macs for partition in partitions),
        delegate.buffer_bytes,
        delegate.renderer,
        "" if partitions else str(error or most),
        delegate.places,
        told[BY_FUNCTION],
    )
