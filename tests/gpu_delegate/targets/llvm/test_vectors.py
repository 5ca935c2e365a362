"""Vector nodes in the CPU's own code, at odd sizes and for every width of vectors, against float64."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.markers import one_in
from tests.helpers.native import native_networks
from tests.model_files.graphs import GraphBuilder
from texelflow.gpu_delegate.code.product_forms import scaled_bytes
from texelflow.gpu_delegate.model.graph import Activated, Conv2D, Graph, Reduce
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.native_runtime import CheckedNetwork

Values = npt.NDArray[Any]
Fold = Callable[..., Any]

SIZES = ((1, 1, 1, 1), (3, 5, 2, 3), (17, 33, 3, 3), (64, 16, 8, 4), (130, 300, 7, 7), (40, 257, 33, 17))  # c, o, h, w
FOLDS: dict[str, Fold] = {
    "MEAN": np.mean, "SUM": np.sum, "REDUCE_PROD": np.prod, "REDUCE_MAX": np.max, "REDUCE_MIN": np.min,
}  # fmt: skip
OVER_PIXELS, OVER_CHANNELS = Reduce((1, 2), True), Reduce((3,), True)


def folds_graph(fold: str, inputs: int, height: int, width: int) -> Graph:
    """A map's pixels folded, and the channels of what that gives."""
    g = GraphBuilder()
    over_pixels = g.node(fold, [g.input(1, height, width, inputs)], (1, 1, 1, inputs), OVER_PIXELS)
    return g.graph(over_pixels, g.node(fold, [over_pixels], (1, 1, 1, 1), OVER_CHANNELS))


def gate_graph(inputs: int, outputs: int, height: int, width: int) -> Graph:
    """Mean, matrix, arithmetic with constants of one channel and of all."""
    g = GraphBuilder()
    mean = g.node("MEAN", [g.input(1, height, width, inputs)], (1, 1, 1, inputs), OVER_PIXELS)
    shape = (1, 1, 1, outputs)
    x = g.node("CONV_2D", [mean, g.random(outputs, 1, 1, inputs), g.random(outputs)], shape, Conv2D())
    x = g.node("MUL", [x, g.random(*shape)], shape, Activated())
    x = g.node("ADD", [g.random(1, 1, 1, 1), x], shape, Activated())
    return g.graph(g.node("LOGISTIC", [x], shape))


def gate(graph: Graph, x: Values) -> Values:
    """What a gate_graph computes, in float64."""
    constants = [t.data.astype(np.float64) for t in graph.tensors.values() if t.data is not None]
    weights, bias, factor, addend = constants
    sums = weights[:, 0, 0] @ x.astype(np.float64).mean((0, 1, 2)) + bias
    return np.asarray(1 / (1 + np.exp(-(sums * factor + addend))))


@pytest.fixture(scope="module", params=[4, 8, 16])
def networks(request: pytest.FixtureRequest) -> dict[Any, CheckedNetwork]:
    """All graphs of this file; LLVM splits vectors that are wider than the machine's."""
    graphs: dict[Any, Graph] = {}
    for c, o, h, w in SIZES:
        graphs[c, o, h, w] = gate_graph(c, o, h, w)
        graphs.update({(fold, c, h, w): folds_graph(fold, c, h, w) for fold in FOLDS})
    return native_networks(graphs, replace(native_target(), lanes=request.param))


def inputs_of(network: CheckedNetwork, low: float, high: float) -> Values:
    return np.random.default_rng(1).uniform(low, high, network.input_shapes[0]).astype(np.float32)


def run_in_parts(network: CheckedNetwork, x: Values) -> Sequence[Values]:
    """The outputs where every part of each function was computed by a call of its own, the last ones first."""
    network.run(x)
    wanted = [network.read(tensor) for tensor in network.compiled.graph.outputs]
    for kernel in network.compiled.kernels:
        for tensor in kernel.outputs:
            network.memory(tensor)[:] = math.nan
    for number, kernel in enumerate(network.compiled.kernels):
        for part in reversed(range(kernel.slice_blocks)):
            network.run_part(number, (0, kernel.row_groups), (part, part + 1))
    found = [network.read(tensor) for tensor in network.compiled.graph.outputs]
    assert all(np.array_equal(*pair) for pair in zip(found, wanted, strict=True))
    return found


