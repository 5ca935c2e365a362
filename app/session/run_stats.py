"""Records of frames go in; what the whole run came to comes out."""

from array import array
from typing import Any

import numpy as np

from ..frame.figures import mean_in_flight
from ..frame.pipeline import FrameRecord
from ..frame.stats import StageTimes, summarize


class Tally:
    """Counts from the first frame to the last, over all sources of a run."""

    def __init__(self) -> None:
        self.frames = self.dropped = self.repeated = self.uploaded_bytes = self.readback_bytes = 0
        self._captured_ns, self._end_ns = array("q"), array("q")  # of frames with an age
        self._first_ns = self._last_ns = 0
        self._names: tuple[str, ...] = ()
        self._times = StageTimes(())

    def take(self, record: FrameRecord) -> None:
        """One more frame. Times of stages are those since the stages changed last."""
        names = tuple(stage.name for stage in record.stages)
        if names != self._names:
            self._names, self._times = names, StageTimes(names)
        self._times.add(record)
        self._first_ns = self._first_ns or record.start_ns
        self._last_ns = record.start_ns
        self.frames += 1
        self.dropped += record.dropped
        self.repeated += record.repeated
        self.uploaded_bytes += record.uploaded_bytes
        self.readback_bytes += record.readback_bytes
        if record.captured_ns is not None:
            self._captured_ns.append(record.captured_ns)
            self._end_ns.append(record.end_ns)

    def summary(self) -> dict[str, Any]:
        """By name, for JSON."""
        captured_ns, end_ns = np.array(self._captured_ns), np.array(self._end_ns)
        seconds = (self._last_ns - self._first_ns) / 1e9
        return {
            "frames": self.frames,
            "dropped": self.dropped,
            "repeated": self.repeated,
            "seconds": round(seconds, 3),
            "frames_per_second": round((self.frames - 1) / seconds, 2) if seconds else 0.0,
            "age_at_swap": summarize((end_ns - captured_ns) / 1e6).rounded() if len(end_ns) else None,
            "frames_in_flight": round(mean_in_flight(captured_ns, end_ns), 2) if len(end_ns) else 0.0,
            "uploaded_bytes": self.uploaded_bytes,
            "readback_bytes": self.readback_bytes,
            "stages": {name: times.rounded() for name, times in self._times.summaries().items()} if self.frames else {},
            "gpu_stages": {name: times.rounded() for name, times in self._times.gpu_summaries().items()},
        }
