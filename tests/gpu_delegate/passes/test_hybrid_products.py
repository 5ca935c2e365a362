"""Hybrid ops, of floats with weights of bytes, to the bit as TensorFlow Lite's reference kernels compute them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from tests.helpers.native import native_networks
from tests.model_files.model_builder import Array, ModelBuilder, Shape
from tests.quantized.ours import our_run
from tests.quantized.runs import TfliteRun
from texelflow.gpu_delegate.cpu.compare import compare
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.model.graph import AsymmetricInputs
from texelflow.gpu_delegate.model.quantization import dequantized
from texelflow.gpu_delegate.passes.pipeline import run_passes
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.reading.writer import write_model

SAME: dict[str, Any] = {"padding": "SAME", "stride": (1, 1)}
VALID: dict[str, Any] = {"padding": "VALID", "stride": (1, 1)}
HALF: dict[str, Any] = {"padding": "SAME", "stride": (2, 2), "activation": "RELU6"}
FC, CONV, DEPTHWISE = "FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D"


def one(
    op: str, x: Shape, weights: Shape, out: Shape, scales: int, dtype: str = "int8", least: int = -127, **options: Any
) -> bytes:
    """One op with so many scales of its weights, whose bytes are at least so large."""
    model, rng, outputs = ModelBuilder(), np.random.default_rng(1), weights[3 if op == DEPTHWISE else 0]
    sizes = tuple(rng.uniform(0.001, 0.03, scales).astype(np.float32).tolist())
    data = rng.integers(least, 128, weights).astype(np.int8).view(dtype).tobytes()
    axis = 3 if op == DEPTHWISE else 0
    given = model.tensor(weights, dtype, data, scales=sizes, zero_points=(0,) * scales, dimension=axis)
    inputs = [model.input(x), given, model.constant(rng.normal(size=outputs))]
    model.output(model.op(op, inputs, out, **options))
    return model.build()


MODELS: Mapping[str, bytes] = MappingProxyType(
    {
        "connected": one(FC, (4, 48), (20, 48), (4, 20), 1),
        "connected, asymmetric": one(FC, (4, 48), (20, 48), (4, 20), 1, asymmetric_quantize_inputs=True),
        "connected, scales": one(FC, (4, 48), (20, 48), (4, 20), 20, activation="RELU"),
        "connected, rows in a map": one(FC, (2, 3, 4, 12), (5, 48), (6, 5), 1),
        "connected, dimensions kept": one(FC, (2, 3, 48), (5, 48), (2, 3, 5), 1, keep_num_dims=True),
        "connected, long": one(FC, (1, 1500), (9, 1500), (1, 9), 9),
        "conv": one(CONV, (3, 7, 9, 5), (6, 3, 3, 5), (3, 4, 5, 6), 1, **HALF),
        "conv, scales": one(CONV, (3, 7, 9, 5), (6, 3, 3, 5), (3, 4, 5, 6), 6, **HALF),
        "conv, one scale for one output": one(CONV, (1, 7, 9, 5), (1, 3, 3, 5), (1, 7, 9, 1), 1, **SAME),
        "conv, dilated": one(CONV, (1, 7, 9, 5), (6, 3, 3, 5), (1, 3, 5, 6), 6, dilation=(2, 2), **VALID),
        "conv, deep": one(CONV, (1, 3, 3, 200), (4, 3, 3, 200), (1, 3, 3, 4), 4, **SAME),
        "conv, large sums": one(CONV, (1, 6, 6, 100), (32, 3, 3, 100), (1, 6, 6, 32), 32, least=40, **SAME),
        "conv, groups": one(CONV, (1, 5, 6, 8), (12, 3, 3, 4), (1, 5, 6, 12), 12, **SAME),
        "depthwise": one(DEPTHWISE, (2, 7, 9, 5), (1, 3, 3, 5), (2, 7, 9, 5), 5, **SAME),
        "depthwise, multiplier": one(DEPTHWISE, (2, 7, 9, 5), (1, 3, 3, 10), (2, 4, 5, 10), 10, **HALF),
        "depthwise, one channel": one(DEPTHWISE, (1, 7, 9, 1), (1, 3, 3, 1), (1, 7, 9, 1), 1, **SAME),
    }
)


def inputs_of(shape: Shape) -> Sequence[Array]:
    """Batches, or rows, of different sizes; pictures from -1 to 1, whose every value lies between two steps; zeros."""
    rng = np.random.default_rng(0)
    sizes = np.resize([1, 30, 0, 0.001], shape[0]).reshape(-1, *(1 for _ in shape[1:]))
    picture = rng.integers(0, 256, shape) / 127.5 - 1
    picture.reshape(shape[0], -1)[:, :2] = -1, 1
    return [np.asarray(x, np.float32) for x in (rng.normal(0.3, 1, shape) * sizes, picture, np.zeros(shape))]


def test_native_code_gives_the_same_bits() -> None:
    networks = native_networks({name: replace(read_model(data), hybrid="reference") for name, data in MODELS.items()})
    for name, data in MODELS.items():
        reference = TfliteRun(data)
        for x in inputs_of(reference.input_shape):
            np.testing.assert_array_equal(networks[name].run([x])[0], reference([x])[0], name)


@pytest.mark.gl
@pytest.mark.parametrize("name", ["connected, asymmetric", "conv", "conv, scales", "depthwise"])
def test_opengl_differs_by_float_rounding(name: str) -> None:
    reference = TfliteRun(MODELS[name])
    with our_run(MODELS[name], "gl", "reference") as run:
        for x in inputs_of(reference.input_shape)[::2]:  # the picture lies between steps: a GPU's division decides
            (right,) = reference([x])
            np.testing.assert_allclose(run([x])[0], right, rtol=0, atol=1e-6 * np.abs(right).max())


def test_products_are_of_bytes_where_a_file_has_one_scale() -> None:
    """So they are in the code, too: whole numbers of which 256 are possible, and weights that are whole."""
    graph, _ = run_passes(replace(read_model(MODELS["conv"]), hybrid="reference"))
    (conv,) = (node for node in graph.nodes if node.op == CONV)
    steps, weights = graph.tensors[conv.inputs[0]].steps, graph.tensors[conv.inputs[1]].data
    assert steps is not None
    assert (steps.low, steps.high) == (-127, 127)
    assert weights is not None
    np.testing.assert_array_equal(weights, np.rint(weights))


def test_a_file_keeps_how_rows_are_rounded() -> None:
    for name, kept in (("connected", False), ("connected, asymmetric", True)):
        graph = read_model(write_model(read_model(MODELS[name])))
        assert isinstance(graph.nodes[0].attributes, AsymmetricInputs) == kept


def test_what_has_no_hybrid_kernel_is_expanded() -> None:
    """uint8, of which the kernels take the bits for those of int8."""
    data = one(FC, (4, 48), (20, 48), (4, 20), 1, "uint8")
    graphs = {way: replace(read_model(data), hybrid=way) for way in ("expanded", "reference")}
    x = inputs_of((4, 48))[0]
    first, second = (network.run([x])[0] for network in native_networks(graphs).values())
    np.testing.assert_array_equal(first, second)


def test_a_comparison_allows_a_step_of_one_value() -> None:
    """Half way between two steps the last bit of a division decides, which GPUs round as they like."""
    graph, x = replace(read_model(MODELS["conv, deep"]), hybrid="reference"), inputs_of((1, 3, 3, 200))[1]
    network = native_networks({0: graph}, keep_all=True)[0]
    (found,) = compare(network, Reference(graph, keep_all_tensors=True), [x], tolerance=0)
    weights = graph.tensors[graph.nodes[0].inputs[1]]
    assert weights.data is not None
    assert found.max_error < 1e-5 * found.magnitude
    assert found.limit == pytest.approx(np.abs(dequantized(weights.data, weights)).max() / 127)
