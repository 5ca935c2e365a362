"""`texelflow bench frame`: times the frame job, or each dispatch of a model."""

import contextlib
import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from texelflow.gpu_delegate.base.errors import MediaError, UsageError
from texelflow.gpu_delegate.base.wording import meant
from texelflow.gpu_delegate.model.layout import stores_halves
from texelflow.gpu_delegate.plan.compile_options import COMPILE_DEFAULTS, CompileOptions
from texelflow.gpu_delegate.plan.memory.memory_options import ARENA
from texelflow.gpu_delegate.targets.gl.context import open_context

from ..console import Console
from ..files import Files, Read, Write, settle
from ..frame.backend_choice.frame_job import CpuFrameJob, FrameJob, frame_job
from ..frame.inference.backends import CpuChoice, check_bf16
from ..frame.inference.cpu_choice import chosen_cpu_path
from ..frame.inference.cpu_path import CpuPath
from ..frame.inference.network_options import NetworkOptions
from ..frame.stages.stats import summarize
from ..media.frames import clip_frames, parse_frame_size, read_frames
from ..models.catalogue import model_path
from ..models.model_loading import FrameModel, PictureModel, load_frame_model
from ..picture.convert import Rgba
from ..picture.picture import rgba_format, rgba_picture
from ..picture.preprocess import ImageSize
from ..verbs.tune import tune_first
from .measuring.energy import EnergyMeter, energy_counters, energy_figures
from .measuring.run_rule import MOST_RUNS

MEAN_TOLERANCE = 1e-3


@dataclass(frozen=True)
class FrameBench:
    """What `bench frame` is asked to do."""

    model: str = "selfie"
    size: str | None = None
    frames: Path | None = None
    masks: Path | None = None
    warmup: int = 10
    runs: int = 100
    backend: str = "gl"
    compiling: CompileOptions = COMPILE_DEFAULTS
    force: bool = False  # masks that are there may be written over
    cpu: CpuChoice | None = None


def bench_frame(options: FrameBench, console: Console) -> tuple[dict[str, Any], int]:
    """Measure the frame job: the figures, and the exit code, 1 where the mask is not the CPU path's.

    Raises TexelflowError.
    """
    check_frame_bench(options)
    frames = frames_of(options)
    size = (frames[0].shape[1], frames[0].shape[0])
    with console.download() as progress:
        model = load_frame_model(options.model, progress=progress)
    if options.masks is not None and isinstance(model, PictureModel):
        raise UsageError(f"--masks: {model.name} puts out a picture and has no mask; leave it out")
    if options.backend == "gl":
        tune_first(model.graph, options.compiling.precision, console)
    with _job(options, model, size, console) as (make, settle):
        start = perf_counter()
        job = make()
        job.run(rgba_picture(np.array(frames[0])))
        init_ms = (perf_counter() - start) * 1e3
        if job.note:
            console.note_once(job.note)
        settle()
        times_ms, energy = _measure(job, frames, options.warmup, options.runs)
        means = _means(job, frames, options.masks)
    last = (options.warmup + options.runs - 1) % len(frames)
    error = _mean_error(model, size, frames, means) if options.backend == "gl" else 0.0
    figures = {
        **summarize(times_ms).rounded(),
        "init_ms": round(init_ms, 2),
        "energy": energy,
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


def check_frame_bench(options: FrameBench) -> None:
    """Raises UsageError for options that contradict each other, and files that may not be read or written."""
    if options.backend not in (known := ("gl", "cpu")):
        raise UsageError(f"--backend {options.backend}: gl or cpu is needed here{meant(options.backend, known)}")
    if stores_halves(options.compiling.precision) and options.backend == "cpu":
        raise UsageError(f"--precision {options.compiling.precision} is for the GPU: leave it or --backend cpu out")
    check_bf16(options.compiling.precision, options.backend == "cpu", "add --backend cpu")
    if options.compiling.memory != ARENA and options.backend == "cpu":
        raise UsageError("--memory and --planner are for the GPU: leave them or --backend cpu out")
    if options.frames is not None and options.size is not None:
        raise UsageError("--size and --frames exclude each other: the frames have their size")
    if not 1 <= options.runs <= MOST_RUNS or not 0 <= options.warmup <= MOST_RUNS:
        raise UsageError(f"--runs goes from 1 to {MOST_RUNS}, --warmup from 0")
    settle(_files_of(options), options.force)


def frames_of(options: FrameBench) -> Sequence[Rgba]:
    """The frames that are measured, each (H, W, 4). Raises UsageError, MediaError."""
    if options.frames is not None:
        return list(read_frames(options.frames))
    return clip_frames(parse_frame_size(options.size or "640x480"))


def _files_of(options: FrameBench) -> Files:
    frames = (Read("--frames", options.frames),) if options.frames else ()
    return Files(
        (Read("the model", model_path(options.model)), *frames),
        (Write("--masks", options.masks, "array"),) if options.masks else (),
    )


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


def _measure(job: FrameJob, frames: Sequence[Rgba], warmup: int, runs: int) -> tuple[list[float], dict[str, Any]]:
    """Milliseconds of each run after the warm-up, the frames used in turn and in RAM when the clock starts; and the
    energy of these runs, with the copies of frames between them."""
    times_ms = []
    counters, reasons = energy_counters()
    meter = EnergyMeter(counters)
    gc.collect()
    gc.disable()
    try:
        for number in range(warmup + runs):
            if number == warmup:
                meter = EnergyMeter(counters)
            meter.look()
            frame = rgba_picture(np.array(frames[number % len(frames)]))
            start = perf_counter()
            job.run(frame)
            times_ms.append((perf_counter() - start) * 1e3)
    finally:
        gc.enable()
    meter.stop()
    return times_ms[warmup:], energy_figures(counters, reasons, meter, runs)


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
