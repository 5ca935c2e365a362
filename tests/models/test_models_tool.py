"""The results of `make models`: a model that runs, one that is refused, and outputs that differ."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.markers import exhaustive
from tests.model_files.model_builder import ModelBuilder
from tests.model_files.sketch import Sketch
from tests.models.__main__ import is_right, row, targets
from tests.models.delegated import DELEGATE_COLUMNS, delegate_row, is_delegated_right, measure_delegated
from tests.models.measure import RANDOM, REAL, Target, error_of, inputs_for, measure


@exhaustive
@pytest.mark.gl
def test_figures_of_a_model_that_runs(tmp_path: Path) -> None:
    target, model = Target("small", tmp_path / "small.tflite", (0.0, 1.0)), Sketch(1)
    model.output(model.conv(model.image(9, 7, 3), 5, (3, 3)))
    target.path.write_bytes(model.build())
    figures = json.loads(json.dumps(measure(target, round_s=0)))
    assert figures["error"] < 1e-5
    assert figures["ms"] > 0
    assert figures["compile_s"] >= figures["plan_s"]
    assert 0 <= figures["moves_share"] <= 1
    assert is_right(target, figures)
    assert "-" not in row(figures)


def test_figures_of_a_model_with_an_op_that_nobody_has(tmp_path: Path) -> None:
    target, model = Target("odd", tmp_path / "odd.tflite"), ModelBuilder()
    model.output(model.op("NobodyHasThis", [model.input((1, 4, 4, 3))], (1, 4, 4, 3)))
    target.path.write_bytes(model.build())
    figures = measure(target)
    assert "NobodyHasThis" in figures["reason"]
    assert not is_right(target, figures)
    assert is_right(Target("odd", target.path, left=("NobodyHasThis",)), figures)
    assert not is_right(Target("odd", target.path, left=("NobodyHasThis", "NobodyEither")), figures)
    assert row(figures)[0] == "odd"


def delegated_figures(model: Sketch, path: Path) -> dict[str, Any]:
    path.write_bytes(model.build())
    target = Target("small", path, (0.0, 1.0))
    figures: dict[str, Any] = json.loads(json.dumps(measure_delegated(target, round_s=0)))
    assert is_delegated_right(target, figures)
    assert len(delegate_row(figures)) == len(DELEGATE_COLUMNS)
    return figures


@exhaustive
@pytest.mark.gl
def test_figures_of_a_model_through_the_delegate(tmp_path: Path) -> None:
    """One that runs in part: what pays, and all that the GPU can take."""
    model = Sketch(1)
    x = model.conv(model.conv(model.image(24, 24, 8), 32, (3, 3)), 32, (3, 3))
    x = model.cpu_op(x)
    model.output(model.unary("ABS", x))
    figures = delegated_figures(model, tmp_path / "small.tflite")
    assert figures["left"] == {"L2_POOL_2D: a window of 16641 pixels, 16384 are allowed": 1}
    assert (figures["partitions"], figures["nodes"]) == (1, 2)
    assert (figures["all_partitions"], figures["all_nodes"]) == (2, 3)


@pytest.mark.gl
def test_models_of_wide_floats_run_on_the_cpu_with_the_reason(tmp_path: Path) -> None:
    model = Sketch(1)
    x, y = (model.tensor(shape, "float64") for shape in ((1, 5, 6, 4), (1, 30, 4)))
    model.inputs.append(x)
    model.op_of("RESHAPE", [x], [y], new_shape=(1, 30, 4))
    model.tensor((1,), "float32", b"\0\0\0\0")  # a constant, by which the delegate finds the file
    model.output(y)
    figures = delegated_figures(model, tmp_path / "doubles.tflite")
    assert figures["partitions"] == figures["all_partitions"] == 0
    assert figures["error"] == 0
    (reason,) = figures["left"]
    assert reason.startswith("RESHAPE: a tensor is float64, only float32")


@exhaustive
@pytest.mark.gl
def test_a_real_model_through_the_delegate() -> None:
    """`make models` has all of them."""
    (target,) = targets(["hand-recrop"], None)
    figures = measure_delegated(target, round_s=0)
    assert is_delegated_right(target, figures)
    assert (figures["operators"], figures["nodes"], figures["partitions"]) == (63, 63, 1)


def test_errors_are_parts_of_the_range_or_of_the_magnitude() -> None:
    wanted = np.array([3.0, 5.0], np.float32)
    assert error_of([wanted + np.float32(0.5)], [wanted]) == pytest.approx(0.1)
    assert error_of([wanted], [wanted - 4]) == pytest.approx(2.0)
    assert error_of([np.array([np.nan, 5], np.float32)], [wanted]) == float("inf")


@pytest.mark.parametrize(
    ("error", "own_error", "right"),
    [(9e-4, 1.0, True), (2e-3, 1.5e-3, False), (2e-3, 9e-4, True), (float("inf"), float("inf"), False)],
)
def test_either_of_the_two_sets_of_kernels_is_the_measure(error: float, own_error: float, right: bool) -> None:
    assert is_right(Target("x", Path()), {"reason": "", "error": error, "own_error": own_error}) is right


def test_inputs_are_pictures_and_noise_within_the_bounds() -> None:
    inputs = inputs_for([(2, 9, 7, 3)], (-1.0, 1.0))
    assert len(inputs) == REAL + RANDOM
    assert {given[0].shape for given in inputs} == {(2, 9, 7, 3)}
    assert len({given[0].tobytes() for given in inputs}) == REAL + RANDOM
    assert all(given[0].min() >= -1 and given[0].max() <= 1 for given in inputs)
    assert len(inputs_for([(1, 5), (1, 4, 4, 3)], (0.0, 1.0))) == RANDOM
