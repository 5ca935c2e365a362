"""Where a network may run (gl, cpu or auto, and how), as settings ask for it and as it was decided."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from texelflow.gpu_delegate.base.errors import UsageError
from texelflow.gpu_delegate.model.layout import Precision, stores_halves
from texelflow.gpu_delegate.plan.compile_options import CompileOptions
from texelflow.gpu_delegate.programs.model_sharing import ModelSharing
from texelflow.gpu_delegate.targets.gl.context import Context

from ..textures.gl_pictures import GlPictures
from ..textures.native_pictures import NativePictures
from ..textures.picture_device import PictureDevice

Backend = Literal["gl", "cpu"]
CpuEngine = Literal["auto", "native", "tflite"]


@dataclass(frozen=True)
class CpuChoice:
    """What runs networks on the CPU: auto is native code where it can be had, else TensorFlow Lite."""

    engine: CpuEngine = "auto"
    threads: int = 0  # 0: as many as make sense on this machine


@dataclass(frozen=True)
class ComputeChoice:
    """What is asked for: gl, cpu or auto, and how on either."""

    backend: str = "auto"
    cpu: CpuChoice = CpuChoice()
    precision: Precision = "fp32"  # of tensors on the GPU, or bf16, of products on the CPU


@dataclass(frozen=True)
class ComputeBackend:
    """Where the network runs, the context to compute, draw or show in, if any, and the CPU's code that draws."""

    backend: Backend
    context: Context | None
    cpu: CpuChoice = CpuChoice()
    native: NativePictures | None = None

    @cached_property
    def pictures(self) -> PictureDevice | None:
        """What draws; None if nothing does."""
        return self.native or (GlPictures(self.context) if self.context else None)

    def in_context(self, context: Context) -> "ComputeBackend":
        """The same in another context."""
        native = NativePictures(self.cpu.threads or None, context) if self.native else None
        return replace(self, context=context, native=native)

    def end_drawing(self) -> None:
        """End the threads of the CPU's code that draws, and forget its pictures; harmless when repeated."""
        if self.native:
            self.native.release()

    @property
    def drawn_by(self) -> str:
        """The renderer that draws."""
        return self.pictures.renderer if self.pictures else "nothing is drawn"

    def renderer(self, on_cpu: str) -> str:
        """Who does the work, for tables; `on_cpu` is what runs the network there."""
        if self.backend == "gl" or on_cpu == self.drawn_by:
            return self.drawn_by
        return f"{on_cpu}; {self.drawn_by}"

    @property
    def gl_version(self) -> str | None:
        """The API with its version that draws, and perhaps computes."""
        return self.context.gl_version if self.context else None


def check_bf16(precision: Precision, is_native: bool, otherwise: str) -> None:
    """Raises UsageError where bf16 is asked of anything but the CPU's own code; it says what to do instead."""
    if precision == "bf16" and not is_native:
        raise UsageError(f"--precision bf16 is for the CPU's own code: {otherwise}")


def delegate_options(options: CompileOptions, weights_cache: ModelSharing | None = None) -> Mapping[str, Any]:
    """The arguments of GpuDelegate that mean the same as those of a program that runs a whole model."""
    same = {"is_precision_loss_allowed": stores_halves(options.precision), "compile_budget_s": options.compile_budget_s}
    return {**same, "weights_cache": weights_cache} if weights_cache else same
