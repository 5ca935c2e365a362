"""`texelflow check MODEL --backend delegate`: TensorFlow Lite's Inference Diff, with figures that can be trusted."""

import json
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive
from tests.model_files.model_builder import ModelBuilder, selfie_like
from tests.model_files.partial_models import cast_and_back, segments
from texelflow import assets
from texelflow.app.verbs.check.check_delegate import OutputErrors
from texelflow.gpu_delegate.device.device import Device
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.reading.reader import read_model
from texelflow.gpu_delegate.saving import kept_graph
from texelflow.gpu_delegate.targets.gl.program_cache import VARIABLE as PROGRAM_CACHE
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph

CLIP = Path(assets.__file__).parent / "people.mp4"
KINDS = ("avg_error", "std_dev", "min_error", "max_error")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "network.tflite"


def tripled() -> bytes:
    """A network that gives 3 x for x, and x itself."""
    model = ModelBuilder()
    x = model.input((1, 8, 8, 3))
    model.output(model.op("MUL", [x, model.constant(np.full(3, 3))], (1, 8, 8, 3)), model.op("RELU", [x], (1, 8, 8, 3)))
    return model.build()


def test_what_errors_come_to() -> None:
    errors = OutputErrors()
    for values, wanted in (([1.0, 2.0], [1.0, 4.0]), ([-6.0, np.inf], [-6.0, np.inf]), ([0.0, 3.0], [0.5, 3.5])):
        errors.add(np.array(values, np.float32), np.array(wanted, np.float32))
    found = errors.result(0, 0.1)
    means = np.array([1, 0, 0.5])
    assert (found.avg_error, found.min_error, found.max_error) == (0.5, 0, 1)
    assert found.std_dev == pytest.approx(means.std())
    assert found.largest == 2
    assert found.allowed == pytest.approx(0.1 * 10), "from -6 to 4"
    assert found.diverges
    assert not errors.result(0, 0.2).diverges


@pytest.mark.parametrize(("found", "expected"), [([np.nan], [1.0]), ([1.0], [np.nan]), ([1.0], [1.0, 1.0])])
def test_what_never_agrees(found: list[float], expected: list[float]) -> None:
    errors = OutputErrors()
    errors.add(np.array(found), np.array(expected))
    errors.add(np.ones(1), np.ones(1))
    assert errors.result(0, 1e9).diverges


def test_what_has_no_size_and_what_is_text_agrees() -> None:
    errors = OutputErrors()
    errors.add(np.zeros((0, 4)), np.zeros((0, 4)))
    assert not errors.result(0, 0.0).diverges
    texts = OutputErrors()
    texts.add(np.array([b"yes", b"no"]), np.array([b"yes", b"yes"]))
    assert (texts.result(0, 0.1).avg_error, texts.result(0, 0.1).diverges) == (0.5, True)


@exhaustive
@pytest.mark.gl
def test_a_sound_model_passes(path: Path, run: Command) -> None:
    path.write_bytes(selfie_like(1))
    result = run("check", path, "--backend", "delegate", "--runs", 6, "--json")
    figures = json.loads(result.out)
    assert (result.code, figures["passed"], figures["num_evaluation_runs"]) == (0, True, 6)
    (output,) = figures["output_errors"]
    assert 0 <= output["min_error"] <= output["avg_error"] <= output["max_error"] <= output["largest"] < 1e-3
    assert output["largest"] > 0
    assert (len(figures["partitions"]), figures["operators"]) == (1, len(figures["partitions"][0]))
    for latency in (figures["reference_latency"], figures["test_latency"]):
        assert latency["avg_us"] > 0
    failed = run("check", path, "--backend", "delegate", "--runs", 1, "--tolerance", 0)
    assert failed.code == 1
    assert "output 0: error " in failed.out


