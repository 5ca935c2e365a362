"""Opens networks on regions of frames where settings want them: OpenGL, the CPU's own code or TensorFlow Lite."""

import contextlib
from collections.abc import Generator, Sequence
from typing import Protocol, TypeVar

from texelflow.gpu_delegate.base import debug
from texelflow.gpu_delegate.base.errors import DeviceError, ModelError, UnsupportedError
from texelflow.gpu_delegate.delegate.interpreter_delegate import gpu_delegate
from texelflow.gpu_delegate.delegate.native_delegate import native_delegate
from texelflow.gpu_delegate.model.layout import stores_halves
from texelflow.gpu_delegate.targets.llvm.pool import WorkerPool

from ...models.decoders.found import Finding
from ...models.decoders.region import FrameRegion
from ...models.finding_model import FindingModel
from ...picture.color_planes import Floats
from ...picture.picture import ImageSize, Picture, PictureFormat
from ...picture.video_frame import VideoFrame
from ..inference.backends import ComputeBackend, CpuChoice, check_bf16, delegate_options
from ..inference.frame_segmenter import made_on_thread
from ..inference.network_options import NETWORK_DEFAULTS, NetworkOptions
from .cpu_regions import CpuRegions
from .gl_regions import GlRegions
from .native_regions import NativeRegions
from .seen_frames import SeenFrames

__all__ = ["FrameRegions", "finished", "open_cpu_regions", "open_regions", "regions_in_steps"]

_Made = TypeVar("_Made")


class FrameRegions(Protocol):
    """A RegionNetwork with all that who opens one needs. Not for use from several threads at once."""

    @property
    def model(self) -> FindingModel: ...
    @property
    def input_size(self) -> ImageSize: ...
    @property
    def renderer(self) -> str:
        """What does the work, for tables."""

    @property
    def note(self) -> str:
        """Why it is not what was asked for, in one line, or empty."""

    def find(self, frame: VideoFrame, region: FrameRegion) -> tuple[Finding, ...]:
        """What is in a region of a frame, best first. Raises TexelflowError."""

    def outputs(self, picture: Picture, region: FrameRegion) -> tuple[Floats, ...]:
        """All outputs of the network for a region of a picture, in the shapes of the file: for checks."""

    def region_to_tensor(self, picture: Picture, region: FrameRegion) -> Floats:
        """The network's input (1, H, W, 3) for a region of a picture: for checks."""

    def take(self, frame: PictureFormat) -> None:
        """Take pictures of another format from now on. Raises DeviceError."""

    def release(self) -> None: ...


def open_regions(
    compute: ComputeBackend,
    model: FindingModel,
    frame: PictureFormat,
    options: NetworkOptions = NETWORK_DEFAULTS,
    seen: SeenFrames | None = None,
) -> FrameRegions:
    """A network for regions of frames of a format, where `compute` says. Raises TexelflowError.

    `seen` has the textures that networks in OpenGL share; without one it has its own.
    Native code runs in the pool that draws, if there is one. `options`' fit and preprocessing are not for regions.
    """
    (made,) = finished(regions_in_steps(compute, [model], frame, options, seen))
    return made


def finished(steps: Generator[tuple[int, int], None, _Made]) -> _Made:
    """What steps make, at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            made: _Made = end.value
            return made


def regions_in_steps(
    compute: ComputeBackend,
    models: Sequence[FindingModel],
    frame: PictureFormat,
    options: NetworkOptions = NETWORK_DEFAULTS,
    seen: SeenFrames | None = None,
) -> Generator[tuple[int, int], None, tuple[FrameRegions, ...]]:
    """The same for networks that see the same frames, with a pause after each shader: (ready, in all) of a network.

    They share textures, or a pool of threads.
    """
    pool = compute.native.pool if compute.native else None
    seen = seen or (SeenFrames(compute.context) if compute.context else None)
    with contextlib.ExitStack() as stack:
        made = list[FrameRegions]()
        for model in models:
            one = yield from _one_in_steps(compute, model, frame, options, seen, pool)
            stack.callback(one.release)
            made.append(one)
            pool = one.pool if isinstance(one, NativeRegions) else pool
        stack.pop_all()
    return tuple(made)


def _one_in_steps(
    compute: ComputeBackend,
    model: FindingModel,
    frame: PictureFormat,
    options: NetworkOptions,
    seen: SeenFrames | None,
    pool: WorkerPool | None,
) -> Generator[tuple[int, int], None, FrameRegions]:
    if compute.backend == "cpu" or seen is None:
        made = yield from made_on_thread(open_cpu_regions, model, frame, compute.cpu, options, pool)
        return made
    try:
        path = yield from GlRegions.in_steps(seen, model, frame, options)
        return path
    except UnsupportedError as error:
        debug.tell(debug.RUN, f"debug: {error}; its parts go through the delegate")
    delegate = gpu_delegate(delegate_options(options.compiling, options.weights_cache))
    parts = yield from made_on_thread(CpuRegions, model, None, delegate)
    return parts


def open_cpu_regions(
    model: FindingModel,
    frame: PictureFormat,
    choice: CpuChoice,
    options: NetworkOptions = NETWORK_DEFAULTS,
    pool: WorkerPool | None = None,
) -> NativeRegions | CpuRegions:
    """The same on the CPU: the engine that is asked for, with auto native code where there can be any.

    Where native code is asked for and there is none, TensorFlow Lite computes, and `note` says why. Raises ModelError
    where that refuses the model, DeviceError where it is not installed either, UsageError for bf16 without native code.
    """
    threads, cache, note = choice.threads or None, options.weights_cache, ""
    precision = options.compiling.precision
    check_bf16(precision, choice.engine != "tflite", "leave it or --cpu tflite out")
    if choice.engine != "tflite":
        try:
            stored = "fp32" if stores_halves(precision) else precision
            return NativeRegions(model, frame, threads, pool, cache, stored)
        except (UnsupportedError, DeviceError, ModelError) as error:
            if precision == "bf16":
                raise
            debug.tell(debug.RUN, f"debug: no native code for all of {model.name}: {error}")
            if parts := _native_parts(model, threads, options, error):
                return parts
            note = f"--cpu native: {error}: TensorFlow Lite runs {model.name}" if choice.engine == "native" else ""
    return CpuRegions(model, threads, weights_cache=cache, note=note)


def _native_parts(
    model: FindingModel, threads: int | None, options: NetworkOptions, reason: Exception
) -> CpuRegions | None:
    """TensorFlow Lite with parts of a model in native code; None where these would not pay."""
    if not isinstance(reason, UnsupportedError):
        return None
    regions = CpuRegions(model, threads, native_delegate(threads, options.weights_cache))
    try:
        regions.check_parts(reason)
    except UnsupportedError as error:
        debug.tell(debug.RUN, f"debug: {error}")
        regions.release()
        return None
    return regions
