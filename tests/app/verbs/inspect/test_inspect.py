"""`texelflow inspect`: what it tells is what the engine does; roofs, peaks and the picture of the arena."""

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.generators.profiles import random_graph
from tests.helpers.markers import exhaustive, one_in
from tests.model_files.faulty_models import FAULTS, Draw, Faulty, picture
from tests.model_files.model_builder import ModelBuilder, selfie_like
from tests.model_files.sketch import Sketch
from texelflow.app.advice.cost import kernel_cost
from texelflow.app.advice.data_moves import moves_of
from texelflow.app.cli import main
from texelflow.app.verbs.inspect.coverage import borders
from texelflow.app.verbs.inspect.declines import alike
from texelflow.app.verbs.inspect.inspection import arena_picture, inspect_compiled
from texelflow.app.verbs.inspect.memory_lines import memory_in_native_code, memory_on_gpu
from texelflow.app.verbs.peaks import fullest_rate, half_vector, measure_half_macs, measure_peaks
from texelflow.gpu_delegate.base.wording import number_ranges
from texelflow.gpu_delegate.delegate.report import op_lines
from texelflow.gpu_delegate.device.choices import UNMEASURED, Choice
from texelflow.gpu_delegate.device.device import HARDWARE, SOFTWARE
from texelflow.gpu_delegate.ops.registry import OPS
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.memory.memory_options import REWRITTEN, MemoryOptions
from texelflow.gpu_delegate.plan.memory.memory_plan import in_one_arena
from texelflow.gpu_delegate.plan.memory.records import UsageRecord
from texelflow.gpu_delegate.plan.placement import usage_records
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph
from texelflow.gpu_delegate.targets.glsl.compiled_partitions import compile_partitions
from texelflow.gpu_delegate.targets.glsl.roofline import Cost, Peaks, cost_of
from texelflow.gpu_delegate.targets.llvm.compiler import native_target
from texelflow.gpu_delegate.targets.llvm.native_program import compile_native

ALIGNMENT_BYTES = SOFTWARE.offset_alignment_bytes


@pytest.fixture(scope="module")
def network() -> bytes:
    return selfie_like(1)


@pytest.fixture(scope="module")
def compiled(network: bytes) -> CompiledGraph:
    return compile_graph(read_model(network), SOFTWARE)


@pytest.fixture
def model_file(tmp_path: Path, network: bytes) -> Path:
    path = tmp_path / "network.tflite"
    path.write_bytes(network)
    return path


def test_a_convolution_costs_what_it_costs_on_paper() -> None:
    model = ModelBuilder()
    weights = [model.constant(np.ones((5, 3, 3, 8))), model.constant(np.ones(5))]
    x = model.input((1, 20, 30, 8))
    model.output(model.op("CONV_2D", [x, *weights], (1, 20, 30, 5), stride=(1, 1), padding="SAME"))
    drafted = compile_graph(read_model(model.build()), SOFTWARE)
    (kernel,) = drafted.kernels
    cost = cost_of(drafted, kernel)
    assert cost.macs == 20 * 30 * 5 * 3 * 3 * 8
    assert cost.read_bytes == 20 * 30 * 8 * 4 + kernel.weights.nbytes
    assert cost.written_bytes == 20 * 30 * 8 * 4, "5 channels take two slices of 4"
    assert cost.intensity == pytest.approx(cost.macs / (cost.read_bytes + cost.written_bytes))


def test_what_every_work_group_repeats_costs_as_often() -> None:
    """A gate in front of a kernel of several work-groups: inspect, roofline and advice count it for each."""
    m = Sketch(0)
    x = m.image(64, 64, 8)
    gate = m.unary("LOGISTIC", m.conv(m.image(1, 1, 64), 8))
    m.output(m.binary("MUL", x, gate))
    drafted = compile_graph(read_model(m.build()), SOFTWARE.with_tuning(prologue_loads=1 << 40))
    (kernel,) = drafted.kernels
    groups, cost = math.prod(kernel.grid), cost_of(drafted, kernel)
    assert groups > 1
    assert cost.macs == kernel.macs + kernel.repeated_macs == groups * 64 * 8
    apart = compile_graph(read_model(m.build()), SOFTWARE.with_tuning(prologue_loads=-1))
    once = sum(cost_of(apart, each).read_bytes for each in apart.kernels) - 8 * 4  # the gate is read again
    assert cost.read_bytes >= once + (groups - 1) * (64 * 8 * 4 + 64 * 4)
    (dispatch,) = inspect_compiled(drafted, None, SOFTWARE, "software").dispatches
    assert dispatch.mmac - dispatch.repeated_mmac == pytest.approx(64 * 8 / 1e6)
    advised = kernel_cost(drafted, kernel, None)
    assert (advised.macs, advised.moved_bytes) == (cost.macs, cost.moved_bytes)


