"""Chooses the path that runs a model on the CPU as settings want it, and says what of that cannot be had."""

from dataclasses import replace

from texelflow.gpu_delegate.base.errors import DeviceError, UnsupportedError
from texelflow.gpu_delegate.targets.llvm.pool import WorkerPool

from ...models.model_loading import FrameModel
from ...picture.picture import PictureFormat
from .backends import CpuChoice
from .cpu_engine import AnyCpuPath, open_cpu_path
from .cpu_path import CpuPath
from .network_options import NETWORK_DEFAULTS, NetworkOptions


def chosen_cpu_path(
    model: FrameModel,
    frame: PictureFormat,
    choice: CpuChoice,
    options: NetworkOptions = NETWORK_DEFAULTS,
    pool: WorkerPool | None = None,
) -> tuple[AnyCpuPath, str]:
    """The path, and a line that says what it is not that was asked for, or "". Raises TexelflowError."""
    try:
        path = open_cpu_path(model, frame, choice, options, pool)
        return path, path.unshared or _own_kernels(path)
    except (UnsupportedError, DeviceError) as error:
        if choice.engine != "native" or options.compiling.precision == "bf16":
            raise
        note = f"--cpu native: {error}: TensorFlow Lite runs {model.name}"
    return open_cpu_path(model, frame, replace(choice, engine="tflite"), options), note


def _own_kernels(path: AnyCpuPath) -> str:
    """What is said where TensorFlow Lite alone computes what was asked for in another way."""
    model = path.model
    if model.graph.hybrid == "expanded" or not isinstance(path, CpuPath) or path.parts:
        return ""
    return f"--hybrid {model.graph.hybrid}: TensorFlow Lite runs {model.name} in its own kernels"
