"""How many workers each node gets, and when a lost one is replaced.

Pure but for its counts: whoever calls says what time it is, in seconds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_MOST_LOST = 5  # in a row, on one node, nothing finished between them
_FIRST_DELAY_S, _LONGEST_DELAY_S = 0.5, 10.0


@dataclass(frozen=True)
class NodeSize:
    """What Ray may hand out on a node. `is_ours`: a Ray of our own has it to itself, and counts what it may use."""

    cpus: float
    gpus: float
    is_ours: bool = False


def places_of(size: NodeSize) -> int:
    """The workers of a node: one for each GPU; without GPUs half of its CPUs, as it is lent, at least one."""
    if size.gpus >= 1:
        return int(size.gpus)
    if size.is_ours:
        return int(size.cpus)
    return max(1, int(size.cpus) // 2) if size.cpus >= 1 else 0


def spread(places: Mapping[str, int], most: int | None) -> dict[str, int]:
    """The workers of each node where there may be only so many in all: one each in turn, in the order of nodes."""
    left = sum(places.values()) if most is None else most
    given = dict.fromkeys(places, 0)
    while left > 0 and any(given[node] < places[node] for node in places):
        for node in places:
            if left > 0 and given[node] < places[node]:
                given[node] += 1
                left -= 1
    return given


@dataclass
class NodeRecord:
    """How a node has treated its workers."""

    lost_in_a_row: int = 0  # since one last finished a job
    failed_starts: int = 0  # in a row
    not_before: float = field(default=0.0)  # a new one

    def finished(self) -> None:
        """One of its workers is done with a job."""
        self.lost_in_a_row = 0

    def started(self) -> None:
        """A new worker is ready."""
        self.failed_starts = 0

    def lost(self, was_ready: bool, now: float) -> None:
        """The first one is replaced at once, others later and later."""
        self.lost_in_a_row += 1
        self.failed_starts += not was_ready
        more = self.lost_in_a_row - 2
        self.not_before = now + (min(_FIRST_DELAY_S * 2.0**more, _LONGEST_DELAY_S) if more >= 0 else 0.0)

    def unfit(self, others_work: bool) -> bool:
        """Whether to give up on it: workers do not start, or end without finishing anything while others' do."""
        return self.failed_starts >= _MOST_LOST or (others_work and self.lost_in_a_row >= _MOST_LOST)


def node_names(hosts: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Names of nodes, given their ids and hosts: the host, and a part of the id where several have the same."""
    seen = [host for _, host in hosts]
    return {node: host if seen.count(host) == 1 else f"{host}/{node[:6]}" for node, host in hosts}
