"""Compares what a network makes of a recording's frames with what TensorFlow Lite does, and prints it.

What is checked runs on the GPU, or is the CPU's own code.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from texelflow.gpu_delegate.cpu.compare import TOLERANCE, errors, first_divergence
from texelflow.gpu_delegate.model.layout import Precision
from texelflow.gpu_delegate.model.packing import in_file_type
from texelflow.gpu_delegate.model.quantization import has_quantized, precision_for
from texelflow.gpu_delegate.model.state_values import initial_state
from texelflow.gpu_delegate.targets.gl.context import open_context
from texelflow.gpu_delegate.targets.llvm.compiler import native_target

from ...console import Console
from ...frame.backend_choice.frame_job import CpuFrameJob, FrameJob, frame_job
from ...frame.inference.cpu_path import CpuPath
from ...frame.inference.masks import (
    MaskDifference,
    MaskLimits,
    compare_masks,
    failures,
    iou_of,
    limits_of,
    save_picture,
)
from ...frame.inference.native_path import NativePath
from ...frame.inference.network_options import NETWORK_DEFAULTS, NetworkOptions
from ...media.sources import FileSource
from ...models.model_loading import FrameModel, PictureModel
from ...picture.convert import Rgba
from ...picture.picture import PictureFormat
from ...picture.preprocess import Floats, Preprocessing
from .check_model import Sample, Subject, TensorCheck, finite, gl_programs, native_programs
from .hybrid_check import Loads

DEFAULT_REPORT = Path("texelflow-check.png")


@dataclass(frozen=True)
class _Worst:
    """The frame that is furthest off, with all that the report needs."""

    difference: MaskDifference
    rgba: Rgba
    tensor: Floats  # the CPU path's input of the network
    found: Floats
    expected: Floats


@dataclass(frozen=True)
class _Findings:
    """All frames' differences, the largest error of the network on the CPU's own input, and the worst frame."""

    frames: tuple[MaskDifference, ...]
    network_error: float
    network_frame: int
    worst: _Worst
    note: str  # FrameJob's


@dataclass(frozen=True)
class _Checked:
    """What is compared with TensorFlow Lite: the frame job, its network's tensors, and where both run."""

    job: FrameJob
    loads: Loads
    title: str
    renderer: str
    gl_version: str | None


def check_clip(
    source: FileSource,
    model: FrameModel,
    tolerance: float | None,
    report: Path | None,
    console: Console,
    options: NetworkOptions = NETWORK_DEFAULTS,
    backend: str = "gl",
    spare: Path = DEFAULT_REPORT,
) -> tuple[dict[str, Any], int]:
    """Compare all frames of the source: the figures, and the exit code. `backend` is gl or native.

    The figures tell the error of the network alone, too, and it decides nothing: on frames where a network is uncertain
    two float32 implementations differ by 1e-4 and more, TensorFlow Lite's own two among them (XNNPACK and built-in).
    The worst frame is saved to `report`, or to `spare` where there is none and the check fails.
    Raises UnsupportedError, DeviceError, MediaError.
    """
    precision, preprocessing = options.compiling.precision, options.preprocessing
    precision = precision_for(model.graph, precision) if backend == "native" else precision
    limits = limits_of(precision, isinstance(model, PictureModel), tolerance, has_quantized(model.graph))
    frame = source.format
    with (
        _native(model, frame, preprocessing, precision)
        if backend == "native"
        else _on_gpu(model, frame, console, options)
    ) as checked:
        found = _compare_frames(checked.job, source, model, limits, preprocessing, console)
        failed = failures(found.frames, limits)
        passed = not failed
        figures = _figures(checked, model, precision, preprocessing, found, failed)
        rows = [(name, value) for name, value in figures.items() if not isinstance(value, list)]
        console.table(f"{source.info.path}: {checked.title}", ("figure", "value"), [(n, _text(v)) for n, v in rows])
        if report is not None or not passed:
            place = report or spare
            save_picture(place, found.worst.difference, found.worst.rgba, found.worst.found, found.worst.expected)
            console.say(f"frame {found.worst.difference.frame}, the worst one, is in {place}")
        if passed:
            verdict = f"all {len(found.frames)} frames agree: {limits.words}"
        else:
            subject = Subject(model.name, model.graph, model.spec.input_range)
            check = TensorCheck(subject, TOLERANCE, checked.loads)
            verdict = _verdict(check, found, failed, limits)
        console.say(verdict)
    return {**figures, "verdict": verdict}, 0 if passed else 1


