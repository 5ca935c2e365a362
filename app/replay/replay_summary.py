"""What was opened for a replay and the records of its frames go in; the figures of the whole run come out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..console import counted
from ..frame.canvas import Canvas
from ..frame.gl_path import GlPath
from ..frame.gpu_timer import timer_health
from ..frame.machine import Machine
from ..frame.pipeline import Pipeline
from ..frame.segmenter import CpuSegmenter
from ..frame.stats import Summary
from ..media.seeking import SeekableSource
from ..media.sources import FileSource, VideoInfo
from ..models.loading import SegmentationModel
from .records import Records
from .replay_options import ReplayOptions
from .replay_outputs import Outputs

if TYPE_CHECKING:
    from ..overlay.panel import Facts


@dataclass(frozen=True)
class Opened:
    """What is open while a recording is replayed, with a window or without."""

    options: ReplayOptions
    source: FileSource | SeekableSource
    machine: Machine
    model: SegmentationModel
    segmenter: GlPath | CpuSegmenter
    canvas: Canvas | None  # None where nothing is drawn
    outputs: Outputs
    pipeline: Pipeline

    @property
    def dispatches(self) -> int:
        """Of one frame; a mask of the frame's size takes one more on the GPU."""
        return self.segmenter.dispatches + (isinstance(self.segmenter, GlPath) and self.options.masks is not None)


def facts_of(info: VideoInfo, machine: Machine, model: SegmentationModel, segmenter: GlPath | CpuSegmenter) -> "Facts":
    """What the overlay says besides figures. Loads nothing of the overlay before one is wanted."""
    from ..overlay.panel import Facts

    return Facts(
        renderer=machine.renderer,
        backend=machine.backend,
        model=model.name,
        precision=segmenter.precision,
        dispatches=segmenter.dispatches,
        budget_ms=float(1000 / info.average_rate),
        note=timer_health(machine.context) if machine.context else None,
    )


def summarize_replay(opened: Opened, records: Records, interrupted: bool) -> dict[str, Any]:
    """Figures of the whole run; times are milliseconds per frame by stage."""
    info = opened.source.info
    return {
        "file": str(opened.options.file),
        "size": [info.width, info.height],
        "model": opened.model.name,
        "backend": opened.machine.backend,
        "precision": opened.segmenter.precision,
        "renderer": opened.machine.renderer,
        "frames": records.frames,
        "dropped": records.dropped,
        "repeated": records.repeated,
        "seconds": round(records.seconds, 3),
        "frames_per_second": round(records.frames / records.seconds, 2) if records.seconds else 0.0,
        "dispatches": opened.dispatches,
        "uploaded_bytes": records.uploaded_bytes,
        "readback_bytes": opened.pipeline.readback_bytes,
        "stage_readback_bytes": records.readback_bytes,
        "stages": _rounded(records.times.summaries()) if records.frames else {},
        "gpu_stages": _rounded(records.times.gpu_summaries()),
        "timer_note": opened.pipeline.timer_note,
        "interrupted": interrupted,
        "cut_off": opened.source.truncated is not None,
        "warnings": _warnings(opened),
    }


def _rounded(summaries: Mapping[str, Summary]) -> dict[str, dict[str, float]]:
    return {name: times.rounded() for name, times in summaries.items()}


def _warnings(opened: Opened) -> list[str]:
    source, recorder, name = opened.source, opened.outputs.recorder, opened.options.file
    lines = list(recorder.warnings) if recorder else []
    if opened.canvas and opened.canvas.message:
        lines.append(opened.canvas.message)
    if opened.segmenter.precision != opened.options.precision:
        lines.append(f"--precision {opened.options.precision} is for the GPU: the CPU computed in fp32")
    if isinstance(source, FileSource):  # what is watched in any order has no such numbers
        if source.damaged_frames:
            lines.append(f"{name}: {counted(source.damaged_frames, 'damaged frame')}")
        if source.rescaled_frames:
            lines.append(f"{name}: {source.rescaled_frames} frames changed size and were scaled to the first")
    if source.truncated:
        lines.append(f"{name} is cut off: {source.truncated}")
    return lines
