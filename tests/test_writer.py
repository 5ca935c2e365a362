"""What is written of a graph gives the same bits as the original file, in every tensor, and holds nothing else."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_delegate.errors import ModelError
from gpu_delegate.graph import Graph, Node
from gpu_delegate.reader import read_model
from gpu_delegate.reference import Reference
from tests.op_cases import CASES
from tests.original_file import run_original
from tests.random_networks import random_network
from tests.sketch import OpCase

Array = Any


def check_same_bits(data: bytes, inputs: Sequence[Array] | None = None, in_xnnpack: bool = True) -> None:
    """Every tensor of TensorFlow Lite's own kernels, and the outputs of XNNPACK's."""
    graph = read_model(data)
    shapes = [graph.tensors[index].shape for index in graph.inputs]
    inputs = inputs or [np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    reference = Reference(graph, threads=1, keep_all_tensors=True)
    reference.run(inputs)
    for index, wanted in zip(graph.tensors, run_original(data, inputs, graph.tensors), strict=True):
        found = reference.tensor(index)
        assert (found.shape, found.dtype, found.tobytes()) == (wanted.shape, wanted.dtype, wanted.tobytes()), index
    if in_xnnpack:
        assert run_in_xnnpack(data, inputs) == [out.tobytes() for out in run_original(data, inputs)]


def run_in_xnnpack(data: bytes, inputs: Sequence[Array]) -> list[bytes]:
    return [out.tobytes() for out in Reference(read_model(data), threads=1).run(inputs)]


def steps_over_pixels(graph: Graph) -> bool:
    """Whether a window's stride is larger than the window, which XNNPACK gets wrong where the file says SAME."""

    def kernel(node: Node) -> tuple[int, int]:
        if "POOL" in node.op:
            return node.attributes.kernel  # type: ignore[attr-defined, no-any-return]
        return graph.tensors[node.inputs[1]].shape[1:3]  # type: ignore[return-value]

    windows = [node for node in graph.nodes if hasattr(node.attributes, "stride")]
    return any(step > taps for n in windows for step, taps in zip(n.attributes.stride, kernel(n), strict=True))  # type: ignore[attr-defined]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_ops(case: OpCase) -> None:
    data = case.model()
    graph = read_model(data)
    inputs = case.inputs([graph.tensors[index].shape for index in graph.inputs])
    refused = case.name == "DEQUANTIZE constant that is an output"
    check_same_bits(data, inputs, in_xnnpack=not steps_over_pixels(graph) and not refused)
    if refused:
        with pytest.raises(RuntimeError, match="XNNPACK"):
            run_original(data, inputs)
        with pytest.raises(ModelError, match="XNNPACK"):
            run_in_xnnpack(data, inputs)


@pytest.mark.parametrize("seed", range(60))
def test_random_networks(seed: int) -> None:
    data = random_network(seed).build()
    check_same_bits(data, in_xnnpack=not steps_over_pixels(read_model(data)))


@pytest.mark.parametrize("name", ["selfie", "selfie-landscape"])
def test_models_of_the_catalogue(name: str, request: pytest.FixtureRequest) -> None:
    file: Path = request.getfixturevalue(f"{name.replace('-', '_')}_model")
    check_same_bits(file.read_bytes())
