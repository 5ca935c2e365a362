"""The tuner on a simulated device whose fastest kernels are known: it finds them in spite of noise."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.engine import run
from tests.helpers.markers import exhaustive
from tests.helpers.simulated_device import COMPILE_S, TRY_S, SimulatedDevice
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.device.choices import UNMEASURED, Choice
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE, Device
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.fusion import group_nodes
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.targets.glsl.glsl_kernel import Kernel, Lowered, lower_to_glsl
from texelflow.gpu_delegate.tuning.candidates import SMALL_GROUPS, Search
from texelflow.gpu_delegate.tuning.halving import Budget
from texelflow.gpu_delegate.tuning.isolated import isolated
from texelflow.gpu_delegate.tuning.tuner import LEAST_SHARE, Tuner

DEVICE = HARDWARE.with_tuning(loads_at_use=False)  # whose kernels are written in less time
# How much longer than on the fastest way a kernel takes, by what was chosen; elsewhere twice as long
FACTORS: Mapping[str, Mapping[object, float]] = {
    "rows": {4: 1.0, 2: 1.2, 8: 1.3},
    "z_slices": {2: 1.0, 1: 1.25, 4: 1.1},
    "weights_fetch": {"storage": 1.0, "uniform": 1.2},
    "inputs_fetch": {"texture": 1.0, "storage": 1.3},
    "local": {(16, 4, 1): 1.0, (8, 8, 1): 1.2},
    "baked": {False: 1.0},
}


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Two convolutions that take long, and one that takes a hundredth of that."""
    m = Sketch(0)
    x = m.conv(m.image(64, 64, 16), 64)
    x = m.conv(x, 32, stride=(2, 2))
    x = m.pool("AVERAGE_POOL_2D", x, (8, 8), stride=(8, 8), padding="VALID")
    m.output(m.conv(m.conv(x, 16), 8))
    return read_model(m.build())


