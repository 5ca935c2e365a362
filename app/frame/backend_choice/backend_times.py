"""Measures once what a frame takes on the GPU and in the CPU's own code, for --backend auto.

Where frames are drawn that is a whole frame (whole_frame.py), else the frame job (frame_job.py); of what finds things a
frame that each of its networks sees once (found_frame.py). What was measured is kept on disk by which of them it is,
the device, its driver, the CPU, the models and the versions of both compilers.
"""

import contextlib
import hashlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from statistics import median
from time import perf_counter

import numpy as np

from texelflow.gpu_delegate.base import debug
from texelflow.gpu_delegate.base.disk_cache import DiskCache
from texelflow.gpu_delegate.base.errors import DeviceError, UnsupportedError
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.plan.signature import graph_signature
from texelflow.gpu_delegate.targets.gl.context import Context
from texelflow.gpu_delegate.targets.gl.runtime import CompileProgress
from texelflow.gpu_delegate.targets.llvm.compiler import available, llvm_version, native_target
from texelflow.gpu_delegate.targets.llvm.loading import compiling_files
from texelflow.gpu_delegate.tuning.store import device_key, is_tuned

from ...models.finding_loading import ShownModel
from ...models.finding_model import FindingModel
from ...models.model_loading import FrameModel
from ...picture.picture import Picture, rgba_format, rgba_picture
from ...picture.video_frame import VideoFrame
from ..finding.finder_opening import solution_for
from ..finding.network_paths import FindingPath
from ..inference.backends import ComputeBackend, ComputeChoice, CpuChoice
from ..inference.cpu_engine import open_cpu_path
from ..inference.frame_segmenter import CpuSegmenter, segmenter_in_steps
from ..inference.gl_path import GlPath
from ..inference.network_options import NetworkOptions
from ..textures.native_pictures import NativePictures
from .found_frame import FoundFrame, SeesEach, opened_path
from .frame_job import frame_job
from .whole_frame import WholeFrame

KIND = "backends"  # of entries in the cache

_SIZE = (640, 480)  # of the frames
_FRAMES_S = 0.25  # for the frames of each side
_LEAST_FRAMES, _MOST_FRAMES = 5, 50
_SHADERS_S = 1.0  # for shaders on a software renderer; a GPU's are needed anyway, if it is taken
_DRAWING_S = 0.5  # of that, for shaders that draw: they are compiled last, in the first frame
_MOST_NAME = 200  # characters of a model's name in a key

_Run = Callable[[Picture], object]


@dataclass(frozen=True)
class BackendTimes:
    """Milliseconds of one frame of 640x480 in RAM, to its picture in RAM where frames are drawn, else to its mask or to
    what is found.

    gl_ms is None where shaders were not ready in time or not possible, cpu_ms where there is no such code of the model.
    """

    gl_ms: float | None
    cpu_ms: float | None

    def line(self, made: str) -> str:
        """Both in words; `made` is what is made of a frame: see frames_become."""
        on_gl = "not ready in time" if self.gl_ms is None else f"{self.gl_ms:.1f} ms a {made}"
        on_cpu = "no code of its own" if self.cpu_ms is None else f"{self.cpu_ms:.1f} ms in code of its own"
        return f"{on_gl}, the CPU {on_cpu}"


def frames_become(model: ShownModel, draws: bool) -> str:
    """What is made of a frame: picture, mask or, of what finds things and does not draw them, frame."""
    return "picture" if draws else "frame" if isinstance(model, FindingModel) else "mask"


def backend_times(context: Context, model: ShownModel, choice: ComputeChoice, draws: bool) -> BackendTimes | None:
    """The times that are kept, else those that are measured now; None where the CPU has no code of its own to offer.

    `draws`: of whole frames, not of masks. Leaves OpenGL as it was, but for what is bound. Raises UsageError for
    TEXELFLOW_CPU.
    """
    if choice.cpu.engine == "tflite" or available():
        return None
    cache, key = DiskCache(), times_key(context, model, choice, draws)
    kept = parse_times(cache.get(KIND, key) or b"")
    if kept is None:
        kept = measured_times(context, model, choice, draws)
        cache.put(KIND, key, json.dumps(asdict(kept)).encode())
        debug.tell(debug.RUN, f"debug: {context.renderer} {kept.line(frames_become(model, draws))}")
    return kept


