"""Compares what networks find in a recording's frames with what TensorFlow Lite finds there, and prints it."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from texelflow.gpu_delegate.base.wording import counted
from texelflow.gpu_delegate.cpu.compare import TOLERANCE, first_divergence
from texelflow.gpu_delegate.cpu.rewriting import without_custom_landmarks
from texelflow.gpu_delegate.model.layout import Precision
from texelflow.gpu_delegate.model.packing import in_file_type
from texelflow.gpu_delegate.model.quantization import has_quantized, precision_for
from texelflow.gpu_delegate.targets.gl.context import open_context
from texelflow.gpu_delegate.targets.llvm.compiler import native_target

from ...console import Console
from ...frame.finding.cpu_regions import CpuRegions
from ...frame.finding.finder_opening import loaded_models, solution_for
from ...frame.finding.found_difference import (
    FoundDifference,
    FoundLimits,
    PairedRegions,
    RegionPair,
    found_limits_of,
    worst_of,
)
from ...frame.finding.region_networks import FrameRegions, finished, regions_in_steps
from ...frame.inference.backends import ComputeBackend, CpuChoice
from ...frame.inference.masks import labeled
from ...frame.inference.network_options import NetworkOptions
from ...media.recorder import write_png
from ...media.sources import FileSource
from ...models.decoders.found import Finding
from ...models.finding_model import FindingModel
from ...picture.convert import Rgba
from ...picture.picture import Picture
from ...tracking.finder import FrameFinder
from ...tracking.tracking_finder import make_finder
from .check_model import Sample, Subject, TensorCheck, finite, gl_programs, native_programs

_OURS, _THEIRS = (0, 200, 0), (0, 0, 255)  # blue, green, red


@dataclass(frozen=True)
class _RegionFigures:
    """How far a network is off in one region."""

    model: FindingModel
    difference: FoundDifference
    error_of: Mapping[str, float]  # of each output


@dataclass(frozen=True)
class _FoundFrame:
    """The figures of a frame, in which its networks saw some regions."""

    index: int
    regions: tuple[_RegionFigures, ...]
    difference: FoundDifference


@dataclass(frozen=True)
class _Worst:
    """The frame that is furthest off, and all that was seen in it."""

    frame: _FoundFrame
    pairs: tuple[RegionPair, ...]
    picture: Picture
    rgba: Rgba


def check_found(
    source: FileSource,
    model: FindingModel,
    tolerance: float | None,
    report: Path | None,
    console: Console,
    options: NetworkOptions,
    backend: str,
    spare: Path,
) -> tuple[dict[str, Any], int]:
    """Compare all frames of the source: the figures, and the exit code. `backend` is gl or native.

    TensorFlow Lite's results are followed from frame to frame, and each region that its networks see is seen by ours.
    The worst frame is saved to `report`, or to `spare` where there is none and the check fails.
    Raises UnsupportedError, DeviceError, MediaError.
    """
    solution, native = solution_for(model), backend == "native"
    models = loaded_models(solution, model)
    precision = precision_for(model.graph, options.compiling.precision) if native else options.compiling.precision
    limits = found_limits_of(precision, tolerance, any(has_quantized(each.graph) for each in models))
    with contextlib.ExitStack() as stack:
        context = None if native else stack.enter_context(open_context())
        compute = ComputeBackend("cpu" if native else "gl", context, CpuChoice("native"))
        with console.compilation():
            ours = finished(regions_in_steps(compute, models, source.format, options))
        for each in ours:
            stack.callback(each.release)
        references = [CpuRegions(each, as_read=True) for each in models]
        paired = [PairedRegions(*both) for both in zip(ours, references, strict=True)]
        frames, worst = _compared(make_finder(solution, paired), paired, source, limits, console)
        failed = [frame.index for frame in frames if not frame.difference.agrees(limits)]
        for note in dict.fromkeys(each.note for each in ours if each.note):
            console.note_once(note)
        renderer, gl_version = _renderer(ours), context.gl_version if context else None
        figures = _figures(model, models, renderer, gl_version, precision, frames, worst.frame, failed)
        title = "the CPU's own code against TensorFlow Lite" if native else "GPU against CPU"
        rows = [(name, value) for name, value in figures.items() if not isinstance(value, list | dict)]
        console.table(f"{source.info.path}: {title}", ("figure", "value"), [(n, _text(v)) for n, v in rows])
        networks = [(name, *map(_text, row.values())) for name, row in figures["networks"].items()]
        console.table("Its networks", ("network", "regions", "max error", "output", "things"), networks)
        if report is not None or failed:
            place = report or spare
            _save(place, worst)
            console.say(f"frame {worst.frame.index}, the worst one, is in {place}")
        verdict = f"all {counted(len(frames), 'frame')} agree: {limits.words}"
        if failed:
            cause = _cause(worst, paired, precision, console, compute, options)
            verdict = f"{len(failed)} of {len(frames)} frames fail (allowed: {limits.words}); {cause}"
        console.say(verdict)
    return {**figures, "verdict": verdict}, 1 if failed else 0


def _compared(
    finder: FrameFinder, paired: Sequence[PairedRegions], source: FileSource, limits: FoundLimits, console: Console
) -> tuple[list[_FoundFrame], _Worst]:
    frames, worst = list[_FoundFrame](), None
    with console.frames("checking") as report:
        for frame in source:
            finder.find(frame)
            pairs = tuple(pair for network in paired for pair in network.taken())
            seen = _figures_of(frame.index, pairs)
            frames.append(seen)
            if worst is None or _badness(seen.difference, limits) > _badness(worst.frame.difference, limits):
                worst = _Worst(seen, pairs, frame.picture, frame.rgba)
            report(len(frames), source.info.frame_count or 0)
    assert worst is not None, "a source without frames raises"
    return frames, worst


def _figures_of(index: int, pairs: Sequence[RegionPair]) -> _FoundFrame:
    """What is kept of each frame: findings are of the worst one alone, for recordings are long."""
    regions = tuple(_RegionFigures(pair.model, pair.difference, pair.error_of) for pair in pairs)
    return _FoundFrame(index, regions, worst_of([region.difference for region in regions]))


def _badness(difference: FoundDifference, limits: FoundLimits) -> tuple[bool, int, float]:
    """Frames that fail are worse, then those with other numbers of things, then larger errors; NaN is the worst."""
    error = float(np.nan_to_num(difference.error, nan=np.inf))
    return not difference.agrees(limits), abs(difference.found - difference.expected), error


def _cause(
    worst: _Worst,
    paired: Sequence[PairedRegions],
    precision: Precision,
    console: Console,
    compute: ComputeBackend,
    options: NetworkOptions,
) -> str:
    """Which op of which network is at fault in the worst frame, if one is."""
    pair = max(worst.pairs, key=lambda each: float(np.nan_to_num(each.difference.error, nan=np.inf)))
    network = next(each for each in paired if each.model is pair.model)
    graph = without_custom_landmarks(pair.model.graph)
    loads = (
        gl_programs(compute.context, graph, console, options.compiling)
        if compute.context
        else native_programs(native_target(precision), graph)
    )
    check = TensorCheck(Subject(pair.model.name, graph, pair.model.input_range), TOLERANCE, loads)
    tensor = in_file_type(network.input_of(worst.picture, pair.region), graph.tensors[graph.inputs[0]])
    sample = Sample(f"a region of frame {worst.frame.index}", (tensor,))
    first = first_divergence(check.run([sample], fuse=True)[0])
    if first is None:
        return f"{pair.model.name} agrees on the worst of them, so what is before or behind it differs"
    return f"{pair.model.name}: {check.explain(first, sample)}"


def _renderer(networks: Sequence[FrameRegions]) -> str:
    return "; ".join(dict.fromkeys(each.renderer for each in networks))


def _figures(
    model: FindingModel,
    models: Sequence[FindingModel],
    renderer: str,
    gl_version: str | None,
    precision: Precision,
    frames: Sequence[_FoundFrame],
    worst: _FoundFrame,
    failed: list[int],
) -> dict[str, Any]:
    every = worst_of([frame.difference for frame in frames])
    return {
        "model": model.name,
        "renderer": renderer,
        "gl_version": gl_version,
        "precision": precision,
        "frames": len(frames),
        "max_error": finite(every.error),
        "things": every.expected,
        "frames_with_another_number": sum(f.difference.found != f.difference.expected for f in frames),
        "min_iou": every.iou,
        "max_distance": finite(every.distance),
        "worst_frame": worst.index,
        "failed_frames": failed,
        "passed": not failed,
        "networks": {each.name: _of_network(each, frames) for each in models},
    }


def _of_network(model: FindingModel, frames: Sequence[_FoundFrame]) -> dict[str, Any]:
    """How often it ran, its worst output, and how many things it found."""
    seen = [region for frame in frames for region in frame.regions if region.model is model]
    parts = [(float(np.nan_to_num(part, nan=np.inf)), name) for each in seen for name, part in each.error_of.items()]
    error, output = max(parts, default=(0.0, ""))
    return {
        "regions": len(seen),
        "max_error": finite(error),
        "output": output,
        "things": sum(each.difference.expected for each in seen),
    }


def _text(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) and value < 0.1 else str(value)


def _save(path: Path, worst: _Worst) -> None:
    """A PNG of the frame twice, with what ours and what TensorFlow Lite finds. Raises MediaError."""
    found = [each for pair in worst.pairs for each in pair.found]
    expected = [each for pair in worst.pairs for each in pair.expected]
    panels = [
        labeled(f"frame {worst.frame.index}: {counted(len(found), 'thing')}", _marked(worst.rgba, found, _OURS)),
        labeled(f"TensorFlow Lite: {len(expected)}", _marked(worst.rgba, expected, _THEIRS)),
    ]
    write_png(path, np.hstack(panels)[..., ::-1])


def _marked(rgba: Rgba, things: Sequence[Finding], color: tuple[int, int, int]) -> npt.NDArray[np.uint8]:
    """BGR, with boxes and points."""
    picture = np.ascontiguousarray(rgba[..., 2::-1])
    most = 4 * max(picture.shape)  # what is drawn further away overflows
    for each in things:
        if each.kind != "class" and np.isfinite(each.box).all():
            left, top, right, bottom = (int(np.clip(value, -most, most)) for value in each.box)
            cv2.rectangle(picture, (left, top), (right, bottom), color)
        for x, y in np.clip(np.nan_to_num(each.points[:, :2]), -most, most).astype(int).tolist():
            cv2.circle(picture, (x, y), 1, color, -1)
    return picture
