"""Tiles: for any size of map threads cover every pixel, and few of them repeat the work of others."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from tests.generators.profiles import random_graph
from tests.helpers.engine import on_cpu, on_gpu, worst
from tests.helpers.markers import one_in
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE, Device
from texelflow.gpu_delegate.device.tile import Tile
from texelflow.gpu_delegate.device.work_group_shapes import flat_group, gpu_flat_group, gpu_map_group, map_group
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.layout import MapShape, Storages
from texelflow.gpu_delegate.plan.admission import rewrite_graph
from texelflow.gpu_delegate.plan.body import Body, Loops, thread_slices
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.epilogue_sums import EpilogueSum
from texelflow.gpu_delegate.plan.lower import lower
from texelflow.gpu_delegate.plan.refusals import find_refusals
from texelflow.gpu_delegate.plan.static_model import loop_turns
from texelflow.gpu_delegate.plan.tiling import choose_tile, reduction_tile
from texelflow.gpu_delegate.plan.vector_work import VectorWork
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph
from texelflow.gpu_delegate.targets.glsl.glsl_kernel import GlslKernels, Kernel

SIDES, ROWS = st.integers(1, 300), st.integers(1, 8)


def graph_of(height: int, width: int, pointwise: bool, channels: int = 5) -> Graph:
    m = Sketch(0)
    x = m.image(height, width, channels)
    m.output(m.conv(x, channels) if pointwise else m.depthwise(x))
    return read_model(m.build())


def tile_of(graph: Graph, device: Device = SOFTWARE) -> Tile:
    body = Loops(graph, device, graph.nodes).body({graph.outputs[0]})
    return choose_tile(body, False, device.tuning)


def places(tile: Tile, domain: MapShape) -> tuple[list[int], list[int]]:
    """The columns and rows of all threads' pixels, with repeats, as shaders/kernel.comp works them out."""
    (width, height), groups = tile.area(domain), tile.groups(domain)
    first_rows = [y * tile.rows for y in range(groups[1] * tile.local[1])]
    columns = list(range(groups[0] * tile.local[0]))
    if tile.leaves:
        first_rows, columns = [y for y in first_rows if y < height], [x for x in columns if x < width]
    else:
        first_rows, columns = [min(y, height - tile.rows) for y in first_rows], [min(x, width - 1) for x in columns]
    return columns, [first + row for first in first_rows for row in range(tile.rows)]


@given(SIDES, SIDES, ROWS)
def test_threads_cover_a_map(height: int, width: int, most_rows: int) -> None:
    domain, tuning = MapShape(1, height, width, 4), SOFTWARE.tuning
    for area in (map_group(width, height, most_rows, tuning), flat_group(domain.pixels, most_rows, tuning)):
        tile = Tile(area.rows, 0, (*area.local, 1), flat=area.flat)
        columns, rows = places(tile, domain)
        whole = tile.area(domain)
        assert {*columns} == {*range(whole[0])}
        assert {*rows} == {*range(whole[1])}
        assert domain.pixels <= whole[0] * whole[1] < domain.pixels + tile.rows
        assert tile.local[0] * tile.local[1] <= tuning.group_threads


@given(SIDES, st.integers(1, 60), ROWS, st.sampled_from([16, 32, 64, 128]), st.sampled_from([16, 32, 64]))
def test_threads_that_leave_write_nothing_twice(width: int, height: int, rows: int, most: int, wave: int) -> None:
    domain = MapShape(1, height * rows, width, 4)
    for area in (gpu_map_group(width, height * rows, rows, most, wave), gpu_flat_group(domain.pixels, most, wave)):
        tile = Tile(area.rows, 0, (*area.local, 1), flat=area.flat, leaves=True)
        columns, found_rows = places(tile, domain)
        whole = tile.area(domain)
        assert (columns, found_rows) == ([*range(whole[0])], [*range(whole[1])])
        assert whole[0] * whole[1] == domain.pixels
        assert tile.local[0] * tile.local[1] <= most


@given(st.integers(1, 40), st.integers(1, 9))
def test_every_slice_is_one_threads(slices: int, z_slices: int) -> None:
    tile = Tile(z_slices=min(z_slices, slices), leaves=True)
    firsts = range(0, slices, tile.z_slices)
    stored = [first + k for first in firsts for k in range(tile.z_slices) if first + k < slices]
    assert stored == [*range(slices)]
    assert all(first + k < slices for first in firsts for k in range(tile.sure_slices(slices)))
    assert tile.sure_slices(slices) >= 1


@pytest.mark.parametrize(("slices", "wanted"), [(6, [3, 2, 1]), (5, [3, 2, 1]), (18, [4, 3, 2, 1]), (22, [4, 3, 2, 1])])
def test_slices_are_split_evenly(slices: int, wanted: list[int]) -> None:
    """6 as 3 + 3 and not as 4 + 2, 5 as 3 + 2, 18 as 4 + 4 + 4 + 3 + 3."""
    tiles = {
        tile_of(graph_of(64, 64, True, 4 * slices), HARDWARE.with_tuning(least_threads=4096 * count)).z_slices
        for count in range(1, slices + 1)
    }
    assert sorted(tiles, reverse=True) == wanted


