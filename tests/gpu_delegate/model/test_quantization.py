"""Real values as integers and back: errors of half a step at most, and floats around quantized networks."""

from dataclasses import replace

import numpy as np
import pytest

from tests.model_files.model_builder import ModelBuilder
from texelflow.app.frame.inference.cpu_path import CpuPath
from texelflow.app.models.model_loading import SegmentationModel
from texelflow.app.models.spec import ModelSpec
from texelflow.app.picture.picture import PictureFormat
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.model.graph import Quantization, Tensor
from texelflow.gpu_delegate.model.graph_digest import graph_digest
from texelflow.gpu_delegate.model.graph_identity import graph_identity
from texelflow.gpu_delegate.model.quantization import dequantized, quantized, with_real_weights
from texelflow.gpu_delegate.reading.reader import read_model


@pytest.mark.parametrize(("dtype", "zero_point"), [("uint8", 128), ("int8", 0), ("int16", 0)])
def test_there_and_back(dtype: str, zero_point: int) -> None:
    tensor = Tensor(0, "x", (5, 3), dtype, None, Quantization((0.25, 0.5, 0.0), (zero_point, 1, zero_point), 1))
    values = np.random.default_rng(0).uniform(-20, 20, (5, 3)).astype(np.float32)
    found = quantized(values, tensor)
    assert found.dtype == dtype
    limits = np.iinfo(dtype)
    low = (limits.min - np.array([zero_point, 1, zero_point])) * np.array([0.25, 0.5, 1])
    errors = np.abs(dequantized(found, tensor) - np.clip(values, low, None)).max(0)
    assert (errors <= [0.125, 0.25, 0.5]).all()
    assert quantized(np.full((5, 3), 1e9, np.float32), tensor).max() == limits.max


def test_floats_mean_themselves() -> None:
    tensor, values = Tensor(0, "x", (2,)), np.array([0.5, -1], np.float32)
    assert quantized(values, tensor) is values
    assert dequantized(values, tensor) is values
    assert dequantized(np.array([0.5], np.float64), tensor).dtype == np.float32


def test_a_quantized_network_gives_a_mask() -> None:
    """The mean of three channels of bytes, as it is."""
    m = ModelBuilder()
    x = m.tensor((1, 8, 8, 3), "uint8", scales=(1 / 255,), zero_points=(0,))
    m.inputs.append(x)
    out = m.tensor((1, 8, 8, 1), "uint8", scales=(1 / 255,), zero_points=(0,))
    m.op_of("MEAN", [x, m.constant(3, "int32")], [out], keep_dims=True)
    m.output(out)
    graph = read_model(m.build())
    spec = ModelSpec((0.0, 1.0), "none", 0)
    path = CpuPath(SegmentationModel("mean", graph, spec, (8, 8), (8, 8)), PictureFormat((8, 8)))
    steps = np.random.default_rng(0).integers(0, 256, (1, 8, 8, 3)).astype(np.float32)
    np.testing.assert_allclose(path.network(steps), steps[0].mean(-1) / 255, atol=1.01 / 255)


def test_weights_of_floats_are_floats() -> None:
    """What TensorFlow Lite computes with them then is not rounded to its 8 bits."""
    m, rng = ModelBuilder(), np.random.default_rng(0)
    weights, scales = rng.integers(-127, 128, (5, 7)).astype(np.int8), tuple(rng.uniform(0.01, 0.02, 5).tolist())
    x = m.input((3, 7))
    weights_of = m.tensor((5, 7), "int8", weights.tobytes(), scales=scales, zero_points=(0,) * 5)
    m.output(m.op("FULLY_CONNECTED", [x, weights_of], (3, 5)))
    graph = read_model(m.build())
    real = with_real_weights(graph)
    assert real.tensors[real.nodes[0].inputs[1]].dtype == "float32"
    values = rng.normal(0, 1, (3, 7)).astype(np.float32)
    wanted = values @ (weights * np.array(scales, np.float32)[:, None]).T
    np.testing.assert_allclose(Reference(real).run(values)[0], wanted, rtol=1e-5, atol=1e-5)
    assert np.abs(Reference(graph, judges=True).run(values)[0] - wanted).max() > 1e-4
    assert with_real_weights(real) is real
    rounded = replace(graph, hybrid="reference")
    assert with_real_weights(rounded) is rounded, "TensorFlow Lite's kernels judge it"
    assert graph_digest(rounded) != graph_digest(graph)
    assert graph_identity(rounded) != graph_identity(graph)
