"""The tally of a run: seconds, rates and totals of frames whose times are known."""

import pytest

from texelflow.app.frame.stages.frame_pipeline import FrameRecord, StageRecord
from texelflow.app.frame.stages.run_stats import RunStats

MS = 1_000_000


def stats_of(*starts_ms: int, took_ms: float = 10.0) -> RunStats:
    """Of frames that began at these times."""
    stats = RunStats()
    for index, start_ms in enumerate(starts_ms):
        stages = (StageRecord("network", start_ms * MS, took_ms, readback_bytes=5),)
        stats.add(FrameRecord(index, index, 0.0, start_ms * MS, stages, uploaded_bytes=7, dropped=1))
    return stats


@pytest.mark.parametrize(
    ("starts_ms", "seconds", "rate"),
    [((), 0.0, 0.0), ((100,), 0.01, 100.0), ((100, 150), 0.06, 20.0), ((100, 140, 200), 0.11, 20.0)],
)
def test_the_rate_is_that_at_which_frames_begin(starts_ms: tuple[int, ...], seconds: float, rate: float) -> None:
    summary = stats_of(*starts_ms).summary()
    assert (summary["seconds"], summary["frames_per_second"]) == (seconds, rate)


def test_totals() -> None:
    stats = stats_of(100, 150)
    stats.add_readback("record", 30)
    summary = stats.summary()
    assert (summary["frames"], summary["dropped"], summary["uploaded_bytes"]) == (2, 2, 14)
    assert summary["stage_readback_bytes"] == {"network": 10, "record": 30}
    assert summary["readback_bytes"] == 40
