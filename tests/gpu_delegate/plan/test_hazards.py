"""Barriers: none is missing and none is superfluous, on real models and on made-up dispatch lists."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.engine import on_gpu
from tests.helpers.markers import one_in
from tests.model_files.model_builder import SELFIE, ModelBuilder, selfie_like
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE, Device
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.hazards import (
    STORAGE,
    TEXTURE_FETCH,
    Access,
    barriers_of_levels,
    find_barriers,
    find_cyclic_barriers,
    levels_of,
    unordered,
)
from texelflow.gpu_delegate.plan.memory.memory_options import MemoryMode, MemoryOptions
from texelflow.gpu_delegate.plan.placement import MOST_GROWTH, placed_in_order
from texelflow.gpu_delegate.reading.reader import load_model, read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, accesses_of, compile_graph
from texelflow.gpu_delegate.targets.glsl.glsl_kernel import lower_to_glsl

Dispatches = Sequence[Sequence[Access]]


def without_one_bit(bits: Sequence[int]) -> list[tuple[int, int, list[int]]]:
    """(dispatch, bit, all bits but that one) for each bit that is set."""
    return [
        (number, bit, [*bits[:number], bits[number] & ~bit, *bits[number + 1 :]])
        for number in range(len(bits))
        for bit in (TEXTURE_FETCH, STORAGE)
        if bits[number] & bit
    ]


def check_barriers(dispatches: Dispatches, bits: Sequence[int]) -> int:
    """Assert that the barriers suffice, run after run, and that each bit is needed; how many there are."""
    twice = [*dispatches, *dispatches]
    assert unordered(twice, [*bits, *bits]) == ()
    deletions = without_one_bit(bits)
    for number, bit, fewer in deletions:
        assert unordered(twice, [*fewer, *fewer]), f"bit {bit:#x} before dispatch {number} is not needed"
    return len(deletions)


def reuse_heavy() -> CompiledGraph:
    """Twelve maps of one size that pass through two places, so that every dispatch overwrites what another read."""
    model = ModelBuilder()
    x = model.input((1, 16, 16, 8))
    for number in range(12):
        kernel = model.constant([[[[0.1 * number] * 8] * 3] * 3], "float32")
        bias = model.constant([0.0] * 8, "float32")
        x = model.op(
            "DEPTHWISE_CONV_2D",
            [x, kernel, bias],
            (1, 16, 16, 8),
            stride=(1, 1),
            padding="SAME",
            depth_multiplier=1,
        )
    model.output(x)
    return compile_graph(read_model(model.build()), SOFTWARE)


@one_in(4, "device", [SOFTWARE, HARDWARE], ids=["software", "hardware"])
@pytest.mark.parametrize("fuse", [True, False], ids=["fused", "unfused"])
@pytest.mark.parametrize("name", ["selfie_model", "selfie_landscape_model"])
def test_every_barrier_of_the_real_models_is_needed(
    name: str, fuse: bool, device: Device, request: pytest.FixtureRequest
) -> None:
    path: Path = request.getfixturevalue(name)
    compiled = compile_graph(load_model(path), device, CompileOptions(fuse=fuse))
    assert check_barriers(accesses_of(compiled), compiled.barriers) >= len(compiled.kernels) // 2


def test_every_barrier_of_a_changed_network_is_needed() -> None:
    for model in (selfie_like(3), selfie_like(4, SELFIE, size=(64, 96))):
        compiled = compile_graph(read_model(model), SOFTWARE)
        assert check_barriers(accesses_of(compiled), compiled.barriers) > 5


def test_reuse_orders_writes_after_reads() -> None:
    compiled = reuse_heavy()
    dispatches = accesses_of(compiled)
    assert len(compiled.kernels) == 12
    assert len(set(compiled.plan.offsets.values())) < 6
    check_barriers(dispatches, compiled.barriers)
    overwrites = [
        number
        for number in range(2, 12)
        for access in dispatches[number]
        if access.writes
        if any(access.conflicts(other) and not other.writes for other in dispatches[number - 1])
        or any(access.conflicts(other) for other in dispatches[number - 2])
    ]
    assert overwrites, "nothing is reused"


def read(start: int, end: int, way: int = TEXTURE_FETCH, buffer: int = 0) -> Access:
    return Access(buffer, start, end, way)


def write(start: int, end: int, buffer: int = 0) -> Access:
    return Access(buffer, start, end, STORAGE, writes=True)


@pytest.mark.parametrize(
    ("dispatches", "bits"),
    [
        ([[write(0, 16)], [read(0, 16)]], (0, TEXTURE_FETCH)),
        ([[write(0, 16)], [read(0, 16, STORAGE)]], (0, STORAGE)),
        ([[read(0, 16)], [write(0, 16)]], (0, STORAGE)),
        ([[write(0, 16)], [write(0, 16)]], (0, STORAGE)),
        ([[read(0, 16)], [read(0, 16)]], (0, 0)),
        ([[write(0, 16)], [read(16, 32)]], (0, 0)),
        ([[write(0, 17)], [read(16, 32)]], (0, TEXTURE_FETCH)),
        ([[write(0, 16)], [write(16, 32)], [read(0, 32)]], (0, 0, TEXTURE_FETCH)),
        ([[write(0, 16)], [read(0, 16)], [read(0, 16)]], (0, TEXTURE_FETCH, 0)),
        ([[write(0, 16)], [read(0, 16)], [read(0, 16, STORAGE)]], (0, TEXTURE_FETCH, STORAGE)),
        ([[write(0, 16)], [read(0, 16), write(16, 32)], [read(16, 32)]], (0, TEXTURE_FETCH, TEXTURE_FETCH)),
        ([[read(0, 16), write(0, 16)]], (0,)),
        ([[write(0, 16)], [read(0, 16, buffer=1)]], (0, 0)),
        ([[write(0, 16, buffer=1)], [write(0, 16)], [read(0, 16, buffer=1)]], (0, 0, TEXTURE_FETCH)),
        ([], ()),
    ],
    ids=lambda value: None,
)
def test_known_barriers(dispatches: Dispatches, bits: tuple[int, ...]) -> None:
    assert find_barriers(dispatches) == bits


ACCESSES = st.builds(
    lambda buffer, start, size, way, writes: Access(buffer, start, start + size, STORAGE if writes else way, writes),
    st.integers(0, 2),
    st.integers(0, 40),
    st.integers(1, 20),
    st.sampled_from((TEXTURE_FETCH, STORAGE)),
    st.booleans(),
)


@given(st.lists(st.lists(ACCESSES, max_size=3), max_size=8))
def test_barriers_suffice_and_each_is_needed(dispatches: list[list[Access]]) -> None:
    check_barriers(dispatches, find_cyclic_barriers(dispatches))


@given(st.lists(st.lists(ACCESSES, max_size=3), max_size=8))
def test_dispatches_of_one_level_need_nothing_of_each_other(dispatches: list[list[Access]]) -> None:
    levels = levels_of(dispatches)
    assert set(levels) == set(range(1 + max(levels, default=-1)))
    for later, accesses in enumerate(dispatches):
        for earlier in range(later):
            if any(access.conflicts(other) for access in accesses for other in dispatches[earlier]):
                assert levels[earlier] < levels[later]
    order = sorted(range(len(levels)), key=levels.__getitem__)
    by_level = [dispatches[number] for number in order]
    bits = barriers_of_levels(by_level, [levels[number] for number in order])
    assert unordered([*by_level, *by_level], [*bits, *bits]) == ()
    assert sum(map(bool, bits)) <= 1 + max(levels, default=-1)


def branches(count: int, depth: int) -> bytes:
    """Chains of convolutions side by side behind one, each its own output."""
    m = Sketch(0)
    x = m.conv(m.image(9, 7, 5), 12)
    for _ in range(count):
        y = x
        for _ in range(depth):
            y = m.conv(y, 12, (3, 3))
        m.output(y)
    return m.build()


@pytest.mark.parametrize("device", [SOFTWARE, HARDWARE], ids=["software", "hardware"])
@one_in(3, "mode", ["arena", "objects", "naive"])
def test_branches_run_between_the_same_barriers(device: Device, mode: MemoryMode, context: Context) -> None:
    """As many barriers as the longest chain has kernels, and the bytes that the order of the file gives."""
    graph, memory = read_model(branches(3, 4)), MemoryOptions(mode, in_place=False)
    device = replace(device, limits=context.limits)
    compiled = compile_graph(graph, device, CompileOptions(memory=memory))
    alignment_bytes = device.offset_alignment_bytes
    lowered = lower_to_glsl(compiled.graph, device.fitted(), CompileOptions(memory=memory))
    placed = placed_in_order(graph.name, lowered, memory, alignment_bytes)
    assert len(compiled.kernels) == len(placed.kernels) == 13
    assert check_barriers(accesses_of(compiled), compiled.barriers) >= 5
    assert sum(map(bool, compiled.barriers)) == 5 < sum(map(bool, placed.barriers))
    assert compiled.plan.total_bytes <= MOST_GROWTH * placed.plan.total_bytes
    least = compile_graph(graph, device, CompileOptions(memory=replace(memory, reorders=True)))
    assert least.plan.total_bytes <= placed.plan.total_bytes
    in_order = replace(
        compiled, kernels=placed.kernels, barriers=placed.barriers, records=placed.records, plan=placed.plan
    )
    values = [np.random.default_rng(1).uniform(-1, 1, graph.tensors[graph.inputs[0]].shape).astype(np.float32)]
    found, wanted = on_gpu(context, compiled, values), on_gpu(context, in_order, values)
    assert [each.tobytes() for each in found] == [each.tobytes() for each in wanted]


@given(st.lists(st.lists(ACCESSES, max_size=3), max_size=8))
def test_barriers_stand_where_one_dispatch_after_the_other_asks_for_them(dispatches: list[list[Access]]) -> None:
    bits = [0] * len(dispatches)
    for number, accesses in enumerate(dispatches):
        for access in accesses:
            alone = [*dispatches[:number], [access]]
            if any(later == number for _, later in unordered(alone, bits[: number + 1])):
                bits[number] |= access.way
    assert find_barriers(dispatches) == tuple(bits)


def ordered_by_hand(dispatches: Dispatches, bits: Sequence[int]) -> bool:
    """The rule of OpenGL, written without regard to speed: a barrier in (earlier, later] with the later one's way."""
    return all(
        any(bits[k] & access.way for k in range(earlier + 1, later + 1))
        for later in range(len(dispatches))
        for earlier in range(later)
        for access in dispatches[later]
        for other in dispatches[earlier]
        if access.buffer == other.buffer
        if (access.writes or other.writes) and access.start < other.end and other.start < access.end
    )


@given(st.lists(st.tuples(st.lists(ACCESSES, max_size=3), st.sampled_from((0, 8, 0x2000, 0x2008))), max_size=7))
def test_unordered_knows_the_rule(steps: list[tuple[list[Access], int]]) -> None:
    dispatches, bits = [step[0] for step in steps], [step[1] for step in steps]
    assert (unordered(dispatches, bits) == ()) == ordered_by_hand(dispatches, bits)
