"""`--json-lines` writes an object for each frame, of what was found there, and keeps what is written."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.clips import write_clip
from tests.helpers.commands import Command
from tests.helpers.live_stage import demo_frame
from tests.helpers.markers import exhaustive
from tests.helpers.running import Running
from texelflow import assets
from texelflow.app.frame.stages.frame_pipeline import FrameRecord, StageRecord
from texelflow.app.models.decoders.found import FOUND, Finding
from texelflow.app.models.decoders.region import FrameRegion
from texelflow.app.outputs.frame_log import FrameLog
from texelflow.app.outputs.json_lines import JsonLines, line_of

CLIP, PICTURE = (str(Path(assets.__file__).parent / name) for name in ("people.mp4", "background.jpg"))
HAND = Finding(
    "hand", 0.912345, FrameRegion(10, 20, 4, 8, np.pi / 2), "left",
    np.array([[9, 20, 1], [11, 20, np.nan]], np.float32), np.array([1, 0.25], np.float32), "hand", track=3,
)  # fmt: skip
RECORD = FrameRecord(
    7, 7, 233.33333, 1, (StageRecord("decode", 1, 1.0), StageRecord("find", 1, 2.0)), 0,
    findings=(HAND, Finding("class", 0.5, label="cup")), size=(64, 48),
)  # fmt: skip


@pytest.fixture
def texelflow(capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(capsys)


def test_a_line_says_all_that_is_known_in_pixels() -> None:
    said: dict[str, Any] = json.loads(json.dumps(line_of(RECORD), allow_nan=False))
    assert said == {
        "index": 7,
        "time_ms": 233.333,
        "size": [64, 48],
        "findings": [
            {
                "kind": "hand", "label": "left", "score": 0.9123, "track": 3, "box": [6.0, 18.0, 14.0, 22.0],
                "center": [10.0, 20.0], "region_size": [4.0, 8.0], "angle": 1.5708, "skeleton": "hand",
                "points": [[9.0, 20.0, 1.0], [11.0, 20.0, None]], "certainty": [1.0, 0.25],
            }
        ],
        "classes": [{"label": "cup", "score": 0.5}],
    }  # fmt: skip


@pytest.mark.parametrize("ending", [".csv", ".json"])
def test_a_log_counts_what_was_found(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"frames{ending}"
    with FrameLog(path, ("decode", "find", "gone"), 0, finds=True) as log:
        log.add(RECORD)
        log.close({})
    if ending == ".json":
        (row,) = json.loads(path.read_text())["frames"]
    else:
        names, cells = (line.split(",") for line in path.read_text().splitlines())
        row = {name: float(cell) if cell else None for name, cell in zip(names, cells, strict=True)}
    assert {kind: row[f"found_{kind}"] for kind in FOUND if row[f"found_{kind}"]} == {"hand": 1, "class": 1}
    assert (row["best_score"], row["find_ms"], row["gone_ms"]) == (0.9123, 2, None)  # of stages that were there


def test_a_line_is_there_as_soon_as_it_is_written_and_no_file_before(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    with JsonLines(path) as lines:
        assert not path.exists()
        lines.add(RECORD)
        lines.add(RECORD)
        assert [json.loads(line)["index"] for line in path.read_text().splitlines()] == [7, 7]


def test_segmentations_have_frames_without_findings(texelflow: Command, tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    result = texelflow("replay", CLIP, "--to", 2, "--json-lines", path, "--backend", "cpu")
    assert (result.code, "found.jsonl (3 frames)" in result.out) == (0, True)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["index"], line["size"], line["findings"]) for line in lines] == [
        (index, [640, 480], []) for index in range(3)
    ]
    assert texelflow("replay", CLIP, "--to", 0, "--json-lines", path).code == 2  # what is there is kept


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--out", "-", "--json-lines", "-"), "one output alone goes into a pipe"),
        (("--json-lines", "found.csv"), ".jsonl or .ndjson"),
        ((PICTURE, "--json-lines", "found.jsonl"), "--json-lines goes with one input, not with 2"),
    ],
)
def test_what_does_not_go_together_is_refused(texelflow: Command, options: tuple[str, ...], complaint: str) -> None:
    assert complaint in texelflow("replay", CLIP, *options).complaint


def test_a_pipe_gets_each_line_at_once_and_keeps_them_after_ctrl_c() -> None:
    command = [sys.executable, "-m", "texelflow", "replay", CLIP, "--json-lines", "-", "--backend", "cpu"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read().splitlines()
        code = process.wait()
    indices = [json.loads(line)["index"] for line in (first, *rest)]
    assert (code, indices) == (130, [*range(len(indices))]) or (code, len(indices)) == (0, 240)


@exhaustive
def test_ctrl_c_leaves_whole_lines_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    clip = write_clip(tmp_path / "people.mp4", [demo_frame(60, 2)] * 200)
    options = "--model", "face-landmark", "--json-lines", path, "--backend", "cpu"
    with Running("replay", clip, *options) as running:
        running.until(lambda: path.exists() and path.read_text().count("\n") > 5)
        running.send(signal.SIGINT)
        code, line = running.end()
    text = path.read_text()
    lines = [json.loads(each) for each in text.splitlines()]
    assert (text[-1], [each["index"] for each in lines]) == ("\n", [*range(len(lines))])
    assert {len(found["points"]) for found in lines[-1]["findings"]} == {468}
    assert (code, len(lines) < 200) == (130, True)
    assert line == f"texelflow: interrupted after {len(lines)} frames; what was written is complete"
