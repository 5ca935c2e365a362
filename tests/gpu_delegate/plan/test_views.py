"""Views: which regions and reshapes are ranges of bytes in PHWC4; in plans, nothing else shares bytes."""

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.generators.profiles import random_graph
from tests.gpu_delegate.plan.memory.test_offsets import collisions
from tests.gpu_delegate.plan.test_hazards import check_barriers
from tests.gpu_delegate.targets.gl.test_random_networks import asked_for, check_limits, choices
from tests.helpers.markers import one_in
from texelflow.gpu_delegate.model.graph import Shape
from texelflow.gpu_delegate.model.layout import Precision, shape_of
from texelflow.gpu_delegate.model.packing import Float32Array, phwc4
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.views import first_texel, keeps_bytes
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, accesses_of, compile_graph

SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 13))


def numbered(shape: Shape) -> Float32Array:
    return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)


def in_memory(values: Float32Array) -> Float32Array:
    """The texels of a BHWC tensor, in order."""
    batch, height, width, channels = values.shape
    return phwc4(values.reshape(batch * height, width, channels)).reshape(-1, 4)


@settings(max_examples=300, deadline=None)
@given(st.data(), SHAPES)
def test_regions_that_are_ranges(data: st.DataObject, shape: Shape) -> None:
    begin = tuple(data.draw(st.integers(0, size - 1)) for size in shape)
    sizes = tuple(data.draw(st.integers(1, size - b)) for b, size in zip(begin, shape, strict=True))
    values = numbered(shape)
    part = in_memory(values[tuple(slice(b, b + n) for b, n in zip(begin, sizes, strict=True))])
    whole, found = in_memory(values), first_texel(shape, begin, sizes)
    places = [k for k in range(len(whole) - len(part) + 1) if np.array_equal(whole[k : k + len(part)], part)]
    assert places == ([] if found is None else [found])


@settings(max_examples=300, deadline=None)
@given(st.data(), SHAPES)
def test_reshapes_that_keep_bytes(data: st.DataObject, shape: Shape) -> None:
    target, left = list[int](), int(np.prod(shape))
    for _ in range(3):
        target.append(data.draw(st.sampled_from([n for n in range(1, left + 1) if left % n == 0])))
        left //= target[-1]
    out = tuple(data.draw(st.permutations([*target, left])))
    values = numbered(shape)
    assert keeps_bytes(shape, out) == np.array_equal(in_memory(values), in_memory(values.reshape(out)))


def check_places(compiled: CompiledGraph) -> None:
    """Views lie inside what they are views of, what kernels write is apart, and all lives as long as it is used."""
    offsets, views = compiled.plan.offsets, compiled.views
    ends = {t: offsets[t] + compiled.storages[t].size_bytes(shape_of(compiled.graph.tensors[t])) for t in offsets}
    for tensor, view in views.inside.items():
        assert offsets[view.parent] <= offsets[tensor] < ends[tensor] <= ends[view.parent]
        assert compiled.storages[tensor] == compiled.storages[view.parent]
    written: dict[int, list[int]] = {}
    for tensor in {*compiled.stored, *compiled.graph.inputs}:
        written.setdefault(views.place(tensor)[0], []).append(tensor)
    for tensors in written.values():
        for one, other in combinations(tensors, 2):
            assert ends[one] <= offsets[other] or ends[other] <= offsets[one], "two kernels write the same bytes"
    lives, owners = {record.tensor: record for record in compiled.records}, views.with_replaced(compiled.in_place)
    for number, kernel in enumerate(compiled.kernels):
        for tensor in (*kernel.inputs, *kernel.outputs):
            if tensor in offsets:
                life = lives[owners.place(tensor)[0]]
                assert life.first_task <= number <= life.last_task


@one_in(4, "seed", asked_for(range(12)))
def test_plans_with_views(seed: int) -> None:
    graph = read_model(random_graph(seed, "moves", 1 + seed % 5 // 4).build())
    precision: Precision = "fp16" if seed % 3 == 0 else "fp32"
    for number, (device, fuse) in enumerate(choices(seed).values()):
        alignment = (16, 64, 256)[(seed + number) % 3]
        device = device.with_limits(texture_buffer_alignment_bytes=alignment, storage_alignment_bytes=alignment)
        for keep_all in (False, True):
            compiled = compile_graph(graph, device, CompileOptions(fuse=fuse, keep_all=keep_all, precision=precision))
            check_places(compiled)
            check_limits(compiled, device.limits)
            check_barriers(accesses_of(compiled), compiled.barriers)
            assert collisions(compiled.records, compiled.plan) == []
            assert all(offset % alignment == 0 for offset in compiled.plan.offsets.values())
