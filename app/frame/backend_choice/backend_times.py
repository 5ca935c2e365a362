"""Measures once what the frame job takes on the GPU and in the CPU's own code, for --backend auto.

What was measured is kept on disk by the device, its driver, the CPU, the model and the versions of both compilers.
"""

import contextlib
import hashlib
import json
import math
from collections.abc import Callable
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
from texelflow.gpu_delegate.targets.llvm.compiler import available, llvm_version, native_target
from texelflow.gpu_delegate.targets.llvm.loading import compiling_files
from texelflow.gpu_delegate.tuning.store import device_key, is_tuned

from ...models.model_loading import FrameModel
from ...picture.picture import Picture, rgba_format, rgba_picture
from ..inference.backends import ComputeChoice, CpuChoice
from ..inference.cpu_engine import open_cpu_path
from ..inference.network_options import NetworkOptions
from .frame_job import frame_job

KIND = "backends"  # of entries in the cache

_SIZE = (640, 480)  # of the frames
_FRAMES_S = 0.25  # for the frames of each side
_LEAST_FRAMES, _MOST_FRAMES = 5, 50
_SHADERS_S = 1.0  # for shaders on a software renderer; a GPU's are needed anyway, if it is taken
_MOST_NAME = 200  # characters of a model's name in a key


@dataclass(frozen=True)
class BackendTimes:
    """Milliseconds of one frame job: a frame of 640x480 in RAM to its mask in RAM.

    gl_ms is None where shaders were not ready in time or not possible, cpu_ms where there is no such code of the model.
    """

    gl_ms: float | None
    cpu_ms: float | None

    @property
    def line(self) -> str:
        """Both in words."""
        on_gl = "not ready in time" if self.gl_ms is None else f"{self.gl_ms:.1f} ms a frame"
        on_cpu = "no code of its own" if self.cpu_ms is None else f"{self.cpu_ms:.1f} ms in code of its own"
        return f"{on_gl}, the CPU {on_cpu}"


def backend_times(context: Context, model: FrameModel, choice: ComputeChoice) -> BackendTimes | None:
    """The times that are kept, else those that are measured now; None where the CPU has no code of its own to offer.

    Leaves OpenGL as it was, but for what is bound. Raises UsageError for TEXELFLOW_CPU.
    """
    if choice.cpu.engine == "tflite" or available():
        return None
    cache, key = DiskCache(), times_key(context, model, choice)
    kept = parse_times(cache.get(KIND, key) or b"")
    if kept is None:
        kept = measured_times(context, model, choice)
        cache.put(KIND, key, json.dumps(asdict(kept)).encode())
        debug.tell(debug.RUN, f"debug: {context.renderer} {kept.line}")
    return kept


def times_key(context: Context, model: FrameModel, choice: ComputeChoice) -> str:
    """What the times depend on; `texelflow cache` shows it."""
    target, graph = native_target(), model.graph
    tuned = "tuned" if is_tuned(context, graph, choice.precision) else "untuned"
    cpu = f"{target.name} {target.cpu} {choice.cpu.threads or 'usual'} threads LLVM {llvm_version()} {_code_version()}"
    named = f"{graph_signature(graph, choice.precision)} {choice.precision} {graph.name[:_MOST_NAME]}"
    return f"{device_key(context)} {tuned} {cpu} {named}"


def _code_version() -> str:
    """12 hex digits, other ones when a file changes that code for the CPU is made by."""
    return hashlib.sha256(repr(compiling_files()).encode()).hexdigest()[:12]


def measured_times(context: Context, model: FrameModel, choice: ComputeChoice) -> BackendTimes:
    """Measure both now: the CPU's first, since without them nothing is to be compared."""
    cpu_ms = _cpu_ms(model, choice)
    return BackendTimes(None if cpu_ms is None else _gl_ms(context, model, choice), cpu_ms)


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


def _cpu_ms(model: FrameModel, choice: ComputeChoice) -> float | None:
    native = CpuChoice("native", choice.cpu.threads)
    try:
        path = open_cpu_path(model, rgba_format(_SIZE), native, NetworkOptions(preprocessing="auto"))
    except (UnsupportedError, DeviceError):
        return None
    with contextlib.closing(path):
        return _frame_ms(path.run)


class _TakesTooLongError(Exception):
    """Shaders are not worth waiting for."""


def _gl_ms(context: Context, model: FrameModel, choice: ComputeChoice) -> float | None:
    end = perf_counter() + (_SHADERS_S if context.is_software else math.inf)

    def watch(ready: int, of_all: int) -> None:
        if ready < of_all and perf_counter() > end:
            raise _TakesTooLongError

    options = NetworkOptions(CompileOptions(precision=choice.precision), preprocessing="auto")
    try:
        job = frame_job(context, model, rgba_format(_SIZE), options, watch)
    except (_TakesTooLongError, DeviceError):
        return None
    try:
        if not context.is_software:  # whose calls take less time than its shaders in any case
            context.calls.settle()
        return _frame_ms(job.run)
    finally:
        job.release()


def _frame_ms(run: Callable[[Picture], object]) -> float:
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