@pytest.mark.gl
def test_it_prints_what_inference_diff_prints(path: Path, run: Command) -> None:
    path.write_bytes(tripled())
    lines = run("check", path, "--backend", "delegate", "--runs", 2).out.splitlines()
    assert lines[0] == "network: 2 of 2 operators on the GPU in 1 partition"
    assert lines[2] == "Num evaluation runs: 2"
    assert lines[3].startswith("Reference run latency: avg=")
    assert lines[4].startswith("Test run latency: avg=")
    for number, line in enumerate(lines[5:7]):
        assert line.startswith(f"OutputDiff[{number}]: ")
        assert [part.partition("=")[0].split(" ")[-1] for part in line.split(", ")] == list(KINDS)
    assert lines[7].startswith("2 outputs agree in 2 runs")
    for line, name in zip(lines[8:], ("tensor2", "tensor3"), strict=True):
        assert line.startswith(f"{name}: ")
        assert "from float64 at most, TensorFlow Lite " in line


@pytest.mark.gl
def test_a_wrong_delegate_is_found(path: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def altered(graph: Graph, device: Device, options: CompileOptions) -> CompiledGraph:
        constants = {
            index: replace(tensor, data=tensor.data.astype(np.float32) * np.float32(1.01))
            for index, tensor in graph.tensors.items()
            if tensor.data is not None
        }
        changed = replace(graph, tensors=MappingProxyType({**graph.tensors, **constants}))
        return compile_graph(changed, device, options)

    monkeypatch.setattr(kept_graph, "compile_graph", altered)
    monkeypatch.setenv(PROGRAM_CACHE, "0")  # others get what they ask for
    path.write_bytes(tripled())
    result = run("check", path, "--backend", "delegate", "--json")
    figures = json.loads(result.out)
    assert (result.code, figures["num_evaluation_runs"]) == (1, 50)
    first, second = figures["output_errors"]
    assert first["largest"] == pytest.approx(0.03, rel=1e-2)
    assert first["avg_error"] == pytest.approx(0.015, rel=0.1)
    assert second["largest"] == 0
    first, second = figures["float64"]
    assert first["ours"] == pytest.approx(0.03, rel=1e-2)
    assert max(first["reference"], first["xnnpack"], second["ours"]) < 1e-6


@pytest.mark.gl
def test_what_does_not_run_wholly_on_the_gpu_is_checked_through_the_delegate(path: Path, run: Command) -> None:
    path.write_bytes(cast_and_back(read_model(segments(96)), 0.25))
    result = run("check", path, "--json")
    figures = json.loads(result.out)
    assert (result.code, len(figures["partitions"])) == (0, 2)
    assert figures["summary"].endswith("on the GPU in 2 partitions, the rest on the CPU")
    assert "BITCAST" in result.err
    assert "through the delegate" in result.err
    assert "BITCAST" in run("check", path, "--unfused").complaint


@exhaustive
@pytest.mark.gl
def test_integers_come_as_the_model_takes_them(path: Path, run: Command) -> None:
    model = ModelBuilder()
    x = model.tensor((1, 4, 4, 3), "uint8", scales=(1 / 255,), zero_points=(3,))
    model.inputs.append(x)
    y = model.input((1, 4), "int32")
    model.output(model.op("DEQUANTIZE", [x], (1, 4, 4, 3)), model.op("ADD", [y, y], (1, 4), "int32"))
    path.write_bytes(model.build())
    result = run("check", path, "--backend", "delegate", "--runs", 3, "--json")
    assert result.code == 0, result.err
    assert [output["largest"] for output in json.loads(result.out)["output_errors"]] == [0, 0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("selfie", "--backend", "cpu"), "--backend cpu: gl or native or delegate"),
        (("selfie", "--backend", "delegate", "--runs", "0"), "--runs goes from 1"),
        (("selfie", "--runs", "3"), "--runs goes with --backend delegate"),
        (("selfie", "--backend", "delegate", "--unfused"), "--unfused"),
        ((CLIP, "--backend", "delegate"), "--backend delegate is for models"),
    ],
)
def test_bad_options(arguments: tuple[object, ...], words: str, run: Command) -> None:
    assert words in run("check", *arguments).complaint
