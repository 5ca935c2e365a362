"""How many workers each node gets, and when a new one."""

import pytest

from texelflow.app.archive.cluster.worker_places import NodeRecord, NodeSize, node_names, places_of, spread


@pytest.mark.parametrize(
    ("size", "places"),
    [
        (NodeSize(8, 0), 4),
        (NodeSize(1, 0), 1),
        (NodeSize(0, 0), 0),
        (NodeSize(0.5, 0), 0),
        (NodeSize(96, 4), 4),
        (NodeSize(0, 2), 2),
        (NodeSize(4, 0.5), 2),
        (NodeSize(3, 0, is_ours=True), 3),
        (NodeSize(3, 1, is_ours=True), 1),
    ],
)
def test_a_node_has_a_worker_for_each_gpu_else_for_half_of_its_cpus(size: NodeSize, places: int) -> None:
    assert places_of(size) == places


def test_few_workers_are_spread_over_all_nodes() -> None:
    assert spread({"a": 4, "b": 1, "c": 2}, None) == {"a": 4, "b": 1, "c": 2}
    assert spread({"a": 4, "b": 1, "c": 2}, 4) == {"a": 2, "b": 1, "c": 1}
    assert spread({"a": 4, "b": 1, "c": 2}, 100) == {"a": 4, "b": 1, "c": 2}
    assert spread({}, 3) == {}


def test_the_first_lost_worker_is_replaced_at_once_and_others_later_and_later() -> None:
    record, delays = NodeRecord(), []
    for now in range(9):
        record.lost(True, float(now))
        delays.append(record.not_before - now)
    assert delays == [0, 0.5, 1, 2, 4, 8, 10, 10, 10]
    record.finished()
    record.lost(True, 100)
    assert record.not_before == 100


def test_a_node_is_given_up_where_no_worker_starts_or_others_do_better() -> None:
    starts, works = NodeRecord(), NodeRecord()
    for _ in range(4):
        starts.lost(False, 0)
        works.lost(True, 0)
    assert not starts.unfit(others_work=True)
    starts.lost(False, 0)
    works.lost(True, 0)
    assert starts.unfit(others_work=False)
    assert works.unfit(others_work=True)
    assert not works.unfit(others_work=False), "the only node is not given up for a job that ends every worker"
    starts.started()
    assert not starts.unfit(others_work=False)


def test_nodes_of_one_host_are_told_apart() -> None:
    assert node_names([("aaaaaaaa", "one"), ("bbbbbbbb", "two")]) == {"aaaaaaaa": "one", "bbbbbbbb": "two"}
    assert node_names([("aaaaaaaa", "one"), ("bbbbbbbb", "one")]) == {
        "aaaaaaaa": "one/aaaaaa",
        "bbbbbbbb": "one/bbbbbb",
    }
