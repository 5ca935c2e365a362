"""`texelflow bench frame`: times the frame job, or each dispatch of a model."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from texelflow.gpu_delegate.base.errors import MediaError, UsageError
from texelflow.gpu_delegate.targets.gl.context import open_context

from ..console import Console
from ..frame.backend_choice.frame_job import CpuFrameJob, FrameJob, frame_job
from ..frame.finding.finder_opening import fetch_partners
from ..frame.inference.backends import CpuChoice
from ..frame.inference.cpu_choice import chosen_cpu_path
from ..frame.inference.cpu_path import CpuPath
from ..frame.inference.network_options import NetworkOptions
from ..models.finding_loading import load_shown_model
from ..models.finding_model import FindingModel
from ..models.model_loading import FrameModel, PictureModel
from ..picture.convert import Rgba
from ..picture.picture import rgba_format, rgba_picture
from ..picture.preprocess import ImageSize
from ..verbs.tune import tune_first
from .found_bench import bench_found
from .frame_bench_options import FrameBench, check_frame_bench, frames_of
from .measuring.frame_runs import measure_job

MEAN_TOLERANCE = 1e-3


def bench_frame(options: FrameBench, console: Console) -> tuple[dict[str, Any], int]:
    """Measure the frame job: the figures, and the exit code, 1 where the mask, or what is found, is not the CPU path's.

    Raises TexelflowError.
    """
    check_frame_bench(options)
    frames = frames_of(options)
    size = (frames[0].shape[1], frames[0].shape[0])
    with console.download() as progress:
        model = load_shown_model(options.model, progress=progress)
        if isinstance(model, FindingModel):
            fetch_partners(model, progress)
    if isinstance(model, FindingModel):
        return bench_found(options, model, frames, console)
    if options.masks is not None and isinstance(model, PictureModel):
        raise UsageError(f"--masks: {model.name} puts out a picture and has no mask; leave it out")
    if options.backend == "gl":
        tune_first(model.graph, options.compiling.precision, console)
    with _job(options, model, size, console) as (make, settle):
        job, times = measure_job(make, settle, frames, options.warmup, options.runs, console)
        means = _means(job, frames, options.masks)
    last = (options.warmup + options.runs - 1) % len(frames)
    error = _mean_error(model, size, frames, means) if options.backend == "gl" else 0.0
    figures = {
        **times,
        "renderer": job.renderer,
        "gl_version": job.gl_version,
        "backend": options.backend,
        "precision": options.compiling.precision,
        "memory": options.compiling.memory.mode,
        "dispatches": job.dispatches,
        "mask_mean": means[last],
        "mask_mean_error": error,
        "model": model.name,
        "frames": [len(frames), size[1], size[0], 4],
        "runs": options.runs,
    }
    return figures, 0 if error <= MEAN_TOLERANCE else 1


@contextlib.contextmanager
def _job(
    options: FrameBench, model: FrameModel, size: ImageSize, console: Console
) -> Iterator[tuple[Callable[[], FrameJob], Callable[[], None]]]:
    """What makes the job, called when the context is open and the clock runs; and what readies it for long runs."""
    if options.backend == "cpu":
        yield partial(_cpu_job, model, size, options), lambda: None
        return
    with open_context() as context, console.compilation() as progress:
        frame, network = rgba_format(size), NetworkOptions(options.compiling)
        yield lambda: frame_job(context, model, frame, network, progress), context.calls.settle


def _cpu_job(model: FrameModel, size: ImageSize, options: FrameBench) -> CpuFrameJob:
    network = NetworkOptions(options.compiling)
    path, instead = chosen_cpu_path(model, rgba_format(size), options.cpu or CpuChoice(), network)
    return CpuFrameJob(path, instead)


def _means(job: FrameJob, frames: Sequence[Rgba], masks: Path | None) -> list[float]:
    """The mean of each frame's mask; the masks themselves go to a .npy file, if one is asked for."""
    shape = (len(frames), *frames[0].shape[:2])
    try:
        stored = None
        if masks is not None:
            open_memmap: Any = np.lib.format.open_memmap
            stored = open_memmap(masks, mode="w+", dtype=np.float32, shape=shape)
        means = []
        for number, frame in enumerate(frames):
            mask = job.run(rgba_picture(np.array(frame)))
            means.append(float(mask.mean(dtype=np.float64)))
            if stored is not None:
                stored[number] = mask
        if stored is not None:
            stored.flush()
    except OSError as error:
        raise MediaError(f"'{masks}' cannot be written: {error.strerror}; choose another place") from error
    return means


def _mean_error(model: FrameModel, size: ImageSize, frames: Sequence[Rgba], means: Sequence[float]) -> float:
    """How far the mean of any frame's mask is from the CPU path's."""
    path = CpuPath(model, rgba_format(size), as_read=True)
    expected = [float(path.run(rgba_picture(np.array(frame))).mean(dtype=np.float64)) for frame in frames]
    return float(np.abs(np.subtract(means, expected)).max())
