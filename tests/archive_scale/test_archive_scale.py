"""What `make archive-scale` simulates and measures, on a small cluster."""

import re
from pathlib import Path

import pytest

from tests.archive_scale.__main__ import main
from tests.archive_scale.measure import line_bytes, measure_manifest, measure_scheduler, message_bytes
from tests.archive_scale.recordings import ArchiveKind
from tests.archive_scale.simulation import ClusterKind, SimulatedRun, over_ideal, simulate
from texelflow.app.archive.scheduling.scheduler import SchedulerLimits

INLINE_BYTES = 100 * 1024  # up to which Ray sends arguments and results without its object store
LECTURES = ArchiveKind("lectures", 12)


def simulated(piece_frames: int | None = 3000, copy_after_s: float = 60.0, **cluster: float) -> SimulatedRun:
    kind = ClusterKind(5, 0.016, **cluster)  # type: ignore[arg-type]
    return simulate(LECTURES, kind, SchedulerLimits(copy_after_s=copy_after_s), piece_frames)


def test_every_recording_is_done_whatever_nodes_do() -> None:
    steady, lossy = simulated(), simulated(losses_per_hour=1.0)
    for run in (steady, lossy, simulated(ailing_per_hour=0.2)):
        assert (run.counts.done, run.counts.failed, run.listed) == (LECTURES.count, 0, 0)
        assert over_ideal(run) > 1
    frames = [LECTURES.frames(number) for number in range(LECTURES.count)]
    assert steady.counts.frames == sum(frames)
    assert steady.counts.pieces == sum(max(1, round(each / 3000)) for each in frames if each > 4500)
    assert steady.most_cut <= 5
    assert lossy.wasted_s > steady.wasted_s
    assert lossy.counts.lost > 0


def test_cutting_and_copies_save_time() -> None:
    plain, copied = (simulated(None, copies, ailing_per_hour=0.3) for copies in (float("inf"), 60.0))
    assert copied.makespan_s < plain.makespan_s
    assert simulated().makespan_s < simulated(None).makespan_s


def test_no_message_needs_the_object_store() -> None:
    sizes = message_bytes()
    assert max(sizes.values()) < INLINE_BYTES
    assert max(line_bytes().values()) < 1500


def test_costs_are_measured(tmp_path: Path) -> None:
    cost = measure_manifest(ArchiveKind("clips", 300), tmp_path)
    assert cost.lines == 300
    assert 300 * 100 < cost.index_bytes < 300 * 250
    assert cost.file_bytes > 300 * 500
    assert min(cost.write_us, cost.read_us, cost.lookup_us) > 0
    scheduled = measure_scheduler(ArchiveKind("clips", 20), 2)
    assert scheduled.jobs >= 20
    assert scheduled.us > 0


def test_the_tool_prints_tables(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--part", "losses", "--part", "million", "--nodes", "5", "--lectures", "2", "--clips", "9"])
    rows = re.findall(r"^\| (.+?) \| ([\d.]+) \| ([\d.]+) \|", capsys.readouterr().out, re.M)
    assert len(rows) == 5
