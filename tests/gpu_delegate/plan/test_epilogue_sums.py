"""Sums that kernels leave of their maps: each pixel counts once, and gates are computed from them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.gpu_delegate.targets.gl.test_random_networks import check_limits
from tests.helpers.boundless import BoundlessProgram
from tests.helpers.engine import kernel_names, on_cpu, run, worst
from tests.helpers.markers import exhaustive, one_in
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE, Device
from texelflow.gpu_delegate.model.layout import Precision
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.reading.reader import load_model, read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph

Draw = Callable[[Sketch], object]
EAGER = HARDWARE.with_tuning(prologue_loads=1 << 40)
# Rows of a thread, groups of odd sizes, groups that grow, pixels in the order of memory, threads past edges that stay.
DEVICES = {
    "hardware": HARDWARE,
    "rows": EAGER.with_tuning(rows=3, group_threads=40, least_threads=0),
    "one group": EAGER.with_tuning(sum_groups=1, weights_fetch="uniform", inputs_fetch="storage"),
    "small groups": EAGER.with_limits(work_group_invocations=128).with_tuning(sum_groups=2, thread_slices=3, split_k=1),
    "software": SOFTWARE.with_tuning(leaves_sums=True, rows=2),
}


def reductions(m: Sketch, height: int = 11, width: int = 21, batch: int = 1) -> None:
    """Every way to reduce a map of 13 channels that one kernel makes, slices over the grid's z."""
    x = m.unary("TANH", m.conv(m.image(height, width, 5, batch), 13))
    axes = (1, 2) if batch == 1 else (0, 1, 2)
    m.output(x, *(m.reduce(op, x, axes) for op in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")))
    near_one = m.binary("ADD", m.binary("MUL", x, m.constant(0.004)), m.constant(1.0))
    m.output(m.reduce("REDUCE_PROD", near_one, axes))


def two_gates(m: Sketch) -> None:
    """Gates of what a convolution reads and of what it writes, from two maps of different sizes."""
    x = m.unary("RELU", m.depthwise(m.conv(m.image(26, 34, 3), 37), (3, 3), stride=(2, 2)))
    small = m.unary("RELU", m.conv(m.binary("ADD", m.mean(x), m.mean(m.conv(x, 37, stride=(2, 2)))), 9))
    gate = m.unary("LOGISTIC", m.conv(small, 37))
    y = m.binary("ADD", m.conv(m.binary("MUL", x, gate), 70), m.constant(0.5))
    m.output(m.binary("MUL", m.unary("RELU", m.conv(y, 29)), m.unary("LOGISTIC", m.conv(m.mean(y), 29))))


def one_channel_gate(m: Sketch) -> None:
    """A gate of one value for all channels, and a vector that is an output besides."""
    x = m.conv(m.image(17, 23, 6), 22, (3, 3))
    gate = m.unary("TANH", m.conv(m.unary("RELU6", m.conv(m.mean(x), 3)), 1))
    m.output(m.binary("MUL", m.conv(x, 18), gate), gate)


def of_a_classifier(m: Sketch) -> None:
    """Long vectors: more slices than threads that share them, and a softmax at the end."""
    x = m.unary("RELU6", m.conv(m.image(12, 9, 24), 1090))
    m.output(m.softmax(m.conv(m.mean(x), 301)))


def drawn(draw: Draw) -> bytes:
    sketch = Sketch(0)
    draw(sketch)
    return sketch.build()


def sums_of(compiled: CompiledGraph) -> list[int]:
    """The tensors with sums that a program stores."""
    return [tensor for tensor in compiled.stored if compiled.graph.tensors[tensor].name.endswith(":sums")]


def check(
    context: Context, model: bytes, device: Device, precision: Precision = "fp32", tolerance: float = 2e-6
) -> int:
    """The outputs against TensorFlow Lite's, nothing touched outside; how many sums were left."""
    compiled = compile_graph(read_model(model), device, CompileOptions(precision=precision))
    check_limits(compiled, device.limits)
    rng = np.random.default_rng(1)
    inputs = [
        rng.uniform(-2, 2, compiled.graph.tensors[tensor].shape).astype(np.float32) for tensor in compiled.graph.inputs
    ]
    with BoundlessProgram(context, compiled) as program:
        assert worst(run(program, inputs), on_cpu(model, inputs)) < tolerance
        assert not program.strayed()
    return len(sums_of(compiled))


@one_in(3, "device", DEVICES.values(), ids=DEVICES)
def test_all_reductions_of_a_map(context: Context, device: Device) -> None:
    assert check(context, drawn(reductions), device) == 5


@one_in(4, "name", ["hardware", "rows", "one group", "small groups"])
@pytest.mark.parametrize("draw", [two_gates, one_channel_gate], ids=lambda draw: draw.__name__)
def test_gates(context: Context, draw: Draw, name: str) -> None:
    assert check(context, drawn(draw), DEVICES[name]) >= 1


@exhaustive
@one_in(2, "precision", ["fp32", "fp16"])
def test_several_maps_and_halves(context: Context, precision: Precision) -> None:
    tolerance = 2e-6 if precision == "fp32" else 2e-3
    assert check(context, drawn(lambda m: reductions(m, 9, 10, batch=2)), EAGER, precision, tolerance) >= 4
    each_map = Sketch(0)
    x = each_map.conv(each_map.image(18, 19, 5, 2), 9)
    each_map.output(each_map.binary("MUL", x, each_map.mean(x)))
    assert check(context, each_map.build(), EAGER, precision, tolerance) == 0


def test_long_vectors(context: Context) -> None:
    for threads in (256, 128):
        assert check(context, drawn(of_a_classifier), HARDWARE.with_limits(work_group_invocations=threads)) == 1


@one_in(3, "device", DEVICES.values(), ids=DEVICES)
def test_every_pixel_counts_once(context: Context, device: Device) -> None:
    for height, width in ((9, 8), (16, 25), (33, 33)):
        m = Sketch(0)
        m.output(m.reduce("SUM", m.unary("EXP", m.binary("MUL", m.image(height, width, 6), m.constant(0.0))), (1, 2)))
        compiled = compile_graph(read_model(m.build()), device)
        with BoundlessProgram(context, compiled) as program:
            (found,) = run(program, [np.ones((1, height, width, 6), np.float32)])
        assert len(sums_of(compiled)) == 1
        assert np.unique(found).tolist() == [height * width]


def test_where_kernels_cannot_leave_sums_maps_are_reduced() -> None:
    def sums(device: Device, draw: Draw = reductions) -> int:
        compiled = compile_graph(read_model(drawn(draw)), device)
        check_limits(compiled, device.limits)
        return len(sums_of(compiled))

    assert sums(HARDWARE) == 5
    assert sums(SOFTWARE) == 0
    assert sums(HARDWARE.with_limits(shared_memory_bytes=2048)) < 5
    assert sums(HARDWARE.with_limits(storage_bindings=4)) < 5
    assert sums(HARDWARE, lambda m: m.output(m.mean(m.image(40, 40, 3)))) == 0


def test_gates_are_computed_where_they_are_used_if_that_loads_little(
    selfie_model: Path, selfie_landscape_model: Path
) -> None:
    model = read_model(drawn(two_gates))
    names = kernel_names(compile_graph(model, HARDWARE))
    assert [name for name in names if name.startswith("mean") and name.endswith("+conv+sigmoid")] == []
    apart = compile_graph(model, HARDWARE.with_tuning(prologue_loads=100))
    assert len(apart.kernels) == len(names) + 2
    for path in (selfie_model, selfie_landscape_model):
        assert len(compile_graph(load_model(path), HARDWARE).kernels) <= 28


def test_one_thread_has_no_long_loops_in_front_of_a_kernel() -> None:
    """Mesa's llvmpipe ends all loops of a thread after 65,536 turns, and says nothing."""

    def names(channels: int) -> list[str]:
        m = Sketch(0)
        x = m.unary("LOGISTIC", m.conv(m.image(1, 1, channels), 1013, (1, 1)))
        m.output(m.op("RESHAPE", [x, m.constant([1, 1013], "int32")], (1, 1013)))
        device = SOFTWARE.with_tuning(prologue_loads=1 << 40)
        return kernel_names(compile_graph(read_model(m.build()), device))

    assert names(16) == ["conv+sigmoid+reshape"]
    assert names(4000) == ["conv+sigmoid", "reshape"]