def test_the_lower_roof_bounds() -> None:
    peaks = Peaks(macs_per_s=8e9, bytes_per_s=2e9)
    assert peaks.ridge == 4
    assert peaks.roof(Cost(5_000, 900, 100)) == "compute"
    assert peaks.roof(Cost(3_000, 900, 100)) == "memory"
    assert peaks.roof(Cost(0, 0, 0)) == "memory"
    assert peaks.least_ms(Cost(8_000_000, 1_000_000, 0)) == pytest.approx(1)
    assert peaks.least_ms(Cost(1_000_000, 3_000_000, 1_000_000)) == pytest.approx(2)


def test_peaks_are_those_of_a_computer(context: Context) -> None:
    peaks = measure_peaks(context)
    assert peaks
    assert 1e7 < peaks.macs_per_s < 1e15, "neither optimized away nor slowed down by denormals"
    assert 1e7 < peaks.bytes_per_s < 1e14


def test_work_groups_are_added_until_the_device_is_full() -> None:
    asked = list[int]()

    def rate(groups: int) -> float:
        asked.append(groups)
        return min(groups, 5_000) * 1e3

    assert fullest_rate(rate, 256, most=1 << 16) == 5e6
    assert asked == [256, 1024, 4096, 16384, 65536], "the last two are as fast"
    assert fullest_rate(rate, 256, most=1024) == 1024e3
    assert fullest_rate(rate, 256, most=100) == 100e3
    assert fullest_rate(lambda groups: None, 256, most=1024) is None


def test_halves_are_multiplied_where_shaders_have_them(context: Context) -> None:
    assert half_vector(["GL_ARB_compute_shader", "GL_AMD_gpu_shader_half_float"], False) == ("f16vec4", "")
    assert half_vector(["GL_EXT_texture_buffer"], True) == ("vec4", "mediump")
    assert half_vector(["GL_ARB_compute_shader"], False) is None
    assert (measure_half_macs(context) is None) == (half_vector(context.gl.extensions, False) is None)


def test_it_tells_what_the_blueprint_says(compiled: CompiledGraph) -> None:
    found = inspect_compiled(compiled, Peaks(1e10, 1e9), SOFTWARE, "software")
    assert sum(found.operators.values()) == len(compiled.source.nodes)
    assert [line.name for line in found.passes] == [report.name for report in compiled.passes]
    assert all(line.what for line in found.passes), "every pass says what it does"
    assert [line.applied for line in found.passes if line.name == "fold_constants"] == [found.operators["DEQUANTIZE"]]
    assert sum(found.fusion_declined.values()) == len(compiled.declined)
    assert [d.grid for d in found.dispatches] == [kernel.grid for kernel in compiled.kernels]
    assert found.programs == len({kernel.source for kernel in compiled.kernels})
    assert found.barriers == sum(bits != 0 for bits in compiled.barriers)
    executed = sum(kernel.macs + kernel.repeated_macs for kernel in compiled.kernels)
    assert sum(d.mmac for d in found.dispatches) == pytest.approx(executed / 1e6)
    covered = {operator for dispatch in found.dispatches for operator in dispatch.operators}
    assert covered <= {node.index for node in compiled.source.nodes}
    assert found.memory.planned_bytes == compiled.plan.total_bytes
    assert found.memory.lower_bound_bytes <= found.memory.planned_bytes < found.memory.naive_bytes
    kernel = next(kernel for kernel in compiled.kernels if kernel.tile)
    assert kernel.tile
    choices = UNMEASURED.with_kernel(kernel.signature, Choice(0.5, 2.0, kernel.tile, True, 1))
    tuned = inspect_compiled(compiled, None, replace(SOFTWARE, choices=choices), "software")
    assert {(d.roof, d.least_ms) for d in tuned.dispatches} == {(None, None)}
    tiled = {kernel.signature for kernel in compiled.kernels if kernel.tile}
    assert {d.chosen for d in found.dispatches if d.signature in tiled} == {"family software"}
    assert {d.chosen for d in found.dispatches if d.signature not in tiled} <= {""}, "kernels of vectors have no choice"
    assert {d.chosen for d in tuned.dispatches if d.signature == kernel.signature} == {"tuned: 0.500, not 2.000 ms"}


