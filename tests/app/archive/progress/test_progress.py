"""What is said of an archive's progress: honest counts and times, for terminals, log files and machines."""

import io
import json
from dataclasses import replace

import pytest
import rich.console
from hypothesis import given
from hypothesis import strategies as st

from texelflow.app.archive.cluster.cluster import WorkerLost
from texelflow.app.archive.jobs.jobs import (
    ArchiveInput,
    Cut,
    FrameRange,
    InputDone,
    JoinPieces,
    OpenInput,
    PieceDone,
    RenderPiece,
)
from texelflow.app.archive.progress.archive_figures import (
    WINDOW_S,
    ArchiveFigures,
    ArchiveSnapshot,
    NodeFigures,
    RateWindow,
)
from texelflow.app.archive.progress.progress import (
    LOGGED_EVERY_S,
    MOST_LOSSES,
    MOST_NODES,
    archive_progress,
    archive_summary_lines,
    chosen_nodes,
    failure_line,
    inputs_text,
    left_text,
    log_line,
    progress_event,
    progress_picture,
    readable_size,
    result_event,
    time_text,
)
from texelflow.app.archive.results.results import ArchiveCounts, DoneResult, FailedResult, PieceResult, SkippedInput
from texelflow.app.console import Console

NODES = (NodeFigures("cam-b", 4, 120.25, 6_100_000_000, 1), NodeFigures("cam-a", 0, 0.0, 0, 2))


def shot(counts: ArchiveCounts, left_s: float | None = None, nodes: tuple[NodeFigures, ...] = NODES) -> ArchiveSnapshot:
    return ArchiveSnapshot(760.0, counts, 120.25, left_s, nodes, "http://127.0.0.1:8265")


def an_input(number: int, size_bytes: int | None = 100) -> ArchiveInput:
    return ArchiveInput(number, f"/r/{number}.mp4", str(number), size_bytes)


def done(frames: int = 10) -> InputDone:
    return InputDone("00", 100, frames, {"out": "a.mp4"}, {"out": 5}, 1.5, "host:1", "cpu", "CPU")


