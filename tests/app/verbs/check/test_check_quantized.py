"""`texelflow check` of quantized models: errors in steps, kernel by kernel, and shares of equal values."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from tests.helpers.markers import exhaustive, one_in
from tests.model_files.quantized_models import small_quantized
from texelflow.app.cli import main
from texelflow.app.verbs.check import check_model
from texelflow.gpu_delegate.device.device import Device
from texelflow.gpu_delegate.model.graph import Graph
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.targets.glsl.compiled_graph import CompiledGraph, compile_graph


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "small.tflite"
    file.write_bytes(small_quantized())
    return file


def figures(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def with_larger_bias(graph: Graph) -> Graph:
    """The last convolution's sums are off by some steps."""
    bias = graph.tensors[graph.nodes[-1].inputs[2]]
    assert bias.data is not None
    changed = replace(bias, data=np.asarray(bias.data, np.int32) + np.int32(3000))
    return replace(graph, tensors=MappingProxyType({**graph.tensors, bias.index: changed}))


@one_in(2, "backend", [pytest.param("gl", marks=pytest.mark.gl), "native"])
def test_tensors_agree_within_a_step(path: Path, backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(path), "--backend", backend, "--json"]) == 0
    found = figures(capsys)
    assert found["passed"]
    assert all(tensor["step"] > 0 and 1 <= tensor["limit"] < 5 for tensor in found["tensors"])
    assert not any(tensor["float64"] for tensor in found["tensors"]), "which says nothing of steps"


@exhaustive
@pytest.mark.gl
def test_the_op_that_differs_is_named_with_its_steps(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def altered(graph: Graph, device: Device, options: CompileOptions) -> CompiledGraph:
        return compile_graph(with_larger_bias(graph), device, options)

    monkeypatch.setattr(check_model, "compile_graph", altered)
    assert main(["check", str(path), "--backend", "gl"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "first to diverge" in said
    assert "CONV_2D (operator 3)" in said
    assert " steps (" in said


@exhaustive
def test_the_delegate_is_compared_by_equal_values(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(path), "--backend", "delegate", "--runs", "3", "--json"]) == 0
    (output,) = figures(capsys)["output_errors"]
    assert output["equal"] > 0.98
    assert output["equal"] >= output["least_equal"]


@pytest.mark.gl
def test_inspect_says_what_the_numbers_are(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(path), "--json"]) == 0
    types = figures(capsys)["types"]
    assert re.fullmatch(
        r"int8 \(step 0.00\d+, zero at -128\) -> int8 \(step \S+, zero at -?\d+\); "
        r"\d+ of \d+ tensors quantized, weights per channel in up to 5 scales",
        types,
    )