@pytest.fixture(autouse=True, scope="module")
def _lower_once() -> Iterator[None]:
    """Tunings ask for the same kernels again and again: as with a driver's cache, they are made once."""
    made: dict[str, Lowered] = {}

    def lower_once(graph: Graph, device: Device, options: CompileOptions) -> Lowered:
        key = repr((graph.tensors.keys(), device, options))
        if key not in made:
            made[key] = lower_to_glsl(graph, device, options)
        return made[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("texelflow.gpu_delegate.tuning.tuner.lower_to_glsl", lower_once)
        yield


def least_ms(kernel: Kernel) -> float:
    return (kernel.macs + 1000) / 1e6


def true_ms(kernel: Kernel) -> float:
    if kernel.tile is None:
        return least_ms(kernel)
    return least_ms(kernel) * math.prod(values.get(getattr(kernel.tile, name), 2.0) for name, values in FACTORS.items())


def tuned(graph: Graph, simulated: SimulatedDevice, budget_s: float = 1e9, device: Device = DEVICE) -> Device:
    """The device with what was found out."""
    tuner = Tuner(simulated, graph, device, Budget(budget_s, simulated.clock))
    for step in tuner.steps():
        assert 0 <= step.share <= 1
    return tuner.device


def total_ms(graph: Graph, device: Device) -> float:
    return sum(map(true_ms, compile_graph(graph, device).kernels))


def by_length(graph: Graph) -> list[Kernel]:
    return sorted(compile_graph(graph, DEVICE).kernels, key=true_ms, reverse=True)


@exhaustive
def test_five_tunings_end_within_ten_percent_of_the_best(graph: Graph) -> None:
    best_ms = sum(map(least_ms, compile_graph(graph, DEVICE).kernels))
    assert total_ms(graph, DEVICE) > 3 * best_ms
    found_ms = [total_ms(graph, tuned(graph, SimulatedDevice(true_ms, seed))) for seed in range(5)]
    assert max(found_ms) <= 1.1 * best_ms


def test_the_budget_is_kept_and_the_longest_kernel_comes_first(graph: Graph) -> None:
    simulated = SimulatedDevice(true_ms)
    longest = by_length(graph)[0]
    found = tuned(graph, simulated, budget_s=1.2)
    assert simulated.now_s <= 1.2 + 2 * COMPILE_S + TRY_S
    assert found.choices.kernels.keys() == {longest.signature}
    assert total_ms(graph, found) < total_ms(graph, DEVICE)
    assert not tuned(graph, SimulatedDevice(true_ms), budget_s=0.0).choices


def test_what_takes_a_small_share_stays_as_it_is(graph: Graph) -> None:
    long, short = by_length(graph)[:2], by_length(graph)[2:]
    assert 0 < sum(map(true_ms, short)) < LEAST_SHARE * total_ms(graph, DEVICE)
    simulated = SimulatedDevice(true_ms)
    found = tuned(graph, simulated)
    assert found.choices.kernels.keys() == {kernel.signature for kernel in long}
    again = SimulatedDevice(true_ms)
    assert tuned(graph, again, device=found).choices == found.choices
    assert len(again.compiled) < len(simulated.compiled) / 8, "what is known is not searched again"


def test_little_is_taken_for_noise(graph: Graph) -> None:
    """Where the fastest is 4 % faster, nothing changes, and the record says so."""
    alike = lambda kernel: least_ms(kernel) * (1.0 if kernel.tile and kernel.tile.rows == 1 else 0.96)  # noqa: E731
    flat = SimulatedDevice(alike, noise=0.001)
    found = tuned(graph, flat)
    assert found.choices.kernels
    assert all(choice.ms == choice.default_ms for choice in found.choices.kernels.values())
    assert [k.source for k in compile_graph(graph, found).kernels] == [
        k.source for k in compile_graph(graph, DEVICE).kernels
    ]


def test_what_computes_something_else_is_not_chosen(graph: Graph) -> None:
    simulated = SimulatedDevice(true_ms)
    simulated.is_wrong = lambda kernel: kernel.tile is not None and kernel.tile.rows == 4
    found = tuned(graph, simulated)
    assert 4 not in {choice.tile.rows for choice in found.choices.kernels.values()}
    assert total_ms(graph, found) < total_ms(graph, DEVICE)


def test_small_work_groups_are_found_where_they_are_fastest(graph: Graph) -> None:
    """On a device that has them; software renderers are never asked for any, and nothing chooses them unmeasured."""
    sides = {kernel.tile.local for kernel in compile_graph(graph, DEVICE).kernels if kernel.tile}
    assert sides.isdisjoint((x, y, 1) for x, y in SMALL_GROUPS)
    small = SimulatedDevice(
        lambda kernel: least_ms(kernel) * (1.0 if kernel.tile and kernel.tile.threads <= 4 else 2.0)
    )
    found = tuned(graph, small)
    assert {choice.tile.local for choice in found.choices.kernels.values()} == {(2, 2, 1)}
    for device, count in ((DEVICE, len(SMALL_GROUPS)), (SOFTWARE, 0)):
        base = compile_graph(graph, device)
        (body, *_) = group_nodes(base.graph, device).bodies
        (tile, *_) = (kernel.tile for kernel in base.kernels if kernel.tile)
        others = Search(body, device, SimulatedDevice.facts).others(Search.KINDS.index("small work-groups"), tile)
        assert len(others) == count


@pytest.mark.gl
def test_kernels_in_small_work_groups_compute_the_same(context: Context) -> None:
    m = Sketch(1)
    m.output(m.pool("MAX_POOL_2D", m.depthwise(m.conv(m.image(7, 9, 5), 6, (3, 3)), stride=(2, 2)), (2, 2)))
    graph = read_model(m.build())
    inputs = [np.random.default_rng(0).uniform(-2, 2, (1, 7, 9, 5)).astype(np.float32)]
    wanted = Reference(graph).run(inputs)
    kernels = {kernel.signature: kernel for kernel in compile_graph(graph, HARDWARE).kernels}
    for x, y in SMALL_GROUPS:
        choices = UNMEASURED
        for signature, kernel in kernels.items():
            assert kernel.tile
            tile = replace(kernel.tile, local=(x, y, 1))
            choices = choices.with_kernel(signature, Choice(1.0, 2.0, tile, True, 1))
        compiled = compile_graph(graph, replace(HARDWARE, choices=choices))
        assert {kernel.tile.local for kernel in compiled.kernels if kernel.tile} == {(x, y, 1)}
        with Program(context, compiled) as program:
            for found, right in zip(run(program, inputs), wanted, strict=True):
                np.testing.assert_allclose(found, right, rtol=0, atol=1e-5)


def test_ops_are_put_together_as_is_fastest(graph: Graph) -> None:
    """Here a dispatch takes so long that the fewest are the fastest, which the settings of software give."""
    simulated = SimulatedDevice(lambda kernel: 1.0)
    found = tuned(graph, simulated)
    assert len(compile_graph(graph, found).kernels) < len(compile_graph(graph, DEVICE).kernels)
    (choice,) = found.choices.graphs.values()
    assert choice.ms < choice.default_ms


def test_a_kernel_alone_writes_in_the_place_of_nothing() -> None:
    m = Sketch(0)
    x = m.resize(m.image(4, 4, 5), (32, 32), "RESIZE_NEAREST_NEIGHBOR")
    m.output(m.mean(m.unary("ABS", x)))
    base = compile_graph(read_model(m.build()), DEVICE, CompileOptions(fuse=False))
    assert base.in_place, "in the whole program one does"
    lowered = lower_to_glsl(base.graph, DEVICE, CompileOptions(fuse=False))
    for kernel in lowered.kernels:
        assert not isolated(base, lowered, kernel, DEVICE).in_place