def wasted(height: int, width: int, pointwise: bool) -> float:
    domain = MapShape(1, height, width, 5)
    columns, rows = places(tile_of(graph_of(height, width, pointwise)), domain)
    return len(columns) * len(rows) / domain.pixels - 1


def test_windows_may_have_rows_of_their_own() -> None:
    tuned = SOFTWARE.with_tuning(rows=1, window_rows=4)
    assert tile_of(graph_of(32, 32, pointwise=False), tuned).rows == 4
    assert tile_of(graph_of(32, 32, pointwise=True), tuned).rows == 1


@pytest.mark.parametrize(("slices", "wanted"), [(4, 0), (6, 3), (8, 4), (18, 3), (22, 2), (5, 3)])
def test_few_slices_are_computed_twice(slices: int, wanted: int) -> None:
    tuning = SOFTWARE.with_tuning(whole_slices=4, thread_slices=4, even_slices=True).tuning
    assert thread_slices(slices, tuning) == wanted


@pytest.mark.parametrize(("channels", "rolled"), [(40, False), (41, True), (335, True)])
def test_several_long_loops_are_rolled(channels: int, rolled: bool, context: Context) -> None:
    m = Sketch(0)
    m.output(m.softmax(m.image(5, 7, channels)))
    device = HARDWARE.with_tuning(split_k=1)
    (kernel,) = compile_graph(read_model(m.build()), device).kernels
    assert ("gl_NumWorkGroups" in kernel.source) == rolled
    values = [np.random.default_rng(1).uniform(-4, 4, m.shape(0)).astype(np.float32)]
    compiled = compile_graph(read_model(m.build()), replace(device, limits=context.limits))
    assert worst(on_gpu(context, compiled, values), on_cpu(m.build(), values)) < 1e-6


def test_few_threads_repeat_the_work_of_others_on_odd_maps() -> None:
    """With groups of powers of two alone, 33 x 33 pixels took the threads of 42 x 64."""
    assert wasted(33, 33, pointwise=True) < 0.1
    assert wasted(33, 33, pointwise=False) < 0.35
    assert wasted(65, 65, pointwise=False) < 0.25
    assert wasted(14, 14, pointwise=True) < 0.2


def test_even_maps_have_the_usual_groups() -> None:
    assert tile_of(graph_of(64, 64, pointwise=True)) == Tile(8, 0, (32, 2, 1))
    assert tile_of(graph_of(64, 64, pointwise=False)) == Tile(8, 1, (32, 2, 1))
    flat = Tile(1, 1, (64, 1, 1), flat=True, loads_at_use=True, leaves=True)
    assert tile_of(graph_of(33, 33, pointwise=True), HARDWARE) == flat
    assert tile_of(graph_of(64, 64, pointwise=True), HARDWARE) == replace(flat, local=(8, 8, 1), flat=False)


@pytest.mark.parametrize("channels", [1, 3, 5])
def test_pixels_of_one_row_are_scattered_beside_each_other(channels: int, context: Context) -> None:
    """A thread has several of them; a last output of one channel is stored as plain floats."""
    m = Sketch(0)
    m.output(m.transpose(m.conv(m.image(1, 20, 35), 13), channels, (2, 2), (2, 2), "VALID"))
    assert_right(m, context, lambda tile: tile.across and tile.rows > 1)


def assert_right(m: Sketch, context: Context, is_meant: Callable[[Tile], bool]) -> None:
    """As TensorFlow Lite computes it, where the last kernel has the tile that is meant."""
    values = [np.random.default_rng(1).uniform(-1, 1, m.shape(0)).astype(np.float32)]
    compiled = compile_graph(read_model(m.build()), replace(SOFTWARE, limits=context.limits))
    tile = compiled.kernels[-1].tile
    assert tile
    assert is_meant(tile)
    assert worst(on_gpu(context, compiled, values), on_cpu(m.build(), values)) < 1e-5


def averaged_batch(side: int, channels: int) -> Sketch:
    """A mean of each of two maps, with a convolution behind it."""
    m = Sketch(0)
    m.output(m.conv(m.mean(m.image(side, side, channels, batch=2)), 6))
    return m


def test_loops_of_a_thread_end_by_themselves(context: Context) -> None:
    """Mesa's llvmpipe ends them after 65,536 turns: two means of 66 x 66 pixels of 34 slices take 301,444."""
    assert [k.name for k in compile_graph(read_model(averaged_batch(66, 34).build()), SOFTWARE).kernels] == [
        "mean+conv"
    ]
    m = averaged_batch(66, 133)
    compiled = compile_graph(read_model(m.build()), replace(SOFTWARE, limits=context.limits))
    assert [kernel.name for kernel in compiled.kernels] == ["mean", "conv"]
    values = [np.random.default_rng(1).uniform(-1, 1, m.shape(0)).astype(np.float32)]
    assert worst(on_gpu(context, compiled, values), on_cpu(m.build(), values)) < 1e-5


