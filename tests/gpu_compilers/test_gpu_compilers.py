"""Kernels for GPUs that are not here: valid in both languages, and no dearer than the table of costs.

Only texts that are not in the table are compiled. `make gpu-compilers` renews it.
"""

import ctypes
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.gpu_compilers.__main__ import main, readable
from tests.gpu_compilers.compilers import MOST_S, PREFIX, Report, Row, kernels_of, measure, prefix_of
from tests.gpu_compilers.document import BEGIN, END, write_document
from tests.gpu_compilers.figures import Figures, parse
from tests.gpu_compilers.glslang import VALIDATOR, validate
from tests.gpu_compilers.kernels import MODELS, Dispatch, device_of, dispatches, models_in, texts_for_es
from tests.gpu_compilers.loops import Code, TextLoop, amd_code, executed, intel_code, loops_of
from tests.gpu_compilers.platforms import PLATFORMS, RADV_ICD, environment_of
from tests.gpu_compilers.records import (
    TABLE,
    Cost,
    Table,
    by_key,
    cost_of,
    costs_of,
    losses,
    merged,
    read_table,
    write_table,
)
from tests.gpu_compilers.tables import summed
from tests.helpers.clips import DEMO_CLIP
from tests.helpers.markers import exhaustive
from tests.helpers.portable import needs_validator
from tests.model_files.sketch import Sketch
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.device.limits import Limits
from texelflow.gpu_delegate.reading.reader import load_model
from texelflow.gpu_delegate.targets.glsl.compiled_graph import compile_graph

RADV = "radv-navi22"
SLOWEST_S = 2.0  # that a driver may take for one kernel
HALVES = (MODELS[1:3], MODELS[3:])


def lacking() -> str:
    """Why RADV cannot be asked here, "" if it can."""
    if not RADV_ICD:
        return "mesa-vulkan-drivers is not installed"
    if shutil.which(VALIDATOR) is None:
        return f"{VALIDATOR} is not installed"
    try:
        ctypes.CDLL("libvulkan.so.1")
    except OSError:
        return "libvulkan1 is not installed"
    return ""


needs_radv = pytest.mark.skipif(bool(lacking()), reason=lacking() or "it is there")
needs_fake_devices = pytest.mark.skipif(prefix_of() is None, reason=f"{PREFIX} does not name fake devices")


@exhaustive
@needs_validator
def test_kernels_of_real_models_are_valid_in_opengl_es(tmp_path: Path) -> None:
    """As every kernel is in OpenGL by tests of shaders."""
    sources = texts_for_es(MODELS, "hardware")
    assert len(sources) > 75
    assert validate((("comp", source) for source in sources), tmp_path) == []


@exhaustive
@needs_radv
def test_kernels_cost_on_amd_no_more_than_the_table_says() -> None:
    """Of a version of Mesa that is not in the table, a model's kernels are compiled, and cost what they cost."""
    stored = read_table(TABLE)

    def known(mesa: str) -> Mapping[str, Cost]:
        """All texts of the table, but for the first of each model: those are compiled, and show that it is right."""
        models = stored.get(mesa, {}).get(RADV, {})
        return {key: cost for key, cost in by_key(models).items() if key not in {own[0].key for own in models.values()}}

    reports = [measure(RADV, None, kernels_of(MODELS[:1]), known)]
    table = stored.get(reports[0].mesa, {}).get(RADV)
    if table is not None:
        with ThreadPoolExecutor() as pool:
            reports += pool.map(lambda make: measure(RADV, None, make, known), map(kernels_of, HALVES))
    problems = [problem for report in reports for problem in report.problems]
    for report in reports:
        for model, rows in report.rows.items():
            problems += [f"{model} {row.dispatch.name}: {row.problem}" for row in rows if row.problem]
            problems += [f"{model} {row.dispatch.name}: {row.seconds} s" for row in rows if row.seconds > SLOWEST_S]
            if table is not None:
                problems += losses(RADV, model, table[model], costs_of(rows, known(report.mesa)))
    assert problems == []


@needs_fake_devices
@pytest.mark.parametrize("name", ["tgl", "g52"])
def test_kernels_cost_on_other_gpus_no_more_than_the_table_says(name: str) -> None:
    """A GPU of a laptop and one of a phone, where their compilers are at hand."""
    report = measure(name, prefix_of(), kernels_of(MODELS[:1]))
    rows = report.rows[MODELS[0]]
    assert [*report.problems, *(row.problem for row in rows if row.problem)] == []
    table = read_table(TABLE).get(report.mesa, {}).get(name, {})
    assert losses(name, MODELS[0], table.get(MODELS[0], ()), [cost_of(row) for row in rows]) == [] or not table