def times_key(context: Context, model: ShownModel, choice: ComputeChoice, draws: bool) -> str:
    """What the times depend on; `texelflow cache` shows it."""
    target, graph = native_target(), model.graph
    made = frames_become(model, draws)
    if isinstance(model, FindingModel):
        made = f"{made} {' '.join(solution_for(model).models)[:_MOST_NAME]}"
    tuned = "tuned" if is_tuned(context, graph, choice.precision) else "untuned"
    cpu = f"{target.name} {target.cpu} {choice.cpu.threads or 'usual'} threads LLVM {llvm_version()} {_code_version()}"
    named = f"{graph_signature(graph, choice.precision)} {choice.precision} {graph.name[:_MOST_NAME]}"
    return f"{made} {device_key(context)} {tuned} {cpu} {named}"


def _code_version() -> str:
    """12 hex digits, other ones when a file changes that code for the CPU is made by."""
    return hashlib.sha256(repr(compiling_files()).encode()).hexdigest()[:12]


def measured_times(context: Context, model: ShownModel, choice: ComputeChoice, draws: bool) -> BackendTimes:
    """Measure both now: the CPU's first, since without them nothing is to be compared."""
    cpu_ms = _cpu_ms(model, choice, draws)
    return BackendTimes(None if cpu_ms is None else _gl_ms(context, model, choice, draws), cpu_ms)


def parse_times(data: bytes) -> BackendTimes | None:
    """What was kept; None for anything else."""
    try:
        found: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.keys() != {"gl_ms", "cpu_ms"}:
        return None
    times = [found["gl_ms"], found["cpu_ms"]]
    if not all(ms is None or (type(ms) is float and 0 <= ms < math.inf) for ms in times):
        return None
    return BackendTimes(*times)


def _cpu_ms(model: ShownModel, choice: ComputeChoice, draws: bool) -> float | None:
    try:
        with _on_cpu(model, CpuChoice("native", choice.cpu.threads), draws) as run:
            return _frame_ms(run)
    except (UnsupportedError, DeviceError):
        return None


@contextlib.contextmanager
def _on_cpu(model: ShownModel, cpu: CpuChoice, draws: bool) -> Iterator[_Run]:
    """What makes masks or pictures in code of the CPU. Raises UnsupportedError, DeviceError where there is none."""
    frame, options = rgba_format(_SIZE), NetworkOptions(preprocessing="auto")
    with contextlib.ExitStack() as stack:
        if isinstance(model, FindingModel):
            found_by = ComputeBackend("cpu", None, cpu, NativePictures(cpu.threads or None) if draws else None)
            stack.callback(found_by.end_drawing)
            yield stack.enter_context(_finding(found_by, model, options))
            return
        if not draws:
            path = stack.enter_context(contextlib.closing(open_cpu_path(model, frame, cpu, options)))
            yield path.run
            return
        pictures = NativePictures(cpu.threads or None)
        stack.callback(pictures.release)
        path = open_cpu_path(model, frame, cpu, options, pictures.pool)
        compute = ComputeBackend("cpu", None, cpu, pictures)
        whole = WholeFrame(compute, CpuSegmenter(pictures, path, frame), options.fit)
        stack.callback(whole.release)
        yield whole.run


class _TakesTooLongError(Exception):
    """Shaders are not worth waiting for."""


