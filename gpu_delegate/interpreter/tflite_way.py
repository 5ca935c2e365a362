"""Runs a model in TensorFlow Lite, alone or with our code for what of it we can run: the calls go straight there."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..base.arrays import as_array
from ..base.errors import InferenceError, TexelflowError, UnsupportedError
from ..cpu.delegation import AppliedDelegate, delegation_of
from ..cpu.interpreter_module import load_interpreter_module
from ..cpu.runtime_trial import package_of
from ..delegate.bound_tensors import TensorBinding
from ..delegate.delegate import GpuDelegate
from ..delegate.native_delegate import NativePartsDelegate
from ..model.graph import Shape
from ..passes.kept_states import keeps_states
from ..tuning.way_costs import WayName, computes_bytes
from ..tuning.way_report import places_left
from .call_errors import AllocationError, CallOrderError, CallTypeError, CallValueError, ModelValueError, no_context
from .file_details import Details
from .input_sizes import InputSizes, shape_asked
from .interpreter_options import OpResolverType, RunOptions
from .model_source import ModelSource
from .own_way import copied
from .run_way import AnyTensor, InterpreterReport
from .turns import Turns


class TfliteWay:
    """See RunWay."""

    def __init__(self, source: ModelSource, sizes: InputSizes, options: RunOptions, way: WayName = "tflite") -> None:
        """Raises DeviceError where no TensorFlow Lite is installed, ValueErrors and RuntimeErrors as it does,
        UnsupportedError where none of the model runs as `way` has it."""
        self._source, self._sizes, self._options, self._way = source, sizes, options, way
        self._module = load_interpreter_module(newer=True)
        self._said = ""  # all that TensorFlow Lite has said: it appends
        self._own: AppliedDelegate | None = None
        self._inner: Any = None
        self._is_exact = options.exact and any(computes_bytes(source.graph(each)) for each in source.entries)
        self._open(way)

    @property
    def survives_fork(self) -> bool:
        """See RunWay: with no threads but the caller's, and no delegate that may have some."""
        return self._threads == 1 and self._way != "gl parts" and not self._options.delegates

    @property
    def has_parts(self) -> bool:
        """Whether our own code runs a part."""
        return self._own is not None

    @property
    def report(self) -> InterpreterReport:
        """See RunWay."""
        operators, package = len(self._source.graph(0).nodes), package_of(self._module.__name__)
        places, renderer = {"in TensorFlow Lite": operators}, package
        if self._own is not None:
            found = delegation_of(self._own, operators)
            taken = sum(len(each.nodes) for each in self._own.partitions if not getattr(each, "subgraph", 0))
            taken += found.by_functions
            places = {found.places[0]: taken, **places_left(operators - taken)}
            renderer = f"{found.renderer}, and {package}"
        reasons = ("exact: TensorFlow Lite computes with its reference kernels, which are slow; exact=False: XNNPACK",)
        return InterpreterReport(
            {"native parts": "native", "gl parts": "gl"}.get(self._way, "tflite"), renderer, operators, places,
            self._threads, exact=self._is_exact, reasons=reasons * (self._is_exact and "in TensorFlow Lite" in places),
        )  # fmt: skip

    def resize(self, subgraph: int, index: int, size: Sequence[int], strict: bool) -> None:
        """See RunWay. Parts in the CPU's own code are for one size: another one is TensorFlow Lite's alone."""
        if self._way == "native parts":
            if self._sizes.resize(subgraph, index, size, strict):
                self._check_stateless()
                self._open("tflite")
            return
        self._check_unused()
        shape = shape_asked(size)
        with self._errors():
            self._inner._interpreter.ResizeInputTensor(index, np.array(shape, np.int32), strict, subgraph)
        self._sizes.note(subgraph, index, shape)

    def allocate(self, subgraph: int) -> None:
        """See RunWay."""
        self._check_unused()
        with self._errors(AllocationError):
            if subgraph:
                self._inner._interpreter.AllocateTensors(subgraph)
            else:
                self._inner.allocate_tensors()

    def set(self, subgraph: int, index: int, value: Any) -> None:
        """See RunWay."""
        with self._errors():
            self._inner._interpreter.SetTensor(index, _for_tflite(value), subgraph)

    def get(self, subgraph: int, index: int, out: AnyTensor | None = None) -> AnyTensor:
        """See RunWay."""
        if out is not None and out.ndim:
            return copied(self.view(subgraph, index), out)
        with self._errors():
            found: AnyTensor = self._inner._interpreter.GetTensor(index, subgraph)
        return found if out is None else copied(found, out)

    def view(self, subgraph: int, index: int) -> AnyTensor:
        """See RunWay: its own memory. Arrays must not be held over a run, which raises then."""
        with self._errors():
            found: AnyTensor = self._inner._interpreter.tensor(self._inner._interpreter, index, subgraph)
        return found

    def bind(self, subgraph: int, binding: TensorBinding) -> None:
        """See RunWay. What the delegate says of its tensors holds."""
        if not isinstance(self._own, GpuDelegate) or self._options.context is None or subgraph:
            raise no_context()
        bind = self._own.bind_output if binding.is_output else self._own.bind_input
        bind(binding.index, binding.given, binding.layout)

    def unbind(self, subgraph: int, index: int) -> None:
        """See RunWay."""
        if isinstance(self._own, GpuDelegate):
            self._own.unbind(index)

    def invoke(self, subgraph: int) -> None:
        """See RunWay."""
        self._check_unused()
        with self._errors(InferenceError):
            self._inner._interpreter.Invoke(subgraph)

    def reset_variables(self) -> None:
        """See RunWay."""
        with self._errors():
            self._inner.reset_all_variables()

    def shape(self, subgraph: int, index: int) -> Shape:
        """See RunWay."""
        with self._errors():
            return tuple(int(each) for each in self._inner._interpreter.TensorSize(index, subgraph))

    def tensor_details(self, subgraph: int, index: int) -> Details | None:
        """See RunWay."""
        with self._errors():
            found: Details = self._inner._get_tensor_details(index, subgraph)
        return found

    def operators(self, subgraph: int) -> Sequence[Details] | None:
        """See RunWay."""
        with self._errors():
            found: Sequence[Details] | None = None if subgraph else self._inner._get_ops_details()
        return found

    def direct_calls(self, turns: Turns) -> dict[str, Callable[..., Any]]:
        """set_tensor, get_tensor and invoke of the first subgraph, which take no more time than TensorFlow Lite's."""

        def invoke() -> None:
            try:
                with turns:
                    (self._inner or self._none()).invoke()
            except RuntimeError as error:
                raise self._told(error, InferenceError) from None

        def set_tensor(tensor_index: int, value: Any) -> None:
            try:
                with turns:
                    (self._inner or self._none()).set_tensor(tensor_index, _for_tflite(value))
            except (ValueError, TypeError) as error:
                raise self._told(error) from None

        def get_tensor(tensor_index: int, subgraph_index: int = 0) -> Any:
            try:
                with turns:
                    return (self._inner or self._none()).get_tensor(tensor_index, subgraph_index)
            except (ValueError, TypeError) as error:
                raise self._told(error) from None

        return {"invoke": invoke, "set_tensor": set_tensor, "get_tensor": get_tensor}

    def close(self) -> None:
        """See RunWay."""
        self._inner = None
        if self._own is not None:
            self._own.release()
            self._own = None

    # Making it ----------------------------------------------------------------------------------------------------

    def _open(self, way: WayName) -> None:
        """Make the interpreter, with sizes as they were asked for."""
        self.close()
        self._way, self._said, options = way, "", self._options
        is_asked = options.backend != "auto"  # whether a part saves time or not
        if way == "native parts":
            self._own = NativePartsDelegate(
                options.threads,
                every_part=is_asked,
                custom_ops=options.custom_ops,
                adapts=True,
                judges_whole=False,
                exact=self._is_exact,
            )
        elif way == "gl parts":
            least = 1 if is_asked else None
            self._own = GpuDelegate(
                quiet=options.quiet, min_nodes_per_partition=least, custom_ops=options.custom_ops,
                context=options.context,
            )  # fmt: skip
        with self._errors(ModelValueError):
            self._inner = self._made()
        for subgraph, shapes in self._sizes.all.items():
            for index, shape in shapes.items():
                with self._errors():
                    self._inner._interpreter.ResizeInputTensor(index, np.array(shape, np.int32), False, subgraph)
        if self._own is not None:
            self.allocate(0)
            if not self._own.partitions:
                found = delegation_of(self._own, len(self._source.graph(0).nodes))
                self.close()
                raise UnsupportedError(f"{self._source.name}: {found.line}")

    def _made(self) -> Any:
        options, kinds = self._options, self._module.OpResolverType
        delegates = [*options.delegates, *([self._own] if self._own is not None else [])]
        given: dict[str, Any] = {"num_threads": self._threads, **dict(options.further)}
        if delegates:
            given["experimental_delegates"] = delegates
        if options.preserve_all:
            given["experimental_preserve_all_tensors"] = True
        resolver = options.resolver
        if resolver is OpResolverType.AUTO and self._is_exact:
            resolver = OpResolverType.BUILTIN_REF
        return self._module.Interpreter(
            model_content=self._source.data, experimental_op_resolver_type=kinds[resolver.name], **given
        )

    def _check_stateless(self) -> None:
        """Raise AllocationError where another interpreter would begin with states anew."""
        if any(keeps_states(self._source.graph(each)) for each in self._source.entries):
            raise AllocationError(
                f"{self._source.name} keeps states, in part in native code, which is made for one size: resize inputs "
                "before allocate_tensors(), or take backend='tflite'"
            )

    @property
    def _threads(self) -> int:
        """As many as TensorFlow Lite's interpreter has where nobody asks for a number."""
        return self._options.threads or 1

    def _none(self) -> Any:
        """Of an interpreter that is closed."""
        raise CallOrderError("this interpreter is closed; make another one")

    # Errors -------------------------------------------------------------------------------------------------------

    def _check_unused(self) -> None:
        if self._inner is None:
            raise CallOrderError("this interpreter is closed; make another one")
        try:
            self._inner._ensure_safe()
        except RuntimeError:
            raise CallOrderError(
                "There is at least 1 reference to internal data in the interpreter in the form of a numpy array or "
                "slice: hold the function that tensor() returns, not the array that this returns"
            ) from None

    @contextlib.contextmanager
    def _errors(self, kind: type[TexelflowError] = CallOrderError) -> Iterator[None]:
        """TensorFlow Lite's errors as ours; its RuntimeErrors as this kind."""
        if self._inner is None and kind is not ModelValueError:
            raise CallOrderError("this interpreter is closed; make another one")
        try:
            yield
        except TexelflowError:
            raise
        except (ValueError, RuntimeError, TypeError) as error:
            raise self._told(error, kind) from None

    def _told(self, error: Exception, kind: type[TexelflowError] = CallOrderError) -> TexelflowError:
        """One line of it, without what TensorFlow Lite has said before."""
        if isinstance(error, TexelflowError):
            return error
        text = str(error)
        fresh, self._said = text.removeprefix(self._said), text
        if isinstance(error, TypeError):
            return CallTypeError(f"TensorFlow Lite: {' '.join(fresh.partition('The following')[0].split())}")
        line = " ".join((fresh or text).split())
        if isinstance(error, ValueError) and kind is not ModelValueError:
            return CallValueError(line)
        return kind(line)


def _for_tflite(value: Any) -> Any:
    """What TensorFlow Lite takes for what it is: it knows no DLPack, and no order of bytes but the machine's."""
    if isinstance(value, np.ndarray):
        return value if value.dtype.isnative else value.astype(value.dtype.newbyteorder("="))
    return as_array(value) if hasattr(value, "__dlpack__") and not isinstance(value, np.generic) else value
