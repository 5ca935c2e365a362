"""What holds for the plans of every strategy, and for the rules by which single ones choose."""

import sys
from collections.abc import Sequence
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.gpu_delegate.plan.memory.test_offsets import ALIGNMENTS, collisions, usage_records
from tests.helpers.memory_profiles import task_profiles
from tests.helpers.memory_textures import TextureRecord, covering_textures, equal_textures
from texelflow.gpu_delegate.base.errors import DeviceError, UsageError
from texelflow.gpu_delegate.model.layout import aligned
from texelflow.gpu_delegate.plan.memory.compared.objects_by_flow import MOST_TENSORS, min_cost_flow
from texelflow.gpu_delegate.plan.memory.memory_bounds import lower_bound_bytes, objects_bound_bytes
from texelflow.gpu_delegate.plan.memory.objects_by_size import greedy_by_size_improved
from texelflow.gpu_delegate.plan.memory.objects_in_order import greedy_in_order
from texelflow.gpu_delegate.plan.memory.profiles import by_breadth, positional_maximums
from texelflow.gpu_delegate.plan.memory.records import UsageRecord
from texelflow.gpu_delegate.plan.memory.strategies import STRATEGIES, strategy_of

fewer = settings(max_examples=40)


@fewer
@given(usage_records(), st.sampled_from(ALIGNMENTS))
def test_plans_of_every_strategy_are_sound(records: list[UsageRecord], alignment: int) -> None:
    for strategy in STRATEGIES:
        plan = strategy.plan(records, alignment)
        assert set(plan.places) == {record.tensor for record in records}
        assert collisions(records, plan) == [], strategy
        for record in records:
            place = plan.places[record.tensor]
            assert place.offset_bytes % alignment == 0
            assert 0 <= place.offset_bytes <= plan.buffer_bytes[place.buffer] - record.size_bytes, strategy
        assert aligned(plan.total_bytes, alignment) <= sum(aligned(r.size_bytes, alignment) for r in records), strategy
        if strategy.kind == "objects":
            assert plan.total_bytes >= objects_bound_bytes(records)
            assert all(place.offset_bytes == 0 for place in plan.places.values())
        else:
            assert len(plan.buffer_bytes) == 1
            assert plan.total_bytes >= lower_bound_bytes(records, alignment)


@fewer
@given(st.lists(st.integers(1, 1000), min_size=2, max_size=60))
def test_a_chain_of_any_length_needs_two_objects(sizes: list[int]) -> None:
    records = [UsageRecord(number, size, number, number + 1) for number, size in enumerate(sizes)]
    assert len(greedy_in_order(records).buffer_bytes) == 2
    assert len(positional_maximums(records)) == 2


@fewer
@given(usage_records(), st.sampled_from(ALIGNMENTS))
def test_the_bound_of_offsets_is_the_most_at_one_task(records: list[UsageRecord], alignment: int) -> None:
    profiles = [[records[number].size_bytes for number in profile] for profile in task_profiles(records)]
    needed = [
        min(sum(aligned(s, alignment) for s in [*sizes[:k], *sizes[k + 1 :]]) + sizes[k] for k in range(len(sizes)))
        for sizes in profiles
        if sizes
    ]
    assert lower_bound_bytes(records, alignment) == max(needed, default=0)


@fewer
@given(usage_records())
def test_orders_follow_from_the_profiles(records: list[UsageRecord]) -> None:
    profiles = task_profiles(records)
    sizes = [[records[number].size_bytes for number in profile] for profile in profiles]
    most = max(map(len, sizes), default=0)
    maximums = [max(alive[position] for alive in sizes if position < len(alive)) for position in range(most)]
    assert list(positional_maximums(records)) == [size for size in maximums if size]
    tasks = sorted(range(len(profiles)), key=lambda task: -sum(sizes[task]))
    order = dict.fromkeys(number for task in tasks for number in profiles[task])
    assert by_breadth(records) == [records[number] for number in order]


def put_one_by_one(records: Sequence[UsageRecord]) -> list[int]:
    """Greedy by size improved, each time all that wait held against all that have an object; the object of each."""
    maximums = positional_maximums(records)
    objects: list[list[UsageRecord]] = []

    def apart(record: UsageRecord, other: UsageRecord) -> int:
        return max(record.first_task - other.last_task, other.first_task - record.last_task)

    def nearest(record: UsageRecord) -> tuple[int, int]:
        free = [(min(map(partial(apart, record), users)), k) for k, users in enumerate(objects)]
        return min((found for found in free if found[0] > 0), default=(10**6, len(objects)))

    def key(record: UsageRecord) -> tuple[int, int, int, int]:
        stage = sum(size >= record.size_bytes for size in maximums)
        return stage, nearest(record)[0], -record.size_bytes, record.tensor

    waiting, found = list(records), dict[int, int]()
    while waiting:
        record = min(waiting, key=key)
        waiting.remove(record)
        found[record.tensor] = number = nearest(record)[1]
        if number == len(objects):
            objects.append([])
        objects[number].append(record)
    return [found[record.tensor] for record in records]


@fewer
@given(usage_records())
def test_greedy_by_size_improved_takes_the_nearest(records: list[UsageRecord]) -> None:
    plan = greedy_by_size_improved(records)
    assert [plan.places[record.tensor].buffer for record in records] == put_one_by_one(records)


@fewer
@given(st.lists(st.tuples(st.tuples(*[st.integers(1, 4)] * 3), st.integers(0, 9), st.integers(0, 4)), max_size=14))
@example([((2, 2, 2), 0, 0), ((1, 3, 1), 1, 0)])  # fewer texels, but a longer side
def test_textures_cover_their_tensors_and_never_grow(rows: list[tuple[tuple[int, int, int], int, int]]) -> None:
    records = [TextureRecord(k, sides, first, first + length) for k, (sides, first, length) in enumerate(rows)]
    for planner in (equal_textures, covering_textures):
        plan, opened = planner(records), set[int]()
        for record in sorted(records, key=lambda record: record.first_task):
            number = plan.objects[record.tensor]
            if number not in opened:
                assert plan.sides[number] == record.sides
            opened.add(number)
            pairs = list(zip(plan.sides[number], record.sides, strict=True))
            assert all(side == least if planner is equal_textures else side >= least for side, least in pairs)
        for number, record in enumerate(records):
            for other in records[:number]:
                together = plan.objects[record.tensor] == plan.objects[other.tensor]
                assert not together or max(record.first_task, other.first_task) > min(record.last_task, other.last_task)


def test_min_cost_flow_says_in_one_line_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeviceError, match=f"at most {MOST_TENSORS} tensors"):
        min_cost_flow([UsageRecord(k, 1, k, k) for k in range(MOST_TENSORS + 1)])
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(DeviceError, match=r"needs scipy.*pip install"):
        min_cost_flow([UsageRecord(0, 1, 0, 0)])


def test_names_of_strategies_are_unique_among_those_of_a_kind() -> None:
    names = [(strategy.kind, strategy.name) for strategy in STRATEGIES]
    assert len(names) == len(set(names))
    with pytest.raises(UsageError, match="planner strip-packing: one of naive, equality, "):
        strategy_of("objects", "strip-packing")
