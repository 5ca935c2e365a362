"""Weights of 4 and 2 bits, and in blocks of one scale each: as TensorFlow Lite's kernels unpack them."""

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import texelflow
from tests.helpers.native import native_networks
from tests.model_files.model_builder import Array, ModelBuilder, Shape
from tests.quantized.ours import our_run
from tests.quantized.runs import XNNPACK, TfliteRun
from texelflow.gpu_delegate.base.errors import ModelError
from texelflow.gpu_delegate.model.graph import Activated, Graph, Node, Opaque, Tensor, WeightBlocks
from texelflow.gpu_delegate.reading.packed import real_blocks, unpacked
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.reading.writer import write_model

RNG = np.random.default_rng(5)
SAME: dict[str, Any] = {"padding": "SAME", "stride": (1, 1)}


def packed(values: Array, bits: int) -> bytes:
    """Integers of so many bits, the first in the lowest ones."""
    each = 8 // bits
    flat = np.zeros(-(-values.size // each) * each, np.uint8)
    flat[: values.size] = values.ravel().astype(np.int8).view(np.uint8) & ((1 << bits) - 1)
    shifted = flat.reshape(-1, each).astype(np.uint32) << (bits * np.arange(each, dtype=np.uint32))
    return bytes(shifted.sum(1).astype(np.uint8))


def one(op: str, weights: Shape, out: Shape, x: Shape, dimension: int, is_hybrid: bool, **options: Any) -> bytes:
    """An op with weights of 4 bits and a scale for each output."""
    model, count = ModelBuilder(), weights[dimension]
    values, scales = RNG.integers(-7, 8, weights), tuple(RNG.uniform(0.01, 0.1, count).astype(np.float32).tolist())
    stored = model.tensor(
        weights, "int4", packed(values, 4), scales=scales, zero_points=(0,) * count, dimension=dimension
    )
    if is_hybrid:
        inputs = [model.input(x), stored, model.constant(RNG.normal(size=count))]
        model.output(model.op(op, inputs, out, **options))
        return model.build()
    given = model.tensor(x, "int8", scales=(0.02,), zero_points=(5,))
    model.inputs.append(given)
    bias, of_bias = RNG.integers(-2000, 2000, count).astype(np.int32), tuple(0.02 * scale for scale in scales)
    inputs = [given, stored, model.tensor((count,), "int32", bias.tobytes(), scales=of_bias, zero_points=(0,) * count)]
    model.output(*model.op_of(op, inputs, [model.tensor(out, "int8", scales=(0.05,), zero_points=(-3,))], **options))
    return model.build()


def models(is_hybrid: bool) -> dict[str, bytes]:
    return {
        "conv": one("CONV_2D", (7, 3, 3, 5), (1, 6, 9, 7), (1, 6, 9, 5), 0, is_hybrid, **SAME),
        "depthwise": one("DEPTHWISE_CONV_2D", (1, 3, 3, 5), (1, 6, 9, 5), (1, 6, 9, 5), 3, is_hybrid, **SAME),
        "connected": one("FULLY_CONNECTED", (7, 13), (3, 7), (3, 13), 0, is_hybrid),
    }


def test_bytes_times_weights_of_4_bits_are_those_of_the_reference_kernels() -> None:
    files = models(False)
    networks = native_networks({name: read_model(data) for name, data in files.items()})
    for name, data in files.items():
        reference = TfliteRun(data)
        x = RNG.integers(-128, 128, reference.input_shape).astype(np.int8)
        np.testing.assert_array_equal(networks[name].run([x])[0], reference([x])[0], name)


def test_floats_times_weights_of_4_bits_are_rounded_as_by_the_reference_kernels() -> None:
    """Where that is asked for; else they are what the weights mean."""
    files = models(True)
    del files["depthwise"]  # which TensorFlow Lite does not have
    graphs = {name: read_model(data) for name, data in files.items()}
    rounded = native_networks({name: replace(graph, hybrid="reference") for name, graph in graphs.items()})
    plain = native_networks(graphs)
    for name, data in files.items():
        reference = TfliteRun(data)
        x = RNG.normal(size=reference.input_shape).astype(np.float32)
        (right,), (real,) = reference([x]), plain[name].run([x])
        np.testing.assert_array_equal(rounded[name].run([x])[0], right, name)
        np.testing.assert_allclose(real, right, rtol=0, atol=0.02 * np.abs(right).max(), err_msg=name)


def in_blocks(size: int = 32, scales: Shape = (9, 3), zero_points: int = -1) -> tuple[bytes, Array]:
    """A fully connected layer with weights of 4 bits in blocks, and what these mean."""
    values, factors = RNG.integers(-8, 8, (9, 96)), RNG.uniform(0.01, 0.1, scales).astype(np.float16)
    stored = np.frombuffer(packed(values, 4), np.uint8)
    blocks = WeightBlocks(scale_tensor=3, zero_point_tensor=zero_points, size=size)
    tensors = (
        Tensor(0, "x", (1, 96)),
        Tensor(1, "weights", (9, 96), "int4", stored, blocks),
        Tensor(2, "out", (1, 9)),
        Tensor(3, "scales", scales, "float16", factors),
    )
    node = Node("FULLY_CONNECTED", (0, 1), (2,), Activated())
    graph = Graph("blocks", MappingProxyType(dict(enumerate(tensors))), (node,), (0,), (2,))
    each = np.resize(np.repeat(factors.astype(np.float32), 32), values.shape)
    return write_model(graph), values * each


def test_blocks_have_a_scale_each() -> None:
    data, real = in_blocks()
    x = RNG.normal(size=(1, 96)).astype(np.float32)
    with our_run(data, "native") as run:
        np.testing.assert_allclose(run([x])[0], x @ real.T, rtol=0, atol=1e-5)
    right = TfliteRun(data, XNNPACK)([x])[0]  # which rounds x to 8 bits
    np.testing.assert_allclose(x @ real.T, right, rtol=0, atol=0.02 * np.abs(right).max())


@pytest.mark.gl
def test_the_delegate_finds_blocks_in_the_interpreter() -> None:
    data, real = in_blocks()
    x = RNG.normal(size=(1, 96)).astype(np.float32)
    for model in (data, None):
        delegate = texelflow.GpuDelegate(model=model, min_nodes_per_partition=1, strict=True, quiet=True)
        found = TfliteRun(data, delegates=[delegate])([x])[0]
        assert delegate.summary.startswith("1 of 1 operator on the GPU")
        np.testing.assert_allclose(found, x @ real.T, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("size", "scales", "zero_points"), [(0, (9, 3), -1), (31, (9, 3), -1), (32, (9, 2), -1), (32, (9, 3), 3)]
)
def test_blocks_that_make_no_sense_are_left_to_tensorflow_lite(size: int, scales: Shape, zero_points: int) -> None:
    values = RNG.integers(-8, 8, (9, 96)).astype(np.int8)
    if zero_points < 0:
        assert real_blocks(values, np.ones(scales, np.float32), size) is None
    graph = read_model(in_blocks(size, scales, zero_points)[0])
    assert isinstance(graph.nodes[0].attributes, Opaque)
    assert graph.original


@pytest.mark.parametrize(("dtype", "bits"), [("int4", 4), ("int2", 2)])
def test_each_number_of_so_many_bits_is_unpacked(dtype: str, bits: int) -> None:
    for count in (1, 2, 3, 4, 5, 257):
        values = RNG.integers(-(1 << (bits - 1)), 1 << (bits - 1), count)
        found = unpacked(0, np.frombuffer(packed(values, bits), np.uint8), (count,), dtype)
        np.testing.assert_array_equal(found, values)
        assert found.dtype == np.int8


def test_too_few_bytes_are_damage() -> None:
    model = ModelBuilder()
    weights = model.tensor((7, 13), "int4", bytes(45), scales=(0.1,), zero_points=(0,))
    model.output(model.op("FULLY_CONNECTED", [model.input((3, 13)), weights], (3, 7)))
    with pytest.raises(ModelError, match="tensor 0 of 46 bytes has a constant of 45 bytes"):
        read_model(model.build())
