"""GpuDelegate: what a caller hands to TensorFlow Lite's interpreter."""

import contextlib
import os
import sys
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType, TracebackType

import moderngl
import numpy as np
import numpy.typing as npt

from ..base.errors import TexelflowError, UsageError
from ..cpu.delegation import ON_GPU
from ..custom.custom_op import CustomOp, by_name
from ..device.device import COMPILE_BUDGET_S
from ..model.graph import Hybrid
from ..model.state_values import StateValues
from ..programs.weights_cache import WeightsCache, checked_cache
from .application import Application
from .bound_tensors import TensorBinding, tensor_number
from .callbacks import NativeDelegate
from .callers_file import model_in_frame, order_in
from .delegate_options import ExperimentalFlag, GpuDelegateOptions, InferencePreference, InferencePriority
from .gl_objects import BufferLayout, GlObject
from .planning import DelegatedPartition
from .runtime_check import check_runtimes
from .synchronization import WaitType
from .worker import open_worker


class GpuDelegate:
    """A TensorFlow Lite delegate for OpenGL 4.3 and ES 3.1.

        delegate = texelflow.GpuDelegate()
        interpreter = Interpreter(model_path="model.tflite", experimental_delegates=[delegate])
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
        interpreter.invoke()
        print(delegate.summary, delegate.renderer, delegate.is_applied, delegate.buffer_bytes)
        print(delegate.partitions, delegate.reasons, delegate.reasons_of(0), delegate.places)

        kept = delegate.states()  # of models that keep something from run to run
        delegate.restore_states(kept)
        delegate.reset_states()
        if delegate.error:  # the exception behind the last RuntimeError of the interpreter
            raise delegate.error
        delegate.release()

    The interpreter then runs the operators that the GPU can compute there, as few partitions as possible, and the
    others as before; it is used as before, from any thread. What the GPU cannot do ends in a RuntimeError of the
    interpreter that holds the reason, and `error` is the exception behind it.

    In a context of moderngl's inputs and outputs are textures or buffers, which no copy of passes the CPU:

        import moderngl

        context = moderngl.create_standalone_context(backend="egl", require=430)
        delegate = texelflow.GpuDelegate(context=context)
        interpreter = Interpreter(model_path="model.tflite", experimental_delegates=[delegate])
        interpreter.allocate_tensors()
        (given,), (found,) = interpreter.get_input_details(), interpreter.get_output_details()
        source, target = (context.buffer(bytes(4 * int(np.prod(each["shape"])))) for each in (given, found))
        delegate.bind_input(given["index"], source)
        delegate.bind_output(found["index"], target)
        interpreter.invoke()
        delegate.unbind(found["index"])

    A delegate belongs to one interpreter, which keeps it alive. release(), or the end of a `with` block, frees what it
    has in OpenGL; so does the end of the interpreter and of the delegate.
    """

    def __init__(
        self,
        *,
        model: str | os.PathLike[str] | bytes | None = None,
        context: moderngl.Context | None = None,
        strict: bool = False,
        is_precision_loss_allowed: bool = False,
        inference_preference: InferencePreference = "fast_single_answer",
        inference_priority1: InferencePriority = "max_precision",
        inference_priority2: InferencePriority = "auto",
        inference_priority3: InferencePriority = "auto",
        max_delegated_partitions: int | None = None,
        min_nodes_per_partition: int | None = None,
        experimental_flags: tuple[ExperimentalFlag, ...] = ("enable_quant",),
        wait_type: WaitType = "passive",
        compile_budget_s: float = COMPILE_BUDGET_S,
        hybrid: Hybrid = "expanded",
        weights_cache: WeightsCache | None = None,
        quiet: bool = False,
        serialization_dir: str | os.PathLike[str] | None = None,
        model_token: str | None = None,
        custom_ops: Iterable[CustomOp] = (),
    ) -> None:
        """Options have TensorFlow Lite's names; docs/delegate.md says what each does here.

        model: path or bytes of the model that the interpreter has to run; another one is refused. Nothing needs it.
        context: one of moderngl's, current in this thread, to work in; the interpreter then belongs to this thread.
        strict: whether the interpreter's constructor raises where the delegate cannot be applied; else one line says
        why, and all runs on the CPU.
        weights_cache: shares weights, shaders and, without `context`, the thread with other instances. It is finalized
        before the interpreter runs.
        quiet: whether that line is left out, and those that say what stays on the CPU.
        custom_ops: what texelflow.custom_op gives: these run on the CPU, whether there is a GPU or not.

        Raises UsageError for a wrong option, DeviceError where `context` is below OpenGL 4.3 or ES 3.1.
        """
        options = GpuDelegateOptions(
            model, strict, is_precision_loss_allowed, inference_preference, inference_priority1, inference_priority2,
            inference_priority3, max_delegated_partitions, min_nodes_per_partition, experimental_flags, wait_type,
            compile_budget_s, hybrid, quiet, serialization_dir, model_token,
        )  # fmt: skip
        cache = checked_cache(weights_cache)
        ops = by_name(custom_ops)
        self._application = Application(options, None if context is None else open_worker(context), cache, ops)
        self._native = NativeDelegate(self._application)
        self._is_given = False
        weakref.finalize(self, _let_go, self._application)

    def _get_native_delegate_pointer(self) -> int:
        """What an interpreter's constructor asks for. Raises UsageError if another one has asked.

        Raises UnsupportedError for a runtime that does not work with this.
        """
        if self._is_given:
            raise UsageError("a GpuDelegate belongs to one interpreter; make another one for another interpreter")
        caller = sys._getframe(1)
        check_runtimes(caller.f_globals.get("__name__"))
        if (model := model_in_frame(caller.f_locals)) is not None:
            self._application.order = order_in(model)
        self._is_given = True
        return self._native.address

    @property
    def places(self) -> tuple[str, str]:
        """Where its partitions run, and where the rest does, in words."""
        return ON_GPU

    @property
    def partitions(self) -> tuple[DelegatedPartition, ...]:
        """What runs on the GPU, in the order in which it runs, of each subgraph that runs by itself."""
        return tuple(
            replace(partition, subgraph=each.number)
            for each in self._application.subgraphs
            if each.model is not None
            for partition in each.model.partitions
        )

    @property
    def reasons(self) -> Mapping[int, str]:
        """Why operators are left to the CPU, by their numbers in the file; of its first subgraph."""
        return self.reasons_of(0)

    def reasons_of(self, subgraph: int) -> Mapping[int, str]:
        """The same of another subgraph, such as that of a second signature; nothing of one that it leaves alone."""
        found = (each.model for each in self._application.subgraphs if each.number == subgraph)
        return next((model.found.reasons for model in found if model is not None), MappingProxyType({}))

    @property
    def summary(self) -> str:
        """Who runs how many operators, in one line; which of the rest XNNPACK runs is known after the first run."""
        return self._application.summary

    @property
    def renderer(self) -> str:
        """The GPU's name as OpenGL tells it; "" before an interpreter has the delegate."""
        return self._application.renderer

    @property
    def buffer_bytes(self) -> int:
        """Of its GL buffers: tensors, weights, and what copies need once the interpreter has run."""
        return self._application.buffer_bytes

    @property
    def is_applied(self) -> bool:
        """Whether any operator runs on the GPU."""
        return bool(self.partitions)

    @property
    def error(self) -> BaseException | None:
        """The last exception for which a call of the interpreter has failed, or for which all runs on the CPU."""
        return self._application.error

    def bind_input(self, index: int, source: GlObject, layout: BufferLayout = "BHWC") -> None:
        """From now on an input comes from OpenGL instead of set_tensor(): no copy passes the CPU.

        index: as in get_input_details()[k]["index"]; an input of the model, or a tensor from one partition to others.
        source: a moderngl.Texture of exactly the tensor's width and height, with as many components as it has channels
        or more. Row 0 is row 0 of the tensor; values are those that shaders read, 0 to 1 of a normalized format. Or a
        moderngl.Buffer of float32, or (name of a buffer, offset in bytes).
        layout: of a buffer: "BHWC", or "PHWC4" with zeros in the lanes behind the last channel.

        It takes the `context` that the object belongs to. Each run reads what is there then, and does not look whether
        it is finite; barriers are issued before it and after it. It changes the shader program that is in use, and
        bindings of textures, samplers, images and buffers. Raises UsageError for what does not fit, or before there is
        an interpreter with the delegate. After another size has been given to the model, bind what fits it, again.
        """
        self._application.bind(TensorBinding(tensor_number(index), source, layout, is_output=False))

    def bind_output(self, index: int, target: GlObject, layout: BufferLayout = "BHWC") -> None:
        """From now on an output goes to OpenGL, and its tensor in RAM is NaN, unless the CPU computes with it.

        index, target, layout: as bind_input has them; a texture is R8, RG8, RGBA8, or the same with 16F or 32F. What 8
        bits do not hold is clamped to 0 and 1 and rounded; a texture's components behind the tensor's channels become
        0, and its alpha 1. With wait_type="do-not-wait" invoke() returns before the GPU is done. Raises UsageError.
        """
        self._application.bind(TensorBinding(tensor_number(index), target, layout, is_output=True))

    def unbind(self, index: int) -> None:
        """From now on a tensor is in RAM again. Nothing happens to one that is not bound. Raises UsageError."""
        self._application.unbind(tensor_number(index))

    def states(self) -> StateValues:
        """What operators on the GPU keep from run to run: arrays of the types and shapes of the model, by name.

        Variables have the names of the model, what an operator keeps itself that of its tensor and number.
        """
        return self._application.states()

    def restore_states(self, values: Mapping[str, npt.NDArray[np.generic]]) -> None:
        """Have them keep what states() gave; what is not named stays. Raises UsageError for others than they have."""
        self._application.restore_states(values)

    def reset_states(self) -> None:
        """Have them keep what they did before the first run; reset_all_variables() does so but for variables."""
        self._application.reset_states()

    def release(self) -> None:
        """Free all that it has in OpenGL: the interpreter cannot run any more. A second call does nothing.

        Raises UsageError on a thread to which a context of the caller's does not belong.
        """
        self._application.release()

    def __reduce__(self) -> str:
        """There are no copies. Raises UsageError."""
        raise UsageError("a GpuDelegate belongs to one interpreter, and cannot be copied or pickled; make another one")

    def __enter__(self) -> "GpuDelegate":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _let_go(application: Application) -> None:
    """Free what nobody will ask for again: at the end of Python its thread may be gone already."""
    with contextlib.suppress(TexelflowError):
        application.release()
