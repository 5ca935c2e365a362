"""A model and what settings want of the CPU go in; the path that runs it there comes out, with a line to be told."""

from texelflow.gpu_delegate.errors import DeviceError, UnsupportedError
from texelflow.gpu_delegate.weights_cache import WeightsCache

from ..models.loading import FrameModel
from ..picture.picture import PictureFormat
from ..picture.preprocess import Fit, Preprocessing
from .backends import CpuChoice
from .cpu_engine import AnyCpuPath, open_cpu_path


def chosen_cpu_path(
    model: FrameModel,
    frame: PictureFormat,
    choice: CpuChoice,
    fit: Fit = "stretch",
    preprocessing: Preprocessing = "plain",
    weights_cache: WeightsCache | None = None,
) -> tuple[AnyCpuPath, str]:
    """The path, and a line that says what it is not that was asked for, or "". Raises TexelflowError."""
    threads = choice.threads or None
    try:
        path = open_cpu_path(model, frame, fit, threads, preprocessing, choice.engine, weights_cache)
        return path, path.unshared
    except (UnsupportedError, DeviceError) as error:
        if choice.engine != "native":
            raise
        note = f"--cpu native: {error}: TensorFlow Lite runs {model.name}"
    return open_cpu_path(model, frame, fit, threads, preprocessing, "tflite", weights_cache), note
