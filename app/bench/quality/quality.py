"""`texelflow bench quality`: how good a clip's masks are, with and without each step of refinement, by true mattes.

The clip is the demo's by default, whose mattes are computed. All ways are run side by side, each with a refiner and a
compositor of its own, and judged by what the compositor draws for the effect `mask`. Beside them stand the true mattes
themselves, as the network's grid can hold them, interpolated: what a perfect network would get without refinement.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from texelflow.assets import make_clip
from texelflow.gpu_delegate.base.errors import MediaError, UsageError
from texelflow.gpu_delegate.model.layout import Precision

from ...console import Console
from ...files import Files, Read, settle
from ...frame.backend_choice.compute import open_compute
from ...frame.inference.backends import ComputeChoice
from ...frame.refinement.refine import MOST_DELAY
from ...media.sources import FileSource, Position
from ...models.catalogue import model_path
from ...models.model_loading import load_segmentation
from ...picture.preprocess import Floats, ImageSize, Preprocessing
from .mask_quality import BAND, THRESHOLD, TOLERANCE, MaskScorer, Truth
from .mask_ways import STEPS, MaskWays

PERFECT = "true mattes on the grid"
_STEPS = tuple(name for name, step in STEPS.items() if not step.held)  # things are held in scenes alone


@dataclass(frozen=True)
class QualityBench:
    """What `bench quality` is asked to do. Mattes are computed for make_clip.py's seed, or read from a folder."""

    model: str = "selfie"
    clip: Path | None = None
    seed: int = 0
    mattes: Path | None = None  # 000.png for the first frame, gray
    last: Position | None = None
    backend: str = "gl"
    precision: Precision = "fp32"
    preprocessing: Preprocessing = "auto"


def bench_quality(options: QualityBench, console: Console) -> dict[str, Any]:
    """The figures of each step. Raises TexelflowError."""
    named = {"the input itself": options.clip, "--mattes": options.mattes, "the model": model_path(options.model)}
    settle(Files(tuple(Read(what, path) for what, path in named.items() if path)))
    with console.download() as progress:
        model = load_segmentation(options.model, progress=progress)
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(_source(options))
        size = source.format.upright_size
        matte_of = _mattes(options, size)
        matte_of(0)  # raises before anything is compiled
        compute = stack.enter_context(
            open_compute(ComputeChoice(options.backend, precision=options.precision), model, True, console)
        )
        ways = MaskWays(compute, model, source.format, _STEPS, console, options.precision, options.preprocessing)
        stack.callback(ways.release)
        scorers = {name: MaskScorer() for name in (*_STEPS, PERFECT)}
        _run(source, ways, scorers, model.output_size, matte_of, console)
        return {
            "model": model.name,
            "renderer": compute.renderer(ways.on_cpu),
            "gl_version": compute.gl_version,
            "precision": options.precision,
            "preprocessing": options.preprocessing,
            "clip": source.info.path,
            "size": list(size),
            "threshold": THRESHOLD,
            "tolerance_pixels": TOLERANCE,
            "band_pixels": BAND,
            "steps": _steps(scorers, {name: way.refine_ms for name, way in ways.by_name.items()}),
        }


def _run(
    source: FileSource,
    ways: MaskWays,
    scorers: Mapping[str, MaskScorer],
    grid: ImageSize,
    matte_of: Callable[[int], Floats],
    console: Console,
) -> None:
    """All frames through all ways, side by side, each with its scorer, and true mattes on the network's grid."""
    truths: list[Truth] = []
    with console.frames("judging") as report:
        for number, frame in enumerate(source):
            truths = [Truth(matte_of(frame.index)), *truths[:MOST_DELAY]]
            scorers[PERFECT].add(_on_grid(truths[0].matte, grid), truths[0])
            ways.run(frame)
            for name, way in ways.by_name.items():
                age = way.refine(frame)
                if age is not None:
                    scorers[name].add(way.mask(frame), truths[age])
            report(number + 1, source.info.frame_count or 0)


def _on_grid(matte: Floats, grid: ImageSize) -> Floats:
    """A matte (h, w) reduced to a grid and interpolated again."""
    size = matte.shape[1], matte.shape[0]
    reduced = cv2.resize(matte, grid, interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.resize(reduced, size, interpolation=cv2.INTER_LINEAR), np.float32)


def _steps(scorers: Mapping[str, MaskScorer], times_ms: Mapping[str, float]) -> list[dict[str, Any]]:
    """The figures of each way, by name. Raises MediaError for a clip that is too short."""
    try:
        found = {name: scorer.quality() for name, scorer in scorers.items()}
    except ValueError as error:
        raise MediaError(f"{error}; give a longer clip") from None
    raw = found["raw"]
    return [
        {
            "name": name,
            **{key: round(value, 5) for key, value in vars(quality).items()},
            "flicker_of_raw": round(quality.flicker / raw.flicker, 3) if raw.flicker else None,
            "refine_ms": round(times_ms.get(name, 0.0), 3),
        }
        for name, quality in found.items()
    ]


def show_quality(figures: Mapping[str, Any], console: Console) -> None:
    """The same as a table; errors in thousandths, for they are small."""
    rows = [
        (
            step["name"],
            100 * step["f_score"],
            *(1e3 * step[key] for key in ("matte_error", "edge_error", "flicker")),
            step["lag_frames"],
            step["refine_ms"],
        )
        for step in figures["steps"]
    ]
    columns = ("masks", "F-score, %", "matte error", "edge error", "flicker", "lag, frames", "refine, ms")
    console.table(f"{figures['model']} on {figures['clip']}", columns, rows)
    console.say(
        f"F-score of outlines at {THRESHOLD}, {TOLERANCE} pixels tolerated; errors and flicker in thousandths, edge "
        f"error within {BAND} pixels of the true outline; all frames count, those without a person too"
    )


@contextlib.contextmanager
def _source(options: QualityBench) -> Iterator[FileSource]:
    """The clip that was asked for, or the demo's."""
    with contextlib.ExitStack() as stack:
        path = options.clip or stack.enter_context(
            resources.as_file(resources.files("texelflow.assets") / "people.mp4")
        )
        yield stack.enter_context(FileSource(path, last=options.last))


def _mattes(options: QualityBench, size: ImageSize) -> Callable[[int], Floats]:
    """What makes the true matte (h, w) of a frame, by its number. Raises UsageError where there are none."""
    folder, seed = options.mattes, options.seed
    if folder is not None:
        return lambda number: _read_matte(folder / f"{number:03}.png", size)
    if size != (make_clip.WIDTH, make_clip.HEIGHT):
        raise UsageError(f"no true mattes are known for frames of {size[0]}x{size[1]}; give their folder with --mattes")
    if seed < 0:
        raise UsageError(f"--seed {seed}: a number from 0 up is needed")
    return lambda number: make_clip.true_matte(number, seed)


def _read_matte(path: Path, size: ImageSize) -> Floats:
    """A gray picture as floats from 0 to 1. Raises MediaError if it is not one of that size."""
    pixels = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE) if path.is_file() else None
    if pixels is None:
        raise MediaError(f"'{path}' is not a picture; mattes are PNG files named by frame, 000.png for the first")
    if pixels.shape[::-1] != size:
        found = "x".join(map(str, pixels.shape[::-1]))
        raise MediaError(f"'{path}' has {found} pixels, the clip {size[0]}x{size[1]}; give the mattes of this clip")
    return np.asarray(pixels / np.float32(255), np.float32)
