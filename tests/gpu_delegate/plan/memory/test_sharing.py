"""Tensors that share memory: where a kernel may overwrite its input, and that no plan changes a value."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.generators.profiles import random_graph
from tests.gpu_delegate.plan.memory.test_offsets import collisions
from tests.gpu_delegate.plan.test_hazards import check_barriers
from tests.helpers.engine import DEVICES
from tests.helpers.markers import on_both_apis, one_in
from tests.helpers.sharing import all_plans, compiled_by, outputs_by_plan
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE, Device
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.memory import strategies as registry
from texelflow.gpu_delegate.plan.memory.memory_options import ARENA, REWRITTEN, MemoryOptions
from texelflow.gpu_delegate.plan.memory.offsets import naive
from texelflow.gpu_delegate.plan.memory.strategies import STRATEGIES, Strategy
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import Program
from texelflow.gpu_delegate.targets.glsl.compiled_graph import accesses_of, compile_graph
from texelflow.gpu_delegate.tuning.isolated import sample

APART = Strategy("apart", "offsets", naive, "a plan that each output in the place of an input makes smaller")
Draw = Callable[[Sketch], int]


@pytest.fixture
def all_in_place(monkeypatch: pytest.MonkeyPatch) -> MemoryOptions:
    """Options under which every kernel that may write where it reads does."""
    monkeypatch.setattr(registry, "STRATEGIES", (*STRATEGIES, APART))
    return MemoryOptions(planner=APART.name, keeps_inputs=False)


def residual(m: Sketch, height: int = 16, width: int = 16, channels: int = 8) -> int:
    """What is added to is read at one pixel alone, what the window lies over at others."""
    x = m.unary("RELU", m.image(height, width, channels))
    return m.binary("ADD", m.conv(m.depthwise(x), channels), m.unary("ABS", x))


def gated(m: Sketch) -> int:
    x = m.unary("ABS", m.image(16, 16, 8))
    return m.binary("MUL", x, m.unary("LOGISTIC", m.mean(x)))


def repeated(m: Sketch) -> int:
    """One channel for all."""
    return m.binary("ADD", m.conv(m.image(16, 16, 8), 1), m.unary("ABS", m.image(16, 16, 8)))


# Draws the last op, and the kernels by name that may write over something, one dispatch for each op.
UNFUSED: dict[str, tuple[Draw, list[str]]] = {
    "elementwise": (lambda m: m.unary("ABS", m.image(16, 16, 5)), ["abs"]),
    "two maps": (lambda m: m.binary("SUB", m.image(16, 16, 5), m.image(16, 16, 5)), ["sub"]),
    "a map and a vector": (lambda m: m.binary("MUL", m.random(8), m.image(16, 16, 8)), ["mul"]),
    "of one channel": (repeated, ["abs", "add"]),
    "a pixel's channels": (lambda m: m.conv(m.image(16, 16, 8), 7), ["conv"]),
    "more channels": (lambda m: m.conv(m.image(16, 16, 8), 9), []),
    "a window": (lambda m: m.depthwise(m.image(16, 16, 8)), []),
    "threads that repeat": (lambda m: m.unary("ABS", m.image(17, 16, 8)), []),
    "a movement": (lambda m: m.resize(m.image(16, 16, 4), (16, 16)), []),
    "residual": (residual, ["relu", "conv", "abs", "add"]),
    "gated": (gated, ["abs", "mul"]),
}


@pytest.mark.parametrize(("draw", "names"), UNFUSED.values(), ids=UNFUSED.keys())
def test_a_kernel_writes_over_what_its_thread_alone_has_read(draw: Draw, names: list[str]) -> None:
    m = Sketch(0)
    m.output(draw(m))
    compiled = compile_graph(read_model(m.build()), SOFTWARE, CompileOptions(fuse=False))
    assert [kernel.name for kernel in compiled.kernels if kernel.in_place] == names


# The same where ops are fused: the kernels that may, how often.
FUSED: dict[str, tuple[Draw, Device, list[str]]] = {
    "behind a window": (lambda m: residual(m, 16, 16), SOFTWARE, ["relu+abs", "dw+conv+add"]),
    "slices apart": (lambda m: residual(m, 64, 64, 64), HARDWARE, ["relu+abs", "conv+add"]),
    "at an edge": (lambda m: residual(m, 17, 16), SOFTWARE, []),
    "a prologue reads all": (gated, SOFTWARE.with_tuning(prologue_loads=1 << 30), ["abs"]),
}


@pytest.mark.parametrize(("draw", "device", "names"), FUSED.values(), ids=FUSED.keys())
def test_fused_kernels_do_so_too(draw: Draw, device: Device, names: list[str]) -> None:
    m = Sketch(0)
    m.output(draw(m))
    compiled = compile_graph(read_model(m.build()), device)
    assert [kernel.name for kernel in compiled.kernels if kernel.in_place] == names, [k.name for k in compiled.kernels]


# Networks with many kernels that may, and with maps that are large enough for several work-groups at a time.
IN_PLACE: tuple[tuple[int, str, dict[str, Any]], ...] = (
    (4, "software", {"fuse": False}), (4, "eager", {"fuse": False, "precision": "fp16"}), (5, "hardware", {}),
)  # fmt: skip


@on_both_apis
@one_in(3, ("seed", "device", "options"), IN_PLACE, ids=str)
def test_what_is_written_in_place_is_the_same(
    context: Context, all_in_place: MemoryOptions, seed: int, device: str, options: dict[str, Any]
) -> None:
    graph = read_model(random_graph(seed, "segmentation").build())
    plans = {"naive": MemoryOptions("naive"), "in place": all_in_place}
    compiled = compiled_by(graph, DEVICES[device], plans, **options)
    assert compiled["in place"].in_place
    assert not compiled["naive"].in_place
    check_barriers(accesses_of(compiled["in place"]), compiled["in place"].barriers)
    found = outputs_by_plan(context, compiled)
    assert found["in place"] == found["naive"]


def chain(blocks: int = 2) -> Graph:
    """Residual blocks of two windows each: the second has three maps, of which one dies there, at its own pixel."""
    m = Sketch(0)
    x = m.depthwise(m.image(16, 16, 8))
    for _ in range(blocks):
        x = m.binary("ADD", m.depthwise(m.depthwise(x)), x)
    m.output(m.conv(x, 1))
    return read_model(m.build())


NETWORKS: dict[str, tuple[Callable[[], Graph], Device]] = {
    "residual": (chain, HARDWARE),
    "with views": (lambda: read_model(random_graph(23, "segmentation").build()), SOFTWARE),
}


@pytest.mark.parametrize(("graph", "device"), NETWORKS.values(), ids=NETWORKS.keys())
def test_no_plan_changes_a_value(context: Context, graph: Callable[[], Graph], device: Device) -> None:
    compiled = compiled_by(graph(), device, all_plans())
    found = outputs_by_plan(context, compiled)
    assert [name for name in found if found[name] != found["naive"]] == []
    for name, each in compiled.items():
        assert collisions(each.records, each.plan) == [], name
        assert each.plan.total_bytes <= compiled["naive"].plan.total_bytes


def test_it_is_done_only_where_it_takes_less_memory() -> None:
    apart, in_place = (
        compile_graph(chain(), SOFTWARE, CompileOptions(memory=replace(REWRITTEN, in_place=allowed)))
        for allowed in (False, True)
    )
    assert in_place.plan.total_bytes < apart.plan.total_bytes
    assert in_place.in_place
    kernels = zip(in_place.kernels, apart.kernels, strict=True)
    changed = {kernel.outputs for kernel, before in kernels if kernel.source != before.source}
    assert changed == {kernel.outputs for kernel in in_place.kernels if {*kernel.outputs} & in_place.in_place.keys()}
    m = Sketch(0)
    m.output(m.conv(m.unary("RELU", m.conv(m.image(32, 32, 4), 64)), 4))
    graph = read_model(m.build())
    assert not compile_graph(graph, SOFTWARE, CompileOptions(memory=REWRITTEN)).in_place, "the peak is elsewhere"


def test_a_repeated_dispatch_leaves_what_it_would_replace(context: Context) -> None:
    compiled = compile_graph(chain(), SOFTWARE, CompileOptions(memory=MemoryOptions(keeps_inputs=True)))
    assert compiled.in_place
    with Program(context, compiled) as program:
        (given,), (output,) = compiled.graph.inputs, compiled.graph.outputs
        program.write(given, sample(compiled.source, given))
        program.run()
        once = program.read(output)
        for number in range(len(compiled.kernels)):
            program.repeat(number, 3)
            program._dispatch(program._steps[number])
        assert program.read(output).tobytes() == once.tobytes()


def test_inputs_stay_unless_they_are_written_before_each_run(context: Context) -> None:
    kept, rewritten = (
        compile_graph(chain(1), SOFTWARE, CompileOptions(memory=memory)) for memory in (ARENA, REWRITTEN)
    )
    assert rewritten.plan.total_bytes < kept.plan.total_bytes
    (given,) = kept.graph.inputs
    with Program(context, kept) as program:
        values = sample(kept.source, given)
        program.write(given, values)
        program.run()
        np.testing.assert_array_equal(program.read(given), values)
