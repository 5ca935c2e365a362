"""Windows over maps that are one column wide, as networks for sound have them: in native code they are rows."""

import numpy as np

from tests.helpers.engine import on_cpu, worst
from tests.helpers.native import native_networks
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.reading.reader import read_model


def columns(height: int, channels: int, batch: int) -> bytes:
    """Windows of all kinds, with strides and distances, behind and beside what is computed of each pixel."""
    sketch = Sketch(height)
    x = sketch.image(height, 1, channels, batch)
    near = sketch.unary("RELU", sketch.depthwise(x, (5, 1), dilation_h_factor=2))
    far = sketch.conv(sketch.binary("ADD", near, x), 9, (4, 1), stride=(3, 1))
    pooled = sketch.pool("MAX_POOL_2D", sketch.conv(near, 6, (3, 1), padding="VALID"), (2, 1), stride=(2, 1))
    sketch.output(far, pooled, sketch.pool("AVERAGE_POOL_2D", far, (3, 1), stride=(1, 1)), sketch.conv(x, 7))
    return sketch.build()


def test_columns_are_rows() -> None:
    cases = [(41, 5, 1), (19, 8, 3)]
    models = {case: columns(*case) for case in cases}
    networks = native_networks({case: read_model(model) for case, model in models.items()})
    for (height, channels, batch), network in networks.items():
        (turned,) = [report for report in network.compiled.passes if report.name == "turn_columns"]
        assert turned.applied == 5
        x = np.random.default_rng(1).uniform(-1, 1, (batch, height, 1, channels)).astype(np.float32)
        assert worst(network.run([x]), on_cpu(models[height, channels, batch], [x])) < 1e-5


def test_columns_of_a_constant() -> None:
    sketch = Sketch(12)
    x = sketch.image(12, 1, 5)
    map_of_constants = sketch.constant(np.random.default_rng(3).uniform(-1, 1, (1, 12, 1, 5)).astype(np.float32))
    sketch.output(sketch.binary("ADD", sketch.conv(map_of_constants, 4, (3, 1)), sketch.conv(x, 4, (3, 1))))
    model = sketch.build()
    (network,) = native_networks({"constant": read_model(model)}).values()
    values = np.random.default_rng(1).uniform(-1, 1, (1, 12, 1, 5)).astype(np.float32)
    assert worst(network.run([values]), on_cpu(model, [values])) < 1e-5
