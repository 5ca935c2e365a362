"""`bench model` on small models: figures of each backend, each dispatch, sustained runs, models that run in part."""

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive, one_in
from tests.model_files.sketch import Sketch
from texelflow.app.bench.model_times.model_backends import GlRunner
from texelflow.app.bench.model_times.model_figures import share_figures, stat_figures
from texelflow.gpu_delegate.targets.glsl.roofline import Peaks

pytestmark = pytest.mark.gl

STAT = ("count", "first", "curr", "min", "max", "avg", "std")
FIGURES = (
    *STAT, "warmup", "init_ms", "init_steps_ms", "first_ms", "min_ms", "median_ms", "mean_ms", "p95_ms", "std_ms",
    "cpu_ms", "memory", "model_bytes", "renderer", "backend", "timed",
)  # fmt: skip
Bench = Callable[..., dict[str, Any]]
TOO_WIDE_WINDOW = (
    "(of operator 1, tensor4:average_pool_2d) does not run on the GPU: a window of 16641 pixels"  # of L2_POOL_2D
)


def sketched(in_part: bool = False) -> bytes:
    """A few layers with two inputs; in part with one that has no kernel."""
    sketch = Sketch(1)
    x = sketch.conv(sketch.image(17, 13, 3), 9, (3, 3))
    if in_part:
        x = sketch.cpu_op(x)
        for _ in range(4):
            x = sketch.conv(x, 9, (3, 3))
    sketch.output(sketch.binary("MUL", sketch.depthwise(x), sketch.image(1, 1, 9)))
    return sketch.build()


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture
def bench(tmp_path: Path, texelflow: Command) -> Bench:
    """Runs `bench model FILE ... --json`: the figures, and what it said."""
    for name, in_part in (("whole", False), ("part", True)):
        (tmp_path / f"{name}.tflite").write_bytes(sketched(in_part))

    def run(name: str, *arguments: object) -> dict[str, Any]:
        result = texelflow("bench", "model", tmp_path / f"{name}.tflite", *arguments, "--json")
        figures: dict[str, Any] = json.loads(result.out.splitlines()[-1])
        return {**figures, "code": result.code, "said": result.err}

    return run


@exhaustive
@one_in(3, "backend", ["gl", "cpu", "delegate"])
def test_all_figures_of_a_backend(backend: str, bench: Bench) -> None:
    figures = bench("whole", "--backend", backend, "--runs", 5, "--warmup", 2)
    assert figures["code"] == 0
    assert set(FIGURES) < figures.keys()
    assert (figures["backend"], figures["count"], figures["warmup"]["count"]) == (backend, 5, 2)
    assert 0 < figures["min"] <= figures["avg"] <= figures["max"]
    assert figures["min"] <= min(figures["first"], figures["curr"])
    assert figures["avg"] == pytest.approx(figures["mean_ms"] * 1e3, abs=1)
    assert figures["first_ms"] * 1e3 == pytest.approx(figures["warmup"]["first"], abs=1)
    assert figures["init_ms"] == pytest.approx(sum(figures["init_steps_ms"].values()), abs=0.01)
    assert figures["memory"]["peak_bytes"] > 0
    assert figures["interrupted"] is False


@one_in(3, "backend", ["gl", "delegate"])
def test_what_opengl_has_is_counted(backend: str, bench: Bench) -> None:
    figures = bench("whole", "--backend", backend, "--runs", 2)
    assert figures["backend"] == backend
    pixels = 17 * 13
    assert figures["memory"]["gl_bytes"] >= pixels * (4 + 12) * 4, "an input of one slice and an output of three"
    assert figures["mmac"] == pytest.approx(pixels * (27 * 9 + 9 * 9) / 1e6, abs=0.002)
    assert 0 < figures["gmacs"] < figures["peak_gmacs"]


def test_the_share_of_the_peak() -> None:
    found = share_figures(macs=3_000_000, mean_ms=2.0, peaks=Peaks(macs_per_s=6e9, bytes_per_s=1e9))
    assert found == {"gmacs": 1.5, "peak_gmacs": 6.0, "peak_share": 0.25}
    assert share_figures(macs=3_000_000, mean_ms=2.0, peaks=None) == {}, "of a driver that executes nothing"


def test_a_series_is_summed_up_as_benchmark_model_does() -> None:
    found = stat_figures([2.0, 4.0, 1.0, 5.0])
    assert found == {"count": 4, "first": 2000, "curr": 5000, "min": 1000, "max": 5000, "avg": 3000.0, "std": 1581.1}
    assert stat_figures([]) == {}


