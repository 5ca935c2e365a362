"""Traces and logs of frames: viewers load them, they are complete after each write, and all times are on one clock."""

import csv
import json
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.markers import one_in
from texelflow.app.frame.stages.frame_pipeline import FrameRecord, StageRecord
from texelflow.app.frame.stages.stats import StageTimes
from texelflow.app.outputs.append_safe_file import AppendSafeFile
from texelflow.app.outputs.frame_log import FrameLog
from texelflow.app.outputs.trace import TraceWriter
from texelflow.gpu_delegate.base.errors import MediaError

STAGES = ("decode", "upload", "network")
START_NS, FRAME_NS = 7_000_000_123, 33_000_000


def record_of(index: int, on_gpu: bool = True, dropped: int = 0) -> FrameRecord:
    """1.5 ms of decoding before, 2 ms of upload and 10.25 ms of network, which the GPU begins 1 ms later."""
    start = START_NS + index * FRAME_NS
    gpu: list[dict[str, Any]] = [{}, {}]
    if on_gpu:
        gpu = [{"gpu_ms": 1.0, "gpu_start_ns": start + 1_000_000}, {"gpu_ms": 9.5, "gpu_start_ns": start + 3_000_000}]
    stages = (
        StageRecord("decode", start - 2_000_000, 1.5),
        StageRecord("upload", start + 1000, 2.0, **gpu[0]),
        StageRecord("network", start + 2_002_000, 10.25, readback_bytes=64, **gpu[1]),
    )
    return FrameRecord(index, index * 512, index * 33.3333, start, stages, 4096, dropped, repeated=1)


def events_of(path: Path) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return events


