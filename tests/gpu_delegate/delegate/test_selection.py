"""Which partitions pay: their cost against the work that they take over, decided again until nothing changes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.generators.profiles import random_graph
from tests.helpers.markers import one_in
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.delegate.selection import (
    COSTS_MORE,
    HARDWARE_RATES,
    SOFTWARE_RATES,
    Balance,
    DelegationRates,
    balances,
    rates_of,
    selection,
)
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.model.graph import Graph, Opaque
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.glsl.compiled_partitions import CompiledPartitions, Select, compile_partitions

DEAR = DelegationRates(1e6, 1e6, 1.0, 1e15, 1e15)
FREE = DelegationRates(0.0, 0.0, 1e15, 1e9, 1e9)


def left_out(network: Sketch, share: float, seed: int = 0) -> Graph:
    """A network as read, with some of its operators unknown to the GPU."""
    graph, rng = read_model(network.build()), np.random.default_rng(seed)
    return graph.with_changes(
        tuple(replace(n, attributes=Opaque("left out")) if rng.random() < share else n for n in graph.nodes)
    )


def chain(*steps: str, side: int = 16, channels: int = 8) -> Graph:
    """RELU (one value at a time), CONV (many multiplications) and CPU (an op that the GPU lacks) in a row."""
    network = Sketch(0)
    x = network.image(side, side, channels)
    for step in steps:
        if step == "CONV":
            x = network.conv(x, channels, (3, 3))
        else:
            x = network.op("TheirOwnOp" if step == "CPU" else step, [x], network.shape(x))
    network.output(x)
    return read_model(network.build())


def delegated(graph: Graph, select: Select) -> CompiledPartitions:
    return compile_partitions(graph, SOFTWARE, select=select)


def nodes_of(found: CompiledPartitions) -> list[tuple[int, ...]]:
    return [partition.nodes for partition in found.partitions]


def test_a_model_that_is_one_partition_always_pays() -> None:
    for graph in (chain("RELU", side=1, channels=1), read_model(random_graph(1, "segmentation").build())):
        assert not delegated(graph, selection(DEAR)).reasons


@pytest.mark.parametrize("rates", [SOFTWARE_RATES, HARDWARE_RATES])
def test_a_large_partition_of_little_work_pays(rates: DelegationRates) -> None:
    """Two hundred small operators that are a dispatch for every two of them: pieces would take twice as many."""
    assert Balance(200, 8 * 10**6, 6 << 20, 100 << 10, 0, 100).pays(rates)


@pytest.mark.parametrize("rates", [SOFTWARE_RATES, HARDWARE_RATES])
def test_crumbs_between_cpu_operators_do_not_pay_and_large_partitions_do(rates: DelegationRates) -> None:
    graph = chain("CONV", "CONV", "CPU", "RELU", "CPU", "CONV", "CONV", "CPU", "RELU", side=64, channels=32)
    found = delegated(graph, selection(rates))
    assert nodes_of(found) == [(0, 1), (5, 6)]
    assert {number for number, reason in found.reasons.items() if reason.startswith(COSTS_MORE)} == {3, 8}


def test_a_small_convolution_pays_as_little_as_another_crumb() -> None:
    found = delegated(chain("CONV", "CPU", "CONV", side=4), selection(SOFTWARE_RATES))
    assert not found.partitions
    assert len(found.reasons) == 3


def test_the_reason_has_the_figures() -> None:
    rates = DelegationRates(2.0, 0.5, 2**20 * 1000, 1e9, 1e12)
    found = delegated(chain("RELU", "CPU", "CONV", side=256, channels=4), selection(rates))
    assert nodes_of(found) == [(2,)], "37.7 ms of multiplications"
    assert found.reasons[0] == (
        "its partition costs more than the work that it takes over: 4.50 ms (2.0 MiB copied, 1 dispatch) "
        "against 0.50 ms (0.0 MMAC, 2.0 MiB in 1 operator)"
    )


def handing_over() -> Graph:
    """A partition whose value only another one reads, which waits for the CPU as well."""
    network = Sketch(0)
    x = network.image(8, 8, 4)
    first = network.unary("RELU", x)
    other = network.op("TheirOwnOp", [x], network.shape(x))
    network.output(network.binary("ADD", first, other))
    return read_model(network.build())


def test_what_partitions_hand_to_each_other_is_no_copy() -> None:
    found = delegated(handing_over(), lambda _: {})
    size_bytes = 8 * 8 * 4 * 4
    assert nodes_of(found) == [(0,), (2,)]
    first, second = balances(found)
    assert (first.copied_bytes, first.shared_bytes) == (size_bytes, size_bytes)
    assert (second.copied_bytes, second.shared_bytes) == (2 * size_bytes, size_bytes)
    assert (first.operator_bytes, second.operator_bytes) == (2 * size_bytes, 3 * size_bytes)
    assert (first.dispatches, first.operators) == (1, 1)


def test_weights_count_as_bytes_that_an_operator_reads() -> None:
    (balance,) = balances(delegated(chain("CONV", side=8, channels=4), lambda _: {}))
    assert balance.macs == 8 * 8 * 4 * 4 * 9
    assert balance.operator_bytes == 4 * (2 * 8 * 8 * 4 + 4 * 4 * 9 + 4)


def test_what_a_partition_costs_and_is_worth() -> None:
    balance, rates = Balance(3, 10**9, 4 * 10**6, 10**6, 2 * 10**6, 5), DelegationRates(1.0, 0.1, 1e9, 1e10, 2e9)
    assert balance.cost_ms(rates) == pytest.approx(1.0 + 0.5 + 1.0)
    assert balance.worth_ms(rates) == pytest.approx(0.3 + 100.0 + 2.0 + 2.0)
    assert balance.pays(rates)
    assert not replace(balance, macs=0, operator_bytes=10**6, shared_bytes=0).pays(rates)


def test_neighbors_are_asked_again() -> None:
    """The second partition pays for as long as the first hands its value over on the GPU."""
    graph = handing_over()
    size_bytes = 8 * 8 * 4 * 4
    rates = DelegationRates(0.0, 0.0, size_bytes * 1e3, 1e15, size_bytes * 1e3)  # a tensor takes 1 ms to copy or read
    worth = [balance.worth_ms(rates) - balance.cost_ms(rates) for balance in balances(delegated(graph, lambda _: {}))]
    assert worth == [pytest.approx(2.0), pytest.approx(2.0)]
    dearer = replace(rates, hand_over_ms=2.5)
    assert not delegated(graph, selection(dearer)).partitions
    alone = compile_partitions(graph, SOFTWARE, select=lambda found: {} if 0 in found.reasons else {0: "for the test"})
    assert [balance.worth_ms(rates) - balance.cost_ms(rates) for balance in balances(alone)] == [pytest.approx(0.0)]


def test_a_least_number_of_nodes_is_all_that_counts() -> None:
    graph = chain("RELU", "CPU", "RELU", "RELU", "CPU", "RELU", "RELU", "RELU")
    for least, kept in ((1, [(0,), (2, 3), (5, 6, 7)]), (2, [(2, 3), (5, 6, 7)]), (3, [(5, 6, 7)]), (4, [])):
        found = delegated(graph, selection(DEAR, min_nodes_per_partition=least))
        assert nodes_of(found) == kept
    assert found.reasons[2] == "its partition has 2 operators; 4 are asked for at least"


def test_at_most_so_many_partitions_are_the_largest_ones() -> None:
    graph = chain("RELU", "RELU", "CPU", "RELU", "CPU", "RELU", "RELU", "CPU", "RELU", "RELU", "RELU")
    for most, kept in ((1, [(8, 9, 10)]), (2, [(0, 1), (8, 9, 10)]), (3, [(0, 1), (5, 6), (8, 9, 10)])):
        found = delegated(graph, selection(FREE, most, 1))
        assert nodes_of(found) == kept
    assert found.reasons[3] == "its partition has 1 operator; 3 larger partitions are allowed"
    assert len(delegated(graph, selection(FREE, 9, 1)).partitions) == 4


def test_constants_do_not_count_as_nodes() -> None:
    network = Sketch(0)
    x = network.image(6, 6, 4)
    options: dict[str, Any] = {"stride": (1, 1), "padding": "SAME"}
    x = network.op("CONV_2D", [x, network.half(np.ones((4, 1, 1, 4))), -1], (1, 6, 6, 4), **options)
    network.output(network.op("TheirOwnOp", [x], network.shape(x)))
    graph = read_model(network.build())
    assert nodes_of(delegated(graph, selection(DEAR, min_nodes_per_partition=1))) == [(0, 1)]
    found = delegated(graph, selection(DEAR, min_nodes_per_partition=2))
    assert not found.partitions
    assert "constant" in found.reasons[0]


@one_in(3, "seed", range(6))
def test_the_end_is_a_fixed_point_and_the_same_each_time(seed: int) -> None:
    graph = left_out(random_graph(seed, "segmentation"), 0.15, seed)
    for select in (selection(SOFTWARE_RATES), selection(FREE, 2), selection(DEAR, 3, 2)):
        found = delegated(graph, select)
        assert not select(found)
        covered = [number for partition in found.partitions for number in partition.nodes]
        assert sorted([*covered, *found.reasons]) == list(range(len(graph.nodes)))
        again = delegated(graph, select)
        assert (nodes_of(again), again.reasons) == (nodes_of(found), found.reasons)


def test_rates_are_those_of_the_device() -> None:
    assert rates_of(True) == SOFTWARE_RATES
    assert rates_of(False) == HARDWARE_RATES