def test_each_dispatch_and_their_sum(bench: Bench) -> None:
    figures = bench("whole", "--runs", 2, "--per-op", "--unfused")
    per_op = figures["per_op"]
    assert len(per_op["rows"]) == figures["dispatches"] >= 3
    assert per_op["sum_ms"] == pytest.approx(sum(row["ms"] for row in per_op["rows"]), abs=0.005)
    assert all(0 < row["ms"] <= row["median_ms"] for row in per_op["rows"])
    assert per_op["whole_ms"] == figures["median_ms"]


def test_the_lines_of_benchmark_model(tmp_path: Path, bench: Bench, texelflow: Command) -> None:
    options = (f"--graph={tmp_path / 'whole.tflite'}", "--num_runs=3", "--enable_op_profiling=true")
    out = texelflow("bench", "model", *options).out
    line = next(line for line in out.splitlines() if line.startswith("count="))
    assert [part.split("=")[0] for part in line.split()] == list(STAT)
    assert line.split()[0] == "count=3"
    timings = next(line for line in out.splitlines() if line.startswith("Inference timings in us: "))
    names = ["Init", "First inference", "Warmup (avg)", "Inference (avg)"]
    assert [part.split(": ")[0] for part in timings.partition(": ")[2].split(", ")] == names
    assert "dispatches, each repeated by itself" in out
    assert re.search(r"of a whole run \(median\); by (time stamps of the GPU|the CPU.s clock)", out)


@exhaustive
def test_time_that_is_over_before_all_runs_is_told(bench: Bench) -> None:
    figures = bench("whole", "--runs", 5, "--max_secs=0")
    assert figures["count"] == 1
    assert "1 of 5 runs: more take longer than 0 s (--max_secs)" in figures["said"]
    assert "of 5 runs" not in bench("whole", "--runs", 5)["said"]


@exhaustive
def test_what_runs_in_part_goes_through_the_delegate(bench: Bench) -> None:
    figures = bench("part", "--runs", 2, "--min_nodes_per_partition=1")
    assert (figures["backend"], len(figures["partitions"])) == ("delegate", 2)
    assert "partition" in figures["delegation"]
    found = bench("part", "--runs", 2)
    assert found["backend"] == "delegate"
    assert TOO_WIDE_WINDOW in found["said"]


def test_the_gpu_alone_refuses_it_in_one_line(tmp_path: Path, bench: Bench, texelflow: Command) -> None:
    complaint = texelflow("bench", "model", tmp_path / "part.tflite", "--backend", "gl").complaint
    assert TOO_WIDE_WINDOW in complaint


def test_a_sustained_run_keeps_its_series(bench: Bench) -> None:
    figures = bench("whole", "--backend", "cpu", "--duration", 0.2, "--warmup", 1)
    series = figures["series"]
    assert len(series["ms"]) == len(series["at_s"]) == figures["count"] > 3
    assert series["at_s"][0] == 0
    assert 0.1 < series["at_s"][-1] <= 0.2
    assert series["at_s"] == sorted(series["at_s"])
    assert np.mean(series["ms"]) == pytest.approx(figures["mean_ms"], abs=1e-3)


def test_its_plot_is_text_and_needs_matplotlib_for_a_picture(tmp_path: Path, bench: Bench, texelflow: Command) -> None:
    result = texelflow("bench", "model", tmp_path / "whole.tflite", "--duration", 0.1, "--backend", "cpu")
    lines = result.out.splitlines()
    assert lines[-1].split() == ["0", "s", *lines[-1].split()[2:]]
    assert lines[-2].split()[0] == "ms"
    assert any("*" in line for line in lines[-14:-2])
    (tmp_path / "there.png").write_bytes(b"")
    kept = texelflow("bench", "model", "selfie", "--duration", 0.1, "--plot", tmp_path / "there.png").complaint
    assert "there.png" in kept or "matplotlib" in kept


@pytest.mark.parametrize("runs", [0, 3])
def test_ctrl_c_keeps_what_was_measured(
    runs: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, texelflow: Command
) -> None:
    (tmp_path / "m.tflite").write_bytes(sketched())
    done, run = list[float](), GlRunner.run

    def counted(self: GlRunner) -> float:
        done.append(run(self))
        if len(done) == runs + 2:
            signal.raise_signal(signal.SIGINT)
        return done[-1]

    monkeypatch.setattr(GlRunner, "run", counted)
    warmup = 2 if runs else 10
    result = texelflow("bench", "model", tmp_path / "m.tflite", "--warmup", warmup, "--duration", 60, "--json")
    assert result.code == 130
    assert "interrupted" in result.err
    if runs:
        assert json.loads(result.out)["count"] == runs
    else:
        assert result.out == "", "nothing has been measured that counts"
