"""The tool `ops`: each op named is timed everywhere, and wrong outputs are told."""

import json

import pytest

from tests.helpers.case_group import CaseGroup
from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive
from tests.tools.ops import main, parse_ops
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.cases.table import cases_of
from texelflow.gpu_delegate.ops.registry import SUPPORTED_OPS


@exhaustive
@pytest.mark.gl
def test_each_op_is_timed_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    tool = Command(capsys, main)
    result = tool("relu", "SHAPE", "--seconds", 0.05, "--json")
    assert result.code == 0
    relu, shape = json.loads(result.out)["ops"]
    assert (relu["op"], relu["cases"]) == ("RELU", len(cases_of("RELU")))
    assert relu["times"].keys() == {"gl", "native", "tflite"}
    assert all(0 < times["min_us"] <= times["median_us"] for times in relu["times"].values())
    assert relu["errors"] == {"gl": 0.0, "native": 0.0}
    assert shape["reasons"] == {"gl": "known before it runs", "native": "known before it runs"}
    shown = tool("NEG", "--backend", "native,tflite", "--seconds", 0.01).out
    assert "NEG" in shown
    assert "CPU speed-up" in shown
    assert "GPU" not in shown


@pytest.mark.gl
def test_a_wrong_output_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a case had a tolerance that no rounding keeps."""
    monkeypatch.setattr(CaseGroup, "differing", lambda group, found, wanted: group.errors(found, wanted))
    result = Command(capsys, main)("exp", "--backend", "native", "--seconds", 0.01, "--json")
    assert result.code == 1
    assert "differs from TensorFlow Lite by" in result.err
    assert json.loads(result.out)["ops"][0]["differing"]["EXP example"]["native"] >= 0


def test_names_of_ops() -> None:
    assert parse_ops(()) == tuple(sorted(SUPPORTED_OPS))
    assert parse_ops(("softmax", "Conv_2d", "SOFTMAX")) == ("SOFTMAX", "CONV_2D")
    with pytest.raises(UsageError, match=r"^SOFTMAXX: no op of that name is known; did you mean SOFTMAX\?; `texelflow"):
        parse_ops(("SOFTMAXX",))


@pytest.mark.parametrize("options", [("--backend", "gpu"), ("--threads", 0), ("--seconds", 0), ("--seconds", "nan")])
def test_bad_options(capsys: pytest.CaptureFixture[str], options: tuple[object, ...]) -> None:
    result = Command(capsys, main)("RELU", *options)
    assert result.code == 2
    assert str(options[0]) in result.err
