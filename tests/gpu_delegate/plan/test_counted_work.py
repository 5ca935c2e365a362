"""By counted work, no fused program costs more than one with a kernel for each op."""

import itertools

import pytest

from tests.generators.profiles import random_graph
from tests.helpers.counted_work import CountedKernel, counted
from tests.helpers.markers import one_in
from tests.model_files.sketch import Size, Sketch
from texelflow.app.models.catalogue import CATALOGUE, fetch
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.device.families import TUNINGS, device_like
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.reading.reader import load_model, read_model

NETWORKS = 200
SMALL_BYTES = 300_000  # of a model's file
TOLERANCE = 1.001  # of what planes of memory and idle threads at edges add
GPUS = tuple(name for name in TUNINGS if name != "software")


def cost(kernels: list[CountedKernel]) -> float:
    return sum(kernel.cost for kernel in kernels)


def check(graph: Graph, family: str) -> None:
    fused, unfused = (counted(graph, device_like(family), fuse) for fuse in (True, False))
    assert cost(fused) <= TOLERANCE * cost(unfused), f"{family}: {[kernel.names for kernel in fused]}"


@one_in(5, "first", range(0, NETWORKS, 20))
def test_random_networks_cost_no_more_fused(first: int) -> None:
    """In software, and on one family of GPUs after the other."""
    for seed, gpu in zip(range(first, first + 20), itertools.cycle(GPUS), strict=False):
        graph = read_model(random_graph(seed, "repeated").build())
        check(graph, "software")
        check(graph, gpu)


@one_in(4, "name", CATALOGUE)
def test_models_of_the_catalogue_cost_no_more_fused(name: str) -> None:
    path = fetch(name)
    if path.stat().st_size > SMALL_BYTES:
        pytest.skip("make cliffs tries it")
    for family in ("software", "hardware"):
        check(load_model(path), family)


@pytest.mark.parametrize(("size", "kernel"), [((64, 64), (3, 3)), ((1, 2000), (1, 2)), ((7, 9), (5, 5))])
def test_heads_behind_one_window_cost_no_more_in_its_kernel(size: Size, kernel: Size) -> None:
    """Several contractions of what one computes: a longer source has fewer pixels a thread, and other tiles."""
    net = Sketch(1)
    x = net.image(*size, 32)
    shared = net.conv(x, 32, kernel, activation="RELU")
    gated = net.binary("MUL", net.unary("TANH", net.conv(x, 32, kernel)), net.unary("LOGISTIC", shared))
    net.output(
        net.conv(shared, 48, activation="RELU"), net.conv(shared, 32), net.unary("LOGISTIC", net.conv(shared, 7))
    )
    net.output(net.conv(gated, 48), net.binary("ADD", x, net.conv(gated, 32)))
    graph = read_model(net.build())
    for family in TUNINGS:
        check(graph, family)


@pytest.mark.parametrize("family", TUNINGS)
def test_no_map_is_reduced_twice(family: str) -> None:
    """A mean is an output; of it a vector is made that a map is multiplied by and another output is made of."""
    net = Sketch(1)
    x = net.image(112, 96, 8)
    mean = net.mean(x)
    gate = net.conv(mean, 8, activation="RELU")
    net.output(mean, net.binary("MUL", x, gate), net.unary("TANH", net.conv(gate, 5)))
    kernels = counted(read_model(net.build()), device_like(family), True)
    assert sum(kernel.names.count("MEAN") for kernel in kernels) == 1


def test_repeated_work_is_counted() -> None:
    """What every work-group computes in front of its kernel, as many times as there are groups."""
    once, repeated = (
        counted(read_model(random_graph(17, "repeated").build()), SOFTWARE.with_tuning(prologue_loads=loads), True)
        for loads in (SOFTWARE.tuning.prologue_loads, 1 << 40)
    )
    assert len(repeated) <= len(once)
    assert cost(repeated) > 2 * cost(once)


def test_threads_share_no_loop_of_a_single_slice() -> None:
    """A window of one channel and convolutions of few behind it: four threads a pixel would do the work of one."""
    check(read_model(random_graph(150, "repeated").build()), "nvidia")
