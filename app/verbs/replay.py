"""A recording goes in; its frames run through the pipeline, and a video, masks and a log come out, as asked for."""

import contextlib
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter, perf_counter_ns
from types import FrameType
from typing import Any, Protocol

from app.console import Console
from app.frame.canvas import Canvas
from app.frame.gl_path import GlPath
from app.frame.looks import Choice, choose_look
from app.frame.machine import Machine, open_machine
from app.frame.outputs import CpuMaskOutput, GlMaskOutput, VideoOutput, make_folder
from app.frame.pipeline import FrameRecord, Pipeline, Stage
from app.frame.segmenter import CpuSegmenter, make_segmenter
from app.frame.targets import OffscreenTarget
from app.media.recorder import Recorder, check_output
from app.media.sources import FileSource, Position, VideoFrame
from app.media.threads import ahead
from app.models.loading import SegmentationModel, load_segmentation
from app.models.spec import SpecOptions
from app.verbs.frame_log import FrameLog, check_log
from app.verbs.stats import StageTimes
from gpu_delegate.errors import UsageError

CUT_OFF, INTERRUPTED = 3, 130
FITS = ("stretch", "crop", "letterbox")


@dataclass(frozen=True)
class ReplayOptions:
    """What `replay` is asked to do."""

    file: Path
    out: Path | None = None
    effect: str | None = None
    background: str | None = None
    masks: Path | None = None
    first: Position = 0
    last: Position | None = None
    log: Path | None = None
    model: str = "selfie"
    backend: str = "auto"
    fit: str = "stretch"
    spec: SpecOptions = field(default_factory=SpecOptions)


class Output(Protocol):
    """What takes each frame in a stage of its own, and may have frames under way at the end."""

    stage: Stage

    def finish(self) -> None: ...


class Tally:
    """What the frames so far came to."""

    def __init__(self, stages: Sequence[str]) -> None:
        self.frames = 0
        self.seconds = 0.0
        self.interrupted = False
        self.uploaded_bytes = 0
        self.readback_bytes = dict.fromkeys(stages, 0)
        self.times = StageTimes(("decode", *stages))

    def add(self, record: FrameRecord) -> None:
        """One more frame."""
        self.frames += 1
        self.uploaded_bytes += record.uploaded_bytes
        self.times.add(record)
        for stage in record.stages[1:]:
            self.readback_bytes[stage.name] += stage.readback_bytes


@dataclass(frozen=True)
class Opened:
    """What is open while a recording is replayed."""

    options: ReplayOptions
    source: FileSource
    machine: Machine
    model: SegmentationModel
    pipeline: Pipeline
    dispatches: int
    outputs: Sequence[Output]
    recorder: Recorder | None


def replay(options: ReplayOptions, console: Console) -> tuple[dict[str, Any], int]:
    """Run it: what it came to, and the exit code, 0, 3 for a recording cut off, 130 if it was interrupted.

    Raises TexelflowError; what was recorded before stays, and can be played.
    """
    choice = _check(options)
    with contextlib.ExitStack() as stack:
        opened = _open(options, choice, console, stack)
        log = None
        if options.log:
            names = ("decode", *opened.pipeline.names)
            log = stack.enter_context(FrameLog(options.log, names, opened.dispatches))
        tally = Tally(opened.pipeline.names)
        _run(opened, tally, log, console)
        summary = _summary(opened, tally)
        if log:
            log.close(summary)
    for line in summary["warnings"]:
        console.warn(line)
    if tally.interrupted:
        frames = f"{tally.frames} frame{'s' * (tally.frames != 1)}"
        console.warn(f"interrupted after {frames}; what was written is complete")
        return summary, INTERRUPTED
    return summary, CUT_OFF if opened.source.truncated else 0


def _check(options: ReplayOptions) -> Choice:
    """Everything that can be said before work begins."""
    if options.fit not in FITS:
        raise UsageError(f"--fit {options.fit}: one of {', '.join(FITS)} is needed")
    choice = choose_look(options.effect, options.background)
    if options.out:
        check_output(options.out, options.file)
    if options.log:
        check_log(options.log)
    return choice


def _open(options: ReplayOptions, choice: Choice, console: Console, stack: contextlib.ExitStack) -> Opened:
    """Opens the file, the device and the outputs, and compiles; no file is touched until all of that went well."""
    fit: Any = options.fit
    source = stack.enter_context(FileSource(options.file, options.first, options.last))
    size = source.info.width, source.info.height
    with console.download() as progress:
        model = load_segmentation(options.model, options.spec, progress)
    machine = stack.enter_context(open_machine(options.backend, options.out is not None, console))
    segmenter = make_segmenter(machine, model, source.format, fit, console)
    stack.callback(segmenter.release)
    stages, outputs, recorder = [*segmenter.stages], list[Output](), None
    if machine.context:
        target = OffscreenTarget(machine.context, size)
        stack.callback(target.release)
        canvas = Canvas(machine.context, segmenter, target, fit, choice)
        stack.callback(canvas.release)
        stages.append(canvas.stage)
        if options.out:
            recorder = stack.enter_context(_recorder(options, source))
            video = VideoOutput(machine.context, target, recorder)
            stack.callback(video.release)
            outputs.append(video)
    if options.masks:
        outputs.append(_mask_output(options.masks, machine, segmenter, size, stack))
    pipeline = Pipeline(
        [*stages, *(output.stage for output in outputs)], machine.context, lambda: segmenter.uploaded_bytes
    )
    dispatches = segmenter.dispatches + (isinstance(segmenter, GlPath) and options.masks is not None)
    return Opened(options, source, machine, model, pipeline, dispatches, outputs, recorder)