def test_an_operator_whose_loops_would_not_end_is_refused() -> None:
    (reason,) = find_refusals(read_model(batch_mean(260)), SOFTWARE).reasons.values()
    assert "the loops of a thread would take more than 65,000 turns" in reason
    for side, device in ((250, SOFTWARE), (260, HARDWARE)):
        assert not find_refusals(read_model(batch_mean(side)), device).reasons


def batch_mean(side: int) -> bytes:
    """A mean of each of two maps."""
    m = Sketch(0)
    m.output(m.mean(m.image(side, side, 3, batch=2)))
    return m.build()


@one_in(3, "first", range(0, 60, 20))
def test_turns_are_those_of_the_text(first: int) -> None:
    """Or more, where what is counted as a loop is written out."""
    for seed in range(first, first + 20):
        graph, _ = rewrite_graph(read_model(random_graph(seed, "segmentation", batch=2).build()), True)
        lower(CheckedTurns, graph, SOFTWARE, CompileOptions())


class CheckedTurns(GlslKernels):
    """Kernels whose loops take no more turns than they are said to."""

    def __init__(self, device: Device, storages: Storages) -> None:
        super().__init__(device.limits, storages, reduction_tile(device))

    def pixel(
        self, body: Body, prologue: VectorWork, tile: Tile, left: Sequence[EpilogueSum], signature: str
    ) -> Kernel:
        kernel = super().pixel(body, prologue, tile, left, signature)
        assert prologue.nodes or turns_in(kernel.source) <= loop_turns(body, tile) <= SOFTWARE.tuning.loop_turns
        return kernel


def turns_in(source: str) -> int:
    """Turns of all loops in a text whose lines are indented by what they are in."""
    total, around = 0, list[tuple[int, int]]()  # indentation and turns of the loops that a line is in
    for line in source[source.index("void main") :].splitlines():
        depth = len(line) - len(line.lstrip())
        around = [(at, turns) for at, turns in around if at < depth]
        for count in re.findall(r"for \(int \w+ = 0; \w+ < (\d+)", line):
            turns = math.prod([int(count), *(turns for _, turns in around[-1:])])
            around.append((depth, turns))
            total += turns
    return total


def separable(channels: int, outputs: int) -> CompiledGraph:
    m = Sketch(0)
    m.output(m.conv(m.depthwise(m.image(9, 7, channels), activation="RELU6"), outputs))
    return compile_graph(read_model(m.build()), SOFTWARE)


def test_windows_are_not_computed_again_for_every_few_output_slices() -> None:
    assert [kernel.name for kernel in separable(48, 32).kernels] == ["dw+relu6+conv"]
    apart = separable(48, 80)
    assert [kernel.name for kernel in apart.kernels] == ["dw+relu6", "conv"]
    assert any("its window would be computed 5 times" in reason for reason in apart.declined)


@pytest.mark.parametrize("window", [False, True], ids=["matrix", "window"])
def test_sums_that_threads_share_are_whole(context: Context, window: bool) -> None:
    """At an odd size, where threads past the edges take part in the sums and store nothing."""
    m = Sketch(0)
    x = m.image(5, 9, 45)
    m.output(m.conv(m.depthwise(x, activation="RELU") if window else x, 10, activation="RELU"))
    values = [np.random.default_rng(1).uniform(-1, 1, m.shape(0)).astype(np.float32)]
    compiled = compile_graph(read_model(m.build()), HARDWARE.with_tuning(min_fused_threads=1))
    assert [kernel.local[2] for kernel in compiled.kernels] == [6]
    assert worst(on_gpu(context, compiled, values), on_cpu(m.build(), values)) < 1e-5


def test_sums_are_shared_where_threads_would_be_few() -> None:
    assert tile_of(graph_of(64, 64, True, 32), HARDWARE).parts == 1
    assert tile_of(graph_of(16, 16, True, 32), HARDWARE).parts == 4
    assert tile_of(graph_of(16, 16, True, 32), HARDWARE.with_tuning(split_k=1)).parts == 1
    assert tile_of(graph_of(16, 16, True, 32)).parts == 1


def test_sums_that_threads_share_are_within_the_limits() -> None:
    """A sixth of the threads that are usual, then of the shared memory."""
    graph = graph_of(16, 16, True, 32)
    for limits in ({"work_group_invocations": 40}, {"shared_memory_bytes": 640}):
        (kernel,) = compile_graph(graph, HARDWARE.with_limits(**limits)).kernels
        assert kernel.tile is not None
        assert kernel.tile.parts > 1
        assert math.prod(kernel.local) <= 40
    tuning = replace(SOFTWARE, limits=HARDWARE.limits).fitted().tuning
    assert tuning == SOFTWARE.tuning
