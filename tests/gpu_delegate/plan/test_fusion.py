"""Fusion: nothing is lost or computed twice, no group depends on itself, and each refusal has a reason."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.engine import DEVICES, kernel_names
from tests.helpers.markers import one_in
from tests.model_files.model_builder import SELFIE, selfie_like
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE, Device
from texelflow.gpu_delegate.ops.nodes import has_role, is_contraction
from texelflow.gpu_delegate.ops.reduce import is_spatial_mean
from texelflow.gpu_delegate.plan.body import MOST_NODES
from texelflow.gpu_delegate.plan.body_keys import BodyKeys
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.reads import read_through
from texelflow.gpu_delegate.plan.vector_nodes import is_vector_node
from texelflow.gpu_delegate.reading.reader import load_model, read_model
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph


def model_of(sketch: Sketch, *outputs: int) -> CompiledGraph:
    sketch.output(*outputs)
    return compile_graph(read_model(sketch.build()), SOFTWARE)


def check_kernels(compiled: CompiledGraph) -> None:
    """What must hold of every program, whatever was fused."""
    graph = compiled.graph
    stored = {*graph.inputs, *compiled.constants}
    made_in = Counter(id(node) for kernel in compiled.kernels for node in kernel.nodes)
    vectors = {out for node in graph.nodes if is_vector_node(graph, node) for out in node.outputs}
    through, views = read_through(graph, BodyKeys(graph), compiled.views), compiled.views.nodes
    for node in graph.nodes:
        repeats = made_in[id(node)]
        if repeats == 0 and node.outputs[0] in {*views, *through}:
            continue
        assert repeats == 1 or (repeats > 1 and node.outputs[0] in vectors), f"{node.op} is in {repeats} kernels"
    for node in views.values():
        stored.update(node.outputs if stored.issuperset(node.inputs) else ())
    for kernel in compiled.kernels:
        assert stored.issuperset(kernel.inputs), f"{kernel.name} reads what nothing has written yet"
        assert stored.isdisjoint(kernel.outputs), f"{kernel.name} writes what is there already"
        stored.update(kernel.outputs)
        for node in views.values():
            stored.update(node.outputs if stored.issuperset(node.inputs) else ())
        at_hand = {t for t, tensor in graph.tensors.items() if tensor.is_constant} | set(kernel.inputs) | {-1}
        for node in through.values():
            at_hand.update(node.outputs if at_hand.issuperset(node.inputs) else ())
        for node in kernel.nodes:
            assert at_hand.issuperset(node.inputs), f"{kernel.name}: {node.op} comes before what it reads"
            at_hand.update(node.outputs)
    assert stored.issuperset(graph.outputs)


@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "unfused"])
@one_in(4, "device", DEVICES.values(), ids=DEVICES)
@pytest.mark.parametrize("name", ["selfie_model", "selfie_landscape_model"])
def test_kernels_of_the_real_models(name: str, device: Device, fuse: bool, request: pytest.FixtureRequest) -> None:
    graph = load_model(request.getfixturevalue(name))
    compiled = compile_graph(graph, device, CompileOptions(fuse=fuse))
    check_kernels(compiled)
    if not fuse:
        assert all(len(kernel.nodes) == 1 for kernel in compiled.kernels)
        assert len(compiled.kernels) == len(compiled.graph.nodes)
    elif device.tuning.simd_width > 1:
        assert len(compiled.kernels) <= 50


def test_a_kernel_may_be_for_one_window_or_contraction(selfie_model: Path) -> None:
    """Where registers are few, what kernels hand over through the cache costs less than what they would hold."""
    device = SOFTWARE.with_tuning(joins_sums=False, prologue_loads=-1)
    compiled = compile_graph(load_model(selfie_model), device)
    check_kernels(compiled)
    pixel_kernels = [kernel.nodes for kernel in compiled.kernels if kernel.tile]
    sums = [sum(is_contraction(n) or has_role(n, "window") for n in nodes) for nodes in pixel_kernels]
    assert max(sums) == 1
    assert max(map(len, pixel_kernels)) > 2  # elementwise nodes join as ever


@one_in(3, "seed", range(6))
def test_kernels_of_changed_networks(seed: int) -> None:
    family: dict[int, dict[str, Any]] = {
        0: {},
        1: {"global_pool": "MEAN"},
        2: {"fused": True},
        3: {"stem": 3},
        4: {"head": 5},
        5: {"half": False},
    }
    graph = read_model(selfie_like(seed, **family[seed]))
    for device in DEVICES.values():
        check_kernels(compile_graph(graph, device))


def test_bottleneck_becomes_one_kernel_behind_its_window() -> None:
    m = Sketch(0)
    x = m.image(32, 32, 8)
    wide = m.unary("RELU", m.depthwise(m.unary("HARD_SWISH", m.conv(x, 16)), (3, 3)))
    out = m.binary("ADD", m.conv(wide, 8), x)
    assert kernel_names(model_of(m, out)) == ["conv+hswish", "dw+relu+conv+add"]


def test_a_value_that_a_window_reads_is_stored() -> None:
    m = Sketch(0)
    x = m.unary("RELU", m.image(32, 32, 8))
    compiled = model_of(m, m.binary("ADD", m.depthwise(x, (3, 3)), x))
    assert kernel_names(compiled) == ["relu", "dw+add"]


def test_the_stored_value_of_a_fused_kernel_serves_others() -> None:
    m = Sketch(0)
    x = m.conv(m.image(32, 32, 8), 8)
    y = m.unary("RELU", x)
    compiled = model_of(m, m.depthwise(x, (3, 3)), y)
    first = compiled.kernels[0]
    assert first.name == "conv+relu"
    assert first.outputs == (x, y)


def test_no_group_waits_for_itself() -> None:
    """The gate is made from the very values that it multiplies: they must be there, all of them, before."""
    m = Sketch(0)
    x = m.unary("RELU", m.image(32, 32, 8))
    compiled = model_of(m, m.binary("MUL", x, m.unary("LOGISTIC", m.mean(x))))
    check_kernels(compiled)
    assert kernel_names(compiled) == ["relu", "mean+sigmoid+mul"]
    assert any("depend on the kernel that it would join" in reason for reason in compiled.declined)


def test_gate_joins_the_kernel_that_uses_it_where_that_is_cheap() -> None:
    def gated(device: Device) -> list[str]:
        m = Sketch(0)
        x = m.image(16, 16, 8)
        gate = m.unary("LOGISTIC", m.conv(m.unary("RELU", m.conv(m.mean(x), 3)), 8))
        m.output(m.binary("MUL", x, gate))
        return kernel_names(compile_graph(read_model(m.build()), device))

    together = "mean+conv+relu+conv+sigmoid"
    assert gated(SOFTWARE) == [f"{together}+mul"]
    assert gated(SOFTWARE.with_tuning(prologue_loads=0)) == [together, "mul"]


@pytest.mark.parametrize(
    ("device", "reason"),
    [
        (SOFTWARE.with_tuning(held_slices=1), "slices in registers, 1 are allowed"),
        (SOFTWARE.with_tuning(min_fused_threads=1 << 20), "pixels are too few to occupy the device"),
    ],
)
def test_devices_refuse_with_a_reason(device: Device, reason: str) -> None:
    m = Sketch(0)
    m.output(m.conv(m.unary("RELU", m.conv(m.image(32, 32, 8), 8)), 8))
    compiled = compile_graph(read_model(m.build()), device)
    assert len(compiled.kernels) == 2
    assert any(reason in text for text in compiled.declined), compiled.declined


def test_sizes_do_not_mix() -> None:
    m = Sketch(0)
    x = m.unary("RELU", m.conv(m.image(16, 16, 8), 8))
    compiled = model_of(m, m.unary("RELU", m.conv(x, 8, stride=(2, 2))))
    assert kernel_names(compiled) == ["conv+relu", "conv+relu"]


def test_too_many_inputs_are_refused() -> None:
    m = Sketch(0)
    total = m.image(4, 5, 5)
    for _ in range(17):
        total = m.binary("ADD", total, m.image(4, 5, 5))
    compiled = model_of(m, total)
    check_kernels(compiled)
    assert len(compiled.kernels) == 2
    assert "inputs, 15 are allowed" in "".join(compiled.declined)


def test_endless_chains_are_cut() -> None:
    m = Sketch(0)
    x = m.image(4, 5, 5)
    for _ in range(3 * MOST_NODES):
        x = m.unary("NEG", x)
    compiled = model_of(m, x)
    check_kernels(compiled)
    assert [len(kernel.nodes) for kernel in compiled.kernels] == [MOST_NODES] * 3
    assert "ops, 100 are allowed" in "".join(compiled.declined)


def test_vector_work_stays_within_storage_bindings() -> None:
    model = Sketch(0)
    x = model.image(6, 6, 5)
    gates = [model.unary("LOGISTIC", model.conv(model.mean(x), 5)) for _ in range(HARDWARE.limits.storage_bindings + 1)]
    model.output(*gates)
    compiled = compile_graph(read_model(model.build()), HARDWARE)
    check_kernels(compiled)
    assert all(len(kernel.outputs) <= HARDWARE.limits.storage_bindings for kernel in compiled.kernels)


def test_vector_work_stays_within_shared_memory() -> None:
    m = Sketch(0)
    vector = m.input((1, 1, 1, 4000))
    for _ in range(4):
        vector = m.unary("ABS", vector)
    compiled = model_of(m, vector)
    check_kernels(compiled)
    assert kernel_names(compiled) == ["abs+abs"] * 2


def test_a_mean_is_never_inside_the_kernel_that_makes_its_map() -> None:
    compiled = compile_graph(read_model(selfie_like(1, SELFIE, size=(64, 64))), SOFTWARE)
    means = 0
    for kernel in compiled.kernels:
        made = {out for node in kernel.nodes for out in node.outputs}
        read = [node.inputs[0] for node in kernel.nodes if is_spatial_mean(compiled.graph, node)]
        means += len(read)
        assert made.isdisjoint(read)
    assert means > 0


def test_hardware_keeps_small_maps_apart() -> None:
    graph = read_model(selfie_like(1, SELFIE, size=(64, 64)))
    assert len(compile_graph(graph, HARDWARE).kernels) > len(compile_graph(graph, SOFTWARE).kernels)
