"""Programs for the CPU: what shares memory and functions, and that values stay right where it does."""

import numpy as np

from tests.engine import on_cpu, worst
from tests.native import native_networks
from tests.sketch import Sketch
from texelflow.gpu_delegate.layout import MapShape
from texelflow.gpu_delegate.llvm.planes import FLOAT_BYTES, plane_floats
from texelflow.gpu_delegate.llvm.runtime import CheckedNetwork
from texelflow.gpu_delegate.reading.reader import read_model

SHAPE = (1, 5, 21, 3)


def joined_along(axis: int) -> tuple[bytes, CheckedNetwork]:
    """Two convolutions, concatenated, and a third one behind."""
    sketch = Sketch(axis)
    x = sketch.image(*SHAPE[1:])
    parts = [sketch.conv(x, 8), sketch.conv(x, 8, (3, 3))]
    shape = list(sketch.shape(parts[0]))
    shape[axis] *= 2
    sketch.output(sketch.conv(sketch.op("CONCATENATION", parts, tuple(shape), axis=axis), 5))
    model = sketch.build()
    return model, native_networks({0: read_model(model)})[0]


def test_channels_are_written_where_they_are_concatenated() -> None:
    model, network = joined_along(3)
    (joined,) = network.compiled.views.nodes.values()
    places = [network.compiled.plan.offsets[tensor] for tensor in (*joined.inputs, *joined.outputs)]
    behind = FLOAT_BYTES * 8 * plane_floats(MapShape(*SHAPE))
    assert places == [places[2], places[2] + behind, places[2]]
    check(model, network)


def test_rows_are_copied() -> None:
    """The planes of a part are not as far apart as those of the whole."""
    model, network = joined_along(1)
    assert not network.compiled.views.nodes
    check(model, network)


def check(model: bytes, network: CheckedNetwork) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, SHAPE).astype(np.float32)
    assert worst(network.run(x), on_cpu(model, [x])) < 1e-6


def test_equal_kernels_are_one_function() -> None:
    sketch = Sketch(0)
    x = sketch.image(*SHAPE[1:])
    for _ in range(3):
        x = sketch.unary("RELU", sketch.depthwise(x, (5, 5)))
    sketch.output(x)
    model = sketch.build()
    network = native_networks({0: read_model(model)})[0]
    assert len(network.compiled.kernels) == 3
    assert len({kernel.symbol for kernel in network.compiled.kernels}) == network.compiled.text.count("define ") == 1
    check(model, network)