@needs_fake_devices
def test_the_whole_program_runs_on_intels_driver(tmp_path: Path) -> None:
    """Nothing is executed, so that masks are anything; but no call is an error, and the program says where it runs."""
    environment = {**os.environ, **environment_of(PLATFORMS["mtl"], prefix_of(), tmp_path)}

    def run(*words: str) -> str:
        command = [sys.executable, "-W", "error", "-m", "texelflow.app", *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=MOST_S, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    findings = json.loads(run("doctor", "--json"))["findings"]
    assert "Intel" in next(each["found"] for each in findings if each["name"] == "renderer")
    figures = json.loads(run("bench", "model", "selfie", "--runs", "3", "--warmup", "1", "--json"))
    assert "Intel" in json.dumps(figures)
    masks = tmp_path / "masks"
    run("replay", str(DEMO_CLIP), "--to", "3", "--masks", str(masks), "--backend", "gl")
    assert len(list(masks.iterdir())) == 4  # 0 to 3


class TestModels:
    """Names, files and folders of models."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        m = Sketch(0)
        m.output(m.conv(m.image(9, 7, 5), 24))
        for name in ("b.tflite", "a.tflite"):
            (tmp_path / name).write_bytes(m.build())
        (tmp_path / "notes.txt").write_text("")
        return tmp_path

    def test_a_folder_is_the_models_in_it(self, folder: Path) -> None:
        assert models_in(str(folder)) == [str(folder / "a.tflite"), str(folder / "b.tflite")]
        assert models_in("selfie") == ["selfie"]
        (folder / "empty").mkdir()
        with pytest.raises(UsageError, match="no file there ends in"):
            models_in(str(folder / "empty"))

    def test_kernels_of_a_file_are_those_of_its_graph(self, folder: Path) -> None:
        path = str(folder / "a.tflite")
        device = device_of("intel", Limits())
        wanted = [kernel.source for kernel in compile_graph(load_model(path), device).kernels]
        assert [each.source for each in dispatches(path, device)] == wanted

    def test_what_cannot_be_read_is_told_and_left_out(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (folder / "c.tflite").write_bytes(b"nothing")
        found = readable([str(folder), str(folder / "a.tflite"), str(folder / "no.tflite")])
        assert found == (str(folder / "a.tflite"), str(folder / "b.tflite"))
        said = capsys.readouterr().err.splitlines()
        assert len(said) == 2
        assert "c.tflite is left out" in said[0]
        assert main(["--model", str(folder / "no.tflite"), "--platform", RADV]) == 2


class TestLoops:
    """Turns of a text's loops, and what a thread executes by them."""

    TEXT = """
#define COUNT 24
    int i = thread % 64;
    for (; i < 200; i += 64) sum += READ(in0, i) + READ(in0, i + 8);
    for (; i < 260; i += 4) sum += READ(in0, i);
    for (int s = 0; s < COUNT; ++s) {
        for (int o = thread; o < 300; o += 256)
    """

    def test_the_text_tells_where_loops_end_and_how_often_they_turn(self) -> None:
        assert loops_of(self.TEXT) == (TextLoop(200, 4), TextLoop(260, 1), TextLoop(24, 24), TextLoop(300, 2))

    @pytest.mark.parametrize(
        ("listing", "expected"),
        [
            ("s_mov_b32 s0, 1\ns_endpgm", 2),
            ("a\nBB1:\ns_cmp_ge_i32 s1, 24 ; bf\ns_cbranch_scc1 BB2\nb\ns_branch BB1\nBB2:\nc", 1 + 24 * 4 + 1),
            (
                "BB1:\ns_cmp_ge_i32 s1, 0x18\nBB2:\nv_cmp_gt_i32 vcc, 300, v1\ns_cbranch_vccz BB2\ns_branch BB1",
                24 * (1 + 2 * 2 + 1),
            ),
            ("BB1:\nunknown\ns_branch BB1\n" * 5, None),
        ],
    )
    def test_each_loop_of_machine_code_is_found_in_the_text(self, listing: str, expected: int | None) -> None:
        unique = "\n".join(line.replace("BB1", f"BB{9 + k // 3}") if expected is None else line
                           for k, line in enumerate(listing.splitlines()))  # fmt: skip
        assert executed(self.TEXT, amd_code(unique)) == expected

    def test_intels_listing_of_the_width_in_use(self) -> None:
        text = (
            "NIR (final form)\nNative code for unnamed compute shader\nSIMD8 shader: 9 instructions.\n"
            "mov(8) a\n\nNIR (SSA form)\n"
            "Native code for unnamed compute shader\nSIMD16 shader: 4 instructions.\n   START B0 (2 cycles)\n"
            "mov(16) g1\n\nLABEL1:\ncmp.ge.f0.0(16) null<1>D g4<0,1,0>D 24D { align1 1H };\n"
            "send(16) g1\n        sampler MsgDesc: ld\nsync nop(1)\nwhile(16)  JIP:  LABEL1  { align1 1H };\n"
        )
        code = intel_code(text, 16)
        assert code == Code(
            ("mov(16) g1", "cmp.ge.f0.0(16) null<1>D g4<0,1,0>D 24D { align1 1H };", "send(16) g1",
             "while(16)  JIP:  LABEL1  { align1 1H };"),
            ((1, 3),),
        )  # fmt: skip
        assert executed(self.TEXT, code) == 1 + 24 * 3
        assert intel_code(text, 32) is None


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "CS SIMD16 shader: 520 inst, 1 loops, 14464 cycles, 2:3 spills:fills, 77 sends, scheduled with mode "
            "non-lifo, Promoted 0 constants, compacted 9712 to 6896 bytes.",
            Figures(16, 520, 14464.0, spills=2, fills=3, code_bytes=6896, loops=1),
        ),
        (
            "Shader Stats: SGPRS: 128 VGPRS: 96 Code Size: 3712 LDS: 9 Scratch: 0 Max Waves: 5 Spilled SGPRs: 0 "
            "Spilled VGPRs: 7 PrivMem VGPRs: 0 (CS, W32)",
            Figures(32, registers=96, spills=7, waves=5, code_bytes=3712),
        ),
        (
            "CL shader: 546 inst, 33 nops, 672 dwords, 0 half, 48 full, 34 cat0, 5 stp, 6 ldp, 4 waves, 0 loops",
            Figures(None, 546, registers=48, spills=5, fills=6, waves=4, code_bytes=2688, loops=0),
        ),
        (
            "MESA_SHADER_COMPUTE shader: 516 inst, 36.500000 cycles, 371 quadwords, 2 threads, 4:9 spills:fills",
            Figures(None, 516, 36.5, spills=4, fills=9, waves=2, code_bytes=5936),
        ),
        ("VS SIMD8 shader: 12 inst, 0 loops", None),
        ("Shader Stats: SGPRS: 8 VGPRS: 4 Code Size: 12 (VS, W64)", None),
    ],
)
def test_what_drivers_say_is_read(said: str, expected: Figures | None) -> None:
    assert parse(said) == expected


