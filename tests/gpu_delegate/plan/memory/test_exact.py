"""Exact planners: the best of all plans where these can be enumerated, published networks, and limits of time."""

import itertools
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gpu_delegate.plan.memory.test_offsets import collisions
from texelflow.app.models.networks import drawn
from texelflow.gpu_delegate.base.errors import DeviceError
from texelflow.gpu_delegate.model.layout import aligned
from texelflow.gpu_delegate.plan.memory.budget import BudgetSpent, SearchBudget
from texelflow.gpu_delegate.plan.memory.compared.exact_objects import MOST_SORTED_OUT, least_objects
from texelflow.gpu_delegate.plan.memory.exact_offsets import offsets_within, shrunk
from texelflow.gpu_delegate.plan.memory.local_search import local_search
from texelflow.gpu_delegate.plan.memory.memory_bounds import lower_bound_bytes, objects_bound_bytes
from texelflow.gpu_delegate.plan.memory.memory_plan import MemoryPlan
from texelflow.gpu_delegate.plan.memory.objects_in_order import naive_objects
from texelflow.gpu_delegate.plan.memory.offsets import greedy_by_size, naive
from texelflow.gpu_delegate.plan.memory.op_graph import op_records
from texelflow.gpu_delegate.plan.memory.records import UsageRecord
from texelflow.gpu_delegate.plan.memory.smallest import searched_offsets
from texelflow.gpu_delegate.plan.memory.strategies import strategy_of

NETWORKS = json.loads((Path(__file__).parents[3] / "data" / "memory_plans.json").read_text())["networks"]
# At multiples of 4 no plan takes the 10 bytes that the bound gives: of each pair another one would have to be on top
NO_FIT = [(3, 1, 3), (6, 4, 6), (4, 3, 5), (5, 0, 1)]


def records_of(rows: Sequence[Sequence[int]]) -> list[UsageRecord]:
    return [UsageRecord(number, *row) for number, row in enumerate(rows)]


few_records = st.lists(
    st.tuples(st.integers(1, 6), st.integers(0, 6), st.integers(0, 4)).map(lambda r: (r[0], r[1], r[1] + r[2])),
    max_size=6,
).map(records_of)


def least_of_all_orders(records: Sequence[UsageRecord], alignment: int) -> int:
    """The smallest total of all orders, each tensor at the lowest offset that is free for it."""

    def total(order: Sequence[UsageRecord]) -> int:
        placed: list[tuple[int, int, UsageRecord]] = []
        for record in order:
            end, size = 0, aligned(record.size_bytes, alignment)
            for start, stop, _ in sorted((place for place in placed if place[2].overlaps(record)), key=lambda p: p[0]):
                if start - end >= size:
                    break
                end = max(end, stop)
            placed.append((end, end + size, record))
        return max((start + record.size_bytes for start, _, record in placed), default=0)

    return min(map(total, itertools.permutations(records)))


def least_of_all_groups(records: Sequence[UsageRecord]) -> int:
    """The smallest total of all ways to share objects."""

    def least(waiting: Sequence[UsageRecord], groups: list[list[UsageRecord]]) -> int:
        if not waiting:
            return sum(max(record.size_bytes for record in group) for group in groups)
        record, *rest = waiting
        free = [k for k, group in enumerate(groups) if not any(record.overlaps(other) for other in group)]
        joined = [[*groups[:k], [*groups[k], record], *groups[k + 1 :]] for k in free]
        return min(least(rest, found) for found in [*joined, [*groups, [record]]])

    return least(records, [])


@settings(max_examples=40)
@given(few_records, st.sampled_from((1, 4)))
def test_exact_offsets_are_the_least_of_all(records: list[UsageRecord], alignment: int) -> None:
    plan = shrunk(records, alignment, naive(records, alignment), SearchBudget(100_000))
    assert plan.is_proven
    assert plan.total_bytes == least_of_all_orders(records, alignment)
    assert collisions(records, plan) == []


@settings(max_examples=30)
@given(few_records)
def test_exact_objects_are_the_least_of_all(records: list[UsageRecord]) -> None:
    plan = least_objects(records, naive_objects(records), 10)
    assert plan.is_proven
    assert plan.total_bytes == least_of_all_groups(records)


