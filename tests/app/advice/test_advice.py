"""Advice: each fault is found in a model that has it, not in its twin, and costs what the twin saves."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.generators.profiles import random_graph
from tests.helpers.markers import one_in
from tests.model_files.faulty_models import CLEAN, FAULTS, Draw, Faulty, five_channels, picture, swished
from tests.model_files.sketch import Sketch
from texelflow.app.advice.advice import Advice, advise
from texelflow.app.advice.cost import RunCost, RunRates, crossing_cost, run_cost
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE, Device
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.layout import shape_of
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.glsl.compiled_partitions import CompiledPartitions, compile_partitions
from texelflow.gpu_delegate.targets.glsl.roofline import Peaks, cost_of

RATES = RunRates(Peaks(macs_per_s=2e10, bytes_per_s=4e9, dispatch_s=2e-5), hand_over_ms=0.25)


def drawn(draw: Draw) -> Graph:
    model = Sketch(0)
    draw(model)
    return read_model(model.build())


def compiled(graph: Graph, device: Device = SOFTWARE) -> CompiledPartitions:
    return compile_partitions(graph, device)


def advice_on(draw: Draw, rates: RunRates | None = RATES, device: Device = SOFTWARE) -> tuple[Advice, ...]:
    return advise(compiled(drawn(draw), device), rates, lambda graph: compiled(graph, device))


def counted(draw: Draw) -> tuple[int, int]:
    """Dispatches and bytes of a model, counted plainly: kernels, and tensors that cross a border.

    What is packed or unpacked is copied in its dense form, read in the one form and written in the other.
    """
    found = compiled(drawn(draw))
    dispatches = sum(len(each.kernels) for each in found.compiled)
    moved_bytes = sum(cost_of(each, kernel).moved_bytes for each in found.compiled for kernel in each.kernels)
    for partition in found.partitions:
        for number in (*partition.inputs, *partition.outputs):
            tensor = found.graph.tensors[number]
            dense_bytes, channels = 4 * math.prod(tensor.shape), tensor.shape[-1]
            moved_bytes += dense_bytes
            if channels != 4 and math.prod(tensor.shape[:-1]) != 1:
                dispatches += 1
                moved_bytes += dense_bytes + 16 * shape_of(tensor).texels
    return dispatches, moved_bytes


@one_in(4, "case", FAULTS, ids=lambda case: f"{case.kind}: {case.name}")
def test_a_fault_costs_what_the_model_without_it_saves(case: Faulty) -> None:
    found = [each for each in advice_on(case.faulty) if each.kind == case.kind]
    assert len(found) == 1, "the fault is found, once"
    cost = found[0].cost
    (dispatches, moved_bytes), (mended_dispatches, mended_bytes) = counted(case.faulty), counted(case.mended)
    saved = moved_bytes - mended_bytes
    if found[0].is_exact:
        assert (cost.dispatches, cost.moved_bytes) == (dispatches - mended_dispatches, saved)
    else:
        assert 0 < cost.dispatches <= dispatches - mended_dispatches
        assert saved - case.slack_bytes <= cost.moved_bytes <= saved
    assert found[0].is_free == (cost.dispatches == cost.moved_bytes == cost.macs == 0)
    assert found[0].is_free or (cost.ms is not None and cost.ms > 0)
    assert not [each for each in advice_on(case.mended) if each.kind == case.kind]


@one_in(3, ("name", "kind", "draw"), CLEAN, ids=[name for name, _, _ in CLEAN])
def test_what_costs_no_more_than_it_has_to_gets_no_advice(name: str, kind: str, draw: Draw) -> None:
    assert kind not in {each.kind for each in advice_on(draw)}


def test_five_channels_cost_as_much_as_eight() -> None:
    four, five, eight = (run_cost(compiled(drawn(five_channels(n))), RATES) for n in (4, 5, 8))
    assert (five.dispatches, five.moved_bytes, five.macs) == (eight.dispatches, eight.moved_bytes, eight.macs)
    (advice,) = advice_on(five_channels(5))
    assert advice.cost == five - four
    pixels = 20 * 30
    assert advice.cost.macs == pixels * (9 * 4 * 4 + 9 * 4 + (64 - 16) + 9 * 4 * 4), "on paper: four layers"
    assert "5 channels cost as much as 8" in advice.what
    assert "4 channels" in advice.change


def test_pictures_cost_what_they_cost_on_paper() -> None:
    """Three floats a pixel are copied, read and written as four, instead of copying four."""
    pixels = 20 * 30
    for draw in (picture(3, 4), picture(4, 3)):
        (advice,) = advice_on(draw)
        assert (advice.cost.dispatches, advice.cost.moved_bytes) == (1, pixels * (12 + 12 + 16 - 16))


def test_the_worst_comes_first() -> None:
    def draw(model: Sketch) -> None:
        five_channels(5)(model)
        picture(3, 3)(model)
        swished(before=True)(model)
        model.output(model.unary("NEG", model.unary("NEG", model.conv(model.image(3, 3, 4), 4))))

    for rates in (RATES, None):
        found = advice_on(draw, rates)
        assert {each.kind for each in found} == {"channels", "rgb input", "rgb output", "activation", "idle"}
        assert all((each.cost.ms is None) == (rates is None) for each in found)
        costs = [each.cost.ms or 0.0 for each in found]
        assert costs == sorted(costs, reverse=True)
    assert sum(each.cost.dispatches for each in found) >= 2


def test_where_is_told_by_the_numbers_of_the_file() -> None:
    graph = drawn(swished(before=True))
    (advice,) = advice_on(swished(before=True))
    assert [graph.nodes[number].op for number in advice.operators] == ["HARD_SWISH"]
    assert advice.tensors == graph.nodes[advice.operators[0]].outputs
    assert "ADD needs the value before it" in advice.why


@pytest.mark.parametrize("device", [SOFTWARE, HARDWARE], ids=["software", "hardware"])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=6, deadline=None)
def test_advice_on_any_network_is_sound(device: Device, seed: int) -> None:
    """It names what there is, and no change makes anything worse."""
    graph = read_model(random_graph(seed, "segmentation").build())
    for each in advise(compiled(graph, device), RATES, lambda changed: compiled(changed, device)):
        assert set(each.operators) <= set(range(len(graph.nodes)))
        assert set(each.tensors) <= graph.tensors.keys()
        assert each.operators or each.tensors
        assert min(each.cost.dispatches, each.cost.moved_bytes, each.cost.macs) >= 0
        assert each.is_free == ((each.cost.dispatches, each.cost.moved_bytes, each.cost.macs) == (0, 0, 0))
        assert all((each.what, each.why, each.change))


def test_costs_add_up() -> None:
    one, other = RunCost(1, 20, 300, 0.5), RunCost(3, 10, 100, 0.25)
    assert one + other == RunCost(4, 30, 400, 0.75)
    assert one - other == RunCost(-2, 10, 200, 0.25)
    assert one - RunCost(1) == RunCost(0, 20, 300, None)


def test_what_partitions_hand_to_each_other_is_not_copied_to_the_cpu() -> None:
    """Two pieces around an operator of the CPU; the second also reads what the first has computed."""

    def draw(model: Sketch) -> None:
        x = model.conv(model.image(5, 6, 4), 8)
        model.output(model.conv(model.binary("ADD", x, model.op("TheirOwnOp", [x], (1, 5, 6, 8))), 4))

    found = compiled(drawn(draw))
    assert len(found.partitions) == 2
    pixels = 5 * 6
    small, large = pixels * 16, pixels * 32
    cost = crossing_cost(found.graph, found.partitions, RATES)
    # Dense floats come, or go, and are packed where they have 8 channels; 8 channels are handed over.
    assert cost.moved_bytes == small + 3 * large + 3 * large + 2 * large + small
    assert cost.dispatches == 2
