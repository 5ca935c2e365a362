"""What `texelflow bench frame` is asked to do, and the frames that it is about."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.base.wording import meant
from texelflow.gpu_delegate.model.layout import stores_halves
from texelflow.gpu_delegate.plan.compile_options import COMPILE_DEFAULTS, CompileOptions
from texelflow.gpu_delegate.plan.memory.memory_options import ARENA

from ..files import Files, Read, Write, settle
from ..frame.inference.backends import CpuChoice, check_bf16
from ..media.frames import clip_frames, parse_frame_size, read_frames
from ..models.catalogue import model_path
from ..picture.convert import Rgba
from .measuring.run_rule import MOST_RUNS


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
