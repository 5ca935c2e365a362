"""Decides which partitions do not pay and are left to the CPU.

A partition costs two copies over its border, a hand-over and its dispatches. It pays if the work that it takes over is
worth that: its multiply-accumulates, the bytes that its operators would read and write one by one, and what handing
it over in more pieces would add: a dispatch for each operator, copies of what partitions share on the GPU. What work
is worth is the time that it takes: on the device itself, or on one thread of a CPU where that is slower, since a fast
GPU does not make the work less worth handing over. Whether the CPU would be faster makes no difference: whoever adds
the delegate has chosen the GPU. A model that runs there as a whole always pays.

Whoever compiles partitions asks again after each change (compiled_parts.py), since operators that are left to the
CPU cut the rest anew. Each answer leaves more operators behind, so this ends.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType

from ..base.wording import counted, sized
from ..model.graph import ABSENT, Graph, Node
from ..model.partition import Partition, crossing_bytes
from ..plan.compiled_parts import AnyParts, PartWork

COSTS_MORE = "its partition costs more than the work that it takes over: "  # begins the reason of what does not pay


NOTHING_LEFT: Mapping[int, str] = MappingProxyType({})


@dataclass(frozen=True)
class DelegationRates:
    """What partitions cost on a device, and what the work is worth that they take over."""

    hand_over_ms: float  # a call of a delegate's kernel without work, with its wait
    dispatch_ms: float
    copied_bytes_per_s: float  # between TensorFlow Lite's tensors and the GPU's, conversion of the layout included
    macs_per_s: float  # of the device or of one thread of a CPU, whichever is slower
    bytes_per_s: float  # likewise, read and written by operators


# On llvmpipe, two cores of a Xeon, TensorFlow Lite 2.14. Costs: twenty partitions of one NEG each between ops of the
# CPU, of 16 bytes to 1 MiB a tensor, less the time of the kernel itself; two to forty small convolutions. Worth: what
# fits the times of 14 models as a whole; one thread of the CPU has 50e9 and 30e9.
SOFTWARE_RATES = DelegationRates(0.1, 0.02, 1.5e9, 10e9, 20e9)
# Worth: of one thread of that CPU, since a GPU is faster. Costs as of drivers and buses in general, not measured.
HARDWARE_RATES = DelegationRates(0.1, 0.01, 4e9, 50e9, 30e9)


@dataclass(frozen=True)
class Balance:
    """What a partition takes over and what it costs."""

    operators: int  # that it computes at run time
    macs: int
    operator_bytes: int  # that they would read and write one by one
    copied_bytes: int  # to and from what runs on the CPU
    shared_bytes: int  # to and from other partitions, which stay on the GPU
    dispatches: int
    repeated_macs: int = 0  # that kernels compute again, which the CPU would not

    def worth_ms(self, rates: DelegationRates) -> float:
        """What the work takes, and what handing it over in pieces would add: more dispatches and copies."""
        computed_s = self.macs / rates.macs_per_s + self.operator_bytes / rates.bytes_per_s
        return self.operators * rates.dispatch_ms + 1e3 * (computed_s + self.shared_bytes / rates.copied_bytes_per_s)

    def cost_ms(self, rates: DelegationRates) -> float:
        """What it takes beside the work itself."""
        copies_ms = 1e3 * self.copied_bytes / rates.copied_bytes_per_s
        repeated_ms = 1e3 * self.repeated_macs / rates.macs_per_s
        return rates.hand_over_ms + self.dispatches * rates.dispatch_ms + copies_ms + repeated_ms

    def pays(self, rates: DelegationRates) -> bool:
        """Whether it is worth its cost."""
        return self.worth_ms(rates) >= self.cost_ms(rates)

    def reason(self, rates: DelegationRates) -> str:
        """Why it does not pay, with the figures."""
        return (
            f"{COSTS_MORE}{self.cost_ms(rates):.2f} ms ({sized(self.copied_bytes)} copied, "
            f"{counted(self.dispatches, 'dispatch')}) against {self.worth_ms(rates):.2f} ms "
            f"({self.macs / 1e6:.1f} MMAC, {sized(self.operator_bytes)} in {counted(self.operators, 'operator')})"
        )


def rates_of(is_software: bool) -> DelegationRates:
    """Those of a software renderer or of a hardware GPU."""
    return SOFTWARE_RATES if is_software else HARDWARE_RATES


def selection(
    rates: DelegationRates,
    max_delegated_partitions: int | None = None,
    min_nodes_per_partition: int | None = None,
    left_before: Mapping[int, str] = NOTHING_LEFT,
    is_called: bool = False,
) -> Callable[[AnyParts], Mapping[int, str]]:
    """What compile_parts asks which operators to leave to TensorFlow Lite.

    Without a least number of nodes, those of all partitions that do not pay; with one, those of partitions that have
    fewer, whatever they cost. After that, at most so many partitions are kept, those of most nodes, of equal ones the
    first. Nodes count as far as they are computed at run time. Before all that come those that are left already.
    What `is_called` by a loop or branch has to pay as a whole, too.
    """

    def select(found: AnyParts) -> Mapping[int, str]:
        if before := {number: why for number, why in left_before.items() if number not in found.reasons}:
            return before
        least, most = min_nodes_per_partition, max_delegated_partitions
        left = _unpaid(found, rates, is_called) if least is None else _smaller(found, least)
        return left or (_beyond(found, most) if most is not None else {})

    return select


def balances(found: AnyParts) -> tuple[Balance, ...]:
    """That of each partition, with all others as they are."""
    on_gpu = kept_by_partitions(found.graph, found.partitions)
    return tuple(
        _balance(found.graph, partition, compiled.work, on_gpu)
        for partition, compiled in zip(found.partitions, found.compiled, strict=True)
    )


def _balance(graph: Graph, partition: Partition, work: PartWork, on_gpu: Set[int]) -> Balance:
    """Inputs of which only the shape is read are not copied."""
    read = {tensor for number in partition.computed for tensor in graph.nodes[number].inputs}
    crossing = read.intersection(partition.inputs) | {*partition.outputs}
    return Balance(
        len(partition.computed),
        work.macs,
        sum(_operator_bytes(graph, graph.nodes[number]) for number in partition.computed),
        crossing_bytes(graph, crossing - on_gpu),
        crossing_bytes(graph, crossing & on_gpu),
        work.dispatches,
        work.repeated_macs,
    )


def kept_by_partitions(graph: Graph, partitions: Iterable[Partition]) -> set[int]:
    """The tensors that partitions make and nothing but partitions reads."""
    nodes = graph.nodes
    computed = {number for partition in partitions for number in partition.computed}
    made = {tensor for number in computed for tensor in nodes[number].outputs}
    others = {tensor for number, node in enumerate(nodes) if number not in computed for tensor in node.inputs}
    return made - others - {*graph.outputs}


def _operator_bytes(graph: Graph, node: Node) -> int:
    """What one operator reads and writes, constants included."""
    return crossing_bytes(graph, (index for index in (*node.inputs, *node.outputs) if index != ABSENT))


def _unpaid(found: AnyParts, rates: DelegationRates, is_called: bool) -> dict[int, str]:
    """The operators of all partitions that do not pay; of a model that is one partition none."""
    if not is_called and any(
        len({*each.nodes, *each.constants}) == len(found.graph.nodes) for each in found.partitions
    ):
        return {}
    return {
        number: balance.reason(rates)
        for partition, balance in zip(found.partitions, balances(found), strict=True)
        if not balance.pays(rates)
        for number in partition.computed
    }


def _smaller(found: AnyParts, least: int) -> dict[int, str]:
    """The operators of all partitions of fewer."""
    return _left([each for each in found.partitions if len(each.computed) < least], f"{least} are asked for at least")


def _beyond(found: AnyParts, most: int) -> dict[int, str]:
    """The operators of all partitions but the largest."""
    by_size = sorted(found.partitions, key=lambda partition: -len(partition.computed))
    allowed = f"{counted(most, 'larger partition')} {'is' if most == 1 else 'are'} allowed"
    return _left(by_size[most:], allowed)


def _left(partitions: Iterable[Partition], why: str) -> dict[int, str]:
    return {
        number: f"its partition has {counted(len(partition.computed), 'operator')}; {why}"
        for partition in partitions
        for number in partition.computed
    }
