"""Flags of benchmark_model on small models: inputs of their own, and what they have written."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.commands import Command, Result
from tests.helpers.markers import one_in
from tests.model_files.sketch import Sketch
from texelflow.app.bench.measuring import energy
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.reading.reader import read_model

pytestmark = pytest.mark.gl

Bench = Callable[..., Result]
SHAPED = "--input_layer=x", "--input_layer_shape=1,5,3,3"


def convolution(height: int = 9) -> bytes:
    sketch = Sketch(3)
    sketch.output(sketch.conv(sketch.image(height, 3, 3), 5, (3, 3)))
    return sketch.build()


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bench:
    """Runs `bench model` on that model, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    Path("m.tflite").write_bytes(convolution())
    return lambda *arguments: Command(capsys)(
        "bench", "model", "m.tflite", "--num_runs", 2, "--warmup-runs=0", *arguments
    )


@one_in(
    2, "arguments", [("--backend", "gl"), ("--use_gpu",), ("--use_xnnpack",), ("--use_xnnpack=0",), ("--cpu", "native")]
)
def test_outputs_are_those_of_tensorflow_lite_for_the_shape_and_the_file(
    arguments: tuple[str, ...], bench: Bench
) -> None:
    values = np.random.default_rng(5).uniform(-1, 1, (1, 5, 3, 3)).astype(np.float32)
    Path("x.raw").write_bytes(values.tobytes())
    found = bench(*arguments, *SHAPED, "--input_layer_value_files=x:x.raw", "--output_filepath=out.raw")
    assert found.code == 0, found.err
    (expected,) = Reference(read_model(convolution(5)), keep_all_tensors=True).run(values)
    outputs = np.frombuffer(Path("out.raw").read_bytes(), np.float32).reshape(expected.shape)
    assert np.abs(outputs - expected).max() < 1e-5


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            (*SHAPED, "--input_layer_value_files=x:short.raw"),
            "short.raw: 3 bytes; input x takes 180 (float32, [1, 5, 3, 3])",
        ),
        ((*SHAPED, "--input_layer_value_files=x:nowhere.raw"), "nowhere.raw"),
        ((*SHAPED, "--output_filepath=m.tflite"), "that is the model; choose another name"),
        ((*SHAPED, "--input_layer_value_files=x:short.raw", "--output_filepath=short.raw"), "that is input x"),
        (("--input_layer=x", "--input_layer_shape=1,5,3,4"), "cannot run on inputs of shape [1, 5, 3, 4]"),
    ],
)
def test_wrong_inputs_end_in_one_line(arguments: tuple[str, ...], complaint: str, bench: Bench) -> None:
    Path("short.raw").write_bytes(b"abc")
    assert complaint in bench(*arguments).complaint


def test_dispatches_and_what_runs_where_are_written(bench: Bench) -> None:
    facts = "--export_model_runtime_info", "--model_runtime_info_output_file=facts.json"
    found = bench("--enable_op_profiling", "--profiling_output_csv_file", "ops.csv", *facts, "--json")
    rows = list(csv.DictReader(Path("ops.csv").read_text().splitlines()))
    figures = json.loads(found.out)
    assert [row["dispatch"] for row in rows] == [row["name"] for row in figures["per_op"]["rows"]]
    assert all(float(row["least ms"]) > 0 for row in rows)
    written: dict[str, Any] = json.loads(Path("facts.json").read_text())
    assert [(each["op"], each["runs"]) for each in written["operators"]] == [("CONV_2D", "on the GPU")]
    kinds = {each["number"]: each["kind"] for each in written["tensors"]}
    assert [kinds[number] for number in written["operators"][0]["inputs"]] == ["input", "constant", "constant"]
    assert "exists already" in bench("--enable_op_profiling", "--profiling_output_csv_file=ops.csv").complaint


def test_a_dry_run_runs_nothing(bench: Bench) -> None:
    found = bench("--dry-run", "--json", "--report_peak_memory_footprint", "--memory_footprint_check_interval_ms=1")
    figures = json.loads(found.out)
    assert "count" not in figures
    assert figures["init_ms"] > 0
    assert figures["memory"]["watched_peak_bytes"] > 1 << 20
    assert "nothing ran" in bench("--dry_run").out


def test_states_options_and_a_name_are_shown(bench: Bench) -> None:
    out = bench("--print_preinvoke_state", "--print_postinvoke_state", "--verbose", "--benchmark_name=mine").out
    assert out.index("Tensors before the first run") < out.index("mine: m, ")
    assert "Tensors after the last run" in out
    assert "buffer 0, byte 0" in out, "where a tensor lies on the GPU"
    assert "runs.max_s" in out


def test_what_is_left_to_tensorflow_lite_fails_where_all_has_to_be_taken(bench: Bench) -> None:
    assert bench("--use_gpu", "--require_full_delegation").code == 0
    sketch = Sketch(1)
    sketch.output(sketch.cpu_op(sketch.conv(sketch.image(8, 8, 3), 9, (3, 3))))
    Path("m.tflite").write_bytes(sketch.build())
    complaint = bench("--use_gpu", "--require_full_delegation", "--min_nodes_per_partition=1").complaint
    assert "--require_full_delegation: 1 of 2 operators on the GPU" in complaint


def test_signatures_are_listed(bench: Bench) -> None:
    assert bench("--list_signatures").out == "m has no signatures\n"
    assert json.loads(bench("--list_signatures=true", "--json").out) == {"model": "m", "signatures": []}


def test_energy_is_told_where_there_is_a_counter(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zone = tmp_path / "intel-rapl:0"
    zone.mkdir()
    for name, content in {"name": "package-0", "max_energy_range_uj": "10", "energy_uj": "4"}.items():
        (zone / name).write_text(content)
    monkeypatch.setattr(energy, "POWERCAP", tmp_path)
    figures = json.loads(bench("--backend", "cpu", "--json").out)["energy"]
    assert (figures["j_per_run"], figures["counters"][0]["name"]) == (0.0, "package-0 (intel-rapl:0)")
    monkeypatch.setattr(energy, "POWERCAP", tmp_path / "nowhere")
    assert "energy: no counter can be read here (RAPL is not there" in bench("--backend", "cpu").out