def _gl_ms(context: Context, model: ShownModel, choice: ComputeChoice, draws: bool) -> float | None:
    end = perf_counter() + (_SHADERS_S - _DRAWING_S * draws if context.is_software else math.inf)

    def watch(ready: int, of_all: int) -> None:
        if ready < of_all and perf_counter() > end:
            raise _TakesTooLongError

    options = NetworkOptions(CompileOptions(precision=choice.precision), preprocessing="auto")
    try:
        with _on_gl(context, model, draws, options, watch) as run:
            if not context.is_software:  # whose calls take less time than its shaders in any case
                context.calls.settle()
            return _frame_ms(run)
    except (_TakesTooLongError, DeviceError):
        return None


def _on_gl(
    context: Context, model: ShownModel, draws: bool, options: NetworkOptions, watch: CompileProgress
) -> contextlib.AbstractContextManager[_Run]:
    """What makes pictures, masks or findings. Raises DeviceError, and what `watch` raises."""
    if isinstance(model, FindingModel):
        return _finding(ComputeBackend("gl", context), model, options, watch, draws)
    return (_whole_on_gl if draws else _mask_on_gl)(context, model, options, watch)


@contextlib.contextmanager
def _finding(
    compute: ComputeBackend,
    model: FindingModel,
    options: NetworkOptions,
    watch: CompileProgress | None = None,
    draws: bool = True,
) -> Iterator[_Run]:
    """What has each network see a frame, and draws what is found. Raises UnsupportedError where there is no native code
    of one that is to run on the CPU, DeviceError, and what `watch` raises."""
    frame = rgba_format(_SIZE)
    made: FoundFrame | FindingPath
    if compute.pictures and draws:
        made = FoundFrame(compute, model, frame, options, sees_each=True, progress=watch)
    else:
        made = opened_path(compute, model, frame, options, progress=watch)
    try:
        if made.note and compute.backend == "cpu":
            raise UnsupportedError(made.note)
        yield made.run if isinstance(made, FoundFrame) else _seen_by(made)
    finally:
        made.release()


def _seen_by(path: FindingPath) -> _Run:
    finder = SeesEach(path.networks)

    def run(picture: Picture) -> object:
        frame = VideoFrame(0, 0, 0.0, picture)
        for stage in path.stages:
            stage.run(frame)
        return finder.find(frame)

    return run


@contextlib.contextmanager
def _mask_on_gl(context: Context, model: FrameModel, options: NetworkOptions, watch: CompileProgress) -> Iterator[_Run]:
    """What makes masks. Raises DeviceError, and what `watch` raises."""
    job = frame_job(context, model, rgba_format(_SIZE), options, watch)
    try:
        yield job.run
    finally:
        job.release()


@contextlib.contextmanager
def _whole_on_gl(
    context: Context, model: FrameModel, options: NetworkOptions, watch: CompileProgress
) -> Iterator[_Run]:
    """What makes pictures. Raises DeviceError, and what `watch` raises."""
    compute = ComputeBackend("gl", context)
    whole = WholeFrame(compute, _segmenter(compute, model, options, watch), options.fit)
    try:
        yield whole.run
    finally:
        whole.release()


def _segmenter(
    compute: ComputeBackend, model: FrameModel, options: NetworkOptions, watch: CompileProgress
) -> GlPath | CpuSegmenter:
    steps = segmenter_in_steps(compute, model, rgba_format(_SIZE), options)
    with contextlib.closing(steps):
        while True:
            try:
                watch(*next(steps))
            except StopIteration as finished:
                segmenter: GlPath | CpuSegmenter = finished.value
                return segmenter


def _frame_ms(run: _Run) -> float:
    """The median of some frames, after two that warm up."""
    rgba = np.random.default_rng(0).integers(0, 256, (_SIZE[1], _SIZE[0], 4), np.uint8)
    times_ms, picture = list[float](), rgba_picture(rgba)
    run(picture), run(picture)
    end = perf_counter() + _FRAMES_S
    while len(times_ms) < _LEAST_FRAMES or (len(times_ms) < _MOST_FRAMES and perf_counter() < end):
        start = perf_counter()
        run(picture)
        times_ms.append((perf_counter() - start) * 1e3)
    return median(times_ms)
