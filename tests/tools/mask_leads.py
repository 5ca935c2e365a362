"""Measures by how much masks differ in a run that begins in mid-scene, by its lead.

Scenes last longer here, there and back on their paths. One run sees all of a scene; another one forgets all that was
before every so many frames, and both draw their masks with the look ahead that `replay` has. The difference is the
largest of any pixel's 8 bits, at the frame's size, in any frame that comes after the lead.

    python -m tests.tools.mask_leads --smooth 0.5 --part all
"""

import contextlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import accumulate
from typing import Annotated, Any

import numpy as np
import typer

from tests.tools.command import run_tool
from texelflow.app.bench.quality.mask_ways import MaskStep, MaskWay
from texelflow.app.bench.quality.scene_data import SceneRow, SceneTable, choose_rows, read_scenes, scenes_folder
from texelflow.app.bench.quality.scene_frames import SceneFrame, scene_frames
from texelflow.app.bench.quality.scene_layers import read_portrait
from texelflow.app.bench.quality.scenes import FRAME_MS, ScenesBench, choose_scenes, rows_with_photographs
from texelflow.app.console import Console
from texelflow.app.files import Files, Read, settle
from texelflow.app.frame.backend_choice.compute import open_compute
from texelflow.app.frame.inference.backends import ComputeBackend, ComputeChoice
from texelflow.app.frame.inference.frame_segmenter import FrameSegmenter, make_segmenter
from texelflow.app.frame.inference.network_options import NetworkOptions
from texelflow.app.frame.refinement.refine import MOST_DELAY, Refinement
from texelflow.app.frame.refinement.temporal import memory_frames
from texelflow.app.media.sources import VideoFrame
from texelflow.app.models.catalogue import model_path
from texelflow.app.models.model_loading import SegmentationModel, load_segmentation
from texelflow.app.opengl_options import with_opengl
from texelflow.app.picture.picture import rgba_format, rgba_picture
from texelflow.app.session.derived import LONGEST_LEAD
from texelflow.app.verb_options import JsonOption, ModelOption, PrecisionOption, PreprocessingOption
from texelflow.app.verbs.precision import parse_precision, parse_preprocessing
from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.plan.compile_options import CompileOptions

ALIKE = 1  # of 255: what masks may differ by

_FRAMES = 120  # after each beginning
_BEGINNINGS = 2
_BEFORE = 10  # frames that the whole run has seen at the first one
_SHOWN = (1, 6, 12, 24, 36, 48, 60, 72, 84, 96)


@dataclass(frozen=True)
class LeadRow:
    """A row, and the largest difference, of 255, with each lead from 0 on."""

    row: SceneRow
    largest: tuple[int, ...]

    @property
    def least_lead(self) -> int | None:
        """The shortest lead with which masks are alike; None if they never are."""
        return next((lead for lead, apart in enumerate(self.largest) if apart <= ALIKE), None)


def bench_leads(options: ScenesBench, smooth: float, console: Console) -> dict[str, Any]:
    """The figures of each row, and of all. Raises TexelflowError."""
    if not 0 <= smooth <= 1:
        raise UsageError(f"--smooth {smooth:g}: a number from 0 to 1 is needed")
    folder = scenes_folder()
    settle(Files((Read("the model", model_path(options.model)),)), options.force)
    table = read_scenes(folder)
    rows = rows_with_photographs(choose_rows(table.rows, options.part, options.conditions, options.only), console)
    with console.download() as progress:
        model = load_segmentation(options.model, progress=progress)
    refinement = Refinement(smooth=smooth, delay=MOST_DELAY)
    with open_compute(ComputeChoice(options.backend, precision=options.precision), model, True, console) as compute:
        found = list(_measure_all(rows, table, model, compute, options, refinement, console))
        renderer = compute.drawn_by
    return _figures(found, model.name, renderer, smooth, memory_frames(refinement.least))


def largest_by_lead(apart: Sequence[int]) -> tuple[int, ...]:
    """Differences of the frames after a beginning go in; the largest one that is left after each of them comes out."""
    return tuple(accumulate(reversed(apart), max))[::-1]


def prolonged(row: SceneRow, frames: int) -> SceneRow:
    """The same for so many frames, there and back on its path."""
    path = row.condition.path
    there_and_back = [*path, *path[-2:0:-1]]
    longer = tuple(there_and_back[number % len(there_and_back)] for number in range(frames))
    return replace(row, condition=replace(row.condition, path=longer, frames=frames))