def test_each_way_to_save_memory_has_its_bytes() -> None:
    """Two windows and a sum, whose other term dies there; what is concatenated lies inside the result."""
    m = Sketch(0)
    x = m.depthwise(m.image(32, 32, 8))
    x = m.binary("ADD", m.depthwise(m.depthwise(x)), x)
    m.output(m.depthwise(m.concatenation(m.conv(x, 4, kernel=(3, 3)), m.conv(x, 4, kernel=(3, 3)))))
    source = read_model(m.build())
    found = memory_on_gpu(compile_graph(source, SOFTWARE, CompileOptions(memory=REWRITTEN)), SOFTWARE)
    assert min(found.outer_saved_bytes, found.views_saved_bytes + found.in_place_saved_bytes) > 0
    saved_bytes = found.outer_saved_bytes + found.views_saved_bytes + found.in_place_saved_bytes
    plain = compile_graph(source, SOFTWARE, CompileOptions(memory=MemoryOptions(uses_views=False, in_place=False)))
    records = usage_records(plain.graph, plain.kernels, plain.storages, plain.views, always="both")
    assert found.planned_bytes + saved_bytes == REWRITTEN.strategy.plan(records, ALIGNMENT_BYTES).total_bytes
    on_cpu = memory_in_native_code(source)
    assert on_cpu
    assert on_cpu.planned_bytes == compile_native(source, native_target()).plan.total_bytes
    assert min(on_cpu.outer_saved_bytes, on_cpu.views_saved_bytes) >= on_cpu.in_place_saved_bytes == 0


def test_the_picture_shows_who_lives_where(compiled: CompiledGraph) -> None:
    records = (UsageRecord(0, 256, 0, 1), UsageRecord(1, 256, 1, 3), UsageRecord(2, 512, 2, 3))
    plan = in_one_arena({0: 0, 1: 768, 2: 0}, 1024)
    small = replace(compiled, kernels=compiled.kernels[:4], records=records, plan=plan)
    assert arena_picture(small, columns=4, rows=4) == ["AACC", "··CC", "····", "·BBB"]
    assert arena_picture(small, columns=8, rows=4) == ["AAAACCCC", "····CCCC", "········", "··BBBBBB"]
    assert arena_picture(small, columns=2, rows=4) == ["AC", "·C", "··", "·B"]


def test_no_two_tensors_share_a_place_in_the_picture(compiled: CompiledGraph) -> None:
    """With a row for every aligned unit and a column for every dispatch nothing is drawn over anything else."""
    count = len(compiled.kernels)
    rows = compiled.plan.total_bytes // ALIGNMENT_BYTES
    drawn = sum(cell != "·" for row in arena_picture(compiled, count, rows) for cell in row)
    expected = 0
    for record in compiled.records:
        units = -(-record.size_bytes // ALIGNMENT_BYTES)
        expected += units * (min(record.last_task, count - 1) - record.first_task + 1)
    assert drawn == pytest.approx(expected, rel=0.02)


@pytest.mark.gl
@one_in(3, "arguments", [["--no-peaks"], ["--unfused", "--no-peaks"], []])
def test_the_verb_prints_it(model_file: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(model_file), *arguments]) == 0
    shown = capsys.readouterr().out
    for words in ("network", "fold_constants", "dispatches", "MAC/B", "bound", "naive", "in place"):
        assert words in shown
    assert ("bound by" in shown) == ("peaks:" in shown) == ("--no-peaks" not in arguments)
    assert max(map(len, shown.splitlines())) <= 120


