"""The tool `weights`: what is shared counts once, each configuration has a process, findings are the rows'."""

from pathlib import Path
from typing import Any

import pytest

from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive
from tests.model_files.model_builder import selfie_like
from tests.tools.weights.__main__ import main
from tests.tools.weights.shared_weights import WeightsBench, bench_weights, parse_backends, parse_instances
from tests.tools.weights.weights_part import measure_instances
from tests.tools.weights.weights_tables import sharing_findings
from texelflow.app.console import Console
from texelflow.gpu_delegate.base.errors import UsageError


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "small.tflite"
    path.write_bytes(selfie_like(1))
    return path


def test_numbers_of_instances() -> None:
    assert parse_instances("1..16") == (1, 2, 4, 8, 16)
    assert parse_instances("3..10") == (3, 6, 10)
    assert parse_instances("8,1,8") == (1, 8)
    for bad in ("", "0", "1..", "..", "4..2", "1..2..3", "1..300", "1,x", "9999999"):
        with pytest.raises(UsageError, match="--instances"):
            parse_instances(bad)
    assert parse_backends("native,gl") == ("native", "gl")
    with pytest.raises(UsageError, match="did you mean native"):
        parse_backends("nativ")


@exhaustive
@pytest.mark.parametrize("backend", [pytest.param("gl", marks=pytest.mark.gl), "native"])
def test_what_is_shared_counts_once(backend: str, model: Path) -> None:
    alone, two, soft, hard = (measure_instances(model, backend, cache, count, 1) for cache, count in
                              (("none", 1), ("none", 2), ("soft", 2), ("hard", 2)))  # fmt: skip
    assert alone["second_init_ms"] is None
    assert two["weights_bytes"] == 2 * alone["weights_bytes"]
    assert soft["weights_bytes"] == hard["weights_bytes"] == alone["weights_bytes"] > 0
    assert two["tensor_bytes"] == 2 * alone["tensor_bytes"] > soft["tensor_bytes"] == hard["tensor_bytes"]
    assert soft["second_init_ms"] > 0 < soft["ms"]


@exhaustive
@pytest.mark.gl
def test_each_configuration_has_a_process(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = WeightsBench((str(model),), (2,), ("gl",), 1, caches=("soft",))
    (found,), code = bench_weights(options, Console(quiet=True))
    assert code == 0
    assert (found["model"], found["instances"], found["cache"], found["reason"]) == (str(model), 2, "soft", "")
    assert found["peak_bytes"] > found["weights_bytes"] > 0
    missing = Command(capsys, main)(model.parent / "none.tflite")
    assert "none.tflite" in missing.complaint


def row(cache: str, count: int, weights: int, peak: int, second_ms: float | None) -> dict[str, Any]:
    times = {"init_ms": 100.0, "second_init_ms": second_ms, "ms": 1.0}
    sizes = {"weights_bytes": weights, "tensor_bytes": 1, "peak_bytes": peak}
    return {"model": "m", "backend": "gl", "instances": count, "cache": cache, "reason": "", **times, **sizes}


def test_findings_are_of_the_rows() -> None:
    rows = [row("none", 1, 5, 100, None), row("none", 2, 10, 150, 90.0), row("soft", 1, 5, 100, None)]
    rows += [row("soft", 2, 5, 110, 9.0), row("soft", 4, 5, 120, 7.0), row("hard", 4, 5, 132, 24.0)]
    (found,) = sharing_findings([*rows, {**rows[0], "reason": "it crashed", "peak_bytes": None}])
    assert found.are_weights_constant
    assert (found.baseline, found.twice_peak) == (2, 0.8)
    assert found.hard_peak == pytest.approx(1.1)
    assert (found.second_open, found.second_soft) == (0.24, 0.08)
    (less,) = sharing_findings([row("soft", 1, 5, 100, None), row("soft", 2, 6, 100, 50.0)])
    assert (less.are_weights_constant, less.baseline, less.hard_peak, less.second_soft) == (False, None, None, 0.5)