def _measure_all(
    rows: Sequence[SceneRow],
    table: SceneTable,
    model: SegmentationModel,
    compute: ComputeBackend,
    options: ScenesBench,
    refinement: Refinement,
    console: Console,
) -> Iterator[LeadRow]:
    """All rows, one size of frames after the other."""
    assert compute.pictures is not None, "a picture is needed"
    frames = options.frames or _FRAMES
    portrait_of = lru_cache(maxsize=8)(partial(read_portrait, folder=table.folder))
    for size in sorted({row.size for row in rows}):
        chosen = [row for row in rows if row.size == size]
        with contextlib.ExitStack() as stack:
            network = NetworkOptions(CompileOptions(precision=options.precision), preprocessing=options.preprocessing)
            segmenter = make_segmenter(compute, model, rgba_format(size), network, console, MOST_DELAY + 1)
            stack.callback(segmenter.release)
            runs = [MaskWay(compute.pictures, segmenter, MaskStep(refinement)) for _ in range(2)]
            for run in runs:
                stack.callback(run.release)
            report = stack.enter_context(console.frames(f"comparing {size[0]}x{size[1]}"))
            for number, row in enumerate(chosen, 1):
                pictures = scene_frames(prolonged(row, _BEFORE + _BEGINNINGS * frames), table.folder, portrait_of)
                yield LeadRow(row, largest_by_lead(_apart(pictures, segmenter, runs, frames)))
                report(number, len(chosen))


def _apart(
    pictures: Iterable[SceneFrame], segmenter: FrameSegmenter, runs: Sequence[MaskWay], frames: int
) -> Sequence[int]:
    """The differences between two runs, the second of which begins anew every so many frames, by frames after that.

    The first frame after a beginning is left out: with a look ahead it is drawn twice.
    """
    whole, late = runs
    found = [0] * frames
    segmenter.begin_anew()
    whole.restart()
    for number, picture in enumerate(pictures):
        frame = VideoFrame(number, number, number * FRAME_MS, rgba_picture(picture.rgba))
        for stage in segmenter.stages:
            stage.run(frame)
        since = (number - _BEFORE) % frames
        if since == 0 or number == 0:
            late.restart()
        ages, shown = (whole.refine(frame), late.refine(frame)), since - MOST_DELAY
        if number > _BEFORE and shown >= 0 and ages == (MOST_DELAY, MOST_DELAY):
            apart = np.abs(whole.mask(frame) - late.mask(frame)).max()
            found[shown] = max(found[shown], round(255 * float(apart)))
    return found


def _figures(found: Sequence[LeadRow], model: str, renderer: str, smooth: float, memory: int | None) -> dict[str, Any]:
    """All of it, for JSON."""
    largest = [max(apart) for apart in zip(*(each.largest for each in found), strict=True)]
    return {
        "model": model,
        "renderer": renderer,
        "smooth": smooth,
        "lead": memory,
        "frames": len(largest),
        "beginnings": _BEGINNINGS * len(found),
        "least_lead": LeadRow(found[0].row, tuple(largest)).least_lead,
        "largest": largest,
        "rows": [
            {
                "scene": each.row.scene,
                "condition": each.row.condition.name,
                "size": list(each.row.size),
                "least_lead": each.least_lead,
                "largest": list(each.largest),
            }
            for each in found
        ],
    }


def show_leads(figures: Mapping[str, Any], console: Console) -> None:
    """The same as a table: the largest differences by conditions."""
    shown = [lead for lead in _SHOWN if lead < figures["frames"]]
    by_condition = dict[str, list[Sequence[int]]]()
    for row in figures["rows"]:
        by_condition.setdefault(row["condition"], []).append(row["largest"])
    table = [
        (name, len(rows), *(max(row[lead] for row in rows) for lead in shown)) for name, rows in by_condition.items()
    ]
    table.append(("all", len(figures["rows"]), *(figures["largest"][lead] for lead in shown)))
    title = f"{figures['model']}, --smooth {figures['smooth']:g}: the largest difference of masks, of 255, after a lead"
    console.table(title, ("condition", "rows", *map(str, shown)), table)
    least, memory = figures["least_lead"], figures["lead"]
    console.say(
        f"{figures['beginnings']} beginnings, {figures['frames']} frames after each; with a lead of "
        f"{'no number of' if least is None else least} frames all masks are alike by {ALIKE} of 255; "
        f"replay and archive take {'all' if memory is None else memory}, and {LONGEST_LEAD} at most"
    )


@with_opengl
def mask_leads_tool(
    smooth: Annotated[float, typer.Option(metavar="N", help="As of `replay`, from 0 to 1.")] = 0.5,
    part: Annotated[
        str | None,
        typer.Option(metavar="tuned|judged|all", help="Those that filters are tuned on, or the others; judged."),
    ] = None,
    conditions: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Some conditions alone, by commas: still,motion,noise 10.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="WORDS", help="Scenes whose names hold one of these words, by commas.")
    ] = None,
    frames: Annotated[int | None, typer.Option(metavar="N", help="Of each beginning; 120.")] = None,
    model: ModelOption = "selfie",
    backend: Annotated[str, typer.Option(metavar="gl|cpu", help="Where the network runs.")] = "gl",
    precision: PrecisionOption = "fp32",
    preprocessing: PreprocessingOption = "auto",
    json: JsonOption = False,
) -> int:
    """Measure how far masks differ that begin late in a scene, by the frames that led to them."""
    console = Console(quiet=json)
    given = {"part": part, "conditions": conditions, "only": only, "frames": frames}
    scenes = choose_scenes(given, model, backend, parse_precision(precision), parse_preprocessing(preprocessing))
    figures = bench_leads(scenes, smooth, console)
    show_leads(figures, console)
    if json:
        console.json(figures)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_tool("mask_leads", mask_leads_tool, arguments)


if __name__ == "__main__":
    sys.exit(main())