def test_inputs_are_at_least_so_many_while_they_are_listed() -> None:
    counts = ArchiveCounts(known=10_000, done=1203, failed=3, skipped=10, skipped_failed=1)
    assert inputs_text(counts) == "1,203 of at least 10,000 inputs done, 3 failed, 11 skipped"
    assert inputs_text(ArchiveCounts(known=1, all_known=True)) == "0 of 1 input done"
    assert left_text(shot(counts, 4000.0)) == "at least 67 min left"
    assert left_text(shot(ArchiveCounts(all_known=True), 4000.0)) == "67 min left"
    assert left_text(shot(counts)) == "time left not known yet"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "0 s"), (89, "89 s"), (95, "2 min"), (5399, "1 h 30 min"), (11_100, "3 h 05 min"), (360_000, "4 d 4 h")],
)
def test_times_are_as_exact_as_they_can_be_known(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


@given(st.floats(0, 1e12))
def test_every_time_and_size_is_short(amount: float) -> None:
    assert len(time_text(min(amount, 1e9))) < 20
    assert len(readable_size(amount)) < 20


def test_a_line_for_a_log_file() -> None:
    line = log_line(shot(ArchiveCounts(known=9, all_known=True, done=4, lost=3), 65.0))
    assert line == "4 of 9 inputs done; 120.2 frames/s; 65 s left; 4 workers on 1 node; 3 lost at work"


def drawn(snapshot: ArchiveSnapshot) -> list[str]:
    console = rich.console.Console(width=80, record=True, file=io.StringIO())
    console.print(progress_picture(snapshot))
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_the_picture_of_a_terminal_has_a_row_for_each_node() -> None:
    lines = drawn(shot(ArchiveCounts(known=9, all_known=True, done=4), 65.0))
    assert set(lines[0]) <= set("━╸╺")
    assert lines[1:3] == ["4 of 9 inputs done", "120.2 frames/s, 65 s left, 13 min so far"]
    assert [line.split() for line in (lines[3], *lines[5:])] == [
        ["node", "workers", "frames/s", "memory", "lost"],
        ["cam-a", "0", "0.0", "-", "2"],
        ["cam-b", "4", "120.2", "6.1", "GB", "1"],
        ["dashboard:", "http://127.0.0.1:8265"],
    ]
    assert drawn(shot(ArchiveCounts(known=9)))[0] == "0 of at least 9 inputs done"
    assert drawn(shot(ArchiveCounts(), None, ()))[0] == log_line(shot(ArchiveCounts(), None, ()))
    assert log_line(shot(ArchiveCounts(), None, ())) == "workers are starting, 13 min so far"


def test_of_a_thousand_nodes_those_in_trouble_are_shown() -> None:
    nodes = [NodeFigures(f"n{number}", 1, float(number), 0, number == 700) for number in range(1000)]
    chosen, others = chosen_nodes(nodes)
    assert len(chosen) == MOST_NODES
    assert others == 1000 - MOST_NODES
    assert [node.name for node in chosen[:3]] == ["n700", "n0", "n1"]


def test_failures_are_told_in_one_line() -> None:
    failed = FailedResult(an_input(1), "input", "no video in it\nreally", 2)
    assert failure_line(failed) == "failed: /r/1.mp4: no video in it really (2 tries)"
    lost = FailedResult(an_input(1), "lost", "/r/1.mp4: out of memory", 10)
    assert failure_line(lost) == "failed: workers were lost: /r/1.mp4: out of memory (10 tries)"


def test_events_for_machines_are_json() -> None:
    event = json.loads(json.dumps(progress_event(shot(ArchiveCounts(known=9, done=4)))))
    assert event["event"] == "progress"
    assert (event["done"], event["known"], event["all_known"], event["seconds_left"]) == (4, 9, False, None)
    assert [node["name"] for node in event["nodes"]] == ["cam-b", "cam-a"]
    assert result_event(FailedResult(an_input(1), "input", "why", 2)) == {
        "event": "failed", "input": "/r/1.mp4", "name": "1", "cause": "input", "reason": "why", "tries": 2,
    }  # fmt: skip
    assert result_event(DoneResult(an_input(1), done()))["outputs"] == {"out": "a.mp4"}  # type: ignore[index]
    piece = PieceDone(0, FrameRange(0, 9, 0), 10, {}, 1.0, "host:1")
    assert result_event(PieceResult(an_input(1), "00", piece)) is None


def test_a_log_file_gets_failures_at_once_and_a_line_each_half_minute(capsys: pytest.CaptureFixture[str]) -> None:
    with archive_progress(Console(), as_json=False) as progress:
        for now in (100.0, 101.0, 100.0 + LOGGED_EVERY_S):
            progress.tick(lambda: shot(ArchiveCounts(known=9)), now)
        progress.decided(FailedResult(an_input(1), "input", "why", 2))
        progress.decided(DoneResult(an_input(2), done()))
        progress.decided(DoneResult(an_input(3), replace(done(), cut_off="the file ends")))
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.split(";")[0] for line in err.splitlines()] == [
        "0 of at least 9 inputs done", "0 of at least 9 inputs done", "texelflow: failed: /r/1.mp4: why (2 tries)",
        "texelflow: cut off: /r/3.mp4: the file ends",
    ]  # fmt: skip


def test_machines_get_a_line_for_each_input(capsys: pytest.CaptureFixture[str]) -> None:
    with archive_progress(Console(quiet=True), as_json=True) as progress:
        progress.tick(lambda: shot(ArchiveCounts(known=9)), 0.0)
        progress.tick(lambda: shot(ArchiveCounts(known=9)), 1.0)
        progress.decided(DoneResult(an_input(2), done()))
        progress.decided(FailedResult(an_input(1), "input", "why", 2))
    events = [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()]
    assert events == ["progress", "done", "failed"]


def test_a_summary_counts_what_was_to_do() -> None:
    names = "done", "skipped", "skipped_cut_off", "cut_off", "workers_lost", "failed", "skipped_failed", "undecided"
    nothing = dict.fromkeys(names, 0)
    summary = {**nothing, "frames": 0, "seconds": 0.5, "frames_per_second": 0.0, "manifest": "m"}
    lines = list(archive_summary_lines({**summary, "inputs": 7, "skipped": 7, "skipped_cut_off": 2}))
    told = "2 cut off: what there was has been done"
    assert lines == ["nothing to do", "7 done before", told, "manifest: m"]
    summary |= {"inputs": 7, "skipped": 6, "done": 1, "frames": 50, "frames_per_second": 100.0}
    assert next(archive_summary_lines(summary)) == "1 of 1 input done, 50 frames in 0 s, 100.0 frames/s"
    assert "done, 1 frame in 0 s" in next(archive_summary_lines({**summary, "frames": 1}))


