"""`texelflow bench quality --scenes`: how good masks of people in real rooms are, with refinement and without.

Everyone's frames go through the product's own segmenter, refiner and compositor, and are judged by what is drawn.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from texelflow.gpu_delegate.base.errors import CatalogueError, UsageError
from texelflow.gpu_delegate.model.layout import Precision

from ...console import Console, Report
from ...files import Files, Read, Write, settle
from ...frame.backend_choice.compute import open_compute
from ...frame.inference.backends import ComputeBackend, ComputeChoice
from ...frame.refinement.refine import MOST_DELAY
from ...media.sources import VideoFrame
from ...models.catalogue import model_path
from ...models.model_loading import SegmentationModel, load_segmentation
from ...picture.picture import rgba_format, rgba_picture
from ...picture.preprocess import Preprocessing
from .mask_quality import BAND, THRESHOLD, TOLERANCE
from .mask_ways import STEPS, MaskWay, MaskWays, mixed_over
from .python_way import PythonWay
from .scene_data import GROUPS, PLAIN, SceneRow, SceneTable, choose_rows, read_scenes, scenes_folder
from .scene_figures import LEAST_PIXELS, LEVELS, MOST_PIXELS, SceneScorer
from .scene_frames import FAR, SceneFrame, scene_frames
from .scene_layers import read_portrait
from .scene_photos import ScenePixels, fetch_photos
from .scene_sheet import BEHIND, SceneSheet
from .scene_table import Judged, row_figures, scene_summary, show_scenes

__all__ = ["FRAME_MS", "ScenesBench", "bench_scenes", "choose_scenes", "rows_with_photographs"]

FRAME_MS = 1000 / 30
PYTHON = "python"  # of the steps, beside STEPS: masks by texelflow.Segmenter(refine=True)
_LEAST_FRAMES = 2 + MOST_DELAY  # the last ones are not judged with a delay


@dataclass(frozen=True)
class ScenesBench:
    """What `bench quality --scenes` is asked to do. Nothing named means all conditions and scenes."""

    model: str = "selfie"
    part: str = "judged"
    conditions: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    groups: tuple[str, ...] = (PLAIN,)
    steps: tuple[str, ...] = ("raw", "both")
    frames: int | None = None  # of each row, at most
    sheet: Path | None = None
    force: bool = False
    backend: str = "gl"
    precision: Precision = "fp32"
    preprocessing: Preprocessing = "auto"


def choose_scenes(
    given: Mapping[str, Any], model: str, backend: str, precision: Precision, preprocessing: Preprocessing
) -> ScenesBench:
    """The options as they are written, None for those that are not; names are separated by commas."""
    values = {name: value for name, value in given.items() if value is not None}
    for name in ("conditions", "only", "groups", "steps"):
        if name in values:
            values[name] = tuple(each.strip() for each in values[name].split(",") if each.strip())
    if values.get("groups") == ("all",):
        values["groups"] = GROUPS
    return ScenesBench(model, backend=backend, precision=precision, preprocessing=preprocessing, **values)


def bench_scenes(options: ScenesBench, console: Console) -> dict[str, Any]:
    """The figures of each row, and of all. Raises TexelflowError."""
    _check(options)
    folder = scenes_folder()
    reads = (
        Read("the model", model_path(options.model)),
        *(Read("a file of the scenes", path) for path in folder.rglob("*")),
    )
    settle(Files(reads, (Write("--sheet", options.sheet, "picture"),) if options.sheet else ()), options.force)
    table = read_scenes(folder)
    chosen = choose_rows(table.rows, options.part, options.conditions, options.only, options.groups)
    rows = rows_with_photographs([row.shortened(options.frames) for row in chosen], console)
    with console.download() as progress:
        model = load_segmentation(options.model, progress=progress)
    sheet = SceneSheet(options.sheet, len(rows)) if options.sheet else None
    with open_compute(ComputeChoice(options.backend, precision=options.precision), model, True, console) as compute:
        judged = list(_judge_all(options, table, rows, model, compute, sheet, console))
        renderer = compute.drawn_by
    if sheet:
        sheet.write()
    title = f"{model.name}, {'tuned and judged' if options.part == 'all' else options.part} scenes"
    show_scenes(judged, title, console)
    console.say(
        f"F-score of outlines at {THRESHOLD}, {TOLERANCE} pixels tolerated; errors and flicker in thousandths, color "
        f"in levels of 255 within {BAND} pixels of the true outline, far beyond {FAR}; islands and holes of "
        f"{LEAST_PIXELS} pixels or more, by frame, each with {MOST_PIXELS} at most; {FAR} and those at 640x480"
    )
    return {
        "model": model.name,
        "renderer": renderer,
        "precision": options.precision,
        "part": options.part,
        "levels": list(LEVELS),
        "rows": [row_figures(each) for each in judged],
        **scene_summary(judged),
    }


def _check(options: ScenesBench) -> None:
    for step in options.steps or ("",):
        if step not in (*STEPS, PYTHON):
            raise UsageError(f"--steps {step}: one of {', '.join((*STEPS, PYTHON))} is needed")
    if options.frames is not None and options.frames < _LEAST_FRAMES:
        raise UsageError(f"--frames {options.frames}: {_LEAST_FRAMES} or more are needed")


def rows_with_photographs(rows: Sequence[SceneRow], console: Console) -> Sequence[SceneRow]:
    """The rows whose photographs are there, fetched if need be; those without are left out, and a line says so."""
    if all(placed.person.stored for row in rows for placed in row.people):
        return rows
    try:
        with console.download("photographs") as progress:
            fetch_photos(progress)
        return rows
    except CatalogueError as error:
        left = [row for row in rows if all(placed.person.stored for placed in row.people)]
        if not left:
            raise
        console.warn(
            f"{len(rows) - len(left)} of {len(rows)} rows are left out, their photographs are missing: {error}"
        )
        return left


def _judge_all(
    options: ScenesBench,
    table: SceneTable,
    rows: Sequence[SceneRow],
    model: SegmentationModel,
    compute: ComputeBackend,
    sheet: SceneSheet | None,
    console: Console,
) -> Iterator[Judged]:
    """All rows, one size of frames after the other."""
    portrait_of = lru_cache(maxsize=8)(partial(read_portrait, folder=table.folder))
    for size in sorted({row.size for row in rows}):
        chosen = [(number, row) for number, row in enumerate(rows) if row.size == size]
        total, done = sum(row.condition.frames for _, row in chosen), 0
        ways_in = options.precision, options.preprocessing
        with contextlib.ExitStack() as stack:
            steps = [step for step in options.steps if step != PYTHON]
            ways = MaskWays(compute, model, rgba_format(size), steps, console, *ways_in)
            stack.callback(ways.release)
            in_python = None
            if PYTHON in options.steps:
                in_python = stack.enter_context(PythonWay(options.model, options.backend, *ways_in))
            report = stack.enter_context(console.frames(f"judging {size[0]}x{size[1]}"))
            for number, row in chosen:
                frames = scene_frames(row, table.folder, portrait_of)
                shown = sheet if sheet and sheet.shows(number) else None
                yield _judge(row, frames, ways, in_python, shown, partial(_report, report, done, total))
                done += row.condition.frames


def _report(report: Report, before: int, total: int, done: int) -> None:
    report(before + done, total)


def _judge(
    row: SceneRow,
    frames: Iterator[SceneFrame],
    ways: MaskWays,
    in_python: PythonWay | None,
    sheet: SceneSheet | None,
    report: Callable[[int], None],
) -> Judged:
    """One row through all ways, side by side, and its middle frame onto the sheet."""
    by_name: dict[str, MaskWay | PythonWay] = {**ways.by_name, **({PYTHON: in_python} if in_python else {})}
    scorers = {name: SceneScorer() for name in by_name}
    ways.begin_anew()
    if in_python:
        in_python.restart()
    latest: list[SceneFrame] = []
    for number, scene in enumerate(frames):
        shown: dict[str, ScenePixels] = {}
        latest = [scene, *latest[:MOST_DELAY]]
        frame = VideoFrame(number, number, number * FRAME_MS, rgba_picture(scene.rgba))
        ways.run(frame)
        for name, way in by_name.items():
            age = way.refine(frame)
            mask = way.mask(frame)
            over: Callable[[tuple[int, int, int]], ScenePixels] = partial(mixed_over, scene.rgba, mask)
            if isinstance(way, MaskWay) and not STEPS[name].plain:
                over = way.over
            if age is not None:
                scorers[name].add(mask, {level: over((level, level, level)) for level in LEVELS}, latest[age])
            if sheet and number == row.condition.frames // 2:
                shown[name] = over(BEHIND)
        if shown and sheet:
            sheet.add(row.name, scene, shown)
        report(number + 1)
    return Judged(
        row,
        {name: scorer.figures() for name, scorer in scorers.items()},
        {name: way.refine_ms for name, way in by_name.items()},
        {name: way.composite_ms for name, way in by_name.items()},
    )
