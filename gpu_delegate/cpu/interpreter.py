"""Runs TensorFlow Lite's interpreter in this process."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from ..base.errors import ModelError, TexelflowError, UsageError
from ..model.graph import Shape
from ..reading.model_file import printable_name
from .array_pipe import AnyArray
from .delegation import AppliedDelegate, Delegation, delegation_of
from .interpreter_module import load_interpreter_module
from .runtime_trial import package_of
from .xnnpack import XnnpackDelegate, delegate_of_bytes

CANNOT = "TensorFlow Lite cannot run this model on the CPU"


@dataclass(frozen=True)
class InterpreterOptions:
    """How a model is run."""

    threads: int
    outputs: int  # of the model's own, in front of those that are asked for besides
    keep_all: bool = False  # without delegates, so that all tensors can be read
    preserve: bool = False  # inner tensors are not computed in place
    operators: int = 0  # of the model, for what is said of the delegate
    plain: bool = False  # by the reference kernels, which are slow
    fast_bytes: bool = False  # 8-bit operators by XNNPACK, in whichever runtime takes the least time for them
    newer: bool = False  # by the newer runtime, where two are there
    without_xnnpack: bool = False  # by TensorFlow Lite's own optimized kernels
    delegate: dict[str, Any] | None = None  # arguments of GpuDelegate, as plain data; None for the CPU alone


@dataclass(frozen=True)
class Signature:
    """What a model takes and gives, as far as it is known before it runs; NumPy's names of types."""

    input_shapes: tuple[Shape, ...]
    input_dtypes: tuple[str, ...]
    output_shapes: tuple[Shape, ...]
    output_dtypes: tuple[str, ...]
    runtime: str = ""  # the package whose interpreter it is, with its version


class AnyInterpreter(Protocol):
    """An interpreter in this process or in another."""

    @property
    def signature(self) -> Signature: ...
    @property
    def delegation(self) -> Delegation | None:
        """What runs on the GPU; None where no delegate was asked for."""

    @property
    def invoke_ms(self) -> float:
        """What the last run took, without copying inputs and outputs."""

    def run(self, arrays: Sequence[AnyArray]) -> tuple[AnyArray, ...]:
        """Outputs for inputs of the signature's shapes and types. Raises ModelError."""

    def tensor(self, index: int) -> AnyArray:
        """A copy of any tensor after run(), with keep_all. Raises ModelError."""

    def close(self) -> None:
        """Free a process, and what is in OpenGL; a second call does nothing. It cannot run any more then."""


