"""Summarizes the records of the last frames for the overlay, a few times a second."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .frame_pipeline import DECODE, FrameRecord
from .stats import RecordBatch, TimeSummary, summarize, summarize_columns

WINDOW = 120  # frames: some seconds of video, enough for a 99th percentile
_REFRESH_NS = 300_000_000  # figures that change more often cannot be read
_PAUSE_MS = 1000.0  # no frame for that long: playback was paused, which is not a frame time
OVERLAY = "overlay"  # the stage whose time is the overlay's own cost
SWAP = "swap"  # the stage that waits for the screen


@dataclass(frozen=True)
class StageFigures:
    """What a stage takes over the window; gpu is None where the device has no timer."""

    name: str
    cpu: TimeSummary
    gpu: TimeSummary | None


@dataclass(frozen=True)
class CameraFigures:
    """The state of a camera or another source at one moment. All counts are since it was opened.

    stamps names what its frames' ages are counted from: "driver", "arrival", "stream", "made".
    """

    description: str  # to be read: "V4L2 /dev/video0, MJPG 1280x720, 30 fps"
    stamps: str
    frames_per_s: float  # as pictures come; 0 before that is known
    used: int
    dropped: int  # replaced by a newer one before they were used
    repeated: int  # came twice
    lost: int = 0  # how often it was gone
    work: str = ""  # for how many frames the network ran, and why not for the others; to be read
    trouble: str = ""  # what is wrong at the moment; to be read
    budget_ms: float = 0.0  # between two pictures, as promised; 0 if unknown
    cameras: "tuple[CameraFigures, ...]" = ()  # where there are several: each of them


@dataclass(frozen=True, eq=False)  # compared by identity: a new one is made when the numbers change
class FigureSummary:
    """The numbers of one moment. Rates are 0 and times empty until there is something to tell."""

    stages: tuple[StageFigures, ...] = ()
    work: TimeSummary | None = None  # ms of all stages of a frame but decoding and the swap: on CPU or GPU, the longer
    frames_per_s: float = 0.0
    frame_ms: float = 0.0  # mean interval between frames
    dropped: int = 0
    repeated: int = 0
    uploaded_bytes: int = 0  # of the last frame
    readback_bytes: int = 0
    process_percent: float = 0.0  # 100 is one core
    overlay_ms: float | None = None  # median of the overlay's own stage, on the CPU; None without that stage
    age: TimeSummary | None = None  # ms from capture to swap; None for recordings
    in_flight: float = 0.0  # frames, as in frames_in_flight
    camera: CameraFigures | None = None


class Figures:
    """Keeps the last `window` frames. `summary` is made a few times a second, if it is looked at."""

    def __init__(
        self,
        window: int = WINDOW,
        cpu_s: Callable[[], float] = time.process_time,
        camera: Callable[[], CameraFigures | None] = lambda: None,
    ) -> None:
        """`cpu_s` tells the seconds of CPU time that the process has used so far, all threads together.

        `camera` tells what is known of the camera; None where there is none. Both are asked when `summary` is made.
        """
        if window < 1:
            raise ValueError(f"a window of {window} frames")
        self._summary = FigureSummary()
        self._is_due = False
        self._batch = RecordBatch(self._take)
        self._intervals_ms: deque[float] = deque(maxlen=window)
        self.window, self._cpu_s, self._camera = window, cpu_s, camera
        self._recent: deque[FrameRecord] = deque(maxlen=window)  # those with an age
        self._names: tuple[str, ...] = ()
        self._times_ms: npt.NDArray[np.float64] = np.empty((window, 0, 2))  # frame, stage, CPU and GPU
        self._count = 0
        self._dropped = self._repeated = 0
        self._last: FrameRecord | None = None
        self._renewed_ns: int | None = None
        self._used_s = 0.0

    def add(self, record: FrameRecord) -> None:
        """Take the next frame's record. Other stages than before start everything but the totals afresh."""
        self._batch.add(record)

    @property
    def intervals_ms(self) -> Sequence[float]:
        """From each frame of the window to the next."""
        self._batch.settle()
        return self._intervals_ms

    def _take(self, record: FrameRecord) -> None:
        names = tuple(stage.name for stage in record.stages)
        if names != self._names:
            self._names, self._count, self._last = names, 0, None
            self._times_ms = np.empty((self.window, len(names), 2))
            self._intervals_ms.clear()
            self._recent.clear()
        times_ms = [(stage.cpu_ms, np.nan if stage.gpu_ms is None else stage.gpu_ms) for stage in record.stages]
        self._times_ms[self._count % self.window] = times_ms
        self._count += 1
        self._dropped += record.dropped
        self._repeated += record.repeated
        if self._last is not None:
            self._take_interval(self._last, record)
        self._last = record
        if record.captured_ns is not None:
            self._recent.append(record)
        due_ns = 0 if self._renewed_ns is None else self._renewed_ns + _REFRESH_NS
        self._is_due |= record.start_ns >= due_ns or self._count == 1

    @property
    def summary(self) -> FigureSummary:
        """The numbers of this moment, or of one not long ago."""
        self._batch.settle()
        if self._is_due and self._last is not None:
            self._renew(self._last)
        return self._summary

    def _take_interval(self, before: FrameRecord, record: FrameRecord) -> None:
        interval_ms = (record.start_ns - before.start_ns) / 1e6
        busy_ms = sum(stage.cpu_ms for stage in before.stages)
        if 0 <= interval_ms <= busy_ms + _PAUSE_MS:
            self._intervals_ms.append(interval_ms)

    def _renew(self, record: FrameRecord) -> None:
        frame_ms = sum(self._intervals_ms) / len(self._intervals_ms) if self._intervals_ms else 0.0
        stages, work = self._stage_figures()
        overlay = next((stage.cpu.median_ms for stage in stages if stage.name == OVERLAY), None)
        self._summary = FigureSummary(
            stages,
            work,
            1000 / frame_ms if frame_ms else 0.0,
            frame_ms,
            self._dropped,
            self._repeated,
            record.uploaded_bytes,
            record.readback_bytes,
            self._process_percent(record.start_ns),
            overlay,
            ages(self._recent),
            frames_in_flight(self._recent),
            self._camera(),
        )
        self._renewed_ns, self._is_due = record.start_ns, False

    def _stage_figures(self) -> tuple[tuple[StageFigures, ...], TimeSummary]:
        """Of each stage, and of the work of all together."""
        times_ms = self._times_ms[: self._count]
        works = [name not in (DECODE, SWAP) for name in self._names]
        work_ms = np.fmax(*times_ms[:, works].sum(axis=1).T)  # ignores what the GPU has not told
        *cpu, work = summarize_columns(np.column_stack([times_ms[:, :, 0], work_ms]))
        gpu = _summaries_of_known(times_ms[:, :, 1])
        return tuple(StageFigures(*figures) for figures in zip(self._names, cpu, gpu, strict=True)), work

    def _process_percent(self, now_ns: int) -> float:
        used_s, before_s = self._cpu_s(), self._used_s
        self._used_s = used_s
        if self._renewed_ns is None or now_ns <= self._renewed_ns:
            return self._summary.process_percent
        return max(0.0, used_s - before_s) / (now_ns - self._renewed_ns) * 1e11


