"""MediaPipe's custom ops, which TensorFlow Lite lacks, against NumPy.

The original's own vectors of them are in test_op_cases.py.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers.engine import DEVICES, on_gpu
from tests.helpers.markers import one_in
from tests.helpers.native import native_networks
from tests.model_files.model_builder import ModelBuilder
from tests.model_files.sketch import slid
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.model.graph import Graph, Opaque, Pool2D, Unpool2D
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.reading.writer import write_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph
from texelflow.gpu_delegate.truth.float64 import true_values

Values = npt.NDArray[np.float32]
Size = tuple[int, int]

CHANNELS = ((1, 1), (3, 3), (1, 4), (3, 5), (1, 13))  # batch and channels
WINDOWS: tuple[tuple[Size, Size, str], ...] = (
    ((2, 2), (2, 2), "SAME"), ((2, 2), (2, 2), "VALID"), ((3, 2), (3, 2), "SAME"), ((2, 3), (3, 4), "SAME"),
    ((3, 3), (2, 1), "SAME"), ((3, 2), (1, 2), "VALID"),
)  # fmt: skip


def parameters(kernel: Size, stride: Size, padding: str, activation: int = 0) -> bytes:
    return struct.pack("<10i", 1 + (padding == "VALID"), *stride[::-1], *kernel[::-1], activation, 0, 0, 0, 0)


def windows(size: Size, kernel: Size, stride: Size, padding: str) -> Iterator[tuple[int, int, int, int]]:
    """(y, x) of each window, and where its first place lies."""
    out = slid(size, kernel, stride, padding=padding)
    before = [
        max(0, (n - 1) * step + taps - side) // 2 if padding == "SAME" else 0
        for n, step, taps, side in zip(out, stride, kernel, size, strict=True)
    ]
    for y, x in np.ndindex(*out):
        yield y, x, y * stride[0] - before[0], x * stride[1] - before[1]


def pooled(x: Values, kernel: Size, stride: Size, padding: str) -> tuple[Values, Values]:
    """The greatest values, and the numbers of the first places that have them."""
    batch, *size, channels = x.shape
    height, width = size
    out = (batch, *slid((height, width), kernel, stride, padding=padding), channels)
    values, places = np.empty(out, np.float32), np.empty(out, np.float32)
    for y, x0, top, left in windows((height, width), kernel, stride, padding):
        whole = np.full((batch, *kernel, channels), -np.inf, np.float32)
        for ky, kx in np.ndindex(*kernel):
            if 0 <= top + ky < height and 0 <= left + kx < width:
                whole[:, ky, kx] = x[:, top + ky, left + kx]
        flat = whole.reshape(batch, -1, channels)
        values[:, y, x0], places[:, y, x0] = flat.max(1), flat.argmax(1)
    return values, places


def unpooled(x: Values, places: Values, size: Size, kernel: Size, stride: Size, padding: str) -> Values:
    out = np.zeros((x.shape[0], *size, x.shape[3]), np.float32)
    for y, x0, top, left in windows(size, kernel, stride, padding):
        for b, c in np.ndindex(x.shape[0], x.shape[3]):
            ky, kx = divmod(int(places[b, y, x0, c]), kernel[1])
            if ky < kernel[0] and 0 <= top + ky < size[0] and 0 <= left + kx < size[1]:
                out[b, top + ky, left + kx, c] = x[b, y, x0, c]
    return out


def resampled(x: Values, positions: Values) -> Values:
    """What lies outside of the map is zero."""
    around = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))).astype(np.float64)
    out = np.zeros((*positions.shape[:3], x.shape[3]))
    for b, i, j in np.ndindex(*positions.shape[:3]):
        across, down = positions[b, i, j].astype(np.float64)
        left, top = int(np.floor(across)), int(np.floor(down))
        for row, column in np.ndindex(2, 2):
            y, x0 = top + row, left + column
            near = (1 - abs(down - y)) * (1 - abs(across - x0))
            if -1 <= y <= x.shape[1] and -1 <= x0 <= x.shape[2]:
                out[b, i, j] += near * around[b, y + 1, x0 + 1]
    return out.astype(np.float32)


@dataclass
class Cases:
    """A model of many uses, inputs, and what NumPy makes of them."""

    model: ModelBuilder = field(default_factory=ModelBuilder)
    inputs: list[Values] = field(default_factory=list)
    wanted: list[Values] = field(default_factory=list)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(3))

    def input(self, values: npt.NDArray[np.float64]) -> int:
        self.inputs.append(values.astype(np.float32))
        return self.model.input(values.shape)

    def output(self, tensor: int, wanted: Values) -> None:
        self.model.output(tensor)
        self.wanted.append(wanted)

    def graph(self) -> Graph:
        graph = read_model(self.model.build())
        assert not graph.opaque
        return graph


@pytest.fixture(scope="module")
def cases() -> Cases:
    made = Cases()
    for number, (kernel, stride, padding) in enumerate(WINDOWS):
        batch, channels = CHANNELS[number % len(CHANNELS)]
        _pool_and_back(made, (batch, 7, 9, channels), kernel, stride, padding)
    for batch, channels in CHANNELS:
        x = made.rng.uniform(-1, 1, (batch, 4, 6, channels))
        positions = made.rng.uniform(-2, 7, (batch, 3, 5, 2))
        positions[:, 0] = np.round(positions[:, 0])  # where a neighbor counts nothing
        tensor = made.model.op("Resampler", [made.input(x), made.input(positions)], (batch, 3, 5, channels))
        made.output(tensor, resampled(*made.inputs[-2:]))
    return made


def _pool_and_back(made: Cases, shape: tuple[int, ...], kernel: Size, stride: Size, padding: str) -> None:
    """Few different values, so that several are the greatest; places as floats and as integers."""
    x = made.input(np.round(made.rng.uniform(-3, 3, shape)))
    values, places = pooled(made.inputs[-1], kernel, stride, padding)
    options = parameters(kernel, stride, padding)
    for kind in ("float32", "int32"):
        outputs = [made.model.tensor(values.shape), made.model.tensor(values.shape, kind)]
        made.model.op_of("MaxPoolingWithArgmax2D", [x], outputs, custom=options)
        made.output(outputs[0], values)
        made.output(outputs[1], places + (0.1 if kind == "float32" else 0.0))
        if all(step >= taps for step, taps in zip(stride, kernel, strict=True)):
            other = made.input(made.rng.uniform(-1, 1, values.shape))
            back = made.model.op("MaxUnpooling2D", [other, outputs[1]], shape, custom=options)
            made.output(back, unpooled(made.inputs[-1], places, (shape[1], shape[2]), kernel, stride, padding))


@one_in(2, "fuse", [True, False])
def test_the_gpu_agrees_with_numpy(context: Context, cases: Cases, fuse: bool) -> None:
    compiled = compile_graph(cases.graph(), DEVICES["software"], CompileOptions(fuse=fuse))
    for found, wanted in zip(on_gpu(context, compiled, cases.inputs), cases.wanted, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_the_cpus_own_code_agrees_with_numpy(cases: Cases) -> None:
    for found, wanted in zip(native_networks({0: cases.graph()})[0].run(cases.inputs), cases.wanted, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_float64_agrees_with_numpy(cases: Cases) -> None:
    graph = cases.graph()
    found = dict(true_values(graph, cases.inputs))
    for tensor, wanted in zip(graph.outputs, cases.wanted, strict=True):
        values = found[tensor]
        assert values is not None
        np.testing.assert_allclose(values, wanted, atol=1e-6)


def test_they_are_read_as_they_were_written(cases: Cases) -> None:
    graph = cases.graph()
    again = read_model(write_model(graph))
    assert [(node.op, node.attributes) for node in again.nodes] == [(node.op, node.attributes) for node in graph.nodes]
    assert {type(node.attributes) for node in graph.nodes} >= {Pool2D, Unpool2D}


def unpooling(options: bytes, out: tuple[int, ...] = (1, 4, 4, 3)) -> ModelBuilder:
    m = ModelBuilder()
    m.output(m.op("MaxUnpooling2D", [m.input((1, 2, 2, 3)), m.input((1, 2, 2, 3))], out, custom=options))
    return m


def test_windows_that_overlap_are_left_to_the_cpu() -> None:
    (node,) = read_model(unpooling(parameters((3, 3), (2, 2), "SAME")).build()).nodes
    assert isinstance(node.attributes, Opaque)
    assert "overlap" in node.attributes.reason


@pytest.mark.parametrize(
    "options",
    [b"", b"\x01\0\0", parameters((2, 2), (0, 2), "SAME"), parameters((1 << 30, 2), (2, 2), "SAME"), b"\x07" * 40],
    ids=["none", "short", "no stride", "huge", "no padding"],
)
def test_impossible_options_are_refused_for_their_operator_alone(options: bytes) -> None:
    graph = read_model(unpooling(options).build())
    assert [node.op for node in graph.opaque] == ["MaxUnpooling2D"]
    with pytest.raises(UnsupportedError, match=r"operator 0 \(MaxUnpooling2D\): .*"):
        compile_graph(graph, DEVICES["software"])


@pytest.mark.parametrize("size", [24, 32, 40])
def test_options_are_read_without_the_padding_in_pixels(size: int) -> None:
    """Six numbers are said; TensorFlow Lite appended two, later four, that it computes anew."""
    whole = parameters((2, 2), (2, 2), "SAME")
    (node,) = read_model(unpooling(whole[:size]).build()).nodes
    assert node.attributes == read_model(unpooling(whole).build()).nodes[0].attributes


@pytest.mark.parametrize("recorded", [(1, 9, 4, 3), ()])
def test_sizes_follow_from_the_windows(recorded: tuple[int, ...]) -> None:
    graph = read_model(unpooling(parameters((2, 2), (2, 2), "VALID"), recorded).build())
    assert not graph.opaque
    assert graph.tensors[graph.outputs[0]].shape == (1, 4, 4, 3)
