"""A recording goes in; its frames run through the pipeline, and a video, masks and a log come out, as asked for."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..console import Console, counted
from ..files import settle
from ..frame.canvas import Canvas
from ..frame.looks import Choice
from ..frame.machine import open_machine
from ..frame.pipeline import DECODE, FrameRecord, Pipeline
from ..frame.segmenter import Segmenter, make_segmenter
from ..frame.targets import OffscreenTarget
from ..media.sources import FileSource
from ..models.loading import load_segmentation
from ..signals import StopFlag, exit_code, stop_flag
from ..threads import ahead
from .records import Records
from .replay_options import ReplayOptions, check_options, files_of
from .replay_outputs import open_outputs
from .replay_summary import Opened, facts_of, summarize_replay

CUT_OFF = 3  # exit code: what there was of the recording has been done


def replay(options: ReplayOptions, console: Console) -> tuple[dict[str, Any], int]:
    """Run it: what it came to, and the exit code, 0, 3 for a recording cut off, 130 or 143 if it was interrupted.

    Raises TexelflowError; what was recorded before stays, and can be played.
    """
    choice = check_options(options)
    options = replace(options, force=settle(files_of(options), options.force))
    if options.window:
        from .replay_window import replay_in_window  # loads what only windows need

        summary, stopped = replay_in_window(options, choice, console)
    else:
        summary, stopped = _replay_headless(options, choice, console)
    for line in summary["warnings"]:
        console.warn(line)
    if stopped:
        frames = counted(summary["frames"], "frame")
        console.warn(f"interrupted after {frames}; what was written is complete")
    return summary, exit_code(stopped.number) or (CUT_OFF if summary["cut_off"] else 0)


def _replay_headless(options: ReplayOptions, choice: Choice, console: Console) -> tuple[dict[str, Any], StopFlag]:
    """Every frame, as fast as it goes. No file is touched before all is opened and compiled."""
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(FileSource(options.file, options.first, options.last))
        opened, shown = _open(options, source, choice, console, stack)
        names = (DECODE, *opened.pipeline.names)
        records = stack.enter_context(Records(options, names, opened.dispatches, opened.outputs, shown))
        with stop_flag() as stopped:
            _run(opened, source, records, stopped, console)
        summary = summarize_replay(opened, records, bool(stopped))
        records.close(summary)
    return summary, stopped


def _open(
    options: ReplayOptions, source: FileSource, choice: Choice, console: Console, stack: contextlib.ExitStack
) -> tuple[Opened, Callable[[FrameRecord], None] | None]:
    """Opens the device and the outputs, and compiles; and what shows the records in the picture, if anything does."""
    fit: Any = options.fit
    with console.download() as progress:
        model = load_segmentation(options.model, options.spec, progress)
    machine = stack.enter_context(open_machine(options.backend, options.needs_picture, console))
    segmenter = make_segmenter(machine, model, source.format, fit, console, options.precision)
    stack.callback(segmenter.release)
    stages, canvas, picture, context, shown = [*segmenter.stages], None, None, machine.context, None
    if context:
        target = OffscreenTarget(context, source.format.upright_size)
        stack.callback(target.release)
        canvas = Canvas(context, segmenter, target, fit, choice)
        stack.callback(canvas.release)
        stages.append(canvas.stage)
        picture = target, canvas
        if options.overlay:
            from ..overlay.overlay import Overlay  # loads Dear ImGui

            overlay = Overlay(context, target, facts_of(source.info, machine, model, segmenter))
            stack.callback(overlay.release)
            stages.append(overlay.stage)
            shown = overlay.add
    outputs = open_outputs(options, source.info, context, segmenter, picture, stack)
    pipeline = Pipeline([*stages, *outputs.stages], context, lambda: _uploaded_bytes(segmenter, canvas))
    stack.callback(pipeline.release)
    return Opened(options, source, machine, model, segmenter, canvas, outputs, pipeline), shown


def _uploaded_bytes(segmenter: Segmenter, canvas: Canvas | None) -> int:
    """Of frames, masks and backgrounds."""
    return segmenter.uploaded_bytes + (canvas.uploaded_bytes if canvas else 0)


def _run(opened: Opened, source: FileSource, records: Records, stopped: StopFlag, console: Console) -> None:
    """All frames through the pipeline, until the end or a signal."""
    pipeline, total = opened.pipeline, _expected_frames(opened)
    with (
        console.frames(opened.options.file.name) as report,
        contextlib.closing(ahead(iter(source))) as frames,
    ):
        report(0, total)
        for frame in frames:
            pipeline.submit(frame)
            for record in pipeline.completed():
                records.take(record)
            report(records.frames, total)
            if stopped:
                break
        records.finish(pipeline, complete=not stopped)


def _expected_frames(opened: Opened) -> int:
    """How many frames are to come, for the progress bar; 0 if nobody knows."""
    info, options = opened.source.info, opened.options
    first, last = (
        position if isinstance(position, int) or position is None else int(position * info.average_rate)
        for position in (options.first, options.last)
    )
    count = info.frame_count or 0
    end = count if last is None else min(last + 1, count) if count else last + 1
    return max(0, end - (first or 0))
