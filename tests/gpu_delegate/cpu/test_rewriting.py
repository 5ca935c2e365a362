"""Graphs rewritten for TensorFlow Lite on the CPU compute the same as the graphs as they were read."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.generators.profiles import random_graph
from tests.model_files.model_builder import selfie_like
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.cpu.rewriting import rewritten
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.reading.reader import load_model, read_model


def assert_the_same(graph: Graph) -> Graph:
    """On TensorFlow Lite, to float32's rounding; gives the rewritten graph."""
    found = rewritten(graph)
    rng = np.random.default_rng(1)
    inputs = [rng.uniform(-1, 1, graph.tensors[i].shape).astype(np.float32) for i in graph.inputs]
    outputs = [Reference(each, threads=1).run(inputs) for each in (found, graph)]
    for value, wanted in zip(*outputs, strict=True):
        np.testing.assert_allclose(value, wanted, rtol=1e-4, atol=1e-5 * max(1.0, float(np.abs(wanted).max())))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_random_networks(seed: int) -> None:
    assert_the_same(read_model(random_graph(seed, "segmentation").build()))


@pytest.mark.parametrize("changes", [{}, {"size": (96, 64)}, {"global_pool": "MEAN", "fused": True, "half": False}])
def test_the_family_of_selfie(changes: dict[str, Any]) -> None:
    assert_the_same(read_model(selfie_like(2, **changes)))


def test_selfie_has_less_to_do(selfie_model: Path) -> None:
    graph = load_model(selfie_model)
    before, after = (Counter(node.op for node in each.nodes) for each in (graph, assert_the_same(graph)))
    assert after["DEPTH_TO_SPACE"] == 1
    assert not after["Convolution2DTransposeBias"]
    assert not after["DEQUANTIZE"]
    assert not after["RELU"]
    assert after.total() < before.total() / 2


def test_what_is_not_plain_floats_stays() -> None:
    graph = read_model(random_graph(3, "segmentation").build())
    written = graph.tensors[graph.nodes[0].outputs[0]]
    quantized = graph.with_changes(new_tensors={written.index: replace(written, dtype="int8")})
    assert rewritten(quantized) is quantized
