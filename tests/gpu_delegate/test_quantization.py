"""Real values as integers and back: the error is half a step, and the CPU path speaks floats to quantised networks."""

import numpy as np
import pytest

from tests.model_builder import ModelBuilder
from texelflow.app.frame.cpu_path import CpuPath
from texelflow.app.models.loading import SegmentationModel
from texelflow.app.models.spec import ModelSpec
from texelflow.app.picture.picture import PictureFormat
from texelflow.gpu_delegate.graph import Quantization, Tensor
from texelflow.gpu_delegate.quantization import dequantized, quantized
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


def test_a_quantised_network_gives_a_mask() -> None:
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
