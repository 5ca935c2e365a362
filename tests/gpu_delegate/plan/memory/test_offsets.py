"""Offsets of tensors in one arena: as the papers place them, and never two tensors in one place."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from texelflow.gpu_delegate.model.layout import aligned
from texelflow.gpu_delegate.plan.memory.memory_plan import MemoryPlan, in_one_arena
from texelflow.gpu_delegate.plan.memory.offsets import greedy_by_size
from texelflow.gpu_delegate.plan.memory.records import UsageRecord

ALIGNMENTS = (1, 16, 64, 256)


@st.composite
def usage_records(draw: st.DrawFn) -> list[UsageRecord]:
    rows = draw(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 12), st.integers(0, 6)), max_size=14))
    return [UsageRecord(number, size, first, first + length) for number, (size, first, length) in enumerate(rows)]


def collisions(records: Sequence[UsageRecord], plan: MemoryPlan) -> list[tuple[int, int]]:
    """Pairs of tensors that are alive at one time and share bytes."""

    def share(a: UsageRecord, b: UsageRecord) -> bool:
        alive = max(a.first_task, b.first_task) <= min(a.last_task, b.last_task)
        start, end = plan.offsets[a.tensor], plan.offsets[b.tensor]
        return alive and max(start, end) < min(start + a.size_bytes, end + b.size_bytes)

    return [(a.tensor, b.tensor) for number, a in enumerate(records) for b in records[:number] if share(a, b)]


def placed_one_by_one(records: Sequence[UsageRecord], alignment: int) -> dict[int, int]:
    """Greedy by size as the paper has it, each record held against all that are placed."""
    placed: list[tuple[int, UsageRecord]] = []
    for record in sorted(records, key=lambda r: -r.size_bytes):
        alive = [place for place in placed if place[1].overlaps(record)]
        gaps, end = list[tuple[int, int, int]](), 0
        for offset, other in sorted(alive, key=lambda place: place[0]):
            if offset - end >= aligned(record.size_bytes, alignment):
                gaps.append((offset - end, len(gaps), end))
            end = max(end, offset + aligned(other.size_bytes, alignment))
        placed.append((min(gaps)[2] if gaps else end, record))
    return {record.tensor: offset for offset, record in placed}


@given(usage_records(), st.sampled_from(ALIGNMENTS))
def test_greedy_by_size_places_as_the_paper_does(records: list[UsageRecord], alignment: int) -> None:
    assert greedy_by_size(records, alignment).offsets == placed_one_by_one(records, alignment)


def test_the_collision_check_can_fail() -> None:
    records = [UsageRecord(0, 32, 0, 1), UsageRecord(1, 32, 1, 2), UsageRecord(2, 32, 2, 3)]
    assert collisions(records, in_one_arena({0: 0, 1: 16, 2: 0}, 48)) == [(1, 0), (2, 1)]
    assert collisions(records, in_one_arena({0: 0, 1: 32, 2: 0}, 64)) == []
