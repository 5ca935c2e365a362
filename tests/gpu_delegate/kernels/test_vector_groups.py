"""Kernels of one-pixel tensors and narrow maps: no idle work-groups, and vectors computed once."""

import math
from typing import Any

import numpy as np
import pytest

from tests.helpers.boundless import BoundlessProgram
from tests.helpers.engine import on_cpu, on_gpu, run, worst
from tests.helpers.markers import one_in
from tests.helpers.native import native_networks
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE, Device
from texelflow.gpu_delegate.device.families import TUNINGS, device_like
from texelflow.gpu_delegate.model.layout import shape_of
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.source_size import FRAME
from texelflow.gpu_delegate.plan.vector_work import vectors_size
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph

MOST_CHARACTERS = 65_536
# Slices of a thread that do not divide all slices, sums in parts, threads that stay, small work-groups, whole waves.
DEVICES = {
    "software": SOFTWARE,
    "few lanes": SOFTWARE.with_tuning(simd_width=4, thread_slices=3),
    "leaving sums": SOFTWARE.with_tuning(leaves_sums=True, rows=3),
    "hardware": HARDWARE,
    "slices": HARDWARE.with_tuning(least_threads=1, thread_slices=3, split_k=1),
    "parts": HARDWARE.with_tuning(split_k=5, wave_threads=64, weights_fetch="uniform", inputs_fetch="storage"),
    "small groups": HARDWARE.with_limits(work_group_invocations=32),
    "repeating": HARDWARE.with_tuning(prologue_loads=1 << 40),
}


def one_pixel(m: Sketch) -> None:
    """What is computed for one pixel and is no vector node: windows that leave one, moves, both behind vectors."""
    x = m.image(5, 4, 13)
    small = m.conv(x, 37, (5, 4), padding="VALID", activation="RELU")
    pooled = m.pool("MAX_POOL_2D", x, (5, 4), padding="VALID")
    grouped = m.conv(x, 24, (5, 4), padding="VALID", groups=1)
    gates = m.unary("LOGISTIC", m.conv(small, 96))
    parts = [m.op("STRIDED_SLICE", [gates, *(m.constant(each, "int32") for each in ((0, 0, 0, k), (1, 1, 1, k + 33),
             (1, 1, 1, 1)))], (1, 1, 1, 33)) for k in (0, 5, 60)]  # fmt: skip
    joined = m.concatenation(parts[0], m.unary("TANH", parts[1]), m.binary("MUL", parts[2], parts[0]))
    m.output(small, m.unary("NEG", pooled), grouped, joined, m.pad(joined, (0, 0), (0, 0), (0, 0), (3, 4)))


def of_many_slices(m: Sketch) -> None:
    """A reduction of more slices than a work-group has threads, and what reads it, slice by slice and otherwise."""
    x = m.unary("TANH", m.image(3, 5, 1100))
    mean, most = m.mean(x), m.reduce("REDUCE_MAX", x, (1, 2))
    m.output(m.op("RESHAPE", [mean, m.constant([1, 1100], "int32")], (1, 1100)), m.conv(most, 9))


def narrow(m: Sketch, batch: int = 1) -> None:
    """Maps of few columns and many rows, and one row that is read through a move."""
    x = m.image(45, 1, 6, batch)
    wide = m.unary("RELU", m.depthwise(m.conv(x, 13, (5, 1)), (3, 1)))
    m.output(wide, m.conv(wide, 5, (3, 3), stride=(2, 1)), m.pool("AVERAGE_POOL_2D", x, (3, 1), stride=(3, 1)))
    y = m.image(41, 3, 6, batch)
    m.output(m.resize(m.conv(y, 7, (3, 2)), (60, 3), half_pixel_centers=True))
    if batch == 1:
        row = m.op("RESHAPE", [y, m.constant([1, 1, 123, 6], "int32")], (1, 1, 123, 6))
        m.output(m.conv(m.binary("MUL", row, m.constant(0.5)), 29), m.mean(wide))


def narrow_maps(m: Sketch) -> None:
    narrow(m, batch=3)


def cell(m: Sketch, state: int, x: int, channels: int) -> int:
    """A cell of an LSTM, written out: four gates of one matrix."""
    gates = m.binary("ADD", m.conv(x, 4 * channels), m.conv(state, 4 * channels))
    steps = m.constant((1, 1, 1, 1), "int32")
    i, f, c, o = (
        m.op("STRIDED_SLICE", [gates, m.constant((0, 0, 0, k * channels), "int32"),
             m.constant((1, 1, 1, (k + 1) * channels), "int32"), steps], (1, 1, 1, channels))
        for k in range(4)
    )  # fmt: skip
    kept = m.binary("MUL", m.unary("LOGISTIC", f), state)
    new = m.binary("ADD", kept, m.binary("MUL", m.unary("LOGISTIC", i), m.unary("TANH", c)))
    return m.binary("MUL", m.unary("LOGISTIC", o), m.unary("TANH", new))


def cells(m: Sketch) -> None:
    state = m.image(1, 1, 128)
    x = cell(m, state, m.image(1, 1, 257), 128)
    m.output(cell(m, state, x, 128))


DRAWN = {each.__name__: each for each in (one_pixel, of_many_slices, narrow, narrow_maps, cells)}


def compiled(name: str, device: Device) -> tuple[bytes, CompiledGraph]:
    m = Sketch(0)
    DRAWN[name](m)
    model = m.build()
    return model, compile_graph(read_model(model), device)


