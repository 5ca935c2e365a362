"""Random networks in the CPU's own code: every stored tensor against TensorFlow Lite.

TEXELFLOW_NETWORKS=FIRST:COUNT tries other networks, as many as there is time for.
"""

from dataclasses import replace

import numpy as np
import pytest

from tests.generators.profiles import random_graph
from tests.gpu_delegate.plan.memory.test_offsets import collisions
from tests.gpu_delegate.targets.gl.test_random_networks import asked_for
from tests.helpers.markers import one_in
from tests.helpers.native import native_networks
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.cpu.compare import compare, first_divergence
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.llvm.compiler import native_target

NETWORKS, MOVES, BATCHED = (1, 5, 11, 23, 40), (1, 12, 15, 24), (3, 12)


def check_values(seed: int, sketch: Sketch) -> None:
    """All tensors of two ways to compile a network, and the outputs of both where tensors share memory."""
    graph = read_model(sketch.build())
    reference = Reference(graph, keep_all_tensors=True)
    rng, target = np.random.default_rng(seed), native_target()
    inputs = [rng.uniform(-2, 2, shape).astype(np.float32) for shape in reference.input_shapes]
    narrow = replace(target, lanes=(4, 8)[seed % 2], registers=16)
    for kind, fuse in ((target, True), (narrow, seed % 3 > 0)):
        apart = native_networks({0: graph}, kind, fuse, keep_all=True)[0]
        differences = compare(apart, reference, inputs)
        assert first_divergence(differences) is None
        assert {difference.tensor for difference in differences} >= set(graph.outputs)
        together = native_networks({0: graph}, kind, fuse)[0]
        assert collisions(together.compiled.records, together.compiled.plan) == []
        together.run(inputs)
        pairs = zip(together.run(inputs), apart.run(inputs), strict=True)
        assert all(np.array_equal(*pair) for pair in pairs), "a tensor was overwritten while it was needed"


@one_in(3, "seed", asked_for(NETWORKS))
def test_networks(seed: int) -> None:
    check_values(seed, random_graph(seed, "segmentation"))


@pytest.mark.parametrize("seed", asked_for(BATCHED))
def test_networks_of_several_maps(seed: int) -> None:
    check_values(seed, random_graph(seed, "segmentation", 2))


@one_in(4, "seed", asked_for(MOVES))
def test_networks_of_moves(seed: int) -> None:
    check_values(seed, random_graph(seed, "moves", 1 + seed % 4 // 3))