@contextmanager
def _on_gpu(model: FrameModel, frame: PictureFormat, console: Console, options: NetworkOptions) -> Iterator[_Checked]:
    with open_context() as context:
        with console.compilation() as progress:
            job = frame_job(context, model, frame, options, progress)
        loads = gl_programs(context, model.graph, console, options.compiling)
        yield _Checked(job, loads, "GPU against CPU", context.renderer, context.gl_version)


@contextmanager
def _native(
    model: FrameModel, frame: PictureFormat, preprocessing: Preprocessing, precision: Precision
) -> Iterator[_Checked]:
    job = CpuFrameJob(NativePath(model, frame, preprocessing=preprocessing, precision=precision))
    loads = native_programs(native_target(precision), model.graph)
    try:
        yield _Checked(job, loads, "the CPU's own code against TensorFlow Lite", job.renderer, None)
    finally:
        job.release()


def _compare_frames(
    job: FrameJob,
    source: FileSource,
    model: FrameModel,
    limits: MaskLimits,
    preprocessing: Preprocessing,
    console: Console,
) -> _Findings:
    cpu = CpuPath(model, source.format, preprocessing=preprocessing, as_read=True)
    if job.note:
        console.note_once(job.note)
    differences: list[MaskDifference] = []
    network_errors: list[float] = []
    remembers = model.remembers
    worst: _Worst | None = None
    with console.frames("checking") as report:
        for frame in source:
            tensor = cpu.image_to_tensor(frame.picture)
            mask = cpu.network(tensor)
            expected, found = cpu.mask_to_frame(mask), job.run(frame.picture)
            difference = compare_masks(frame.index, found, expected)
            differences.append(difference)
            # A network that remembers would see the frame twice: its own error is the mask's.
            alone = difference.max_error if remembers else float(errors(job.network(tensor), mask).max())
            network_errors.append(alone)
            if worst is None or _badness(difference, limits) > _badness(worst.difference, limits):
                worst = _Worst(difference, frame.rgba, tensor, found, expected)
            report(len(differences), source.info.frame_count or 0)
    assert worst is not None, "a source without frames raises"
    least_sure = int(np.argmax(network_errors))  # NaN counts as the largest
    return _Findings(tuple(differences), network_errors[least_sure], differences[least_sure].frame, worst, job.note)


def _badness(difference: MaskDifference, limits: MaskLimits) -> tuple[bool, float]:
    """Frames that fail are worse than those that do not, then larger errors; NaN is the worst error."""
    return not difference.agrees(limits), float(np.nan_to_num(difference.max_error, nan=np.inf))


def _verdict(check: TensorCheck, found: _Findings, failed: Sequence[int], limits: MaskLimits) -> str:
    """One line that says what failed and, from the worst frame, which op of the network is at fault if one is."""
    source = check.subject.graph.tensors[check.subject.graph.inputs[0]]
    given = in_file_type(found.worst.tensor, source), *map(initial_state, check.subject.graph.states)
    sample = Sample(f"frame {found.worst.difference.frame}", given)
    first = None if found.note else first_divergence(check.run([sample], fuse=True)[0])
    if found.note:
        cause = f"check {check.subject.name} --backend delegate compares the network's outputs"
    elif first is None:
        cause = "the network agrees on the worst of them, so what is before or behind it differs"
    else:
        cause = check.explain(first, sample)
    return f"{len(failed)} of {len(found.frames)} frames fail (allowed: {limits.words}); {cause}"


def _figures(
    checked: _Checked,
    model: FrameModel,
    precision: Precision,
    preprocessing: Preprocessing,
    found: _Findings,
    failed: list[int],
) -> dict[str, Any]:
    frames = found.frames
    return {
        "model": model.name,
        "renderer": checked.renderer,
        "gl_version": checked.gl_version,
        "delegate": found.note or None,
        "precision": precision,
        "preprocessing": preprocessing,
        "frames": len(frames),
        "max_error": finite(float(np.max([d.max_error for d in frames]))),
        "mean_error": finite(float(np.mean([d.mean_error for d in frames]))),
        **({} if isinstance(model, PictureModel) else _outlines(frames)),
        "network_error": finite(found.network_error),
        "network_frame": found.network_frame,
        "worst_frame": found.worst.difference.frame,
        "failed_frames": failed,
        "passed": not failed,
    }


def _outlines(frames: Sequence[MaskDifference]) -> dict[str, Any]:
    return {
        "iou": iou_of(frames),
        "min_iou": min(d.iou for d in frames),
        "max_pixels": max(d.pixels for d in frames),
        "frames_with_other_pixels": sum(d.pixels > 0 for d in frames),
    }


def _text(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) and value < 0.1 else str(value)
