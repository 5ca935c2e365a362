"""The interpreter: TensorFlow Lite's interface, and a short one, over whichever way runs the model best."""

import contextlib
import os
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from types import TracebackType
from typing import Any

import numpy as np

from ..base.arrays import as_input, as_target
from ..base.errors import DeviceError, TexelflowError, UnsupportedError, UsageError
from ..base.wording import counted, meant
from ..cpu.runtime_trial import installed_runtime
from ..custom.custom_op import CustomOp
from ..delegate.bound_tensors import TensorBinding, tensor_number
from ..delegate.gl_objects import BufferLayout, CallersContext, GlObject, is_gl_object
from ..model.graph import Shape
from ..model.layout import Precision
from ..passes.kept_states import keeps_states
from ..tuning.way_costs import RunChoice, WayName
from ..tuning.way_decision import WayDecision
from .auto_way import open_quickest
from .call_errors import AllocationError, CallOrderError, CallValueError
from .file_details import Details, SignatureDetails
from .gl_way import GlMaker
from .input_sizes import InputSizes
from .interpreter_options import InterpreterBackend, OpResolverType, checked_options
from .model_source import ModelSource
from .native_way import NativeMaker
from .own_way import OwnWay, check_index
from .run_way import AnyTensor, InterpreterReport, RunWay
from .signature_runner import SignatureRunner
from .tflite_way import TfliteWay
from .turns import Turns
from .way_choice import ways_of

_CLOSED = "this interpreter is closed; make another one"


