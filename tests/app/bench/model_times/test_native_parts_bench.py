"""The commands that run a model on the CPU in parts, in native code and in TensorFlow Lite."""

import json
from pathlib import Path

import pytest

from tests.helpers.commands import Command
from tests.model_files.partial_models import quick_with_an_end
from tests.model_files.sketch import Sketch

LINE = "9 of 10 operators in the CPU's own code in 1 partition, the rest in TensorFlow Lite"


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "parts.tflite"
    path.write_bytes(quick_with_an_end())
    return path


def test_each_command_takes_parts(model: Path, texelflow: Command) -> None:
    timed = texelflow("bench", "model", model, "--cpu", "native", "--threads", 1, "--runs", 3, "--json")
    figures = json.loads(timed.out)
    assert (timed.code, figures["delegation"], figures["dispatches"]) == (0, LINE, 0)
    assert "parts in the CPU's own code" in figures["timed"]
    assert LINE in timed.err
    checked = texelflow("check", model, "--backend", "native", "--json")
    assert (checked.code, json.loads(checked.out)["summary"]) == (0, LINE)
    inspected = texelflow("inspect", model, "--cpu", "native", "--json")
    found = json.loads(inspected.out)
    assert [part["operators"] for part in found["partitions"]] == [[*range(9)]]
    assert [left["operator"] for left in found["nodes_left"]] == [9]
    shown = texelflow("inspect", model, "--cpu", "native").out
    assert "9 of 10 operators in 1 partition, 1 left to TensorFlow Lite" in shown
    assert "steps" in shown


def test_what_no_part_pays_of_is_refused_with_the_reason(tmp_path: Path, texelflow: Command) -> None:
    sketch = Sketch(0)
    sketch.output(sketch.unary("SQRT", sketch.unary("ABS", sketch.cpu_op(sketch.image(4, 4, 2)))))
    (tmp_path / "crumb.tflite").write_bytes(sketch.build())
    said = texelflow("bench", "model", tmp_path / "crumb.tflite", "--cpu", "native").complaint
    assert "none of 3 operators in the CPU's own code, all in TensorFlow Lite: its partition costs more" in said


def test_an_op_that_tensorflow_lite_lacks_is_one_line(tmp_path: Path, texelflow: Command) -> None:
    (tmp_path / "theirs.tflite").write_bytes(quick_with_an_end("TheirOwnOp"))
    said = texelflow("bench", "model", tmp_path / "theirs.tflite", "--cpu", "native").complaint
    assert said.startswith("texelflow: TensorFlow Lite cannot run this model on the CPU: ")
    assert "TheirOwnOp" in said
    checked = texelflow("check", tmp_path / "theirs.tflite", "--backend", "native")
    assert checked.code == 2
    assert checked.err.splitlines()[-1].startswith(said)