@one_in(4, "size", SIZES, ids=str)
def test_matrices_and_arithmetic(networks: dict[Any, CheckedNetwork], size: tuple[int, int, int, int]) -> None:
    network = networks[size]
    x = inputs_of(network, -1, 1)
    (found,) = run_in_parts(network, x)
    assert np.abs(found - gate(network.compiled.source, x)).max() < 1e-6
    out = network.compiled.graph.outputs[0]
    assert not network.memory(out)[size[1] : 4 * -(-size[1] // 4)].any(), "lanes past the last channel are zeros"


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("fold", FOLDS)
def test_reductions(networks: dict[Any, CheckedNetwork], fold: str, size: tuple[int, int, int, int]) -> None:
    c, _, h, w = size
    network = networks[fold, c, h, w]
    x = inputs_of(network, 0.98, 1.02) if fold == "REDUCE_PROD" else inputs_of(network, -2, -1)
    pixels, channels = run_in_parts(network, x)
    wanted = FOLDS[fold](x.astype(np.float64), (1, 2))
    slack = 1e-5 if fold == "REDUCE_PROD" else 2e-6  # each factor is rounded
    assert np.allclose(pixels[:, 0, 0], wanted, rtol=slack)
    assert np.allclose(channels.ravel(), FOLDS[fold](wanted), rtol=10 * slack)


@pytest.mark.parametrize("scales", ["one", "each"])
@pytest.mark.parametrize("size", [(3, 5), (64, 7), (200, 33), (67, 256)])
def test_weights_that_were_bytes_stay_so(scales: str, size: tuple[int, int]) -> None:
    """(outputs, inputs): whole blocks, a part of one alone, and both."""
    rng, (outputs, inputs) = np.random.default_rng(0), size
    whole = rng.integers(-127, 128, size)
    whole[:, 0] = 127
    sizes = np.asarray(rng.uniform(0.001, 0.1, (outputs, 1) if scales == "each" else (1, 1)), np.float32)
    matrix, bias = np.asarray(whole * sizes, np.float32), rng.normal(size=outputs).astype(np.float32)
    found = scaled_bytes(matrix)
    assert found is not None
    np.testing.assert_array_equal(found.whole, whole)
    graphs = {}
    for name, weights in (("bytes", matrix), ("floats", matrix * rng.uniform(0.9, 1, size).astype(np.float32))):
        g = GraphBuilder()
        x = g.input(1, inputs)
        node = g.node("FULLY_CONNECTED", [x, g.constant(weights), g.constant(bias)], (1, outputs), Activated())
        graphs[name] = g.graph(node)
    networks, values = native_networks(graphs), rng.normal(size=(1, inputs)).astype(np.float32)
    wanted = values.astype(np.float64) @ matrix.T + bias
    np.testing.assert_allclose(networks["bytes"].run([values])[0], wanted, rtol=0, atol=3e-6 * np.abs(wanted).max())
    if size == (67, 256):
        assert networks["bytes"].image.weights.nbytes < 0.3 * networks["floats"].image.weights.nbytes


def test_other_weights_are_floats() -> None:
    rng = np.random.default_rng(0)
    for odd in (rng.normal(size=(9, 4)), np.full((9, 4), np.nan), np.full((9, 4), np.inf)):
        assert scaled_bytes(odd.astype(np.float32)) is None
    assert scaled_bytes(np.full((9, 4), 2.2, np.float32)) is None
    ones = scaled_bytes(np.tril(np.ones((9, 9), np.float32)))
    assert ones is not None, "sums of whole numbers stay exact"
    assert set(ones.scales.tolist()) == {1.0}
    one_off = np.tile(np.arange(-127, 128, dtype=np.float32), (20, 1))
    assert scaled_bytes(one_off) is not None
    one_off[19, 3] += 0.5
    assert scaled_bytes(one_off) is None