class ModelInterpreter:
    """texelflow.Interpreter, but for names of the catalogue: its docstring says what it does."""

    def __init__(
        self,
        model_path: str | PathLike[str] | None = None,
        model_content: bytes | None = None,
        experimental_delegates: Sequence[Any] | None = None,
        num_threads: int | None = None,
        experimental_op_resolver_type: Any = OpResolverType.AUTO,
        experimental_preserve_all_tensors: bool = False,
        experimental_disable_delegate_clustering: bool = False,
        experimental_default_delegate_latest_features: bool = False,
        experimental_compress_quantization_zero_points: bool = False,
        experimental_disable_delegate_node_fusion: bool = False,
        experimental_force_delegate_node_profiling: bool = False,
        *,
        backend: InterpreterBackend = "auto",
        threads: int | None = None,
        precision: Precision = "fp32",
        signature: str | None = None,
        exact: bool | None = None,
        custom_ops: Iterable[CustomOp] = (),
        context: CallersContext | None = None,
        quiet: bool = True,
    ) -> None:
        """Reads the model; what runs it is made ready by allocate_tensors, or by the first call of the short form.

        model_path, model_content: the file, or its bytes.
        backend: "auto"; "gl": OpenGL; "native": code of our own for the CPU; "tflite": TensorFlow Lite with XNNPACK. Of
        a model that does not run wholly by "gl" or "native", TensorFlow Lite runs the rest.
        threads, num_threads: the most of the CPU; by default two of ours (one where that pays), one of TensorFlow Lite.
        precision: of floats between and in operators: "fp32"; "fp16" and "fp16-arithmetic" by OpenGL, "bf16" by the
        CPUs that have it.
        signature: the name of the one whose subgraph invoke() runs; the file's first subgraph by default.
        exact: whether 8-bit models give the bytes of TensorFlow Lite's reference kernels; else XNNPACK may run them. By
        default they do, but where TensorFlow Lite is asked for: by "tflite" or an option that only it can follow.
        custom_ops: what texelflow.custom_op gives, for operators that nobody else has.
        context: one of moderngl's, current in this thread, to work in by OpenGL; textures and buffers of it can be
        bound, and the interpreter belongs to this thread.
        quiet: whether lines on stderr that say what is left to the CPU are left out.
        experimental_...: as in TensorFlow Lite's interpreter; delegates, resolvers but AUTO, and preserved tensors have
        TensorFlow Lite run the model.

        Raises ValueError (also a ModelError or UsageError) for what is no model and for wrong options, DeviceError
        where the machine lacks what `backend` asks for.
        """
        further = {
            "experimental_disable_delegate_clustering": experimental_disable_delegate_clustering,
            "experimental_default_delegate_latest_features": experimental_default_delegate_latest_features,
            "experimental_compress_quantization_zero_points": experimental_compress_quantization_zero_points,
            "experimental_disable_delegate_node_fusion": experimental_disable_delegate_node_fusion,
            "experimental_force_delegate_node_profiling": experimental_force_delegate_node_profiling,
        }
        self._options = checked_options(
            backend, threads, num_threads, precision, exact, experimental_delegates, experimental_op_resolver_type,
            experimental_preserve_all_tensors, dict[str, object](further), custom_ops, quiet,
            context,
        )  # fmt: skip
        self._source = ModelSource(self._path_of(model_path), model_content)
        self._signature, self._subgraph = signature, self._source.subgraph_of(signature)
        self._sizes = InputSizes(self._source)
        self._experimental_compress_quantization_zero_points = experimental_compress_quantization_zero_points
        self._turns = Turns()
        self._way: RunWay | None = None
        self._decision: WayDecision | None = None  # of backend="auto"
        self._is_closed = False
        self._source.graph(self._subgraph)  # damaged files end here
        self._ways = ways_of(self._options.backend, self._options.needs_tflite)
        if self._ways == ("tflite",):
            self._ready_way()

    def _path_of(self, model_path: Any) -> Any:
        """The path that is meant."""
        return model_path

    # TensorFlow Lite's interface ----------------------------------------------------------------------------------

    def allocate_tensors(self) -> None:
        """Make the model ready for inputs of the shapes that were asked for; compiles, the first time for seconds.

        Raises RuntimeError where it cannot run on these.
        """
        with self._turns:
            self._allocate()

    def resize_tensor_input(self, input_index: int, tensor_size: Sequence[int], strict: bool = False) -> None:
        """Have an input with another shape, from the next allocate_tensors() on.

        strict: whether sizes that the file does not leave open (-1 in shape_signature) have to stay. Raises ValueError
        for what is no shape, RuntimeError for a tensor that there is not, and for what `strict` forbids.
        """
        with self._turns:
            self._check_open()
            if self._way is None:
                self._sizes.resize(self._subgraph, input_index, tensor_size, strict)
            else:
                self._way.resize(self._subgraph, input_index, tensor_size, strict)

    def get_input_details(self) -> list[Details]:
        """A dictionary of each input, in the file's order.

        Keys: name, index (for set_tensor), shape (int32), shape_signature (the same with -1 for sizes that are open),
        dtype (NumPy's class), quantization ((scale, zero point), of one scale alone), quantization_parameters (scales,
        zero_points, quantized_dimension, block_size), sparsity_parameters.
        """
        return [self._details_of(self._subgraph, index) for index in self._source.details(self._subgraph).inputs]

    def get_output_details(self) -> list[Details]:
        """The same of each output; shapes after a resize are known once tensors are allocated."""
        return [self._details_of(self._subgraph, index) for index in self._source.details(self._subgraph).outputs]

    def get_tensor_details(self, subgraph_index: int = 0) -> list[Details]:
        """The same of all tensors of a subgraph that hold values. Raises ValueError for one that there is not."""
        if not 0 <= subgraph_index < self._source.subgraph_count:
            raise CallValueError(
                f"subgraph_index is out of range: {subgraph_index} for the model, which has "
                f"{counted(self._source.subgraph_count, 'subgraph')}."
            )
        details = self._source.details(subgraph_index)
        known = [index for index in range(details.tensor_count) if details.dtype(index) is not None]
        return [self._details_of(subgraph_index, index) for index in known]

    def set_tensor(self, tensor_index: int, value: Any) -> None:
        """Copy an array into an input: exactly its dtype and shape. Raises ValueError for others."""
        with self._turns:
            way = self._way
            if way is None:
                raise self._unallocated(tensor_index, "Cannot set tensor: ")
            way.set(self._subgraph, tensor_index, value)

    def get_tensor(self, tensor_index: int, subgraph_index: int | None = None) -> AnyTensor:
        """A copy of an output, an input or a constant. Raises ValueError for what is not kept."""
        with self._turns:
            way = self._way
            if way is None:
                raise self._unallocated(tensor_index)
            return way.get(self._subgraph if subgraph_index is None else subgraph_index, tensor_index)

    def tensor(self, tensor_index: int) -> Callable[[], AnyTensor]:
        """A function that gives an array which is the tensor: what is written to an input's is read by invoke().

        As in TensorFlow Lite, hold the function, not the array. Where a backend keeps tensors in another order, the
        array is one beside it, which each invoke() reads or writes.
        """

        def view() -> AnyTensor:
            with self._turns:
                if self._way is None:
                    raise self._unallocated(tensor_index)
                return self._way.view(self._subgraph, tensor_index)

        return view

    def bind_input(self, index: int, source: GlObject, layout: BufferLayout = "BHWC") -> None:
        """From now on invoke() reads an input from OpenGL: no copy passes the CPU.

        source: of the interpreter's `context`: a moderngl.Texture of exactly the tensor's width and height with as many
        components as it has channels or more, or the name of such a texture; a moderngl.Buffer of the tensor's type, or
        (name of a buffer, offset in bytes). Row 0 is row 0 of the tensor; values are those that shaders read.
        layout: of a buffer: "BHWC", or "PHWC4" with zeros in the lanes behind the last channel.

        Each run reads what is there then; barriers are issued before and after it. Raises RuntimeError before
        allocate_tensors() and without `context`, UsageError for what does not fit. Another size unbinds.
        """
        self._bind_tensor(TensorBinding(tensor_number(index), source, layout, is_output=False))

    def bind_output(self, index: int, target: GlObject, layout: BufferLayout = "BHWC") -> None:
        """From now on invoke() writes an output to OpenGL, and does not wait for it where it has to read nothing back.

        target: as bind_input has them; a texture is R8, RG8, RGBA8, or the same with 16F or 32F. What 8 bits do not
        hold is clamped to 0 and 1 and rounded. Raises as bind_input.
        """
        self._bind_tensor(TensorBinding(tensor_number(index), target, layout, is_output=True))

    def unbind(self, index: int) -> None:
        """Have a tensor in RAM again, an input as it was set last. Nothing happens to one that is not bound."""
        with self._turns:
            if self._way is not None:
                self._way.unbind(self._subgraph, tensor_number(index))

    def _bind_tensor(self, binding: TensorBinding) -> None:
        with self._turns:
            if self._way is None:
                raise CallOrderError(_CLOSED if self._is_closed else "call allocate_tensors() before tensors are bound")
            self._way.bind(self._subgraph, binding)

    def invoke(self) -> None:
        """Run the model once. Raises RuntimeError before allocate_tensors(), and for values that it cannot run on."""
        with self._turns:
            way = self._way
            if way is None:
                raise CallOrderError(_CLOSED if self._is_closed else "Invoke called on model that is not ready: call "
                                     "allocate_tensors() first")  # fmt: skip
            way.invoke(self._subgraph)

    def reset_all_variables(self) -> None:
        """Set what operators keep from run to run (LSTM, SVDF, RNN) to what it was; variables with a name stay."""
        with self._turns:
            if self._way is not None:
                self._way.reset_variables()

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """The names of inputs and outputs of each signature, by its name."""
        found = self._source.signatures
        return {name: {"inputs": [*each.inputs], "outputs": [*each.outputs]} for name, each in found.items()}

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """A function that runs a signature by the names of its inputs; of a model with one, without its name.

        Raises ValueError for a name that there is not.
        """
        found = self._source.signatures
        if signature_key is None:
            if len(found) != 1:
                named = f": {', '.join(found)}" if found else ""
                raise CallValueError(
                    f"SignatureDef signature_key is None and model has {len(found)} Signatures{named}. None is only "
                    "allowed when the model has 1 SignatureDef"
                )
            signature_key = next(iter(found))
        self._source.subgraph_of(signature_key)
        return SignatureRunner(self, signature_key, found[signature_key])

    def _get_full_signature_list(self) -> dict[str, dict[str, dict[str, int]]]:
        """The same with the numbers of the tensors behind the names."""
        found = self._source.signatures
        return {name: {"inputs": {**each.inputs}, "outputs": {**each.outputs}} for name, each in found.items()}

    def num_subgraphs(self) -> int:
        """How many subgraphs the file has."""
        return self._source.subgraph_count

    @property
    def experimental_compress_quantization_zero_points(self) -> bool:
        """As the constructor was given it."""
        return self._experimental_compress_quantization_zero_points

    def _get_ops_details(self) -> list[Details]:
        """Index, op_name, inputs, outputs, operand_types and result_types of each operator."""
        own = self._way.operators(self._subgraph) if self._way else None
        details = self._source.details(self._subgraph)
        return [*own] if own is not None else [details.operator(number) for number in range(details.operator_count)]

    # The short form -----------------------------------------------------------------------------------------------

    def __call__(self, *arrays: Any, out: Any = None, **named: Any) -> Any:
        """Run the model on arrays in the order of its inputs, or by their names: signature's, else the tensors'.

        arrays: of NumPy in any layout, of whatever has DLPack (PyTorch, JAX) or a buffer, images of Pillow, nested
        lists; with `context=...` textures and buffers of moderngl. Other floats are rounded to the input's type, bytes
        of pictures are refused for floats: their range is the model's. Axes of size 1 may be missing, such as a batch
        of 1. Another size gives the input that size where the file leaves it open.
        out: what outputs are written to, for one output an array or anything with a buffer, a tensor of PyTorch's, a
        texture or buffer of moderngl; for several a dict of such by name, or a sequence. Of a model with an input of
        this name it is that input.

        The result is an array, or a dict of arrays by name of a model with several outputs; or what `out` was. Arrays
        are the caller's own: torch.from_dlpack(result) shares their memory. Raises ValueError for what does not fit,
        RuntimeError where the model cannot run.
        """
        with self._turns:
            return self._run(arrays, out, named)

    async def run_async(self, *arrays: Any, out: Any = None, **named: Any) -> Any:
        """`result = await interpreter.run_async(image)`: the short form, while the event loop goes on.

        Runs of an interpreter are done in the order in which they were asked for, those of several at the same time.
        Arrays are in use until it returns, also if it is cancelled: what waits then is never done, what computes ends
        first. Raises as the short form.
        """
        self._check_open()
        if self._options.context is not None:
            raise CallOrderError("what works in a context of yours belongs to the thread that made it: call it there")
        return await self._turns.run(lambda: self(*arrays, out=out, **named))

    def _run(self, arrays: Sequence[Any], out: Any, named: Mapping[str, Any]) -> Any:
        way, subgraph = self._ready_way(), self._subgraph
        inputs, outputs = self._inputs, self._outputs
        if "out" in inputs and out is not None:
            named, out = {**named, "out": out}, None
        given = self._given(arrays, named, inputs)
        bound = [
            TensorBinding(index, given.pop(index), "BHWC", False) for index in [*given] if is_gl_object(given[index])
        ]
        values = {index: self._fitted(index, value) for index, value in given.items()}
        for index, value in values.items():
            if way.shape(subgraph, index) != value.shape:
                way.resize(subgraph, index, value.shape, True)
        way = self._allocate()
        for index, value in values.items():
            way.set(subgraph, index, value)
        targets = {} if out is None else self._targets(out, outputs)
        bound += [TensorBinding(index, each, "BHWC", True) for index, each in targets.items() if is_gl_object(each)]
        try:
            for binding in bound:
                way.bind(subgraph, binding)
            way.invoke(subgraph)
            for index, target in targets.items():
                if not is_gl_object(target):  # whose size the run may have told
                    details, shape = self._source.details(subgraph), way.shape(subgraph, index)
                    way.get(subgraph, index, as_target(target, details.name(index), details.dtype(index), shape))
        finally:
            for binding in bound:
                way.unbind(subgraph, binding.index)
        if out is not None:
            return out
        if len(outputs) == 1:
            (index,) = outputs.values()
            return way.get(subgraph, index)
        return {name: way.get(subgraph, index) for name, index in outputs.items()}

    @property
    def backend(self) -> str:
        """What runs the model: "gl", "native" or "tflite"; before that is decided, what was asked for."""
        return self._way.report.backend if self._way else self._options.backend

    def report(self) -> InterpreterReport:
        """What runs where, and why; str() of it is for people."""
        if self._way is None:
            return InterpreterReport("", precision=self._options.precision)
        found, decision = self._way.report, self._decision
        if decision is None:
            return found
        return replace(found, reasons=(*decision.reasons, *found.reasons), times_ms=decision.times_ms)

    # Its end ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Free what it holds; it cannot run any more. A second call does nothing."""
        with self._turns:
            way, self._way, self._is_closed = self._way, None, True
            for name in ("invoke", "set_tensor", "get_tensor"):
                vars(self).pop(name, None)
            if way is not None:
                way.close()
        self._turns.close()

    def __reduce__(self) -> tuple[Callable[..., "ModelInterpreter"], tuple[object, ...]]:
        """Pickled and copied it is another interpreter of the same model, options and sizes, with no values in it.

        Raises UsageError where it has what cannot be copied.
        """
        options = self._options
        if self._is_closed or options.delegates or options.custom_ops or options.context:
            what = "that is closed" if self._is_closed else "with delegates, custom ops or a context"
            raise UsageError(f"an interpreter {what} cannot be copied or pickled; make another one")
        path = self._source.path
        given = {
            "model_path": path and os.path.abspath(path),
            "model_content": None if path else self._source.data,
            "backend": options.backend,
            "threads": options.threads,
            "precision": options.precision,
            "signature": self._signature,
            "exact": options.exact,
            "quiet": options.quiet,
            "experimental_op_resolver_type": options.resolver,
            "experimental_preserve_all_tensors": options.preserve_all,
            **dict(options.further),
        }
        return _made_again, (type(self), given, {key: dict(shapes) for key, shapes in self._sizes.all.items()})

    def __enter__(self) -> "ModelInterpreter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<texelflow.Interpreter {self._source.name!r}: {'closed' if self._is_closed else self.backend}>"

    # Parts --------------------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._is_closed:
            raise CallOrderError(_CLOSED)

    def _unallocated(self, index: object, prefix: str = "") -> TexelflowError:
        if self._is_closed:
            return CallValueError(_CLOSED)
        check_index(index, self._source.details(self._subgraph).tensor_count)
        return CallValueError(f"{prefix}Tensor is unallocated. Try calling allocate_tensors() first")

    def _details_of(self, subgraph: int, index: int) -> Details:
        if self._way is None:
            return self._source.details(subgraph).tensor(index, self._sizes.shape(subgraph, index))
        own = self._way.tensor_details(subgraph, index)
        return own or self._source.details(subgraph).tensor(index, self._way.shape(subgraph, index))

    def _ready_way(self) -> RunWay:
        """The first that works, which stays."""
        if self._way is None:
            self._check_open()
            self._way = self._opened()
            self._turns.survives_fork = self._way.survives_fork
            self._bind()
            if self._options.context is not None:
                weakref.finalize(self, _let_go, self._way).atexit = False
        return self._way

    def _opened(self) -> RunWay:
        if not self._ways:
            runtime = installed_runtime()
            try:
                way, self._decision = open_quickest(
                    self._source, self._sizes, self._options, self._subgraph, self._open_choice, runtime
                )
                return way
            except (UnsupportedError, DeviceError):  # trials have values that a model may refuse: texts, no indices
                if not runtime:
                    raise
                return self._open("tflite")
        whole, *in_parts = self._ways
        try:
            return self._open(whole)
        except UnsupportedError as error:
            told = str(error)
        for name in in_parts:
            try:
                return self._open(name)
            except UnsupportedError as error:
                told = str(error)
            except DeviceError as error:  # no TensorFlow Lite
                told = f"{told}; what could run the rest: {error}"
        if any(map(self._sizes.resized, self._source.entries)) and (other := self._other_sizes()):
            return other
        raise AllocationError(told)

    def _allocate(self) -> RunWay:
        """Be ready for inputs of the sizes that were asked for. Raises AllocationError."""
        way = self._ready_way()
        try:
            way.allocate(self._subgraph)
        except AllocationError:
            if not self._gives_way():
                raise
        return self._ready_way()

    def _gives_way(self) -> bool:
        """Have TensorFlow Lite run inputs of sizes that our own code does not take, if it does and no state is lost."""
        graphs = [self._source.graph(number) for number in self._source.entries]
        is_ours = isinstance(self._way, OwnWay) or (isinstance(self._way, TfliteWay) and self._way.has_parts)
        if self._way is None or not is_ours or any(map(keeps_states, graphs)):
            return False
        other = self._other_sizes()
        if other is None:
            return False
        self._way.close()
        self._way = other
        self._turns.survives_fork = other.survives_fork
        self._bind()
        return True

    def _other_sizes(self) -> RunWay | None:
        """TensorFlow Lite alone, ready for sizes that our own code does not take; None where it does not either."""
        try:
            other = TfliteWay(self._source, self._sizes, self._options)
            other.allocate(self._subgraph)
        except TexelflowError:
            return None
        return other

    def _open_choice(self, choice: RunChoice) -> RunWay:
        return self._open(choice.way, choice.threads)

    def _open(self, name: WayName, threads: int | None = None) -> RunWay:
        """Raises UnsupportedError where the model does not run in that way, DeviceError where the machine lacks it."""
        options = replace(self._options, threads=threads or self._options.threads)
        if name == "native":
            return OwnWay(self._source, self._sizes, NativeMaker(options.threads, options.precision))
        if name == "gl":
            return OwnWay(self._source, self._sizes, GlMaker(options.precision, options.context))
        return TfliteWay(self._source, self._sizes, options, name)

    def _bind(self) -> None:
        """Let calls that are made for every run go straight to the way, unless a subclass has its own."""
        direct = self._way.direct_calls(self._turns) if isinstance(self._way, TfliteWay) and not self._subgraph else {}
        for name, call in direct.items():
            if getattr(type(self), name) is getattr(ModelInterpreter, name):
                vars(self)[name] = call

    @cached_property
    def _inputs(self) -> Mapping[str, int]:
        return self._names(True)

    @cached_property
    def _outputs(self) -> Mapping[str, int]:
        return self._names(False)

    def _names(self, of_inputs: bool) -> Mapping[str, int]:
        """Inputs or outputs by name: of the subgraph's signature, if it has one; in the file's order."""
        details = self._source.details(self._subgraph)
        tensors = details.inputs if of_inputs else details.outputs
        for signature in self._source.signatures.values():
            if signature.subgraph == self._subgraph:
                by_index = {index: name for name, index in _side(signature, of_inputs).items()}
                if set(tensors) <= by_index.keys():
                    return {by_index[index]: index for index in tensors}
        return {details.name(index): index for index in tensors}

    def _given(self, arrays: Sequence[Any], named: Mapping[str, Any], inputs: Mapping[str, int]) -> dict[int, Any]:
        """What was given for each input. Raises CallValueError where that is not one for each."""
        told = f"inputs are {', '.join(inputs)}"
        if len(arrays) > len(inputs):
            raise CallValueError(f"{len(arrays)} arrays for {counted(len(inputs), 'input')}; {told}")
        found = dict(zip(inputs, arrays, strict=False))
        for name, value in named.items():
            if name not in inputs:
                raise CallValueError(f"there is no input {name!r}{meant(name, inputs)}; {told}")
            if name in found:
                raise CallValueError(f"input {name!r} is given twice, by its place and by its name; {told}")
            found[name] = value
        if missing := [name for name in inputs if name not in found]:
            raise CallValueError(f"input {missing[0]!r} is not given; {told}")
        return {inputs[name]: value for name, value in found.items()}

    def _fitted(self, index: int, value: Any) -> AnyTensor:
        """An array of the input's type, and of its shape but for sizes that are open. Raises ArrayError."""
        details = self._source.details(self._subgraph)
        dtype, shape = details.dtype(index), self._sizes.shape(self._subgraph, index)
        if dtype is None or dtype is np.bytes_:
            return np.asarray(value)
        signature = details.shape_signature(index)
        if signature is not None and len(signature) == len(shape):
            shape = tuple(-1 if known == -1 else size for known, size in zip(signature, shape, strict=True))
        return as_input(value, details.name(index), dtype, shape)

    def _targets(self, out: Any, outputs: Mapping[str, int]) -> dict[int, Any]:
        """What outputs are written to, by index. Raises CallValueError where that is not one for each."""
        told = f"outputs are {', '.join(outputs)}"
        if len(outputs) == 1 and not isinstance(out, Mapping):
            given = dict(zip(outputs, [out], strict=True))
        elif isinstance(out, Mapping):
            given = dict(out)
        else:
            is_one_for_each = isinstance(out, list | tuple) and len(out) == len(outputs)
            given = dict(zip(outputs, out, strict=True)) if is_one_for_each else {}
        if given.keys() != outputs.keys():
            raise CallValueError(f"out is to have memory for {counted(len(outputs), 'output')}; {told}")
        return {outputs[name]: target for name, target in given.items()}


def _side(signature: SignatureDetails, of_inputs: bool) -> Mapping[str, int]:
    return signature.inputs if of_inputs else signature.outputs


def _let_go(way: RunWay) -> None:
    """Free what is in a context of the caller's, if this is its thread and it is there still."""
    with contextlib.suppress(TexelflowError):
        way.close()


def _made_again(
    kind: type[ModelInterpreter], given: Mapping[str, Any], sizes: Mapping[int, Mapping[int, Shape]]
) -> ModelInterpreter:
    """An interpreter like one that was pickled."""
    made = kind(**given)
    for subgraph, shapes in sizes.items():
        for index, shape in shapes.items():
            (made._way or made._sizes).resize(subgraph, index, shape, False)
    return made
