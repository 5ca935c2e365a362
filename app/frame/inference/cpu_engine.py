"""Opens one of the CPU's engines, `native` or `tflite`, for a model: both make masks of frames by one interface.

`native` is machine code of our own, for all of a model or for the parts that pay; `tflite` is TensorFlow Lite, which
computes every model.
"""

from typing import Protocol

from texelflow.gpu_delegate.base import debug
from texelflow.gpu_delegate.base.errors import DeviceError, ModelError, UnsupportedError
from texelflow.gpu_delegate.cpu.delegation import Delegation
from texelflow.gpu_delegate.delegate.interpreter_delegate import gpu_delegate
from texelflow.gpu_delegate.delegate.native_delegate import native_delegate
from texelflow.gpu_delegate.model.layout import Precision, stores_halves
from texelflow.gpu_delegate.targets.llvm.pool import WorkerPool

from ...models.decoders.region import FrameRegion
from ...models.model_loading import FrameModel
from ...picture.picture import Picture, PictureFormat
from ...picture.preprocess import Floats
from .backends import CpuChoice, check_bf16, delegate_options
from .cpu_path import CpuPath
from .native_path import NativePath
from .network_options import NETWORK_DEFAULTS, NetworkOptions


class AnyCpuPath(Protocol):
    """One model for pictures of one format, on the CPU: see CpuPath."""

    @property
    def model(self) -> FrameModel: ...
    @property
    def delegation(self) -> Delegation | None: ...
    @property
    def renderer(self) -> str: ...
    @property
    def precision(self) -> Precision: ...
    @property
    def unshared(self) -> str: ...
    @property
    def scores(self) -> Floats:
        """The network's last output (1, H, W, C), until the next run; the same array whenever it is asked for."""

    def take(self, frame: PictureFormat) -> None: ...
    def begin_anew(self) -> None: ...
    def expose_anew(self) -> None: ...
    def image_to_tensor(self, picture: Picture) -> Floats: ...
    def network(self, tensor: Floats) -> Floats: ...
    def mask_of_region(self, picture: Picture, region: FrameRegion) -> Floats: ...
    def mask_to_frame(self, mask: Floats) -> Floats: ...
    def run(self, picture: Picture) -> Floats: ...
    def close(self) -> None: ...


def open_cpu_path(
    model: FrameModel,
    frame: PictureFormat,
    choice: CpuChoice,
    options: NetworkOptions = NETWORK_DEFAULTS,
    pool: WorkerPool | None = None,
) -> AnyCpuPath:
    """What runs a model on the CPU: the engine that is asked for, with auto native code where there can be any.

    Code and packed weights are those of the cache, if there is one. Native code alone runs in the pool, if there is
    one, else by threads of its own.

    Raises as the two do: an engine that is asked for is not replaced by the other one, and native code not with bf16.
    """
    threads, preprocessing, cache = choice.threads or None, options.preprocessing, options.weights_cache
    needs_native = options.compiling.precision == "bf16"
    check_bf16(options.compiling.precision, choice.engine != "tflite", "leave it or --cpu tflite out")
    if choice.engine != "tflite":
        try:
            return _open_native_path(model, frame, threads, options, pool)
        except (UnsupportedError, DeviceError, ModelError) as error:
            if needs_native or choice.engine == "native":
                raise
            debug.tell(debug.RUN, f"debug: no native code for {model.name}: {error}")
    return CpuPath(model, frame, options.fit, threads, preprocessing=preprocessing, weights_cache=cache)


def _open_native_path(
    model: FrameModel, frame: PictureFormat, threads: int | None, options: NetworkOptions, pool: WorkerPool | None
) -> NativePath | CpuPath:
    """Native code alone or, for a model that has ops without any, with TensorFlow Lite for the rest.

    Raises UnsupportedError where that does not pay, ModelError where TensorFlow Lite refuses it, DeviceError,
    UsageError.
    """
    preprocessing, cache = options.preprocessing, options.weights_cache
    try:
        precision = "fp32" if stores_halves(options.compiling.precision) else options.compiling.precision
        return NativePath(model, frame, options.fit, threads, preprocessing, cache, precision, pool)
    except UnsupportedError as error:
        if options.compiling.precision == "bf16":
            raise
        path = CpuPath(model, frame, options.fit, threads, native_delegate(threads, cache), preprocessing)
        assert path.parts, "it has a delegate"
        try:
            path.parts.check_taken(error)
        except UnsupportedError:
            path.close()
            raise
        return path


def open_parts_path(model: FrameModel, frame: PictureFormat, options: NetworkOptions) -> CpuPath:
    """TensorFlow Lite, with parts of the model on the GPU: for what that cannot run wholly. Raises as CpuPath."""
    delegate = gpu_delegate(delegate_options(options.compiling, options.weights_cache))
    return CpuPath(model, frame, options.fit, delegate=delegate, preprocessing=options.preprocessing)
