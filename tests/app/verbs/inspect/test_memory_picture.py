"""Pictures of memory plans: blocks are the plan's, neighbors differ in color, and on the page nothing overlaps."""

import importlib.util
from itertools import combinations
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.commands import Command
from tests.model_files.model_builder import selfie_like
from texelflow.app.plots import SKY_BLUE
from texelflow.app.verbs.inspect.memory_picture import (
    COLORS,
    OUTER,
    MemoryPage,
    TensorUse,
    memory_page,
    plan_colors,
    plan_panel,
    use_in_graph,
)
from texelflow.app.verbs.inspect.memory_plot import memory_figure
from texelflow.gpu_delegate.device.device import SOFTWARE
from texelflow.gpu_delegate.plan.memory.memory_plan import BufferPlace, MemoryPlan
from texelflow.gpu_delegate.plan.memory.offsets import greedy_by_size
from texelflow.gpu_delegate.plan.memory.records import UsageRecord
from texelflow.gpu_delegate.plan.memory.strategies import STRATEGIES
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph

PLOTS = importlib.util.find_spec("matplotlib") is not None


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture(scope="module")
def compiled() -> CompiledGraph:
    return compile_graph(read_model(selfie_like(1)), SOFTWARE)


@pytest.fixture(scope="module")
def page(compiled: CompiledGraph) -> MemoryPage:
    return memory_page(compiled, SOFTWARE.offset_alignment_bytes, "best", "on the GPU")


def use(records: list[UsageRecord], outer: frozenset[int] = frozenset()) -> TensorUse:
    names = {record.tensor: f"t{record.tensor}" if record.tensor else "" for record in records}
    tasks = max(record.last_task for record in records) + 1
    return TensorUse("a program", "task", tasks, tuple(records), MappingProxyType(names), outer, 1)


def test_a_page_shows_the_plan_in_use_beside_all_others(compiled: CompiledGraph, page: MemoryPage) -> None:
    assert page.used.total_bytes == compiled.plan.total_bytes
    assert page.naive.total_bytes > page.used.total_bytes >= page.used.bound_bytes > 0
    assert page.used.title == "In use: best, one arena"
    gray = [block.name for block in page.used.blocks if block.color == OUTER]
    assert gray == [compiled.tensor(t).name for t in (*compiled.graph.inputs, *compiled.graph.outputs)]
    assert [section.use.task for section in page.sections] == ["dispatch", "operator"]
    assert page.sections[1].use.records == use_in_graph(compiled.source).records
    shown = {strategy.name for strategy in STRATEGIES} - {"naive", "best"}
    for section in page.sections:
        names = {panel.title for row in section.rows for panel in row.panels}
        assert {name for name in shown if not name.endswith("-end-to-end")} >= names > set()
        assert all(panel.total_bytes >= panel.bound_bytes for row in section.rows for panel in row.panels)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 12), st.integers(0, 4)), min_size=1, max_size=24))
def test_blocks_are_the_records_and_differ_from_what_they_touch(drawn: list[tuple[int, int, int]]) -> None:
    records = [UsageRecord(k, size, first, first + span) for k, (size, first, span) in enumerate(drawn)]
    tasks, plan = use(records, frozenset({0})), greedy_by_size(records)
    panel = plan_panel(tasks, plan, plan_colors(tasks, plan))
    assert [(b.size_bytes, b.first_task, b.end_task - 1) for b in panel.blocks] == [
        (record.size_bytes, record.first_task, record.last_task) for record in records
    ]
    assert (panel.blocks[0].color, panel.blocks[0].name) == (OUTER, "tensor 0")
    blocks = panel.blocks[1:]
    assert all(0 <= block.color < COLORS for block in blocks)
    for block in blocks:
        near = [
            b for b in blocks if b is not block and touch(b.tasks, block.tasks) and touch(b.addresses, block.addresses)
        ]
        if len(near) < COLORS:
            assert block.color not in {b.color for b in near}


def touch(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def test_a_color_is_a_shared_object() -> None:
    records = [UsageRecord(0, 8, 0, 1), UsageRecord(1, 4, 1, 2), UsageRecord(2, 6, 2, 3), UsageRecord(3, 2, 0, 3)]
    places = {0: BufferPlace(0, 0), 1: BufferPlace(1, 0), 2: BufferPlace(0, 0), 3: BufferPlace(2, 0)}
    tasks, plan = use(records), MemoryPlan(places, (8, 4, 2))
    panel = plan_panel(tasks, plan, plan_colors(tasks, plan))
    assert [block.address_bytes for block in panel.blocks] == [0, 8, 0, 12]
    assert [block.color for block in panel.blocks] == [0, 1, 0, 2]
    assert tasks.busiest == 1


@pytest.mark.skipif(not PLOTS, reason="matplotlib is an extra")
def test_nothing_on_the_page_overlaps(page: MemoryPage) -> None:
    figure = memory_figure(page)
    assert figure.get_figwidth() * figure.dpi == 1200
    texts = [text for axes in figure.axes for text in (*axes.texts, axes.xaxis.label, axes.yaxis.label)]
    texts += [label for axes in figure.axes for label in (*axes.get_xticklabels(), *axes.get_yticklabels())]
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in (*figure.texts, *texts) if text.get_text()]
    assert len(boxes) > 40
    for box in boxes:
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
    assert not [(one, other) for one, other in combinations(boxes, 2) if one.shrunk(0.9, 0.9).overlaps(other)]
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    sky_blue = [int(SKY_BLUE[k : k + 2], 16) for k in (1, 3, 5)]
    assert (pixels == sky_blue).all(axis=2).sum() > 1000


def test_inspect_draws_it_or_says_what_to_install(texelflow: Command, tmp_path: Path) -> None:
    model, picture = tmp_path / "m.tflite", tmp_path / "m.svg"
    model.write_bytes(selfie_like(1))
    run = "inspect", model, "--tuning", "software", "--plot"
    if not PLOTS:
        assert "pip install matplotlib" in texelflow(*run, picture).complaint
        return
    assert ".svg or .png" in texelflow(*run, tmp_path / "m.jpg").complaint
    assert f"plot: {picture}" in texelflow(*run, picture).out
    text = picture.read_text()
    assert all(f">{word}" in text for word in ("In use", "Naive", "dispatch", "KiB", "greedy-by-size"))
    assert "--force" in texelflow(*run, picture).complaint