class TestCosts:
    """What is kept, and what counts as worse."""

    BEFORE = (Cost("conv", "a", 100, 800, 0, 16, 20), Cost("dw", "b", 1000, 9000, 0, 16, 30))

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({}, []),
            ({"cost": 109.0}, []),
            ({"cost": 111.0}, []),
            ({"cost": 111.0, "issued": 888.0}, ["dispatch 0 conv: cost 111, was 100"]),
            ({"cost": 220.0, "issued": 1800.0}, ["cost 1220, was 1100", "dispatch 0 conv"]),
            ({"spills": 3}, ["1 kernels spill, 0 did: conv"]),
            ({"width": 8}, ["1 kernels have not the full SIMD width"]),
        ],
    )
    def test_losses(self, changes: dict[str, Any], words: list[str]) -> None:
        found = losses("tgl", "selfie", self.BEFORE, [replace(self.BEFORE[0], **changes), self.BEFORE[1]])
        assert len(found) == len(words)
        assert all(word in line for word, line in zip(words, found, strict=True))

    def test_fused_kernels_are_compared_by_their_sums(self) -> None:
        assert losses("tgl", "selfie", self.BEFORE, [Cost("conv+dw", "c", 1150, 9000, 0, 16, 30)]) == []

    def test_tables_are_read_as_they_were_written_and_merged_by_platform(self, tmp_path: Path) -> None:
        before = list(self.BEFORE)
        table: Table = {"25.0.7": {"tgl": {"selfie": before}, "g52": {"selfie": []}}, "22.3.6": {}}
        write_table(table, tmp_path / "table.json")
        assert read_table(tmp_path / "table.json") == table
        new: Table = {"25.0.7": {"tgl": {"other": before}}}
        assert merged(table, new) == {**table, "25.0.7": {"tgl": {"other": before}, "g52": {"selfie": []}}}

    @pytest.mark.parametrize(("threads", "narrow"), [(16, 0), (32, 1), (64, 1)])
    def test_a_work_group_of_fewer_threads_is_not_narrow(self, threads: int, narrow: int) -> None:
        row = Row(Dispatch(0, "conv", 10, threads, "text"), 0.0, Figures(16, 520))
        assert (summed([row], 32).narrow, summed([row], 16).narrow) == (narrow, 0)

    def test_a_text_that_is_known_costs_the_same_in_a_larger_dispatch(self) -> None:
        row = Row(Dispatch(0, "conv", 10, 64, "text"), 0.0, None)
        known = {row.dispatch.key: replace(self.BEFORE[0], key=row.dispatch.key)}
        assert costs_of([row], known) == [replace(known[row.dispatch.key], issued=100 * 10 * 4)]


def test_the_document_gets_tables_between_its_marks(tmp_path: Path) -> None:
    row = Row(Dispatch(0, "conv", 10, 64, "text"), 0.5, Figures(16, 520, spills=2, registers=7))
    path = tmp_path / "gpu.md"
    path.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_document([Report("tgl", "Intel", "25.0.7", {"selfie": (row,)})], path)
    text = path.read_text()
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
    assert [cell.strip() for line in text.splitlines() if " conv " in line for cell in line.split("|")[1:-1]] == [
        "0", "conv", "16 / -"
    ]  # fmt: skip
