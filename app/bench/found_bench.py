"""`texelflow bench frame` of a network that finds things: from a frame in RAM to what is found in it."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.model.quantization import has_quantized
from texelflow.gpu_delegate.targets.gl.context import open_context

from ..console import Console
from ..frame.backend_choice.found_frame import opened_path
from ..frame.finding.cpu_regions import CpuRegions
from ..frame.finding.finder_opening import solution_for
from ..frame.finding.found_difference import FoundDifference, PairedRegions, found_limits_of, worst_of
from ..frame.finding.network_paths import FindingPath
from ..frame.inference.backends import ComputeBackend, CpuChoice
from ..frame.inference.network_options import NetworkOptions
from ..models.decoders.found import Finding
from ..models.finding_model import FindingModel
from ..picture.convert import Rgba
from ..picture.picture import Picture, rgba_format, rgba_picture
from ..picture.video_frame import VideoFrame
from ..tracking.tracking_finder import make_finder
from ..verbs.tune import tune_first
from .frame_bench_options import FrameBench
from .measuring.frame_runs import measure_job

_FRAME_MS = 1000 / 30


@dataclass
class _FoundJob:
    """The networks of a solution, which see one frame after the other, 30 a second."""

    path: FindingPath
    frames: int = 0
    found: tuple[Finding, ...] = ()

    @property
    def note(self) -> str:
        """What is to be said of where they run."""
        return self.path.note

    def run(self, picture: Picture) -> None:
        """Find what is in the next frame."""
        frame = _frame(self.frames, picture)
        self.frames += 1
        for stage in self.path.stages:
            stage.run(frame)
        self.found = self.path.finder.find(frame)


def bench_found(
    options: FrameBench, model: FindingModel, frames: Sequence[Rgba], console: Console
) -> tuple[dict[str, Any], int]:
    """The figures, and the exit code: 1 where OpenGL does not find what TensorFlow Lite finds in the same regions.

    Raises TexelflowError.
    """
    if options.masks is not None:
        raise UsageError(f"--masks: {model.name} finds things and has no mask; leave it out")
    if options.backend == "gl":
        tune_first(model.graph, options.compiling.precision, console)
    with _compute(options) as (compute, settle), contextlib.ExitStack() as stack:
        height, width = frames[0].shape[:2]
        network = NetworkOptions(options.compiling)

        def make() -> _FoundJob:
            with console.compilation() as progress:
                path = opened_path(compute, model, rgba_format((width, height)), network, progress=progress)
            stack.callback(path.release)
            return _FoundJob(path)

        job, times = measure_job(make, settle, frames, options.warmup, options.runs, console)
        path = job.path
        on_gl = options.backend == "gl"
        difference = _difference(path, model, frames) if on_gl else None
        limits = found_limits_of(options.compiling.precision, None, has_quantized(model.graph))
        context = compute.context
        return {
            **times,
            "renderer": context.renderer if context and path.backend == "gl" else path.on_cpu,
            "gl_version": compute.gl_version,
            "backend": options.backend,
            "precision": options.compiling.precision,
            "memory": options.compiling.memory.mode,
            "dispatches": path.dispatches,
            "found": len(job.found),
            **_compared(difference),
            "model": model.name,
            "networks": [each.model.name for each in path.networks],
            "frames": [len(frames), height, width, 4],
            "runs": options.runs,
        }, 0 if difference is None or difference.agrees(limits) else 1


@contextlib.contextmanager
def _compute(options: FrameBench) -> Iterator[tuple[ComputeBackend, Callable[[], None]]]:
    """Where networks run, and what readies that for long runs. Raises DeviceError."""
    if options.backend == "cpu":
        yield ComputeBackend("cpu", None, options.cpu or CpuChoice()), lambda: None
        return
    with open_context() as context:
        yield ComputeBackend("gl", context), context.calls.settle


def _difference(path: FindingPath, model: FindingModel, frames: Sequence[Rgba]) -> FoundDifference:
    """Of all frames, from what TensorFlow Lite finds in the regions that it follows."""
    paired = [PairedRegions(network, CpuRegions(network.model, as_read=True)) for network in path.networks]
    finder = make_finder(solution_for(model), paired)
    for number, rgba in enumerate(frames):
        frame = _frame(number, rgba_picture(np.array(rgba)))
        for stage in path.stages:
            stage.run(frame)
        finder.find(frame)
    return worst_of([pair.difference for network in paired for pair in network.taken()])


def _frame(number: int, picture: Picture) -> VideoFrame:
    return VideoFrame(number, number, number * _FRAME_MS, picture)


def _compared(difference: FoundDifference | None) -> dict[str, Any]:
    """Nothing where nothing was compared."""
    if difference is None:
        return {}
    return {"max_error": difference.error, "min_iou": difference.iou, "max_distance": difference.distance}