class LocalInterpreter:
    """One model in this process. TensorFlow Lite does not verify files: for those alone that are written here."""

    delegation: Delegation | None = None
    invoke_ms = 0.0

    def __init__(
        self,
        model: bytes,
        options: InterpreterOptions,
        delegate: AppliedDelegate | None = None,
        sharing: XnnpackDelegate | None = None,
    ) -> None:
        """Raises ModelError where TensorFlow Lite refuses the model, DeviceError where there is none.

        The delegate is one made of options.delegate; where it cannot be applied, all runs on the CPU. `sharing` takes
        the place of the runtime's own XNNPACK delegate.
        """
        module = load_interpreter_module(options.fast_bytes or options.newer)
        self._delegate, self._shares = delegate, sharing is not None
        self._interpreter: Any
        of_bytes = delegate_of_bytes(module, options.threads) if options.fast_bytes and not delegate else None
        try:
            with _refusals_in_one_line(delegate):
                self._interpreter = _made(module, model, options, delegate or sharing or of_bytes)
        except ModelError:
            if of_bytes is None and not options.plain:
                raise
            options = replace(options, plain=False, keep_all=options.keep_all or options.plain)
            with _refusals_in_one_line(delegate):  # what XNNPACK does not take, or has no reference kernel
                self._interpreter = _made(module, model, options, None)
        with _refusals_in_one_line(delegate):
            inputs = self._interpreter.get_input_details()
            outputs = self._interpreter.get_output_details()[: options.outputs]
        if delegate:
            self.delegation = delegation_of(delegate, options.operators)
        self.signature = Signature(
            *_shapes_and_dtypes(inputs), *_shapes_and_dtypes(outputs), package_of(module.__name__)
        )
        # Views of the interpreter's memory are created for each use, because invoke() refuses to run while one exists.
        self._inputs = tuple((detail["index"], self._interpreter.tensor(detail["index"])) for detail in inputs)
        self._outputs = tuple((detail["index"], self._interpreter.tensor(detail["index"])) for detail in outputs)

    def run(self, arrays: Sequence[AnyArray]) -> tuple[AnyArray, ...]:
        """See AnyInterpreter."""
        if self._interpreter is None:
            raise UsageError("this interpreter is closed; make another one")
        with _refusals_in_one_line(self._delegate):
            for (index, view), array, dtype in zip(self._inputs, arrays, self.signature.input_dtypes, strict=True):
                if dtype == "bytes":
                    self._interpreter.set_tensor(index, array.astype(object))
                elif array.ndim:
                    np.copyto(view(), array)
                else:  # for a scalar the interpreter returns no view
                    self._interpreter.set_tensor(index, array.astype(dtype))
            start = perf_counter()
            self._interpreter.invoke()
            self.invoke_ms = (perf_counter() - start) * 1e3
            return tuple(
                self.tensor(index) if dtype == "bytes" else view().copy()
                for (index, view), dtype in zip(self._outputs, self.signature.output_dtypes, strict=True)
            )

    def tensor(self, index: int) -> AnyArray:
        """See AnyInterpreter; texts come as NumPy's strings of bytes."""
        with _refusals_in_one_line(self._delegate):
            value: AnyArray = np.asarray(self._interpreter.get_tensor(index))
        return value.astype(np.bytes_) if value.dtype == object else value

    def close(self) -> None:
        """See AnyInterpreter; one that neither has a delegate nor shares weights goes with the last reference to it."""
        if self._delegate:
            self._delegate.release()
        if self._shares:
            self._interpreter, self._inputs, self._outputs = None, (), ()


def _made(module: Any, model: bytes, options: InterpreterOptions, delegate: Any) -> Any:
    """An interpreter of the module, with its tensors; a delegate other than ours takes the place of its XNNPACK."""
    given: dict[str, Any] = {"num_threads": options.threads}
    if delegate:
        given["experimental_delegates"] = [delegate]
    if options.plain:
        given["experimental_op_resolver_type"] = module.OpResolverType.BUILTIN_REF
    elif options.keep_all or options.without_xnnpack or isinstance(delegate, XnnpackDelegate):
        given["experimental_op_resolver_type"] = module.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    if options.keep_all:
        given["experimental_preserve_all_tensors"] = options.preserve
    interpreter = module.Interpreter(model_content=model, **given)
    interpreter.allocate_tensors()
    return interpreter


def _shapes_and_dtypes(details: Sequence[Any]) -> tuple[tuple[Shape, ...], tuple[str, ...]]:
    shapes = tuple(tuple(int(size) for size in detail["shape"]) for detail in details)
    return shapes, tuple("bytes" if dtype.kind in "OS" else dtype.name for dtype in map(_dtype, details))


def _dtype(detail: Any) -> np.dtype[Any]:
    return np.dtype(detail["dtype"])


@contextlib.contextmanager
def _refusals_in_one_line(delegate: AppliedDelegate | None) -> Iterator[None]:
    """TensorFlow Lite's errors as a ModelError; the delegate's own as they were raised."""
    before = delegate.error if delegate else None
    try:
        yield
    except (ValueError, RuntimeError, TypeError) as error:
        if delegate and delegate.error is not before and isinstance(delegate.error, TexelflowError):
            raise delegate.error from None
        raise ModelError(f"{CANNOT}: {printable_name(' '.join(str(error).split()), 200)}") from error
