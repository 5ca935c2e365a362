"""Networks of shapes that compilers stumble on: planned in a bounded number of steps, and right on the GPU."""

import json
import sys
import tracemalloc
from collections.abc import Callable
from cProfile import Profile

import numpy as np
import pytest

from tests.gpu_delegate.plan.test_fusion import check_kernels
from tests.helpers.commands import Command
from tests.helpers.engine import DEVICES, on_cpu, on_gpu, worst
from tests.helpers.markers import exhaustive, one_in
from tests.model_files.sketch import Sketch
from tests.tools.compile_times.__main__ import main
from tests.tools.compile_times.compile_shapes import SHAPES, shaped
from tests.tools.compile_times.compile_times import show_bench_compile
from texelflow.app.console import Console
from texelflow.gpu_delegate.base.errors import UnsupportedError
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.passes.folding import fold_constants
from texelflow.gpu_delegate.plan import bounds, lower
from texelflow.gpu_delegate.plan.bounds import MOST_TEXT_TAPS
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph

PLANNED = [name for name in SHAPES if name != "concatenations"]
REREAD = ["self additions", "residuals", "diamonds", "fibonacci"]  # a value that is read twice is computed once
SMALL = 21  # ops: deep enough for kernels of many nodes
FEW = 110  # more than one kernel takes
STACK = 600  # Python's limit, for what needs none of the network's depth
MOST_GROWTH = 2.6  # of the work for twice the ops: what is quadratic has 4


MOST_TEXT = 2.2  # likewise


def planned(name: str, ops: int) -> tuple[int, int]:
    """How many functions Python entered meanwhile, a measure of work that is the same in every run; and the text."""
    profile = Profile(subcalls=False)
    compiled = profile.runcall(compile_graph, shaped(name, ops), HARDWARE)
    return sum(entry.callcount for entry in profile.getstats()), text_of(compiled)


def text_of(compiled: CompiledGraph) -> int:
    return sum(len(kernel.source) for kernel in compiled.kernels)


@one_in(8, "name", PLANNED)
def test_the_work_grows_as_the_network_does(name: str) -> None:
    """73 ways that part and meet again would be 2**73 if each were gone for itself."""
    compile_graph(shaped(name, SMALL), HARDWARE)  # what is read once, is
    (work, text), (more_work, more_text) = planned(name, FEW), planned(name, 2 * FEW)
    assert more_work < MOST_GROWTH * work
    assert more_text
    if name in REREAD:
        assert more_text < MOST_TEXT * text


@one_in(4, "name", REREAD)
def test_the_text_for_software_grows_as_the_network_does(name: str) -> None:
    few, many = (text_of(compile_graph(shaped(name, ops), SOFTWARE)) for ops in (120, 240))
    assert many < MOST_TEXT * few


@one_in(8, "name", PLANNED)
def test_values_are_those_of_tensorflow_lite(context: Context, name: str) -> None:
    sketch = Sketch(5)
    sketch.output(SHAPES[name](sketch, sketch.image(5, 7, 3), SMALL))
    model = sketch.build()
    inputs = [np.random.default_rng(1).uniform(-1, 1, (1, 5, 7, 3)).astype(np.float32)]
    wanted = on_cpu(model, inputs)
    others = [each for each in DEVICES.values() if each is not SOFTWARE]
    for device in (SOFTWARE, others[PLANNED.index(name) % len(others)]):
        assert worst(on_gpu(context, compile_graph(read_model(model), device), inputs), wanted) < 1e-4


