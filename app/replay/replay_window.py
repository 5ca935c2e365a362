"""A recording goes in; a window plays it until the person has seen enough, and what that came to comes out."""

import contextlib
from dataclasses import replace
from typing import Any

from ..console import Console
from ..frame.figures import Figures
from ..frame.looks import Choice
from ..frame.pipeline import DECODE
from ..media.seeking import SeekableSource
from ..models.loading import load_segmentation
from ..overlay import panel
from ..signals import StopFlag, stop_flag
from .records import Records
from .replay_options import ReplayOptions
from .replay_outputs import open_outputs
from .replay_summary import Opened, facts_of, summarize_replay
from .show import Wishes, open_show


def replay_in_window(options: ReplayOptions, choice: Choice, console: Console) -> tuple[dict[str, Any], StopFlag]:
    """Play it. Raises TexelflowError; one without an exit code for a window that was closed before the first frame."""
    fit: Any = options.fit
    wishes = Wishes(
        options.backend, fit, options.precision, choice, options.speed or 1.0, options.loop,
        overlay=options.overlay is not False, recorded=options.keeps_all,
        records_opaque=options.out is not None and choice.look.effect != "cutout",
    )  # fmt: skip
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(SeekableSource(options.file, options.first, options.last))
        with console.download() as progress:
            model = load_segmentation(options.model, options.spec, progress)
        show = stack.enter_context(open_show(source, model, wishes, console))
        segmenter, machine, figures = show.segmenter, show.machine, Figures()
        outputs = open_outputs(options, source.info, machine.context, segmenter, (show.target, show.canvas), stack)
        pipeline = show.pipeline(outputs.stages)
        stack.callback(pipeline.release)
        opened = Opened(options, source, machine, model, segmenter, show.canvas, outputs, pipeline)
        records = stack.enter_context(
            Records(options, (DECODE, *pipeline.names), opened.dispatches, outputs, figures.add)
        )
        facts = facts_of(source.info, machine, model, segmenter)

        def draw_figures() -> None:
            budget_ms = facts.budget_ms / player.playback.pacer.speed
            panel.performance(figures, replace(facts, budget_ms=budget_ms))

        with stop_flag() as stopped, show.player(pipeline, draw_figures, records.take) as player:
            player.run(lambda: bool(stopped) or (options.closes and player.untouched_at_end))
            watched = player.playback.at_end
        records.finish(pipeline, complete=watched)  # sound ends where the person had seen enough
        summary = summarize_replay(opened, records, bool(stopped))
        records.close(summary)
    return summary, stopped
