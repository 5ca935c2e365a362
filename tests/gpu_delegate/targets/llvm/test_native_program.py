"""Programs for the CPU: shared memory, shared functions, and right values."""

from dataclasses import replace

import numpy as np
import pytest

from tests.helpers.engine import on_cpu, worst
from tests.helpers.native import native_networks
from tests.model_files.sketch import Sketch
from tests.quantized.networks import Net
from tests.quantized.quantizer import Scheme, quantized_twin
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.model.layout import FLOAT_BYTES, MapShape, plane_floats
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.llvm import native_program
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.native_program import compile_native
from texelflow.gpu_delegate.targets.llvm.native_runtime import CheckedNetwork

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


@pytest.mark.parametrize(("height", "width", "channels", "block"), [(28, 28, 24, 2), (5, 33, 5, 3), (4, 3, 5, 4)])
def test_depth_becomes_space(height: int, width: int, channels: int, block: int) -> None:
    """Behind a convolution whose strips it may be computed in, and read by another one."""
    sketch = Sketch(width)
    x = sketch.conv(sketch.image(height, width, 8), channels * block * block)
    shape = (1, height * block, width * block, channels)
    x = sketch.op("DEPTH_TO_SPACE", [x], shape, block_size=block)
    sketch.output(x, sketch.conv(x, 3))
    model = sketch.build()
    network = native_networks({0: read_model(model)}, replace(native_target(), lanes=8), fuse=width % 2 == 0)[0]
    values = np.random.default_rng(0).uniform(-1, 1, network.input_shapes[0]).astype(np.float32)
    assert worst(network.run(values), on_cpu(model, [values])) < 1e-6


@pytest.mark.parametrize(("window", "outputs"), [((1, 500), 4), ((3, 64), 5), ((16, 16), 9), ((30, 40), 3)])
def test_long_windows_are_loops(window: tuple[int, int], outputs: int) -> None:
    sketch = Sketch(0)
    x = sketch.image(*SHAPE[1:])
    parts = [sketch.conv(x, outputs, window), sketch.depthwise(x, window)]
    sketch.output(*parts)
    model = sketch.build()
    network = native_networks({0: read_model(model)})[0]
    assert len(network.compiled.text) < 1_000_000
    found = network.run(values := np.random.default_rng(0).uniform(-1, 1, SHAPE).astype(np.float32))
    assert worst(found, on_cpu(model, [values])) < 1e-5


def test_layers_of_steps_share_functions() -> None:
    """Scales, limits and multipliers are among the weights: layers of one shape have one text.

    The first and the last have floats, and ADD takes the input of the greater scale first.
    """
    net = Net(4)
    x = net.image(9, 14, 8)
    for _ in range(8):
        x = net.binary("ADD", x, net.depthwise(net.conv(x, 8, activation="RELU6"), (3, 3)))
    net.output(x)
    rng = np.random.default_rng(0)
    samples = [[rng.uniform(-1, 1, (1, 9, 14, 8)).astype(np.float32)] for _ in range(3)]
    graph = read_model(quantized_twin(net, samples, Scheme()))
    network = native_networks({0: graph})[0]
    symbols = [kernel.symbol for kernel in network.compiled.kernels]
    assert len(symbols) == 16
    assert len(set(symbols)) <= 6
    values = rng.integers(-128, 128, network.input_shapes[0]).astype(np.int8)
    assert np.array_equal(network.run(values)[0], Reference(graph, keep_all_tensors=True).run([values])[0])


def test_what_takes_too_long_to_compile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers of ever other sizes share nothing."""
    sketch = Sketch(0)
    sketch.output(*(sketch.conv(sketch.image(33, width, 3), 8) for width in (40, 50, 60)))
    graph = read_model(sketch.build())
    monkeypatch.setattr(native_program, "MOST_MODEL_BYTES", len(compile_native(graph, native_target()).text) // 2)
    with pytest.raises(UnsupportedError, match=r"the model takes [\d.]+ MB of code as text, at most 0.\d are allowed"):
        compile_native(graph, native_target())
