"""Options go in; a delegate comes out, with which TensorFlow Lite's interpreter has its operators run in OpenGL."""

import os
import weakref
from collections.abc import Mapping
from types import TracebackType

import moderngl

from ..device import COMPILE_BUDGET_S
from ..errors import UsageError
from ..layout import Precision
from .application import Application, DelegatedPartition, model_bytes
from .callbacks import NativeDelegate


class GpuDelegate:
    """A TensorFlow Lite delegate for OpenGL 4.3.

        delegate = texelflow.GpuDelegate()
        interpreter = Interpreter(model_path="model.tflite", experimental_delegates=[delegate])

    It belongs to one interpreter.
    """

    def __init__(
        self,
        *,
        model: str | os.PathLike[str] | None = None,
        context: moderngl.Context | None = None,
        strict: bool = False,
        is_precision_loss_allowed: bool = False,
        inference_preference: str = "fast_single_answer",
        inference_priority1: str = "max_precision",
        inference_priority2: str = "auto",
        inference_priority3: str = "auto",
        max_delegated_partitions: int | None = None,
        min_nodes_per_partition: int | None = None,
        experimental_flags: tuple[str, ...] = ("enable_quant",),
        wait_type: str = "passive",
        compile_budget_s: float = COMPILE_BUDGET_S,
        quiet: bool = False,
    ) -> None:
        data = None if model is None else model_bytes(model)
        precision: Precision = "fp16" if is_precision_loss_allowed else "fp32"
        self._application = Application(
            data, strict, precision, compile_budget_s, quiet, max_delegated_partitions, min_nodes_per_partition
        )
        self._native = NativeDelegate(self._application)
        self._is_used = False
        self._finalizer = weakref.finalize(self, self._application.release)

    def _get_native_delegate_pointer(self) -> int:
        """What the interpreter's constructor asks for. Raises UsageError at the second time."""
        if self._is_used:
            raise UsageError("a GpuDelegate belongs to one interpreter; make another one for another interpreter")
        self._is_used = True
        return self._native.address

    @property
    def partitions(self) -> tuple[DelegatedPartition, ...]:
        """What runs on the GPU, in the order in which it runs."""
        return self._application.partitions

    @property
    def reasons(self) -> Mapping[int, str]:
        """Why operators are left to the CPU, by their numbers in the file."""
        return self._application.reasons

    @property
    def renderer(self) -> str:
        """The GPU's name as OpenGL tells it; "" before an interpreter has the delegate."""
        return self._application.renderer

    @property
    def is_applied(self) -> bool:
        """Whether any operator runs on the GPU."""
        return bool(self._application.partitions)

    @property
    def error(self) -> BaseException | None:
        """The last exception for which a call of the interpreter has failed, or for which all runs on the CPU."""
        return self._application.error

    def release(self) -> None:
        """Free all that it has in OpenGL: the interpreter cannot run any more. A second call does nothing."""
        self._finalizer()

    def __enter__(self) -> "GpuDelegate":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