def test_a_rate_is_that_of_the_last_minutes() -> None:
    rate = RateWindow(0.0)
    assert rate.per_second(1.0) == 0.0
    for second in range(100):
        rate.add(30.0, float(second))
    assert rate.per_second(100.0) == pytest.approx(30.0)
    assert rate.per_second(WINDOW_S) == pytest.approx(3000 / WINDOW_S)
    assert rate.per_second(10 * WINDOW_S) == 0.0


def test_the_time_left_follows_the_bytes_that_are_left() -> None:
    figures = ArchiveFigures(0.0)
    inputs = [an_input(number) for number in range(100)]
    listed: list[ArchiveInput | SkippedInput | None] = [None, *inputs, SkippedInput(an_input(100))]
    assert list(figures.read(listed)) == listed
    figures.joined("w", "node", 0.0)
    counts = ArchiveCounts(known=101, all_known=True, skipped=1)
    assert figures.snapshot(counts, 5.0).left_s is None
    for number in range(20):
        now = number + 1.0
        figures.finished("w", OpenInput(inputs[number]), done(), 1 << 20, now)
        figures.decided(DoneResult(inputs[number], done()), now)
    counts.done = counts.jobs = 20
    shown = figures.snapshot(counts, 20.0)
    assert shown.left_s == pytest.approx(80.0)
    assert shown.frames_per_second == pytest.approx(10.0)
    (node,) = shown.nodes
    assert node == NodeFigures("node", 1, node.frames_per_second, 1 << 20, 0)
    assert node.frames_per_second == pytest.approx(10.0)
    counts.jobs = 1
    assert figures.snapshot(counts, 20.0).left_s is None, "a worker that has done one job proves nothing"


def test_pieces_count_before_their_recording_is_done() -> None:
    figures = ArchiveFigures(0.0)
    (long,) = figures.read([an_input(0, 1000)])
    assert isinstance(long, ArchiveInput)
    figures.joined("w", "node", 0.0)
    ranges = tuple(FrameRange(first, first + 299, 0) for first in range(0, 3000, 300))
    figures.finished("w", OpenInput(long), Cut("00", ranges, 0.1), 0, 1.0)
    counts = ArchiveCounts(known=1, all_known=True, jobs=5)
    for number in range(5):
        piece = PieceDone(number, ranges[number], 300, {}, 1.0, "host:1")
        figures.finished("w", RenderPiece(long, "00", number, ranges[number], False), piece, 0, 10.0 * number)
        figures.decided(PieceResult(long, "00", piece), 10.0 * number)
    assert figures.snapshot(counts, 50.0).left_s == pytest.approx(50.0)
    figures.finished("w", JoinPieces(long, "00", ()), done(3000), 0, 60.0)
    figures.decided(DoneResult(long, done(3000)), 60.0)
    shown = figures.snapshot(counts, 60.0)
    assert shown.left_s == 0.0
    assert shown.frames_per_second == pytest.approx(1500 / 60), "joining renders nothing"


def test_inputs_of_unknown_size_weigh_what_others_do_and_lost_workers_are_told() -> None:
    figures = ArchiveFigures(0.0)
    inputs = [an_input(number, None) for number in range(4)]
    list(figures.read(inputs))
    figures.joined("a", "node", 0.0)
    figures.joined("b", "node", 0.0)
    for number in range(2):
        figures.finished("a", OpenInput(inputs[number]), done(), 0, 20.0)
        figures.decided(DoneResult(inputs[number], done()), 20.0)
    assert figures.lost("b") == "node"
    shown = figures.snapshot(ArchiveCounts(known=4, all_known=True, jobs=2), 20.0)
    assert shown.left_s == pytest.approx(20.0)
    assert (shown.nodes[0].workers, shown.nodes[0].losses) == (1, 1)


def test_why_workers_were_lost_is_told_ten_times_and_machines_are_told_always(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with archive_progress(Console(quiet=False), as_json=True) as progress:
        progress.lost(WorkerLost("worker 0", "its node cam-c was lost", node_lost=True), "cam-c")
        for number in range(1, 14):
            progress.lost(WorkerLost(f"worker {number}", "killed"), "cam-a")
    told = capsys.readouterr()
    lines = told.err.splitlines()
    assert len(lines) == MOST_LOSSES + 1
    assert lines[0] == "texelflow: worker 1 on cam-a was lost: killed; others do its work"
    assert lines[-1] == "texelflow: more workers are lost: they are counted from now on"
    events = [json.loads(line) for line in told.out.splitlines()]
    assert len(events) == 14
    assert events[0] == {
        "event": "lost", "worker": "worker 0", "node": "cam-c", "reason": "its node cam-c was lost", "node_lost": True,
    }  # fmt: skip
