"""`texelflow inspect --ops`: where each op runs, with which types, and what the original delegate does with it."""

import json
from pathlib import Path

import pytest

from tests.helpers.markers import exhaustive
from tests.model_files.model_builder import ModelBuilder
from texelflow.app.cli import main
from texelflow.app.verbs.inspect.original_ops import ORIGINAL_OPS
from texelflow.gpu_delegate.cases.table import cases_of
from texelflow.gpu_delegate.ops.registry import SUPPORTED_OPS
from texelflow.gpu_delegate.programs.support import unsupported_reason


@exhaustive
def test_the_verb_lists_ops(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "--ops", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed.keys() == {*SUPPORTED_OPS, *ORIGINAL_OPS}
    for op, role in (("SOFTMAX", "reduction"), ("SPLIT", "movement"), ("DEQUANTIZE", "elementwise")):
        found = listed[op]
        assert (found["gpu"], found["reason"], found["role"]) == (True, None, role), "passes make others of it"
        assert found["cases"] == len(cases_of(op)) > 0
        assert found["native"]
    for op in ("CONV_2D", "DEPTHWISE_CONV_2D", "Convolution2DTransposeBias", "HARD_SWISH", "RESIZE_BILINEAR", "ADD"):
        assert listed[op]["reason"] is None
    folded = [unsupported_reason(op) for op in SUPPORTED_OPS if listed[op]["role"] == "folded"]
    reasons = [*folded, *(listed[op]["reason"] for op in SUPPORTED_OPS)]
    assert all(reason is None or len(reason) > 10 for reason in reasons)
    assert {"float32", "int32", "bool"} <= {*listed["PAD"]["types"]}
    assert {"float32", "int8"} <= {*listed["CONV_2D"]["types"]}
    assert listed["LOGICAL_AND"]["types"] == ["bool"]
    original = {op: (found["original"]["opengl"], found["original"]["opencl"]) for op, found in listed.items()}
    assert (original["FLOOR"], original["TRANSPOSE"], original["ADD"]) == (("yes", "no"), ("no", "yes"), ("yes", "yes"))
    assert original["MEAN"] == ("part", "yes")
    assert original["ATAN2"] == ("no", "no")


def test_the_verb_lists_the_ops_of_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = ModelBuilder()
    x = model.op("TheirOwnOp", [model.op("NEG", [model.input((1, 4, 6, 3))], (1, 4, 6, 3))], (1, 4, 6, 3))
    model.output(model.op("NEG", [x], (1, 4, 6, 3)))
    file = tmp_path / "model.tflite"
    file.write_bytes(model.build())
    assert main(["inspect", str(file), "--ops", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {op: found["operators"] for op, found in listed.items()} == {"NEG": 2, "TheirOwnOp": 1}
    assert (listed["NEG"]["gpu"], listed["TheirOwnOp"]["gpu"]) == (True, False)
    assert main(["inspect", str(file), "--ops"]) == 0
    assert "left to TensorFlow Lite" in capsys.readouterr().out