@exhaustive
def test_long_chains_need_no_deep_stack() -> None:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(STACK)
    try:
        for name in ("chain", "gates"):
            assert compile_graph(shaped(name, STACK * 3 // 2), HARDWARE).kernels
        assert sys.getrecursionlimit() == STACK
    finally:
        sys.setrecursionlimit(before)


def test_what_would_take_too_long_is_refused() -> None:
    sketch = Sketch(0)
    x, kernel = sketch.image(40, 40, 3), (7, 7)
    for _ in range(MOST_TEXT_TAPS // 49 + 1):
        x = sketch.pool("MAX_POOL_2D", x, kernel)
    sketch.output(x)
    with pytest.raises(UnsupportedError, match=r"its windows would take \d+ taps of text, 120000 are allowed"):
        compile_graph(read_model(sketch.build()), HARDWARE)


def blocks_of_pixels(count: int, channels: int) -> Graph:
    """Sums of maps in which each pixel of another becomes 4x4 pixels of so many channels."""
    sketch = Sketch(0)
    x, size = sketch.image(3, 4, 4), (1, 12, 16, channels)
    weights, bias, shape = sketch.random(channels, 4, 4, 4), sketch.random(channels), sketch.constant(size, "int32")
    made = [
        sketch.op("TRANSPOSE_CONV", [shape, weights, x, bias], size, stride=(4, 4), padding="SAME")
        for _ in range(count)
    ]
    for value in made[1:]:
        made[0] = sketch.binary("ADD", made[0], value)
    sketch.output(made[0])
    return read_model(sketch.build())


def test_pixels_that_become_blocks_are_refused_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slice of those that the kernel which computes them stores has a place of its own in the text."""
    monkeypatch.setattr(bounds, "MOST_TEXT_TAPS", 800)
    with pytest.raises(UnsupportedError, match=r"its windows would take 1000 taps of text, 800 are allowed"):
        compile_graph(blocks_of_pixels(50, 4), SOFTWARE)
    monkeypatch.setattr(bounds, "MOST_TEXT_TAPS", 1000)
    assert compile_graph(blocks_of_pixels(50, 4), SOFTWARE).kernels


def test_text_of_large_blocks_grows_little_with_their_channels() -> None:
    """1024 channels of a pixel are read by threads of the block's own pixels."""
    few, many = (text_of(compile_graph(blocks_of_pixels(20, channels), SOFTWARE)) for channels in (8, 64))
    assert many < 1.5 * few


def shared_convolutions(m: Sketch) -> int:
    x, weights, bias = m.image(1, 2, 1024), m.random(1024, 1, 1, 1024), m.random(1024)
    for _ in range(300):
        x = m.op("CONV_2D", [x, weights, bias], (1, 1, 2, 1024), stride=(1, 1), dilation=(1, 1), padding="SAME")
    return x


def shared_connections(m: Sketch) -> int:
    x, weights, bias = m.input((1, 1024)), m.random(1024, 1024), m.random(1024)
    for _ in range(300):
        x = m.op("FULLY_CONNECTED", [x, weights, bias], (1, 1024))
    return x


def shared_transposed(m: Sketch) -> int:
    x, weights, bias, shape = m.image(1, 2, 512), m.random(512, 2, 2, 512), m.random(512), (1, 2, 4, 512)
    size = m.constant(shape, "int32")
    made = [m.op("TRANSPOSE_CONV", [size, weights, x, bias], shape, stride=(2, 2), padding="SAME") for _ in range(300)]
    return made[-1]


def multiplied_channels(m: Sketch) -> int:
    x = m.image(1, 2, 1024)
    return [m.depthwise(x, (1, 1), multiplier=2) for _ in range(150)][-1]


@pytest.mark.parametrize(
    "draw", [shared_convolutions, shared_connections, shared_transposed, multiplied_channels], ids=lambda f: f.__name__
)
def test_weights_that_many_share_are_refused(draw: Callable[[Sketch], int]) -> None:
    """Each op has a packed copy of its own, 4 or 8 MB, and none is made before they are counted."""
    sketch = Sketch(0)
    sketch.output(draw(sketch))
    graph = read_model(sketch.build())
    tracemalloc.start()
    try:
        with pytest.raises(UnsupportedError, match="its weights would take 1200 MiB, 1024 are allowed"):
            compile_graph(graph, HARDWARE)
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()


def test_a_half_constant_is_made_float_once_however_many_read_it() -> None:
    sketch = Sketch(0)
    half = sketch.constant(np.ones((1, 1, 1, 8)), "float16")
    x = sketch.image(4, 5, 8)
    for _ in range(3):
        x = sketch.binary("ADD", x, sketch.op("DEQUANTIZE", [half], (1, 1, 1, 8)))
    sketch.output(x)
    graph, _ = fold_constants(read_model(sketch.build()))
    first, *others = (graph.tensors[node.inputs[1]].data for node in graph.nodes)
    assert first is not None
    assert len(others) == 2
    assert all(other is first for other in others)


def gated_pools(m: Sketch, pools: int, channels: int) -> int:
    """One gate with weights that every kernel behind it could compute for itself."""
    x, gate = m.image(5, 6, channels), m.unary("LOGISTIC", m.conv(m.image(1, 1, channels), channels))
    for _ in range(pools):
        x = m.pool("MAX_POOL_2D", m.binary("MUL", x, gate), (2, 2))
    return x


def test_kernels_repeat_few_weights() -> None:
    """Of 60 copies of 1 MB all but the first few are left to one kernel, which stores what it makes of them."""
    sketch = Sketch(0)
    sketch.output(gated_pools(sketch, 60, 512))
    repeats = SOFTWARE.with_tuning(prologue_loads=1 << 30)  # whatever that costs
    for allowed, most in ((1 << 30, 62), (1 << 22, 6)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lower, "MOST_REPEATED_BYTES", allowed)
            compiled = compile_graph(read_model(sketch.build()), repeats)
        assert most - 3 <= sum(kernel.weights.nbytes for kernel in compiled.kernels) >> 20 <= most
        check_kernels(compiled)


def test_values_are_right_where_kernels_may_repeat_no_weights(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lower, "MOST_REPEATED_BYTES", 0)
    sketch = Sketch(1)
    sketch.output(gated_pools(sketch, 3, 5))
    model, rng = sketch.build(), np.random.default_rng(2)
    inputs = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((1, 5, 6, 5), (1, 1, 1, 5))]
    compiled = compile_graph(read_model(model), SOFTWARE)
    assert [kernel.name for kernel in compiled.kernels][:3] == ["conv+sigmoid+mul", "conv", "sigmoid"]
    assert worst(on_gpu(context, compiled, inputs), on_cpu(model, inputs)) < 1e-4


@exhaustive
def test_the_benchmark_has_a_row_for_each_shape(capsys: pytest.CaptureFixture[str]) -> None:
    tool = Command(capsys, main)
    figures = json.loads(tool("--ops", 100, "--json").out)
    assert figures["ops"] == [10, 20, 50, 100]
    assert list(figures["shapes"]) == list(SHAPES)
    assert all(run["kernels"] or run["refused"] for runs in figures["shapes"].values() for run in runs)
    show_bench_compile(figures, Console())
    assert "diamonds" in capsys.readouterr().out
    assert "--ops goes from 100 to 10000" in tool("--ops", 99).complaint
