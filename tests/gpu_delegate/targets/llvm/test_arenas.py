"""Networks of one WeightsCache take turns in an arena, and compute the same bytes as apart."""

import gc
import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.base.disk_cache import DiskCache
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.layout import FLOAT_BYTES
from texelflow.gpu_delegate.model.packing import Float32Array
from texelflow.gpu_delegate.programs.model_sharing import ModelSharing
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.loading import load_image
from texelflow.gpu_delegate.targets.llvm.machine import CacheSizes
from texelflow.gpu_delegate.targets.llvm.native_runtime import NativeNetwork
from texelflow.gpu_delegate.targets.llvm.pool import WorkerPool

TARGET = replace(native_target(), caches=CacheSizes(l2_bytes=60_000))  # so small that strips pay


def network_of(height: int) -> Graph:
    """A map that is an output, its mean, and a constant output."""
    net = Sketch(height)
    x = net.conv(net.image(height, 31, 3), 9, (3, 3), activation="RELU")
    x = net.conv(net.depthwise(x), 12, activation="RELU")
    net.output(x, net.mean(x), net.random(1, 4))
    return read_model(net.build(), f"of {height} rows")


SMALL, LARGE = network_of(20), network_of(101)  # one with strips


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> DiskCache:
    return DiskCache(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def pool() -> WorkerPool:
    return WorkerPool(TARGET, 1)


def instances(graphs: Sequence[Graph], kept: DiskCache, pool: WorkerPool, cache: ModelSharing) -> list[NativeNetwork]:
    """One of each graph, in a cache that is finalized."""
    made = []
    for graph in graphs:
        image, code = cache.shared(graph, {}, lambda graph=graph: load_image(graph, TARGET, 1, kept))  # type: ignore[misc]
        made.append(NativeNetwork(image, code, pool, weights_cache=cache))
    cache.finalize_soft()
    return made


def picture(network: NativeNetwork, seed: int) -> Float32Array:
    return np.random.default_rng(seed).uniform(-1, 1, network.input_shapes[0]).astype(np.float32)


def outputs(network: NativeNetwork) -> list[bytes]:
    """For what is in its input."""
    return [values.tobytes() for values in network.run()]


def written(networks: Sequence[NativeNetwork]) -> list[list[bytes]]:
    """What each gives apart, for an input of its own, which it has from now on."""
    found = []
    for seed, network in enumerate(networks):
        network.write(network.image.inputs[0], picture(network, seed))
        found.append([values.tobytes() for values in network.copy().run(picture(network, seed))])
    return found


def test_instances_and_other_models_in_turns_compute_what_they_do_apart(kept: DiskCache, pool: WorkerPool) -> None:
    cache = ModelSharing()
    networks = instances([SMALL, LARGE, SMALL], kept, pool, cache)
    assert any(part.shift for tasks in networks[1].image.rounds for task in tasks for part in task)
    wanted = written(networks)
    for order in ((0, 1, 2), (2, 0, 1), (1, 1, 0)):  # inputs are written once alone
        for number in order:
            assert outputs(networks[number]) == wanted[number]
    assert cache.arena_bytes == FLOAT_BYTES * networks[1].image.shared_floats
    for network in networks:
        inputs = sum(network.image.tensors[tensor].floats for tensor in network.image.inputs)
        own = network.image.arena_floats - network.image.shared_floats
        assert inputs <= own <= inputs + 16, "beside inputs there is the constant output"
    del network, networks[1:]
    gc.collect()
    assert outputs(networks[0]) == wanted[0]
    networks.clear()
    gc.collect()
    assert cache.arena_bytes == 0


def test_a_run_on_another_thread_has_another_arena(kept: DiskCache, pool: WorkerPool) -> None:
    cache = ModelSharing()
    first, second = networks = instances([LARGE, LARGE], kept, pool, cache)
    wanted, found = written(networks), list[list[bytes]]()
    with first.turn():
        first.compute()
        thread = threading.Thread(target=lambda: found.append(outputs(second)))
        thread.start()
        thread.join()
        with second.turn():
            second.compute()
            found += [[network.read(tensor).tobytes() for tensor in network.image.outputs] for network in networks]
    assert found == [wanted[1], *wanted]
    assert cache.arena_bytes == 2 * FLOAT_BYTES * first.image.shared_floats
    assert [outputs(network) for network in networks] == wanted


def test_many_threads_at_once(kept: DiskCache, pool: WorkerPool) -> None:
    cache = ModelSharing()
    networks = instances([SMALL, LARGE, SMALL, LARGE], kept, pool, cache)
    wanted, wrong = written(networks), list[int]()

    def work(number: int) -> None:
        wrong.extend(number for _ in range(40) if outputs(networks[number]) != wanted[number])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(networks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert cache.arena_bytes <= len(networks) * FLOAT_BYTES * networks[1].image.shared_floats


def test_outputs_are_there_in_the_turn_alone(kept: DiskCache, pool: WorkerPool) -> None:
    (network,) = instances([SMALL], kept, pool, ModelSharing())
    network.write(network.image.inputs[0], picture(network, 0))
    network.compute()
    with pytest.raises(RuntimeError, match="is there in the network's turn alone"):
        network.read(network.image.outputs[0])
    assert network.read(network.image.inputs[0]).tobytes() == picture(network, 0).tobytes()
