"""Memory of programs that run in turns: which tensors each keeps to itself, and which they share."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gpu_delegate.plan.memory.test_offsets import ALIGNMENTS, collisions, usage_records
from texelflow.gpu_delegate.plan.memory.offsets import greedy_by_size
from texelflow.gpu_delegate.plan.memory.own_tensors import with_own
from texelflow.gpu_delegate.plan.memory.records import UsageRecord


@settings(max_examples=60)
@given(usage_records(), st.integers(0, 14), st.sampled_from(ALIGNMENTS))
def test_a_program_keeps_its_own_tensors_and_no_more_memory_than_these_need(
    records: list[UsageRecord], count: int, alignment: int
) -> None:
    own = {record.tensor for record in records[:count]}
    plan = with_own(records, own, greedy_by_size, alignment)
    assert set(plan.places) == {record.tensor for record in records}
    assert collisions(records, plan) == []
    for record in records:
        place = plan.places[record.tensor]
        assert place.offset_bytes % alignment == 0
        assert place.offset_bytes + record.size_bytes <= plan.buffer_bytes[place.buffer]
    assert all(plan.places[tensor].buffer >= plan.shared_buffers for tensor in own)
    assert plan.buffer_bytes[-1] == greedy_by_size(records[:count], alignment).total_bytes


def test_others_have_its_memory_while_it_does_not_need_it() -> None:
    """The output of 100 bytes comes last: what is done before needs no memory that others share."""
    records = [UsageRecord(0, 20, 0, 1), UsageRecord(1, 60, 0, 1), UsageRecord(2, 60, 1, 2), UsageRecord(3, 100, 2, 2)]
    plan = with_own(records, {0, 3}, greedy_by_size, 1)
    assert plan.buffer_bytes == (60, 100)
    assert [plan.places[tensor].buffer for tensor in range(4)] == [1, 1, 0, 1]
