"""`texelflow inspect` says which operators the delegate takes, and the delegate takes these."""

import json
from pathlib import Path

import pytest

from tests.helpers.commands import Command
from tests.helpers.markers import one_in
from tests.model_files.partial_models import cast_and_back, segments
from texelflow.gpu_delegate.cpu.reference import Reference
from texelflow.gpu_delegate.delegate.interpreter_delegate import gpu_delegate
from texelflow.gpu_delegate.reading.reader import read_model

TAKES = "The delegate takes "


@pytest.mark.gl
@one_in(
    3,
    ("whole", "place", "line"),
    [
        (segments(96), 0.25, "all of them."),
        (segments(), 0.5, "3 of 7 operators in 1 partition (3: 0-2); the others cost more than the work that"),
        (segments(8, 4), 0.25, "none of them: a partition costs two copies"),
    ],
    ids=["all", "some", "none"],
)
def test_what_the_delegate_takes(
    whole: bytes, place: float, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = read_model(cast_and_back(read_model(whole), place))
    (tmp_path / "model.tflite").write_bytes(cast_and_back(read_model(whole), place))
    command, run = ("inspect", tmp_path / "model.tflite", "--no-peaks"), Command(capsys)
    assert TAKES + line in run(*command).out
    delegation = Reference(graph, delegate=gpu_delegate({})).delegation
    assert delegation is not None
    found = json.loads(run(*command, "--json").out)
    assert found["delegated"] == [list(nodes) for nodes in delegation.partitions]
    assert len(found["partitions"]) == 2


def test_a_whole_model_needs_no_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.tflite").write_bytes(segments())
    command, run = ("inspect", tmp_path / "model.tflite", "--tuning", "software"), Command(capsys)
    assert TAKES not in run(*command).out
    found = json.loads(run(*command, "--json").out)
    assert found["delegated"] == found["partitions"] == [[0, 1, 2, 3, 4]]