@one_in(
    8,
    ("name", "device"),
    [(name, device) for name in ("one_pixel", "of_many_slices") for device in DEVICES]
    + [("narrow", device) for device in ("software", "few lanes", "leaving sums")]
    + [("narrow_maps", "software"), ("cells", "software"), ("cells", "repeating")],
)
def test_values_of_one_pixel(context: Context, name: str, device: str) -> None:
    model, graph = compiled(name, DEVICES[device])
    shapes = [graph.graph.tensors[tensor].shape for tensor in graph.graph.inputs]
    inputs = [np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    with BoundlessProgram(context, graph) as program:
        assert worst(run(program, inputs), on_cpu(model, inputs)) < 1e-5


@one_in(4, "family", TUNINGS)
@pytest.mark.parametrize("name", DRAWN)
def test_lanes_of_one_pixel_have_work(name: str, family: str) -> None:
    """As many lanes as a family computes at once, or as there are slices."""
    device = device_like(family)
    lanes = device.tuning.simd_width if device.tuning.simd_width > 1 else device.tuning.wave_threads
    graph = compiled(name, device)[1]
    for kernel in graph.kernels:
        is_vector = all(shape_of(graph.graph.tensors[tensor]).is_vector for tensor in kernel.outputs)
        if kernel.tile and kernel.tile.z_slices and is_vector:
            assert kernel.tile.deep
            assert kernel.local[0] * kernel.tile.parts >= min(lanes, 16)
            assert kernel.idle_threads < math.prod(kernel.local)


@pytest.mark.parametrize("name", ["narrow", "narrow_maps"])
def test_lanes_of_narrow_maps_have_rows(name: str) -> None:
    for kernel in compiled(name, SOFTWARE)[1].kernels:
        assert not kernel.tile or kernel.local[0] % SOFTWARE.tuning.simd_width == 0


@one_in(4, "family", TUNINGS)
@pytest.mark.parametrize("name", DRAWN)
def test_text_does_not_grow_with_slices(name: str, family: str) -> None:
    assert max(len(kernel.source) for kernel in compiled(name, device_like(family))[1].kernels) <= MOST_CHARACTERS


@pytest.mark.parametrize("family", TUNINGS)
def test_matrices_of_a_cell_are_multiplied_once(family: str) -> None:
    """What each of four slices of all gates would repeat gets a dispatch of its own."""
    kernels = compiled("cells", device_like(family))[1].kernels
    wanted = 4 * 128 * (257 + 128 + 128 + 128)
    assert sum(kernel.macs + kernel.repeated_macs for kernel in kernels) == wanted


@pytest.mark.parametrize("device", [SOFTWARE, HARDWARE], ids=["software", "hardware"])
@pytest.mark.parametrize("name", DRAWN)
def test_length_of_vector_kernels_is_bounded_by_estimates(name: str, device: Device) -> None:
    kernels = [kernel for kernel in compiled(name, device)[1].kernels if kernel.tile is None]
    for kernel in kernels:
        assert len(kernel.source) <= FRAME + 600 + vectors_size(kernel.nodes).characters


def test_vectors_take_their_part_of_the_budget_for_compiling() -> None:
    def longest(vectors: int) -> int:
        m = Sketch(0)
        x = m.conv(m.image(64, 64, 8), 24, (3, 3))
        vector = m.mean(x)
        for _ in range(vectors):
            vector = m.unary("TANH", m.conv(vector, 24))
        m.output(x, vector)
        graph = compile_graph(read_model(m.build()), SOFTWARE, CompileOptions(compile_budget_s=1.0))
        return max(len(kernel.source) for kernel in graph.kernels if kernel.tile)

    assert longest(vectors=2) > longest(vectors=100)


def pixels(m: Sketch, dtype: str, channels: int) -> None:
    """Slices of one pixel of a map that is computed, and of a vector; some end within a slice of channels."""

    def part(x: int, begin: tuple[int, ...], size: int) -> int:
        sizes = (1, 1, 1, size)
        inputs = [x, m.constant(begin, "int32"), m.constant(sizes, "int32")]
        return m.op_of("SLICE", inputs, [tensor(sizes)])[0]

    def tensor(shape: tuple[int, ...]) -> int:
        meaning: dict[str, Any] = {"scales": (0.1,), "zero_points": (3,)} if dtype == "int8" else {}
        return m.tensor(shape, dtype, **meaning)

    given = tensor((2, 5, 7, channels))
    m.inputs.append(given)
    options: dict[str, Any] = {"kernel": (3, 3), "stride": (1, 1), "padding": "SAME"}
    x = m.op_of("MAX_POOL_2D", [given], [tensor((2, 5, 7, channels))], **options)[0]
    first, second = part(x, (1, 3, 6, 0), channels), part(x, (0, 2, 5, 4), channels - 5)
    whole = m.op_of("MAXIMUM", [first, part(x, (1, 0, 0, 0), channels)], [tensor((1, 1, 1, channels))])[0]
    cut = part(whole, (0, 0, 0, 4), channels - 5)
    found = m.op_of("MINIMUM", [cut, second], [tensor((1, 1, 1, channels - 5))])[0]
    m.output(found, whole, x)


@pytest.mark.parametrize("channels", [13, 37])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_parts_of_one_pixel(context: Context, dtype: str, channels: int) -> None:
    m = Sketch(0)
    pixels(m, dtype, channels)
    graph = read_model(m.build())
    drawn = np.random.default_rng(0).uniform(-100, 100, graph.tensors[graph.inputs[0]].shape)
    inputs = [np.asarray(drawn, dtype)]
    wanted = on_cpu(m.build(), inputs)
    for device in (SOFTWARE, HARDWARE):
        compiled = compile_graph(graph, device)
        assert max(map(len, (kernel.nodes for kernel in compiled.kernels))) > 4
        assert worst(on_gpu(context, compiled, inputs), wanted) == 0
    assert worst(native_networks({0: graph})[0].run(inputs), wanted) == 0
