"""CPU networks give the same bytes in any order of work and with any number of threads."""

import threading
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from tests.model_files.graphs import GraphBuilder
from texelflow.gpu_delegate.base.disk_cache import DiskCache
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.model.graph import Activated, Conv2D, DepthwiseConv2D, Graph, Padding, Reduce, Shape
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.loading import load_image
from texelflow.gpu_delegate.targets.llvm.machine import CacheSizes
from texelflow.gpu_delegate.targets.llvm.native_runtime import NativeNetwork
from texelflow.gpu_delegate.targets.llvm.pool import WorkerPool

SIZE = (1, 401, 31, 3)
SAME = Padding(1, 1, 1, 1)


def network_of_pairs(seed: int = 0) -> Graph:
    """Convolution, two depthwise and pointwise pairs, the second with half the rows, and gates from the mean."""
    g = GraphBuilder(seed)
    relu, half = "RELU", (1, 201, 16, 12)
    x = g.node(
        "CONV_2D", [g.input(*SIZE), g.random(9, 3, 3, 3), g.random(9)], (1, 401, 31, 9), Conv2D(relu, padding=SAME)
    )
    x = g.node("DEPTHWISE_CONV_2D", [x, g.random(1, 3, 3, 9), g.random(9)], (1, 401, 31, 9),
               DepthwiseConv2D(relu, padding=SAME))  # fmt: skip
    x = g.node("CONV_2D", [x, g.random(12, 1, 1, 9), g.random(12)], (1, 401, 31, 12), Conv2D(relu))
    x = g.node("DEPTHWISE_CONV_2D", [x, g.random(1, 3, 3, 12), g.random(12)], half,
               DepthwiseConv2D(relu, stride=(2, 2), padding=SAME))  # fmt: skip
    x = g.node("CONV_2D", [x, g.random(12, 1, 1, 12), g.random(12)], half, Conv2D(relu))
    mean = g.node("MEAN", [x], (1, 1, 1, 12), Reduce((1, 2), True))
    return g.graph(g.node("MUL", [x, mean], half, Activated()))


def picture(seed: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).uniform(-1, 1, SIZE).astype(np.float32)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> DiskCache:
    return DiskCache(tmp_path_factory.mktemp("cache"))


@pytest.fixture(params=[1, 2, 4])
def pool(request: pytest.FixtureRequest) -> Iterator[WorkerPool]:
    made = WorkerPool(native_target(), request.param)
    yield made
    made.close()


def test_strips_and_threads_change_no_byte(pool: WorkerPool, cache: DiskCache) -> None:
    graph, x = network_of_pairs(), picture(1)
    (wanted,) = NativeNetwork.load(graph, 1, cache=cache).run(x)
    (reference,) = Reference(graph).run(x)
    np.testing.assert_allclose(wanted, reference, rtol=1e-4, atol=1e-3)
    plans = set()
    for cache_bytes in (1 << 30, 60_000):
        target = replace(native_target(), caches=CacheSizes(l2_bytes=cache_bytes))
        network = NativeNetwork(*load_image(graph, target, pool.threads, cache), pool)
        plans.add(network.image.rounds)
        for _ in range(20):
            (found,) = network.run(x)
            np.testing.assert_array_equal(found, wanted)
    assert len(plans) > 1 or pool.threads > 2  # who would compute too many rows twice


def test_networks_of_several_threads_at_once(pool: WorkerPool, cache: DiskCache) -> None:
    shared = [NativeNetwork.load(network_of_pairs(seed), pool=pool, cache=cache) for seed in range(2)]
    networks = [*shared, NativeNetwork.load(network_of_pairs(0), 2, cache=cache)]
    wanted = [network.run(picture(at))[0] for at, network in enumerate(networks)]
    wrong = list[int]()

    def work(at: int) -> None:
        for _ in range(30):
            if not np.array_equal(networks[at].run(picture(at))[0], wanted[at]):
                wrong.append(at)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(len(networks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for network in networks:
        network.close()
    assert not wrong


def test_a_network_ends_its_own_threads_alone(cache: DiskCache) -> None:
    graph, pool = network_of_pairs(), WorkerPool(native_target(), 2)
    own, sharing = NativeNetwork.load(graph, 2, cache=cache), NativeNetwork.load(graph, pool=pool, cache=cache)
    for network in (own, sharing):
        network.close()
        network.run(picture(0))
    assert (own.pool.threads, pool.threads) == (1, 2)


@pytest.mark.parametrize("shape", [(1, 8), (1, 4, 4, 1), (1, 4, 4, 3)])
def test_outputs_are_copies(shape: Shape, cache: DiskCache) -> None:
    g = GraphBuilder()
    network = NativeNetwork.load(g.graph(g.node("RELU", [g.input(*shape)], shape)), 1, cache=cache)
    (first,), _ = (network.run(np.full(shape, value, np.float32)) for value in (1, 2))
    np.testing.assert_array_equal(first, np.ones(shape))


def test_other_inputs_are_refused(cache: DiskCache) -> None:
    network = NativeNetwork.load(network_of_pairs(), 1, cache=cache)
    for inputs in ([], [picture(0)] * 2, picture(0).astype(np.float64), picture(0)[:, :-1], picture(0) * np.inf):
        with pytest.raises(UsageError, match="takes"):
            network.run(inputs)
