"""Memory plans: when each tensor is alive and how large it is go in, its place in one arena comes out.

All planners are pure functions from usage records to offsets. Source: Pisarchyk and Lee, "Efficient Memory Management
for Deep Neural Net Inference" (arXiv 2001.03288).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpu_delegate.layout import ceil_div


@dataclass(frozen=True)
class UsageRecord:
    """A tensor of some size, alive from the task that writes it to the last that reads it, both inclusive."""

    tensor: int
    size_bytes: int
    first_task: int
    last_task: int

    def overlaps(self, other: "UsageRecord") -> bool:
        return self.first_task <= other.last_task and other.first_task <= self.last_task


@dataclass(frozen=True)
class Plan:
    """Where each tensor lies in the arena."""

    offsets: Mapping[int, int]
    total_bytes: int


def naive(records: Sequence[UsageRecord], alignment_bytes: int = 1) -> Plan:
    """Every tensor in a place of its own."""
    offsets, end = {}, 0
    for record in records:
        offsets[record.tensor] = end
        end = aligned(end + record.size_bytes, alignment_bytes)
    return Plan(offsets, end)


def greedy_by_size(records: Sequence[UsageRecord], alignment_bytes: int = 1) -> Plan:
    """Largest tensor first, each into the smallest gap between those placed already that are alive with it.

    Source: arXiv 2001.03288, section 5.2, "Greedy by Size for Offset Calculation".
    """
    placed: list[tuple[int, UsageRecord]] = []
    for record in sorted(records, key=lambda r: -r.size_bytes):
        size = aligned(record.size_bytes, alignment_bytes)
        best, best_gap, end = -1, 0, 0
        for offset, other in sorted(
            (place for place in placed if place[1].overlaps(record)), key=lambda place: place[0]
        ):
            gap = offset - end
            if gap >= size and (best < 0 or gap < best_gap):
                best, best_gap = end, gap
            end = max(end, offset + aligned(other.size_bytes, alignment_bytes))
        placed.append((end if best < 0 else best, record))
    total = max((offset + aligned(r.size_bytes, alignment_bytes) for offset, r in placed), default=0)
    return Plan({record.tensor: offset for offset, record in placed}, total)


def lower_bound_bytes(records: Sequence[UsageRecord]) -> int:
    """The most bytes alive at one time: no plan needs less."""
    tasks = {record.first_task for record in records}
    return max((sum(r.size_bytes for r in records if r.first_task <= t <= r.last_task) for t in tasks), default=0)


def aligned(size: int, alignment: int) -> int:
    """The next multiple of an alignment."""
    return ceil_div(size, alignment) * alignment