@exhaustive
@pytest.mark.gl
def test_the_verb_gives_json(model_file: Path, compiled: CompiledGraph, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(model_file), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["peaks"]["macs_per_s"] > 0
    assert {dispatch["roof"] for dispatch in found["dispatches"]} <= {"compute", "memory"}
    assert found["memory"].keys() == found["cpu_memory"].keys()
    assert found["memory"]["outer_saved_bytes"] > 0
    assert sum(found["operators"].values()) == len(compiled.source.nodes)


@exhaustive
def test_the_verb_shows_the_steps_of_the_cpu(model_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(model_file), "--cpu", "native", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    graph = read_model(model_file.read_bytes())
    assert {number for step in told["steps"] for number in step["operators"]} <= set(range(len(graph.nodes)))
    assert sum(step["weights_bytes"] for step in told["steps"]) <= told["weights_bytes"]
    assert main(["inspect", str(model_file), "--cpu", "native"]) == 0
    shown = capsys.readouterr().out
    assert all(step["name"].partition("+")[0] in shown for step in told["steps"])
    assert main(["inspect", str(model_file), "--cpu", "tflite"]) == 2
    assert "--cpu tflite: native is needed here" in capsys.readouterr().err


def partial_model() -> bytes:
    """Two partitions around two operators that the GPU cannot take; a constant that both sides read."""
    model = ModelBuilder()
    weights, window = model.half(np.ones((5, 1, 1, 5))), {"stride": (1, 1), "padding": "SAME"}
    x = model.op("CONV_2D", [model.input((1, 7, 6, 5)), weights, -1], (1, 7, 6, 5), **window)  # type: ignore[arg-type]
    x = model.op("TheirOwnOp", [x, weights], (1, 7, 6, 5))
    x = model.cpu_op(x)
    model.output(model.op("RELU", [model.op("NEG", [x], (1, -1, 6, 5))], (1, 7, 6, 5)))
    return model.build()


def float64_model() -> bytes:
    model = ModelBuilder()
    x = model.tensor((1, 7, 6, 5), "float64")
    model.inputs.append(x)
    out = model.tensor((1, 42, 5), "float64")
    model.output(*model.op_of("RESHAPE", [x], [out], new_shape=(1, 42, 5)))
    return model.build()


def dynamic_model() -> bytes:
    model = ModelBuilder()
    x = model.tensor((1, -1, 6, 5), signature=(1, -1, 6, 5))
    model.inputs.append(x)
    model.output(model.op("RELU", [model.input((1, 7, 6, 5))], (1, 7, 6, 5)), model.op("NEG", [x], (1, 7, 6, 5)))
    return model.build()


def idle_model() -> bytes:
    """What the GPU could take is read by nobody, or is constant."""
    model = ModelBuilder()
    x = model.input((1, 7, 6, 5))
    model.op("RELU", [x], (1, 7, 6, 5))
    model.half(np.ones(5))
    model.output(model.op("TheirOwnOp", [x, model.half(np.ones(5))], (1, 7, 6, 5)))
    return model.build()


@pytest.mark.gl
@pytest.mark.parametrize(
    ("model", "line", "words"),
    [
        (partial_model(), "3 of 6 operators in 2 partitions, 3 left to the CPU", "custom ops: TheirOwnOp"),
        (
            float64_model(),
            "none of 1 operator runs on the GPU",
            "a tensor is float64, only float32 or int32",
        ),
        (dynamic_model(), "1 of 2 operators in 1 partition, 1 left to the CPU", "dynamic shapes"),
        (idle_model(), "2 of 4 operators in 1 partition, 2 left to the CPU", "what reads it stays on the CPU"),
    ],
)
def test_every_model_is_explained(
    model: bytes, line: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(model)
    assert main(["inspect", str(path), "--no-peaks"]) == 0
    shown = capsys.readouterr().out
    assert line in shown
    assert words in shown
    assert main(["inspect", str(path), "--no-peaks", "--advise"]) == 0
    advised = capsys.readouterr().out
    assert line in advised
    assert ("Advice" in advised) != line.startswith("none of"), "where nothing runs, the reasons are told instead"
    assert main(["inspect", str(path), "--no-peaks", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    left = [node["operator"] for node in found["nodes_left"]]
    total = sum(found["operators"].values())
    assert sorted([number for nodes in found["partitions"] for number in nodes] + left) == list(range(total))
    assert all(node["op"] and len(node["reason"]) > 10 for node in found["nodes_left"])
    assert f"{len(found['partitions'])} partition" in line or line.startswith("none of")
    reports = [found] if len(found["partitions"]) == 1 else found["reports"]
    assert len(reports) == len(found["partitions"]) == len(found["borders"])
    written = [border["outputs"] for border in found["borders"]]
    assert [bool(report["dispatches"]) for report in reports] == [bool(outputs) for outputs in written]


def faulty_file(tmp_path: Path, draw: Draw) -> str:
    model, path = Sketch(0), tmp_path / "faulty.tflite"
    draw(model)
    path.write_bytes(model.build())
    return str(path)


@pytest.mark.parametrize("case", [case for case in FAULTS if case.name in ("RGB", "5 channels", "custom op", "RELU")])
def test_the_verb_advises(case: Faulty, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["inspect", faulty_file(tmp_path, case.faulty), "--advise", "--tuning", "software"]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 120
    assert main([*arguments, "--json"]) == 0
    (advice,) = json.loads(capsys.readouterr().out)["advice"]
    assert advice["kind"] == case.kind
    words = " ".join(shown.split())
    for said in (
        advice["what"],
        *([] if advice["is_free"] else [advice["why"], advice["change"], "times are unknown"]),
    ):
        assert said in words
    assert ("costs nothing here" in words) == advice["is_free"] == (case.name == "RELU")
    assert advice["cost"]["ms"] is None


def test_a_model_without_faults_needs_no_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["inspect", faulty_file(tmp_path, picture(4, 4)), "--advise", "--tuning", "hardware"]
    assert main(arguments) == 0
    assert "nothing in this model costs more than it has to" in capsys.readouterr().out
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["advice"] == []
    assert main(["inspect", arguments[1], "--tuning", "hardware", "--json"]) == 0
    assert "advice" not in json.loads(capsys.readouterr().out)
    assert main([*arguments, "--unfused"]) == 2
    assert "leave --unfused out" in capsys.readouterr().err


@pytest.mark.gl
def test_advice_has_times_where_peaks_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", faulty_file(tmp_path, picture(3, 4)), "--advise", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (advice,) = found["advice"]
    assert advice["cost"]["ms"] > 1e3 * found["peaks"]["dispatch_s"] > 0


def test_what_crosses_a_border_is_counted() -> None:
    found = compile_partitions(read_model(partial_model()), SOFTWARE)
    size = 7 * 6 * 5 * 4
    assert [(border.bytes_in, border.bytes_out) for border in borders(found)] == [(size, size), (size, size)]
    assert [border.inputs for border in borders(found)] == [((1, 7, 6, 5),)] * 2, "the weights do not cross"
    (custom,) = (line for line in op_lines(found) if line.op == "TheirOwnOp")
    assert (custom.count, custom.left_count) == (1, 1)


def test_every_move_has_a_way_and_a_reason() -> None:
    model = Sketch(0)
    x = model.pad(model.image(8, 9, 8), (0, 0), (1, 1), (1, 1), (0, 0))
    x = model.conv(x, 8, (3, 3), padding="VALID")
    gathered = model.op("TRANSPOSE", [x, model.constant((0, 3, 1, 2), "int32")], (1, 8, 8, 9))
    tiled = model.op("TILE", [model.unary("NEG", x), model.constant((1, 2, 1, 1), "int32")], (1, 16, 9, 8))
    model.output(gathered, model.unary("RELU", tiled))
    compiled = compile_graph(read_model(model.build()), SOFTWARE)
    moves = {line.op: line for line in moves_of(compiled)}
    assert moves.keys() == {"PAD", "TRANSPOSE", "TILE"}
    assert (moves["PAD"].way, moves["PAD"].why) == ("nothing", "pass merge_pad")
    assert moves["TRANSPOSE"].way == "kernel"
    assert "channels change their place" in moves["TRANSPOSE"].why
    assert "an output" in moves["TRANSPOSE"].why
    assert moves["TILE"].way == "read"
    assert "stay together" in moves["TILE"].why
    assert [compiled.kernels[number].name for number in moves["TILE"].kernels] == ["relu"]
    for line in moves.values():
        assert bool(line.kernels) == (line.way not in ("nothing", "view"))
        assert {line.operator} <= {node.index for node in compiled.source.nodes}
    text = compiled.kernels[moves["TRANSPOSE"].kernels[0]]
    assert [node.op for node in text.nodes] == ["TRANSPOSE"]


def test_a_view_needs_no_kernel() -> None:
    model = Sketch(0)
    x = model.image(8, 9, 8)
    model.output(model.conv(model.concatenation(model.conv(x, 8), model.conv(x, 16)), 5, (3, 3)))
    (line,) = moves_of(compile_graph(read_model(model.build()), SOFTWARE))
    assert (line.op, line.way, line.kernels) == ("CONCATENATION", "view", ())
    assert line.why == "each part is written where it belongs"
    (line,) = moves_of(compile_graph(read_model(model.build()), SOFTWARE, CompileOptions(fuse=False)))
    assert (line.way, len(line.kernels)) == ("kernel", 1)
    assert line.why.endswith("read by CONV_2D")


def test_no_move_of_a_network_is_forgotten() -> None:
    for seed in (3, 10, 30, 47):
        compiled = compile_graph(read_model(random_graph(seed, "segmentation").build()), SOFTWARE)
        moving = {node.index for node in compiled.source.nodes if OPS[node.op].role in ("movement", "scatter")}
        assert moving <= {line.operator for line in moves_of(compiled)}
        for line in moves_of(compiled):
            assert bool(line.kernels) == (line.way not in ("nothing", "view"))


@given(st.sets(st.integers(0, 60)))
def test_numbers_are_shown_as_ranges(numbers: set[int]) -> None:
    shown, _, rest = number_ranges(sorted(numbers)).partition(" and ")
    found: list[int] = []
    for part in filter(None, shown.split(", ")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    assert found == sorted(numbers)[: len(found)]
    assert len(found) + int(rest.split()[0] if rest else 0) == len(numbers)


def test_reasons_that_are_alike_are_one() -> None:
    reasons = {"20 slices, 16 are allowed": 2, "other": 9, "288 slices, 16 are allowed": 1, "x: why": 1, "y: why": 3}
    assert alike(reasons, named=True) == {"other": 9, "why": 4, "20 to 288 slices, 16 are allowed": 3}
    names = {"conv_1 has two readers": 1, "conv_2 has two readers": 1}
    assert alike(names) == names


@exhaustive
def test_the_glsl_of_every_kernel_is_written(
    model_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """For hardware: a tuning by name needs no OpenGL, and the limits are the least that are guaranteed."""
    folder = tmp_path / "new" / "shaders"
    command = ["inspect", str(model_file), "--tuning", "hardware", "--shaders", str(folder)]
    assert main([*command, "--json"]) == 0
    written = json.loads(capsys.readouterr().out)["shaders"]
    kernels = compile_graph(read_model(model_file.read_bytes()), HARDWARE).kernels
    assert written == sorted(map(str, folder.iterdir()))
    assert [Path(name).read_text() for name in written] == [kernel.source for kernel in kernels]
    assert Path(written[0]).name == f"000-{kernels[0].name}.comp"
    Path(written[0]).write_text("mine")
    assert main(command) == 2
    assert "000-" in capsys.readouterr().err
    assert Path(written[0]).read_text() == "mine", "nothing is written over unasked"
    assert main([*command, "--force"]) == 0
    assert f"{len(kernels)} kernels written to" in " ".join(capsys.readouterr().out.split())
    assert Path(written[0]).read_text() == kernels[0].source


def test_the_shaders_of_each_partition_are_told_apart(tmp_path: Path) -> None:
    path, folder = tmp_path / "model.tflite", tmp_path / "shaders"
    path.write_bytes(partial_model())
    assert main(["inspect", str(path), "--tuning", "software", "--shaders", str(folder)]) == 0
    assert sorted(file.name for file in folder.iterdir()) == ["p0-000-conv.comp", "p1-000-neg+relu.comp"]


def test_shaders_go_where_they_can_be_written(
    model_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    for arguments in (["--shaders", str(tmp_path / "file")], ["--tuning", "fast"]):
        assert main(["inspect", str(model_file), "--tuning", "software", *arguments]) == 2
        assert capsys.readouterr().err.count("\n") == 1


@exhaustive
def test_without_opengl_it_plans_all_the_same(model_file: Path) -> None:
    """In a process of its own, because there the driver can be hidden."""
    here = str(Path(__file__).parents[4])
    hidden = {**os.environ, "__EGL_VENDOR_LIBRARY_DIRS": str(model_file.parent), "COLUMNS": "120", "PYTHONPATH": here}
    command = [sys.executable, "-m", "texelflow.app.cli", "inspect", str(model_file)]
    done = subprocess.run(command, env=hidden, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert "without measured peaks: no OpenGL" in " ".join(done.stdout.split())
    assert "dispatches" in done.stdout
    assert "bound by" not in done.stdout


def test_a_model_is_needed_and_read_with_care(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noise = tmp_path / "noise.tflite"
    noise.write_bytes(b"\x18\0\0\0TFL3" + bytes(range(256)))
    for arguments in ([], ["nope"], [str(noise)]):
        assert main(["inspect", *arguments]) == 2
        assert capsys.readouterr().err.count("\n") == 1
