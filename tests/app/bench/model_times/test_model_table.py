"""`bench models`: a row for each model, whatever becomes of it, as a table, as Markdown and as JSON."""

import json
import signal
from pathlib import Path

import pytest

from tests.helpers.commands import Command
from tests.helpers.markers import exhaustive
from tests.model_files.sketch import Sketch
from texelflow.app.bench.measuring import measuring_process
from texelflow.app.bench.model_times import model_table
from texelflow.app.bench.model_times.model_table import (
    ModelTable,
    bench_models,
    parse_threads,
)
from texelflow.app.console import Console
from texelflow.gpu_delegate.base.errors import UsageError

FAST = ("--runs", 2, "--warmup", 1)


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    sketch = Sketch(1)
    sketch.output(sketch.conv(sketch.image(8, 8, 4), 4))
    path = tmp_path / "small.tflite"
    path.write_bytes(sketch.build())
    return path


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


@exhaustive
@pytest.mark.gl
def test_a_model_that_fails_is_a_row_that_says_why(small: Path, texelflow: Command) -> None:
    missing = small.with_name("missing.tflite")
    result = texelflow("bench", "models", missing, small, *FAST, "--threads", "1", "--markdown")
    assert result.code == 0
    head, line, first, second = (row for row in result.out.splitlines() if row.startswith("|"))
    assert set(line) == {"|", "-"}
    assert len(head) == len(line) == len(second) < len(first), "columns line up, but for what is long"
    failed, measured = (dict(zip(cells(head), cells(row), strict=True)) for row in (first, second))
    assert "missing.tflite" in failed["reason"]
    assert failed["GPU ms"] == failed["CPU ms, 1 thread"] == "-"
    assert (measured["on the GPU"], measured["dispatches"], measured["reason"]) == ("whole", "1", "")
    assert all(float(measured[column]) >= 0 for column in ("GPU ms", "CPU ms, 1 thread", "GPU speed-up"))
    assert measured["of peak"].endswith("%")
    assert "GPU ms of what runs there as a whole: run() to glFinish" in result.out
    assert result.err.splitlines() == [f"1 of 2: {missing}", f"2 of 2: {small}"]


def test_ctrl_c_keeps_the_rows_that_are_done(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring_process, "VERB", "print('{\"count\": 1}')")

    class Interrupting(Console):
        def note(self, line: str) -> None:
            if line.startswith("2 of"):
                signal.raise_signal(signal.SIGINT)

    rows, code = bench_models(ModelTable((str(small), "selfie"), 0, 1, (1,)), Interrupting())
    assert code == 130
    assert [row["model"] for row in rows] == [str(small)]
    assert rows[0]["gpu"]["count"] == rows[0]["cpu"]["1"]["count"] == 1


def test_what_the_delegate_leaves_to_the_cpu_is_no_figure_of_the_gpu(
    small: Path, monkeypatch: pytest.MonkeyPatch, texelflow: Command
) -> None:
    figures = {"partitions": [], "delegation": "none of 8", "operators": 8, "mean_ms": 1.5, "count": 1}
    monkeypatch.setattr(measuring_process, "VERB", f"import json; print(json.dumps({figures}))")
    (row,) = json.loads(texelflow("bench", "models", small, "--json").out)["models"]
    assert row["gpu"] is None
    assert row["reasons"] == ["none of 8"]
    assert row["cpu"]["2"]["mean_ms"] == 1.5


def test_what_hangs_is_ended(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_table, "PATIENCE_S", 0.05)
    monkeypatch.setattr(measuring_process, "VERB", "import time; time.sleep(60)")
    with pytest.raises(UsageError, match=r"longer than 0\.05 s"):
        bench_models(ModelTable((str(small),)), Console(quiet=True))


def test_what_crashes_says_so(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring_process, "VERB", "import os; print('noise'); os.abort()")
    with pytest.raises(UsageError, match="ended by signal 6"):
        bench_models(ModelTable((str(small),)), Console(quiet=True))


def test_nothing_that_runs_is_a_complaint(texelflow: Command) -> None:
    result = texelflow("bench", "models", "no-such-model", *FAST, "--threads", "1", "--json")
    assert result.code == 2
    assert "no-such-model" in result.err.splitlines()[-1]


@pytest.mark.parametrize("text", ["", "0", "1,", "a", "1,-2", "1000", "1" * 5000, "1;2"])
def test_refuses_threads_that_are_none(text: str, texelflow: Command) -> None:
    assert "--threads" in texelflow("bench", "models", "selfie", "--threads", text).complaint


def test_threads_are_taken_in_their_order() -> None:
    assert parse_threads("4,1,4") == (4, 1)


def test_options_are_checked_before_anything_runs(texelflow: Command) -> None:
    assert "--runs" in texelflow("bench", "models", "selfie", "--runs", 0).complaint
    assert "--warmup" in texelflow("bench", "models", "selfie", "--warmup", -1).complaint