def spans_of(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Spans by the name of their track."""
    events = events_of(path)
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    spans: dict[str, list[dict[str, Any]]] = {name: [] for name in names.values()}
    for event in events:
        if event["ph"] == "X":
            spans[names[event["tid"]]].append(event)
    return spans


# Traces


def test_a_trace_has_the_records_times_on_one_clock(tmp_path: Path) -> None:
    records = [record_of(index) for index in range(3)]
    with TraceWriter(tmp_path / "x.json") as trace:
        for record in records:
            trace.add(record)
    spans = spans_of(tmp_path / "x.json")
    assert set(spans) == {"decode", "OpenGL thread", "GPU"}
    stages = [stage for record in records for stage in record.stages]
    shown = [*spans["decode"], *(span for span in spans["OpenGL thread"] if span["name"] != "frame")]
    expected = sorted((s.name, s.start_ns, round(s.cpu_ms * 1e6)) for s in stages)
    assert sorted((s["name"], round(s["ts"] * 1e3), round(s["dur"] * 1e3)) for s in shown) == expected
    expected = [(s.name, s.gpu_start_ns, round(s.gpu_ms * 1e6)) for s in stages if s.gpu_ms and s.gpu_start_ns]
    assert [(s["name"], round(s["ts"] * 1e3), round(s["dur"] * 1e3)) for s in spans["GPU"]] == expected
    assert [span["args"]["frame"] for span in spans["decode"]] == [0, 1, 2]


def test_spans_of_a_track_follow_each_other_or_nest(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "x.json") as trace:
        for index in range(4):
            trace.add(record_of(index))
    for spans in spans_of(tmp_path / "x.json").values():
        assert [span["ts"] for span in spans] == sorted(span["ts"] for span in spans)
        open_ends: list[float] = []
        for span in spans:
            while open_ends and open_ends[-1] <= span["ts"]:
                open_ends.pop()
            assert not open_ends or span["ts"] + span["dur"] <= open_ends[-1] + 1e-3
            open_ends.append(span["ts"] + span["dur"])


def test_counters_tell_frames_lost_and_bytes(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "x.json") as trace:
        trace.add(record_of(0, dropped=2))
        trace.add(record_of(1, dropped=3))
    counters = [(event["name"], event["args"]) for event in events_of(tmp_path / "x.json") if event["ph"] == "C"]
    assert counters[0::2] == [
        ("frames lost", {"dropped": 2, "repeated": 1}),
        ("frames lost", {"dropped": 5, "repeated": 2}),
    ]
    assert counters[1] == ("bytes", {"uploaded": 4096, "read back": 64})


def test_what_is_not_known_is_left_out_of_a_trace(tmp_path: Path) -> None:
    record = record_of(0, on_gpu=False)
    unmeasured = StageRecord("decode", 0, 0.0)
    with TraceWriter(tmp_path / "x.json") as trace:
        trace.add(FrameRecord(0, 0, 0.0, record.start_ns, (unmeasured, *record.stages[1:]), 0))
    assert set(spans_of(tmp_path / "x.json")) == {"OpenGL thread"}


def test_threads_write_into_one_trace(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "x.json") as trace:

        def encode(track: str) -> None:
            for index in range(50):
                trace.span(track, "write", START_NS + index, 0.5, frame=index)

        threads = [threading.Thread(target=encode, args=(track,)) for track in ("encode", "masks")]
        for thread in threads:
            thread.start()
        for index in range(50):
            trace.add(record_of(index))
        for thread in threads:
            thread.join()
    spans = spans_of(tmp_path / "x.json")
    for track in ("encode", "masks", "decode"):
        assert [span["args"]["frame"] for span in spans[track]] == list(range(50))
    trace.span("encode", "late", 0, 1.0)
    assert len(spans_of(tmp_path / "x.json")["encode"]) == 50, "nothing follows close()"


# Logs


def test_a_log_has_what_each_frame_cost_on_cpu_and_gpu(tmp_path: Path) -> None:
    for name in ("x.json", "x.csv"):
        with FrameLog(tmp_path / name, STAGES, dispatches=48) as log:
            log.add(record_of(0, on_gpu=False, dropped=2))
            log.add(record_of(1))
            log.close({"frames": 2})
    written = json.loads((tmp_path / "x.json").read_text())
    first, second = written["frames"]
    assert (first["interval_ms"], first["upload_gpu_ms"], first["dropped"], first["repeated"]) == (None, None, 2, 1)
    assert (second["interval_ms"], second["upload_gpu_ms"], second["network_gpu_ms"]) == (33.0, 1.0, 9.5)
    assert (second["decode_ms"], second["network_ms"], second["readback_bytes"]) == (1.5, 10.25, 64)
    assert second["process_cpu_percent"] >= 0
    assert written["summary"] == {"frames": 2}
    rows = list(csv.DictReader((tmp_path / "x.csv").read_text().splitlines()))
    assert list(rows[0]) == list(first)
    assert (rows[0]["upload_gpu_ms"], rows[1]["upload_gpu_ms"]) == ("", "1.0")


@one_in(3, "frames", [0, 1, 3])
def test_files_are_whole_after_each_row_even_if_killed(frames: int, tmp_path: Path) -> None:
    program = f"""
import os, signal
from pathlib import Path
from tests.app.outputs.test_trace import *
logs = [FrameLog(Path(name), STAGES, 1) for name in ("x.json", "x.csv")]
trace = TraceWriter(Path("t.json"))
for index in range({frames}):
    for file in (*logs, trace):
        file.add(record_of(index))
os.kill(os.getpid(), signal.SIGKILL)
"""
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=False)
    assert done.returncode == -9
    if frames:
        assert len(json.loads((tmp_path / "x.json").read_text())["frames"]) == frames
        assert len(list(csv.DictReader((tmp_path / "x.csv").read_text().splitlines()))) == frames
        assert len(spans_of(tmp_path / "t.json")["decode"]) == frames
    else:
        assert os.listdir(tmp_path) == []


def test_a_piece_that_does_not_fit_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    file = AppendSafeFile(path)
    file.put("[1", "]")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(MediaError, match="cannot be written"):
            file.put(", " + "2" * 200, "]")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_text() == "[1]"
    file.put(", 3", "]")
    file.close()
    assert path.read_text() == "[1, 3]"


# Distributions


def test_stage_times_keep_cpu_and_gpu_apart() -> None:
    times = StageTimes(STAGES)
    for index in range(4):
        times.add(record_of(index, on_gpu=index > 0))
    assert times.summaries()["total"].median_ms == 13.75
    assert times.gpu_summaries()["network"].p99_ms == 9.5
    assert list(times.gpu_summaries()) == ["upload", "network", "total"]
    nothing = StageTimes(STAGES)
    nothing.add(record_of(0, on_gpu=False))
    assert nothing.gpu_summaries() == {}