def _recorder(options: ReplayOptions, source: FileSource) -> Recorder:
    assert options.out is not None
    info, cut = source.info, options.first != 0 or options.last is not None
    sound = options.file if info.has_audio else None
    return Recorder(
        options.out, info.width, info.height, info.time_base, info.average_rate, info.sample_aspect_ratio, sound, cut
    )


def _mask_output(
    folder: Path,
    machine: Machine,
    segmenter: GlPath | CpuSegmenter,
    size: tuple[int, int],
    stack: contextlib.ExitStack,
) -> Output:
    make_folder(folder)
    if isinstance(segmenter, CpuSegmenter):
        return CpuMaskOutput(segmenter, folder)
    assert machine.context is not None
    output = GlMaskOutput(machine.context, segmenter, size, folder)
    stack.callback(output.release)
    return output


def _run(opened: Opened, tally: Tally, log: FrameLog | None, console: Console) -> None:
    """All frames through the pipeline, until the end or Ctrl-C."""
    total, start = _expected_frames(opened), perf_counter()
    with (
        _stop_flag() as stopped,
        console.frames(opened.options.file.name) as report,
        contextlib.closing(ahead(_timed(opened.source))) as frames,
    ):
        report(0, total)
        for frame in frames:
            opened.pipeline.submit(frame)
            _take(opened.pipeline.completed(), tally, log)
            report(tally.frames, total)
            if stopped():
                break
        _take(opened.pipeline.drain(), tally, log)
        for output in opened.outputs:
            before = opened.pipeline.readback_bytes
            output.finish()
            tally.readback_bytes[output.stage.name] += opened.pipeline.readback_bytes - before
        tally.interrupted = stopped()
    if opened.recorder:
        opened.recorder.close(complete=not tally.interrupted)
    tally.seconds = perf_counter() - start


def _take(records: Iterator[FrameRecord], tally: Tally, log: FrameLog | None) -> None:
    for record in records:
        tally.add(record)
        if log:
            log.add(record)


def _timed(source: FileSource) -> Iterator[VideoFrame]:
    """Frames with what it took to get each."""
    frames = iter(source)
    while True:
        start_ns = perf_counter_ns()
        frame = next(frames, None)
        if frame is None:
            return
        yield replace(frame, decode_start_ns=start_ns, decode_ms=(perf_counter_ns() - start_ns) / 1e6)


@contextlib.contextmanager
def _stop_flag() -> Iterator[Any]:
    """Makes Ctrl-C ask for an end after the frame at hand; the second one ends at once."""
    asked = []

    def ask(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)


def _expected_frames(opened: Opened) -> int:
    """How many frames are to come, for the progress bar; 0 if nobody knows."""
    info, options = opened.source.info, opened.options
    rate = info.average_rate
    first, last = (
        position if isinstance(position, int) or position is None else int(position * rate)
        for position in (options.first, options.last)
    )
    count = info.frame_count or 0
    end = count if last is None else min(last + 1, count) if count else last + 1
    return max(0, end - (first or 0))


def _warnings(opened: Opened) -> list[str]:
    source, recorder, name = opened.source, opened.recorder, opened.options.file
    lines = list(recorder.warnings) if recorder else []
    if source.damaged_frames:
        lines.append(f"{name}: {source.damaged_frames} damaged frame{'s' * (source.damaged_frames != 1)}")
    if source.rescaled_frames:
        lines.append(f"{name}: {source.rescaled_frames} frames changed size and were scaled to the first")
    if source.truncated:
        lines.append(f"{name} is cut off: {source.truncated}")
    return lines


def _summary(opened: Opened, tally: Tally) -> dict[str, Any]:
    """Figures of the whole run; times are milliseconds per frame by stage."""
    return {
        "file": str(opened.options.file),
        "size": [opened.source.info.width, opened.source.info.height],
        "model": opened.model.name,
        "backend": opened.machine.backend,
        "renderer": opened.machine.renderer,
        "frames": tally.frames,
        "seconds": round(tally.seconds, 3),
        "frames_per_second": round(tally.frames / tally.seconds, 2),
        "dispatches": opened.dispatches,
        "uploaded_bytes": tally.uploaded_bytes,
        "readback_bytes": opened.pipeline.readback_bytes,
        "stage_readback_bytes": tally.readback_bytes,
        "stages": {name: summary.rounded() for name, summary in tally.times.summaries().items()},
        "gpu_stages": {name: summary.rounded() for name, summary in tally.times.gpu_summaries().items()},
        "timer_note": opened.pipeline.timer_note,
        "interrupted": tally.interrupted,
        "warnings": _warnings(opened),
    }
