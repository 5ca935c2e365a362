"""Bindings: however weights and inputs are read, kernels compute the same bits within a device's limits."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from tests.helpers.engine import on_gpu
from tests.helpers.markers import one_in
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.device.device import HARDWARE
from texelflow.gpu_delegate.device.limits import Limits
from texelflow.gpu_delegate.model.layout import PHWC4, PHWC4_HALVES, Fetch, Precision, Storage
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.hazards import STORAGE, TEXTURE_FETCH, UNIFORM
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl import opengl
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.bindings import KernelInput, settle_fetches
from texelflow.gpu_delegate.targets.glsl.compiled_graph import accesses_of, compile_graph

UNIT = r"layout\(binding = (\d+)\) uniform samplerBuffer"
FETCHES: tuple[Fetch, ...] = ("texture", "uniform", "storage")
LIMITS = st.builds(
    Limits,
    texture_buffer_texels=st.sampled_from([0, 100, 65536]),
    storage_bindings=st.integers(4, 16),
    uniform_block_bytes=st.sampled_from([1600, 16384, 65536]),
    uniform_blocks=st.integers(1, 14),
)
INPUTS = st.lists(
    st.builds(
        KernelInput,
        storage=st.sampled_from([PHWC4, PHWC4_HALVES, Storage(value_bytes=1, low=-3)]),
        texels=st.sampled_from([1, 7, 100, 101, 1024, 1025, 70000]),
        fetch=st.sampled_from(FETCHES),
    ),
    max_size=15,
)


@given(INPUTS, st.integers(0, 4), LIMITS)
def test_fetches_are_what_a_device_allows(wanted: list[KernelInput], outputs: int, limits: Limits) -> None:
    forced = sum(each.ways(limits) == ("storage",) for each in wanted)
    settled = settle_fetches(wanted, outputs, limits)
    assert [replace(each, fetch=asked.fetch) for each, asked in zip(settled, wanted, strict=True)] == wanted
    found = [each.fetch for each in settled]
    fits = forced + outputs <= limits.storage_bindings and len(wanted) < limits.compute_textures
    if fits and limits.texture_buffer_texels >= 65536:  # textures are a way out for all that is not forced
        assert all(each.fetch in each.ways(limits) for each in settled)
        assert found.count("storage") + outputs <= limits.storage_bindings
        assert found.count("uniform") <= limits.uniform_blocks
    changed = [asked for asked, each in zip(wanted, settled, strict=True) if asked.fetch != each.fetch]
    if len(wanted) + outputs <= min(limits.storage_bindings, limits.uniform_blocks):  # there is room for all of them
        assert all(each.fetch not in each.ways(limits) for each in changed)


def gated_network() -> bytes:
    """Windows, matrices, a gate that is a vector, a sum, at odd sizes and odd channels."""
    m = Sketch(0)
    x = m.depthwise(m.image(9, 7, 5), (2, 2))
    gate = m.conv(m.mean(x), 5)
    m.output(m.conv(m.binary("MUL", x, gate), 6))
    return m.build()


@one_in(2, "precision", ["fp32", "fp16"])
def test_results_have_the_same_bits_however_memory_is_read(context: Context, precision: Precision) -> None:
    graph = read_model(gated_network())
    values = [np.random.default_rng(1).uniform(-1, 1, graph.tensors[graph.inputs[0]].shape).astype(np.float32)]
    limits, found = replace(context.limits, uniform_block_bytes=16384), {}
    for weights, inputs in product(FETCHES, FETCHES) if precision == "fp32" else zip(FETCHES, FETCHES, strict=True):
        device = replace(HARDWARE, limits=limits).with_tuning(weights_fetch=weights, inputs_fetch=inputs)
        compiled = compile_graph(graph, device, CompileOptions(precision=precision))
        assert weights in {kernel.weights_fetch for kernel in compiled.kernels}
        assert inputs in {fetch for kernel in compiled.kernels for fetch in kernel.fetches}
        found[weights, inputs] = on_gpu(context, compiled, values)[0].tobytes()
    assert len({*found.values()}) == 1


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(("weights", "inputs"), list(product(FETCHES, FETCHES)))
def test_units_are_bound_that_kernels_read_and_no_others(
    context: Context, monkeypatch: pytest.MonkeyPatch, weights: Fetch, inputs: Fetch, together: bool
) -> None:
    if together and not context.gl.multi_bind:
        pytest.skip("this driver binds one texture at a time")
    device = replace(HARDWARE, limits=context.limits).with_tuning(weights_fetch=weights, inputs_fetch=inputs)
    compiled = compile_graph(read_model(gated_network()), device)
    with Program(context, compiled) as program:
        bound, units, gl = list[set[int]](), set[int](), context.gl

        def bind(first: int, count: int, names: Sequence[int]) -> None:
            assert all(names)
            units.update(range(first, first + count))

        def dispatch(*_: int) -> None:
            bound.append(set(units))
            units.clear()

        monkeypatch.setattr(gl, "multi_bind", together)
        monkeypatch.setattr(gl, "glBindTextures", bind)
        monkeypatch.setattr(gl, "glActiveTexture", lambda unit: units.add(unit - opengl.TEXTURE0))
        monkeypatch.setattr(gl, "glDispatchCompute", dispatch)
        program.run()
    declared = [set(map(int, re.findall(UNIT, kernel.source))) for kernel in compiled.kernels]
    assert bound == declared
    assert any(declared) == ("texture" in (weights, inputs))


def test_weights_too_large_for_a_uniform_block_come_from_storage() -> None:
    m = Sketch(0)
    m.output(m.conv(m.conv(m.image(4, 4, 64), 60), 68))  # 15 * 17 * 4 texels and 17 fit, 16 * 15 * 4 and 15, too
    device = HARDWARE.with_tuning(weights_fetch="uniform").with_limits(uniform_block_bytes=16 * (16 * 15 * 4 + 15))
    first, second = compile_graph(read_model(m.build()), device).kernels
    assert (first.weights_fetch, second.weights_fetch) == ("uniform", "storage")


def test_a_device_without_buffer_textures_reads_blocks_alone() -> None:
    device = HARDWARE.with_limits(texture_buffer_texels=0, storage_bindings=4)
    kernels = compile_graph(read_model(gated_network()), device).kernels
    assert all("samplerBuffer" not in kernel.source for kernel in kernels)
    assert all([*kernel.fetches, kernel.weights_fetch].count("storage") < 4 for kernel in kernels)


def test_barriers_are_of_the_kind_of_access() -> None:
    ways = {}
    for fetch in FETCHES:
        device = HARDWARE.with_tuning(inputs_fetch=fetch)
        compiled = compile_graph(read_model(gated_network()), device)
        ways[fetch] = {access.way for dispatch in accesses_of(compiled) for access in dispatch if not access.writes}
        assert len(compiled.kernels) > 1
    assert ways["texture"] == {TEXTURE_FETCH}
    assert ways["storage"] == {STORAGE}
    assert UNIFORM in ways["uniform"]
