"""Totals of a whole run from the records of its frames: the one tally of live and replay."""

from array import array
from typing import Any

import numpy as np

from .frame_figures import mean_in_flight
from .frame_pipeline import FrameRecord
from .stats import RecordBatch, StageTimes, summarize


class RunStats:
    """Counts from the first frame to the last, over all sessions of a run. Records are taken in batches."""

    def __init__(self) -> None:
        self._tally = _Tally()
        self._batch = RecordBatch(self._tally.add)

    def add(self, record: FrameRecord) -> None:
        """One more frame. Times of stages are those since the stages changed last."""
        self._batch.add(record)

    def add_readback(self, stage: str, size_bytes: int) -> None:
        """Bytes that a stage has read back besides those of records: what was under way at the end."""
        self._tally.add_readback(stage, size_bytes)

    @property
    def frames(self) -> int:
        """How many there were."""
        return self._all.frames

    @property
    def seconds(self) -> float:
        """From the first frame's start to the last one's end."""
        return self._all.seconds

    @property
    def frames_per_s(self) -> float:
        """From one frame's start to the next one's; of a single frame, by what it took."""
        return self._all.frames_per_s

    def summary(self) -> dict[str, Any]:
        """All figures; times are milliseconds per frame by stage."""
        return self._all.summary()

    @property
    def _all(self) -> "_Tally":
        self._batch.settle()
        return self._tally


class _Tally:
    """What RunStats says, of the records that it was given."""

    def __init__(self) -> None:
        self.frames = self.dropped = self.repeated = self.uploaded_bytes = 0
        self.stage_readback_bytes: dict[str, int] = {}
        self._captured_ns, self._end_ns = array("q"), array("q")  # of frames with an age
        self._first_ns = self._last_ns = self._end_of_last_ns = 0  # starts of the first and the last, and its end
        self._names: tuple[str, ...] = ()
        self._times = StageTimes(())

    def add(self, record: FrameRecord) -> None:
        names = tuple(stage.name for stage in record.stages)
        if names != self._names:
            self._names, self._times = names, StageTimes(names)
        self._times.add(record)
        self._first_ns = self._first_ns or record.start_ns
        self._last_ns, self._end_of_last_ns = record.start_ns, record.end_ns
        self.frames += 1
        self.dropped += record.dropped
        self.repeated += record.repeated
        self.uploaded_bytes += record.uploaded_bytes
        for stage in record.stages:
            self.add_readback(stage.name, stage.readback_bytes)
        if record.captured_ns is not None:
            self._captured_ns.append(record.captured_ns)
            self._end_ns.append(record.end_ns)

    def add_readback(self, stage: str, size_bytes: int) -> None:
        self.stage_readback_bytes[stage] = self.stage_readback_bytes.get(stage, 0) + size_bytes

    @property
    def seconds(self) -> float:
        return max(0, self._end_of_last_ns - self._first_ns) / 1e9

    @property
    def frames_per_s(self) -> float:
        started_s = (self._last_ns - self._first_ns) / 1e9
        if started_s > 0:
            return (self.frames - 1) / started_s
        return self.frames / self.seconds if self.seconds else 0.0

    def summary(self) -> dict[str, Any]:
        captured_ns, end_ns = np.array(self._captured_ns), np.array(self._end_ns)
        return {
            "frames": self.frames,
            "dropped": self.dropped,
            "repeated": self.repeated,
            "seconds": round(self.seconds, 3),
            "frames_per_second": round(self.frames_per_s, 2),
            "age_at_swap": summarize((end_ns - captured_ns) / 1e6).rounded() if len(end_ns) else None,
            "frames_in_flight": round(mean_in_flight(captured_ns, end_ns), 2) if len(end_ns) else 0.0,
            "uploaded_bytes": self.uploaded_bytes,
            "readback_bytes": sum(self.stage_readback_bytes.values()),
            "stage_readback_bytes": self.stage_readback_bytes,
            "stages": {name: times.rounded() for name, times in self._times.summaries().items()} if self.frames else {},
            "gpu_stages": {name: times.rounded() for name, times in self._times.gpu_summaries().items()},
        }
