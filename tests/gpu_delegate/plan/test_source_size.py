"""Length of sources: estimated well, bounded for each kernel, and within a program's budget."""

from collections.abc import Iterator

import pytest

from tests.helpers.case_group import Case
from tests.helpers.engine import on_cpu, on_gpu, worst
from tests.helpers.markers import exhaustive, one_in
from tests.model_files.model_builder import SELFIE, selfie_like
from tests.model_files.sketch import Sketch
from tests.tables.graph_cases import RUN
from texelflow.gpu_delegate.cases.table import cases_of
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE, Device
from texelflow.gpu_delegate.device.tile import Tile
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.model.layout import PHWC4
from texelflow.gpu_delegate.ops.registry import OPS, SUPPORTED_OPS
from texelflow.gpu_delegate.passes.pipeline import run_passes
from texelflow.gpu_delegate.plan.body import Body
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.fusion import group_nodes
from texelflow.gpu_delegate.plan.source_size import source_size
from texelflow.gpu_delegate.plan.tiling import choose_tile, choose_tiles
from texelflow.gpu_delegate.plan.vector_work import VectorWork
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph
from texelflow.gpu_delegate.targets.glsl.glsl_kernel import pixel_kernel

MOST_CHARACTERS = 65536


def bottlenecks(wide: int, window: int = 3, blocks: int = 3) -> bytes:
    """What MobileNet v2 consists of, on maps large enough for literals."""
    m = Sketch(0)
    x = m.conv(m.image(112, 112, 3), 24, (3, 3), stride=(2, 2))
    for _ in range(blocks):
        y = m.unary("RELU6", m.depthwise(m.unary("RELU6", m.conv(x, wide)), (window, window)))
        x = m.binary("ADD", m.conv(y, 24), x)
    m.output(x)
    return m.build()


def tiles_of(body: Body) -> Iterator[Tile]:
    for device in (SOFTWARE, HARDWARE, SOFTWARE.with_tuning(rows=2)):
        for baked in (False, True):
            yield choose_tile(body, baked, device.tuning)


def bodies_of(graph: Graph, device: Device) -> tuple[Body, ...]:
    return group_nodes(run_passes(graph)[0], device).bodies


@exhaustive
@pytest.mark.parametrize("device", [SOFTWARE, HARDWARE], ids=["software", "hardware"])
def test_estimates_are_near_the_real_length(device: Device) -> None:
    models = (selfie_like(0, SELFIE), selfie_like(0), bottlenecks(48), bottlenecks(144, 5))
    of_floats = (op for op in SUPPORTED_OPS if OPS[op].example.dtype == OPS[op].example.out_dtype == "float32")
    table = [case for op in of_floats for case in cases_of(op)]
    cases: list[Case] = [*table[::60], *RUN[::9]]
    checked = 0
    for graph in (*map(read_model, models), *(case.graph() for case in cases)):
        for body in bodies_of(graph, device):
            storages = dict.fromkeys(body.graph.tensors, PHWC4)
            for tile in dict.fromkeys(tiles_of(body)):
                kernel, _ = pixel_kernel(body, VectorWork(body.graph, (), tile.threads), tile, device.limits, storages)
                ratio = source_size(body, tile).characters / len(kernel.source)
                assert 0.7 < ratio < 1.8, f"{kernel.name} {tile}: {ratio:.2f} of {len(kernel.source)}"
                assert ratio > 0.9 or len(kernel.source) < MOST_CHARACTERS / 2, f"{kernel.name} {tile}: {ratio:.2f}"
                checked += 1
    assert checked > 300


def longest(compiled: CompiledGraph) -> int:
    return max(len(kernel.source) for kernel in compiled.kernels)


@pytest.mark.parametrize("wide", [96, 144, 192])
def test_no_source_is_too_long(wide: int) -> None:
    """With all weights as literals the kernel between two blocks would have about 350 KB."""
    compiled = compile_graph(read_model(bottlenecks(wide)), SOFTWARE)
    assert longest(compiled) < MOST_CHARACTERS


def test_large_windows_leave_fewer_rows_and_slices_to_a_thread() -> None:
    m = Sketch(0)
    m.output(m.conv(m.image(40, 48, 4), 32, (9, 9)))
    assert longest(compile_graph(read_model(m.build()), SOFTWARE)) < MOST_CHARACTERS


def test_kernels_whose_source_would_be_too_long_stay_apart() -> None:
    graph = read_model(bottlenecks(96))
    short = SOFTWARE.with_tuning(source_characters=12000)
    whole, parts = (compile_graph(graph, device) for device in (SOFTWARE, short))
    assert not any("too long" in reason for reason in whole.declined)
    assert any(reason.endswith("its source would be too long") for reason in parts.declined)
    assert len(parts.kernels) > len(whole.kernels)
    assert longest(parts) < 16000 < longest(whole)


def test_a_smaller_budget_makes_shorter_sources() -> None:
    graph = run_passes(read_model(bottlenecks(96, 5)))[0]
    bodies = group_nodes(graph, SOFTWARE).bodies

    def needed_s(budget_s: float) -> float:
        tiles = choose_tiles(bodies, SOFTWARE.tuning, budget_s)
        sizes = {source_size(body, tile) for body, tile in zip(bodies, tiles, strict=True)}
        return sum(size.operations for size in sizes) * SOFTWARE.tuning.operation_compile_us / 1e6

    free = needed_s(1e9)
    assert needed_s(free + 1) == free
    assert needed_s(free * 0.7) <= free * 0.7
    assert needed_s(free * 0.4) <= free * 0.4
    assert needed_s(0) == min(needed_s(free * k / 10) for k in range(10))


@one_in(3, "budget_s", [0.0, 0.5, 2.0])
def test_whatever_the_budget_the_results_are_the_same(context: Context, budget_s: float) -> None:
    m = Sketch(0)
    x = m.conv(m.image(24, 31, 3), 16, (3, 3), stride=(2, 2))
    for wide in (40, 72):
        y = m.unary("RELU6", m.depthwise(m.unary("RELU6", m.conv(x, wide)), (5, 5)))
        x = m.binary("ADD", m.conv(y, 16), x)
    m.output(x, m.conv(x, 67))
    model = m.build()
    inputs = [m.rng.uniform(-1, 1, (1, 24, 31, 3)).astype("float32")]
    compiled = compile_graph(read_model(model), SOFTWARE, CompileOptions(compile_budget_s=budget_s))
    assert worst(on_gpu(context, compiled, inputs), on_cpu(model, inputs)) < 1e-4
