"""Runs all checks on a model's compiled partitions, and sorts their advice by what each fault costs.

Each check finds faults of one kind. Where it can give the graph without the fault, that is compiled, too, and the
difference of both is what the fault costs; so fusion, views and memory are taken into account as they are.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.targets.glsl.compiled_partitions import CompiledPartitions
from texelflow.gpu_delegate.targets.glsl.roofline import Peaks

from .channels import padded_channels, rgb_inputs, rgb_outputs
from .cost import RunCost, RunRates, run_cost
from .fault import Analysis, CompileAgain, Fault
from .kernels import costly_moves, lone_activations
from .pairs import idle_operators
from .splits import splitting_ops

CHECKS: tuple[Callable[[Analysis], Iterable[Fault]], ...] = (
    splitting_ops,
    idle_operators,
    costly_moves,
    lone_activations,
    padded_channels,
    rgb_inputs,
    rgb_outputs,
)
_MOST_FAULTS = 64  # of a model: each may take as long as its compilation
# What orders advice where no peaks were measured: those of a small GPU.
_NOMINAL = Peaks(macs_per_s=5e10, bytes_per_s=1e10, dispatch_s=1e-5)


@dataclass(frozen=True)
class Advice:
    """What to change, and why. Operators and tensors are numbers of the file."""

    kind: str
    what: str
    operators: tuple[int, ...]
    tensors: tuple[int, ...]
    why: str
    change: str
    cost: RunCost  # that a run is rid of by the change
    is_exact: bool  # whether by all that is counted, else by that much or more
    is_free: bool  # nothing to gain here: the passes have done it


def advise(found: CompiledPartitions, rates: RunRates | None, compile_again: CompileAgain) -> tuple[Advice, ...]:
    """Advice, worst first; what costs nothing here comes last. compile_again compiles changed graphs as `found` was."""
    analysis, whole = Analysis(found, rates), run_cost(found, rates)
    faults = islice((fault for check in CHECKS for fault in check(analysis)), _MOST_FAULTS)
    advice = [each for fault in faults for each in _weighed(fault, whole, rates, compile_again)]
    return tuple(sorted(advice, key=lambda each: (each.is_free, -_weight(each.cost))))


def _weighed(fault: Fault, whole: RunCost, rates: RunRates | None, compile_again: CompileAgain) -> Iterator[Advice]:
    """The fault with its cost. One that costs nothing is told only if it is one of the model whatever runs it."""
    remedy = fault.remedy
    cost = whole - run_cost(compile_again(remedy), rates) if isinstance(remedy, Graph) else remedy
    is_free = (cost.dispatches, cost.moved_bytes, cost.macs) == (0, 0, 0)
    if is_free and fault.kind != "idle":
        return
    if min(cost.dispatches, cost.moved_bytes, cost.macs) < 0:
        return  # it would save one thing and cost another
    yield Advice(
        fault.kind, fault.what, fault.operators, fault.tensors, fault.why, fault.change, cost, fault.is_exact, is_free
    )


def _weight(cost: RunCost) -> float:
    """How much a cost matters: the milliseconds, or an estimate of them."""
    if cost.ms is not None:
        return cost.ms
    kernels = cost.macs / _NOMINAL.macs_per_s + cost.moved_bytes / _NOMINAL.bytes_per_s
    return (kernels + cost.dispatches * _NOMINAL.dispatch_s) * 1e3