def ages(records: Iterable[FrameRecord]) -> TimeSummary | None:
    """Milliseconds from the capture to the end of the last stage, a window's swap; None if no record has a capture."""
    return _summary_of_known(np.array([record.age_ms for record in records], np.float64))


def frames_in_flight(records: Iterable[FrameRecord]) -> float:
    """mean_in_flight of the records, in order, of frames that were used; 0 if none has a capture."""
    times = [(record.captured_ns, record.end_ns) for record in records if record.captured_ns is not None]
    return mean_in_flight(*zip(*times, strict=True)) if times else 0.0


def mean_in_flight(captured_ns: npt.ArrayLike, end_ns: npt.ArrayLike) -> float:
    """How many frames had been taken and not yet swapped when one was swapped, itself included: the mean.

    Each frame's times of both, in order.
    """
    under_way = np.searchsorted(captured_ns, end_ns, side="right") - np.arange(np.size(end_ns))
    return float(np.mean(under_way))


def _summaries_of_known(times_ms: npt.NDArray[np.float64]) -> list[TimeSummary | None]:
    """Of each column. Most frames tell all stages' times or none: then one call does what takes several otherwise."""
    is_known = ~np.isnan(times_ms)
    frames = np.logical_or.reduce(is_known, axis=1)
    is_whole = np.logical_and.reduce(is_known[frames], axis=0) & frames.any()
    whole = iter(summarize_columns(times_ms[frames][:, is_whole]) if is_whole.any() else [])
    return [next(whole) if one else _summary_of_known(times_ms[:, place]) for place, one in enumerate(is_whole)]


def _summary_of_known(times_ms: npt.NDArray[np.float64]) -> TimeSummary | None:
    known = times_ms[~np.isnan(times_ms)]
    return summarize(known) if len(known) else None