def test_what_fits_nowhere_is_proven_to() -> None:
    records = records_of(NO_FIT)
    assert lower_bound_bytes(records, 4) == 10
    assert offsets_within(records, 4, 10, SearchBudget(1000)) is None
    plan = strategy_of("offsets", "best").plan(records, 4)
    assert plan.total_bytes == plan.least_bytes == least_of_all_orders(records, 4) == 11


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network["name"])
@pytest.mark.parametrize("alignment", [1, 16, 256])
def test_default_plans_of_networks_are_proven_to_be_the_least(network: dict[str, Any], alignment: int) -> None:
    records = records_of(network["usage_records"])
    plan = strategy_of("offsets", "best").plan(records, alignment)
    assert plan.is_proven
    assert plan == strategy_of("offsets", "best").plan(records, alignment), "the same each time"
    objects = strategy_of("objects", "exact").plan(records, alignment)
    assert objects.is_proven
    assert (
        objects_bound_bytes(records)
        <= objects.total_bytes
        <= strategy_of("objects", "best").plan(records, 1).total_bytes
    )


# A block of a network, of which many are connected by one tensor alone, as by the mask of a transformer's words
BLOCK = [(8, 4, 6), (5, 1, 2), (1, 2, 5), (2, 2, 2), (7, 1, 4), (7, 1, 2), (4, 0, 0), (3, 4, 4)]


def repeated(count: int) -> list[UsageRecord]:
    """Block after block, and a tensor that is alive in all but the end of the last."""
    rows = [(size, 10 * n + first, 10 * n + last) for n in range(count) for size, first, last in BLOCK]
    return records_of([*rows, (5, 0, 10 * count - 7)])


def test_parts_that_one_tensor_holds_together_are_planned_apart() -> None:
    records = repeated(60)
    plan = searched_offsets(records)
    assert collisions(records, plan) == []
    assert plan.total_bytes == lower_bound_bytes(records) < greedy_by_size(records).total_bytes
    records = [*op_records(drawn("mobilebert").graph("mobilebert"))]
    plan = strategy_of("offsets", "best").plan(records, 1)
    assert plan.is_proven
    assert plan.total_bytes == lower_bound_bytes(records) == 6_488_064
    assert collisions_in_time(records, plan) == 0


def collisions_in_time(records: Sequence[UsageRecord], plan: MemoryPlan) -> int:
    """How many tensors share bytes with one that is alive at a time: task by task, for many records."""
    found = 0
    for task in {record.first_task for record in records}:
        alive = sorted((plan.offsets[r.tensor], r.size_bytes) for r in records if r.first_task <= task <= r.last_task)
        found += sum(start + size > following for (start, size), (following, _) in itertools.pairwise(alive))
    return found


def spend_all(budget: SearchBudget) -> None:
    while True:
        budget.spend()


def test_without_time_the_given_plan_is_left_unproven() -> None:
    records = records_of([(1, 6, 9), (1, 3, 6), (8, 4, 5), (1, 8, 11), (6, 1, 2), (6, 0, 3), (3, 5, 8)])
    start = greedy_by_size(records)
    assert start.total_bytes == 13
    assert shrunk(records, 1, start, SearchBudget(0)) == replace(start, least_bytes=12)
    assert shrunk(records, 1, start, SearchBudget(100)).total_bytes == 12
    seconds = iter((0.0, 0.0, 2.0))
    timed = SearchBudget(1000, 1.0, lambda: next(seconds, 2.0))
    with pytest.raises(BudgetSpent):
        spend_all(timed)
    assert timed.steps > 0, "its time is over, not its steps"


def test_exact_objects_leave_a_plan_of_too_many_tensors_as_it_is() -> None:
    records = [UsageRecord(task, 1 + task, task, task + 1) for task in range(MOST_SORTED_OUT + 1)]
    start = naive_objects(records)
    assert least_objects(records, start, 10) == replace(start, least_bytes=objects_bound_bytes(records))


def test_exact_objects_say_in_one_line_what_they_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    records = records_of([(8, 0, 1), (4, 1, 2), (8, 2, 3)])
    assert least_objects(records, naive_objects(records[:1]), 1).is_proven, "the bound needs no solver"
    with pytest.raises(DeviceError, match=r"need scipy.*pip install"):
        least_objects(records_of(NO_FIT), naive_objects(records_of(NO_FIT)), 1)


def test_local_search_finds_what_one_order_misses() -> None:
    records = records_of([(5, 1, 1), (3, 2, 5), (1, 3, 5), (3, 3, 5), (5, 0, 3)])
    assert greedy_by_size(records).total_bytes == 13
    plan = local_search(records)
    assert plan.total_bytes == lower_bound_bytes(records) == 12
    assert collisions(records, plan) == []
