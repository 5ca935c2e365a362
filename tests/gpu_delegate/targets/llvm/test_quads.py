"""The last pixels of pointwise sums, four at a time: right at every rest and odd numbers of channels, and used."""

import numpy as np
import pytest

from tests.helpers.engine import on_cpu, worst
from tests.helpers.native import native_networks, target_of
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.reading.reader import read_model

SIZES = ((7, 7), (1, 17), (5, 5), (6, 6), (2, 9), (9, 9), (4, 19), (3, 33), (14, 14))
CHANNELS = ((24, 17), (5, 33), (30, 6), (9, 1))


def pointwise(height: int, width: int, channels: tuple[int, int]) -> bytes:
    """From some channels to others, with what is read at the pixel behind the sum."""
    sketch, (inputs, outputs) = Sketch(height * width), channels
    x = sketch.image(height, width, inputs)
    y = sketch.image(height, width, outputs)
    sketch.output(sketch.unary("RELU6", sketch.binary("ADD", sketch.conv(x, outputs), y)))
    return sketch.build()


@pytest.mark.parametrize("lanes", [8, 16])
def test_every_rest_is_right(lanes: int) -> None:
    target = target_of(lanes)
    models = {(*size, channels): pointwise(*size, channels) for size in SIZES for channels in CHANNELS}
    networks = native_networks({key: read_model(model) for key, model in models.items()}, target)
    rng, used = np.random.default_rng(1), 0
    for (height, width, channels), network in networks.items():
        inputs = [rng.uniform(-1, 1, (1, height, width, count)).astype(np.float32) for count in channels]
        wanted = on_cpu(models[height, width, channels], inputs)
        assert worst(network.run(inputs), wanted) < 1e-5, (height, width, channels)
        assert worst(network.run(inputs), wanted) < 1e-5, "of what ran before nothing is left"
        used += "x float> %" in network.compiled.text and network.compiled.kernels[0].row_groups > 1
    assert used
