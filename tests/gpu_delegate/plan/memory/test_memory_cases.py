"""Published memory plans: TensorFlow Lite's own test cases, and figures of papers for MobileNet."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.memory_profiles import task_profiles
from tests.helpers.memory_reallocation import reallocation_graph
from tests.helpers.memory_textures import TexturePlan, TextureRecord, covering_textures, equal_textures, naive_textures
from texelflow.gpu_delegate.plan.memory.memory_bounds import lower_bound_bytes, objects_bound_bytes
from texelflow.gpu_delegate.plan.memory.memory_plan import end_to_end, in_objects
from texelflow.gpu_delegate.plan.memory.objects_in_order import greedy_in_order, share_equal
from texelflow.gpu_delegate.plan.memory.offsets import greedy_by_size
from texelflow.gpu_delegate.plan.memory.profiles import positional_maximums
from texelflow.gpu_delegate.plan.memory.records import UsageRecord
from texelflow.gpu_delegate.plan.memory.strategies import PlanKind, strategy_of

_DATA = Path(__file__).parents[3] / "data"
CASES = json.loads((_DATA / "memory_cases.json").read_text())["cases"]
NETWORKS = json.loads((_DATA / "memory_plans.json").read_text())["networks"]
NAMES: Mapping[str, tuple[PlanKind, str]] = {
    "OBJECTS_NAIVE": ("objects", "naive"),
    "OBJECTS_EQUALITY": ("objects", "equality"),
    "OBJECTS_GREEDY_IN_ORDER": ("objects", "greedy-in-order"),
    "OBJECTS_GREEDY_BY_BREADTH": ("objects", "greedy-by-breadth"),
    "OBJECTS_GREEDY_BY_SIZE": ("objects", "greedy-by-size-improved"),
    "OBJECTS_MINCOSTFLOW": ("objects", "min-cost-flow"),
    "OFFSETS_GREEDY_BY_SIZE": ("offsets", "greedy-by-size"),
}


def cases_of(group: str) -> list[Any]:
    found = [case for case in CASES if case["group"] == group]
    assert found
    return [pytest.param(case, id=f"{case['suite']}.{case['name']}") for case in found]


def expectations(scalar: bool) -> list[Any]:
    return [
        pytest.param(case["usage_records"], name, expected, id=f"{case['name']}-{name}")
        for case in CASES
        if case["group"] == "assignment" and (case["size_type"] == "scalar") == scalar
        for name, expected in case["expected"].items()
    ]


def records_of(rows: list[Any]) -> list[UsageRecord]:
    return [UsageRecord(k, *(row.values() if isinstance(row, dict) else row)) for k, row in enumerate(rows)]


def test_all_published_cases_are_here() -> None:
    assert len(CASES) == 19
    assert len(expectations(scalar=True)) + len(expectations(scalar=False)) == 37


@pytest.mark.parametrize(("rows", "name", "expected"), expectations(scalar=True))
def test_tensors_go_where_tensorflow_lite_puts_them(rows: list[Any], name: str, expected: Mapping[str, Any]) -> None:
    kind, strategy = NAMES[name]
    plan = strategy_of(kind, strategy).plan(records_of(rows), expected.get("base_addr_align_bytes", 1))
    tensors = range(len(rows))
    if kind == "offsets":
        assert [plan.offsets[tensor] for tensor in tensors] == expected["offsets"]
    else:
        assert [plan.places[tensor].buffer for tensor in tensors] == expected["object_ids"]
        assert list(plan.buffer_bytes) == expected["object_sizes"]
    assert plan.total_bytes == expected["total_size"]


@pytest.mark.parametrize(("rows", "name", "expected"), expectations(scalar=False))
def test_textures_go_where_tensorflow_lite_puts_them(rows: list[Any], name: str, expected: Mapping[str, Any]) -> None:
    records = [TextureRecord(k, tuple(r["size"]), r["first_task"], r["last_task"]) for k, r in enumerate(rows)]
    if name == "OBJECTS_EQUALITY" and len(records[0].sides) == 4:  # whole shapes, of which that freed last is taken
        objects, sides = share_equal(records, {record.tensor: record.sides for record in records})
        plan = TexturePlan(objects, tuple(sides))
    else:
        planners = {"NAIVE": naive_textures, "EQUALITY": equal_textures, "GREEDY_IN_ORDER": covering_textures}
        plan = planners[name.removeprefix("OBJECTS_")](records)
    assert [plan.objects[tensor] for tensor in range(len(rows))] == expected["object_ids"]
    assert [list(sides) for sides in plan.sides] == expected["object_sizes"]


@pytest.mark.parametrize("case", cases_of("objects_to_offsets"))
def test_objects_lie_end_to_end_as_in_tensorflow_lite(case: Mapping[str, Any]) -> None:
    for step in case["steps"]:
        plan = end_to_end(in_objects(dict(enumerate(step["object_ids"])), step["object_sizes"]), 1)
        assert [plan.offsets[tensor] for tensor in range(len(step["object_ids"]))] == step["expected_offsets"]
        assert plan.total_bytes == step.get("expected_total_size", sum(step["object_sizes"]))


@pytest.mark.parametrize("case", cases_of("task_profiles"))
def test_profiles_are_those_of_tensorflow_lite(case: Mapping[str, Any]) -> None:
    records, expected = records_of(case["usage_records"]), case["expected"]
    assert [list(profile) for profile in task_profiles(records)] == expected["task_profiles"]
    assert list(positional_maximums(records)) == expected["positional_maximums"]


@pytest.mark.parametrize("case", cases_of("reallocation_graph"))
def test_reallocation_graphs_are_those_of_tensorflow_lite(case: Mapping[str, Any]) -> None:
    assert [list(tasks) for tasks in reallocation_graph(case["deps_graph"])] == case["expected"]["reallocation_graph"]


def test_an_object_goes_only_to_whom_the_reallocation_graph_allows() -> None:
    """Two branches of two tasks each, which may run side by side, between one task that splits and one that joins."""
    readers = [[1, 3], [2], [5], [4], [5], []]
    records = [
        UsageRecord(0, 8, 0, 3),
        *(UsageRecord(k, 8, k, readers[k][0]) for k in (1, 2, 3, 4)),
        UsageRecord(5, 8, 5, 5),
    ]
    alone, side_by_side = (greedy_in_order(records, 1, graph) for graph in (None, reallocation_graph(readers)))
    assert len(alone.buffer_bytes) == 3
    assert len(side_by_side.buffer_bytes) == 5
    assert side_by_side.places[5] in {side_by_side.places[k] for k in (0, 1, 3)}


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network["name"])
def test_networks_take_the_known_bytes(network: Mapping[str, Any]) -> None:
    records = records_of(network["usage_records"])
    for name, (total_bytes, objects) in network["objects"].items():
        plan = strategy_of("objects", name).plan(records, 1)
        assert (plan.total_bytes, len(plan.buffer_bytes)) == (total_bytes, objects), name
    if "objects_lower_bound" in network:
        assert objects_bound_bytes(records) == network["objects_lower_bound"]
        assert lower_bound_bytes(records) == network["lower_bound"]
        assert greedy_by_size(records).total_bytes == network["total_size"]
    if "offsets" in network:
        assert [greedy_by_size(records).offsets[k] for k in range(len(records))] == network["offsets"]
