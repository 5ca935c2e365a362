"""Tiles: whatever the size of a map, threads cover every pixel, and few of them repeat the work of others."""

import hypothesis.strategies as st
from hypothesis import given

from tests.sketch import Sketch
from texelflow.gpu_delegate.areas import flat_area, map_area
from texelflow.gpu_delegate.body import Loops
from texelflow.gpu_delegate.device import HARDWARE, SOFTWARE, Device
from texelflow.gpu_delegate.graph import Graph
from texelflow.gpu_delegate.layout import MapShape
from texelflow.gpu_delegate.program import CompiledGraph, compile_graph
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.tile import Tile
from texelflow.gpu_delegate.tiling import choose_tile

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
    first_rows = [min(y * tile.rows, height - tile.rows) for y in range(groups[1] * tile.local[1])]
    columns = [min(x, width - 1) for x in range(groups[0] * tile.local[0])]
    return columns, [first + row for first in first_rows for row in range(tile.rows)]


@given(SIDES, SIDES, ROWS)
def test_threads_cover_a_map(height: int, width: int, most_rows: int) -> None:
    domain = MapShape(1, height, width, 4)
    software = SOFTWARE.tuning
    for tuning in (software, HARDWARE.tuning):
        for area in (map_area(width, height, most_rows, tuning), flat_area(domain.pixels, most_rows, software)):
            tile = Tile(area.rows, 0, (*area.local, 1), flat=area.flat)
            columns, rows = places(tile, domain)
            whole = tile.area(domain)
            assert {*columns} == {*range(whole[0])}
            assert {*rows} == {*range(whole[1])}
            assert domain.pixels <= whole[0] * whole[1] < domain.pixels + tile.rows
            assert tile.local[0] * tile.local[1] <= tuning.group_threads


def wasted(height: int, width: int, pointwise: bool) -> float:
    domain = MapShape(1, height, width, 5)
    columns, rows = places(tile_of(graph_of(height, width, pointwise)), domain)
    return len(columns) * len(rows) / domain.pixels - 1


def test_few_threads_repeat_the_work_of_others_on_odd_maps() -> None:
    """With groups of powers of two alone, 33 x 33 pixels took the threads of 42 x 64."""
    assert wasted(33, 33, pointwise=True) < 0.1
    assert wasted(33, 33, pointwise=False) < 0.35
    assert wasted(65, 65, pointwise=False) < 0.25
    assert wasted(14, 14, pointwise=True) < 0.2


def test_even_maps_have_the_usual_groups() -> None:
    assert tile_of(graph_of(64, 64, pointwise=True)) == Tile(8, 0, (32, 2, 1))
    assert tile_of(graph_of(64, 64, pointwise=False)) == Tile(8, 1, (32, 2, 1))
    assert tile_of(graph_of(33, 33, pointwise=True), HARDWARE) == Tile(1, 2, (8, 8, 1))


def separable(channels: int, outputs: int) -> CompiledGraph:
    m = Sketch(0)
    m.output(m.conv(m.depthwise(m.image(9, 7, channels), activation="RELU6"), outputs))
    return compile_graph(read_model(m.build()), SOFTWARE)


def test_windows_are_not_computed_again_for_every_few_output_slices() -> None:
    assert [kernel.name for kernel in separable(48, 48).kernels] == ["dw+relu6+conv"]
    apart = separable(48, 80)
    assert [kernel.name for kernel in apart.kernels] == ["dw+relu6", "conv"]
    assert any("its window would be computed 5 times" in reason for reason in apart.declined)
